// From the GPU, and there and back: arrays large and small, and pictures.
import { Tensor, webgpu } from "../../../js/index.js";
import { giveBack, makeBuffer, makeStaging, read, readBuffers, same } from "./gpu.mjs";

const MB = 2 ** 20;

/** GPU -> an existing NumPy array. */
export const download = {
  path: "download",
  sizes: [64, MB, 64 * MB, 256 * MB],
  make({ bridge, device, pool, python, keep }, bytes) {
    const array = keep(python.make_array(bytes));
    const target = keep(bridge.tensor(array));
    const expected = target.data.slice();
    const gpu = keep(target.to(device));
    const staging = keep(makeStaging(device, bytes));
    const ways = {
      "dlpack-web": () => gpu.read(target),
      floor: () =>
        readBuffers(device, [gpu.buffer], staging, (range) => {
          target.data.set(new Float32Array(range));
        }),
    };
    const more = {
      "dlpack-web, cold"() {
        pool.drop();
        return gpu.read(target);
      },
      async "fresh staging+slice()+assign"() {
        const once = makeStaging(device, bytes);
        const copy = await readBuffers(device, [gpu.buffer], once, (range) => range.slice());
        once.destroy();
        const borrowed = array.getBuffer();
        borrowed.data.set(new Float32Array(copy));
        borrowed.release();
      },
    };
    return {
      ways: bytes > 64 * MB ? ways : { ...ways, ...more }, // for memory
      wipe: () => target.data.fill(0),
      check: () => same(target.data, expected),
    };
  },
};

const COUNT = 32;

const arraysOf = (range) =>
  Array.from({ length: COUNT }, (_, i) => {
    const size = range.byteLength / COUNT;
    return new Float32Array(range.slice(i * size, (i + 1) * size));
  });

/** 32 small tensors back at once; or up and down. */
export const small = {
  path: "32 arrays",
  layouts: ["down", "up and down"],
  sizes: [4096],
  make({ device, keep }, bytes, layout) {
    const arrays = Array.from({ length: COUNT }, (_, i) =>
      new Float32Array(bytes / 4).fill(i + 0.5),
    );
    const isUp = layout === "up and down";
    const hosts = arrays.map((array) => keep(Tensor.fromTypedArray(array)));
    const up = () => hosts.map((host) => host.to(device));
    const writeAll = () =>
      arrays.map((array) => {
        const buffer = makeBuffer(device, bytes);
        device.queue.writeBuffer(buffer, 0, array);
        return buffer;
      });
    const tensors = up().map(keep);
    const raw = writeAll().map(keep);
    const staging = keep(makeStaging(device, COUNT * bytes));
    const withFresh = async (made, use) => {
      const back = await use(made);
      made.forEach(giveBack);
      return back;
    };
    const floor = (buffers) => readBuffers(device, buffers, staging, arraysOf);
    const oneByOne = async (buffers) => {
      const back = [];
      for (const buffer of buffers) back.push(await read(device, buffer));
      return back;
    };
    return {
      ways: {
        "dlpack-web": () => (isUp ? withFresh(up(), webgpu.readAll) : webgpu.readAll(tensors)),
        "one after the other": () => (isUp ? withFresh(writeAll(), oneByOne) : oneByOne(raw)),
        floor: () => (isUp ? withFresh(writeAll(), floor) : floor(raw)),
      },
      check: (back) => back.length === COUNT && back.every((each, i) => same(each, arrays[i])),
    };
  },
};

/** 16 pictures, one after the other on a canvas. */
export const pictures = {
  path: "pictures",
  layouts: ["16"],
  sizes: [MB / 4],
  make({ device, keep, settle }, bytes) {
    const side = Math.sqrt(bytes / 4);
    const pictures = Array.from({ length: 16 }, (_, i) => {
      const grey = 0xff000000 + 0x010101 * 10 * i; // alpha is 255
      return new Uint8Array(new Uint32Array(bytes / 4).fill(grey).buffer);
    });
    const shape = [side, side, 4];
    const hosts = pictures.map((rgba) => keep(Tensor.fromTypedArray(rgba, { shape })));
    const canvas = new OffscreenCanvas(side, side);
    const plain = new OffscreenCanvas(side, side);
    const context = plain.getContext("webgpu");
    const format = navigator.gpu.getPreferredCanvasFormat();
    const usage = GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT;
    context.configure({ device, format, usage, alphaMode: "opaque" });
    return {
      ways: {
        async "dlpack-web"() {
          for (const host of hosts) {
            const tensor = host.to(device);
            await webgpu.toCanvas(tensor, canvas);
            tensor.release();
          }
          return canvas;
        },
        async writeTexture() {
          for (const rgba of pictures) {
            const texture = context.getCurrentTexture();
            device.queue.writeTexture({ texture }, rgba, { bytesPerRow: 4 * side }, [side, side]);
            await device.queue.onSubmittedWorkDone();
          }
          return plain;
        },
      },
      settle,
      check(drawn) {
        const copy = new OffscreenCanvas(side, side).getContext("2d");
        copy.drawImage(drawn, 0, 0);
        return copy.getImageData(side - 1, side - 1, 1, 1).data[0] === 150;
      },
    };
  },
};
