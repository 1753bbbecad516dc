// What is compared: today's ways, ours, and the floor below which nothing can go.
// The floors reach into Pyodide's private parts, which nobody should do outside a benchmark.

const PYBUF_FULL_RO = 0x11c; // strides and format, read-only accepted: what NumPy is asked for
const USAGE = { STORAGE: 0x80, UNIFORM: 0x40, COPY_DST: 0x08, COPY_SRC: 0x04, MAP_READ: 0x01 };
export const TENSOR_USAGE = USAGE.STORAGE | USAGE.UNIFORM | USAGE.COPY_DST | USAGE.COPY_SRC;

/** With buffers as large as the adapter allows. */
export async function requestDevice(given) {
  const adapter = given ?? (await navigator.gpu.requestAdapter());
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  return adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
}

export function expect(condition, what) {
  if (!condition) throw new Error(`wrong result: ${what}`);
}

/** Whether two typed arrays have the same values; a loop, as some have a gigabyte. */
export function same(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Waits until a device is done, and has freed what was destroyed. A submit with work in it comes
 * before: without one Dawn in Node waits only until writeBuffer has copied, and nothing is freed.
 */
export function settling(device) {
  const word = device.createBuffer({ size: 4, usage: USAGE.COPY_DST });
  return async () => {
    clear(device, word);
    await device.queue.onSubmittedWorkDone();
  };
}

/** One workgroup, by hand. */
export function dispatch(device, pipeline, group) {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(1);
  pass.end();
  device.queue.submit([encoder.finish()]);
}

/** A float32 ndarray of so many bytes, as the PyProxy that JavaScript holds. */
export function makeArray(pyodide, bytes) {
  const make = pyodide.runPython(
    "import numpy as np\nlambda n: np.random.default_rng(n).random(n, dtype=np.float32)",
  );
  const array = make(bytes / 4);
  make.destroy();
  return array;
}

/** NumPy array -> typed array over its memory, and given back. */
export function viewWays({ pyodide, bridge }, bytes) {
  const array = makeArray(pyodide, bytes);
  const count = bytes / 4;
  const { _module: wasm } = pyodide;
  const buffer = wasm._malloc(64); // a Py_buffer
  const expected = array.getBuffer();
  const check = (view) => expect(same(view, expected.data), "view");
  const keep = { view: null };

  function ours() {
    const tensor = bridge.tensor(array);
    keep.view = tensor.data;
    tensor.release();
  }
  function getBuffer() {
    const borrowed = array.getBuffer();
    keep.view = borrowed.data;
    borrowed.release();
  }
  function floor() {
    wasm._PyObject_GetBuffer(wasm.PyProxy_getPtr(array), buffer, PYBUF_FULL_RO);
    keep.view = new Float32Array(wasm.HEAPU8.buffer, wasm.HEAPU32[buffer >> 2], count);
    wasm._PyBuffer_Release(buffer);
  }
  const way = (name, run) => ({
    name,
    run,
    verify() {
      run();
      check(keep.view);
    },
  });
  return {
    ways: [way("dlpack-web", ours), way("getBuffer()+release()", getBuffer), way("floor", floor)],
    done() {
      expected.release();
      array.destroy();
    },
  };
}

/** Reading `tensor.data` again and again. */
export function dataWays({ pyodide, bridge }, bytes) {
  const array = makeArray(pyodide, bytes);
  const tensor = bridge.tensor(array);
  const kept = tensor.data;
  let view = null;
  const verify = () => expect(view === null || view[0] === kept[0], "data");
  return {
    ways: [
      {
        name: "dlpack-web",
        run() {
          view = tensor.data;
        },
        verify,
      },
      {
        name: "floor", // a variable, and whether growth has emptied the view in it
        run() {
          view = kept.length > 0 ? kept : null;
        },
        verify,
      },
    ],
    done() {
      tensor.release();
      array.destroy();
    },
  };
}

const LAYOUTS = {
  contiguous: { source: "array", today: null },
  // What people do first: NumPy makes a packed or narrowed array, which is then written.
  transposed: { source: "array.reshape(side, -1).T", today: "np.ascontiguousarray(source)" },
  strided: { source: "np.repeat(array, 2)[::2]", today: "np.ascontiguousarray(source)" },
  f64: { source: "array.astype('f8')", today: "source.astype('f4')", dtype: "float32" },
  // Into a buffer that commands use which may not be done yet.
  "in use": { source: "array", today: null },
};
/** MiB that one write by hand should have at most: larger ones take fresh staging memory. */
const PIECE = 4;

/** The array in a layout, so that what arrives on the GPU has `bytes` bytes. */
function layOut(pyodide, array, layout) {
  const { source, today } = LAYOUTS[layout];
  const make = pyodide.runPython(`
import numpy as np
def make(array):
    side = 1 << (array.size.bit_length() // 2)
    source = ${source}
    return source, lambda: ${today ?? "source"}
make`);
  const pair = make(array);
  const [laidOut, packed] = [pair.get(0), pair.get(1)];
  pair.destroy();
  make.destroy();
  return { laidOut, packed };
}

/**
 * NumPy array -> GPU. Today's ways make a buffer each time; ours takes one from its pool, or makes
 * one where none fits ("cold"). `pieces`: MiB, a floor for each.
 */
export function uploadWays(context, bytes, layout) {
  const { pyodide, bridge, device, pool, pieces = [PIECE] } = context;
  const array = makeArray(pyodide, bytes);
  const { laidOut, packed } = layOut(pyodide, array, layout);
  const { dtype } = LAYOUTS[layout];
  const source = bridge.tensor(laidOut);
  const existing = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const word = device.createBuffer({ size: 4, usage: USAGE.COPY_DST });
  const first = source.to(device, { dtype });
  const plain = packed();
  const expectedView = plain.getBuffer("f32");
  const expected = expectedView.data.slice();
  expectedView.release();
  const floorTensor = bridge.tensor(plain);
  const wasm = pyodide._module;
  const byWgpu = pyodide.runPython(`
from js import Uint8Array
def write(queue, buffer, array):
    view = memoryview(array).cast("B")
    copy = Uint8Array.new(view.nbytes)
    copy.assign(view)
    queue.writeBuffer(buffer, 0, copy, 0, view.nbytes)
write`);
  const settle = settling(device);
  const isUsed = layout === "in use";
  const copied = bridge.empty([bytes / 4], "float32");
  const fresh = (more) => device.createBuffer({ size: bytes, usage: TENSOR_USAGE, ...more });

  /** A way that uploads and says which buffer it filled and how that is given back. */
  const way = (name, upload) => ({
    name,
    settle,
    maxBatch: 64,
    run() {
      const { buffer, release } = upload();
      if (isUsed) copyBuffer(device, buffer.buffer ?? buffer, word, 4);
      release();
    },
    async verify() {
      clear(device, existing); // of what the way before has written
      const { buffer, release } = upload();
      const got = await readBuffer(device, buffer, bytes);
      expect(same(got, expected), `upload, ${layout}, ${name}`);
      release();
    },
  });
  /** A way of today, with NumPy's packing or narrowing before it. */
  const byHand = (name, write, more) =>
    way(name, () => {
      const proxy = packed();
      const buffer = fresh(more);
      write(buffer, proxy);
      proxy.destroy();
      return { buffer, release: () => buffer.destroy() };
    });
  const prefix = layout === "contiguous" ? "" : "NumPy first, ";
  const upload = () => {
    const tensor = source.to(device, { dtype });
    // A buffer that others see is not used again: look at it without asking for it.
    return { buffer: tensor, release: () => tensor.release() };
  };
  const ways = [
    way("dlpack-web", upload),
    way("dlpack-web, cold", () => {
      pool.drop();
      return upload();
    }),
    way("dlpack-web, write() into a tensor", () => {
      first.write(source, { convert: dtype !== undefined });
      return { buffer: first, release() {} };
    }),
    byHand(`${prefix}getBuffer()+writeBuffer`, (buffer, proxy) => {
      const borrowed = proxy.getBuffer();
      device.queue.writeBuffer(buffer, 0, borrowed.data);
      borrowed.release();
    }),
    byHand(`${prefix}toJs()+writeBuffer`, (buffer, proxy) => {
      device.queue.writeBuffer(buffer, 0, proxy.toJs());
    }),
    byHand(`${prefix}Uint8Array.assign()+writeBuffer, as wgpu-py calls`, (buffer, proxy) => {
      byWgpu(device.queue, buffer, proxy);
    }),
    byHand(
      `${prefix}mappedAtCreation`,
      (buffer, proxy) => {
        const borrowed = proxy.getBuffer("u8");
        new Uint8Array(buffer.getMappedRange()).set(borrowed.data);
        borrowed.release();
        buffer.unmap();
      },
      { mappedAtCreation: true },
    ),
    // By address, packed already, into a buffer that is there already.
    way("floor", () => {
      const { byteOffset } = floorTensor.data;
      device.queue.writeBuffer(existing, 0, wasm.HEAPU8.buffer, byteOffset, bytes);
      return { buffer: existing, release() {} };
    }),
    ...pieces.map((piece) =>
      way(`floor, pieces of ${piece} MiB and a submit`, () => {
        const { byteOffset } = floorTensor.data;
        for (let at = 0; at < bytes; at += piece << 20) {
          const size = Math.min(piece << 20, bytes - at);
          device.queue.writeBuffer(existing, at, wasm.HEAPU8.buffer, byteOffset + at, size);
          device.queue.submit([]);
        }
        return { buffer: existing, release() {} };
      }),
    ),
    {
      name: "floor, copied within memory",
      run: () => copied.data.set(floorTensor.data),
      verify() {
        copied.data.set(floorTensor.data);
        expect(same(copied.data, expected), "copied within memory");
      },
    },
    way("floor, cold", () => {
      const buffer = fresh();
      const { byteOffset } = floorTensor.data;
      device.queue.writeBuffer(buffer, 0, wasm.HEAPU8.buffer, byteOffset, bytes);
      return { buffer, release: () => buffer.destroy() };
    }),
  ];
  const kept = ways.filter(({ name }) => /^floor(?!, cold)|write\(\)/.test(name));
  if (isUsed) kept[0].name = "dlpack-web";
  // toJs() of a matrix makes nested arrays, which no queue takes.
  const plainWays = ways.filter(({ name }) => layout === "contiguous" || !name.includes("toJs()"));
  return {
    ways: isUsed ? kept : plainWays,
    done() {
      for (const buffer of [existing, word]) buffer.destroy();
      for (const tensor of [first, source, floorTensor, copied]) tensor.release();
      for (const proxy of [plain, packed, laidOut, array, byWgpu]) proxy.destroy();
    },
  };
}

/** Columns of float64 in JavaScript -> float32 tensors. */
export function columnWays({ device, library }, bytes) {
  const COUNT = 20;
  const length = bytes / COUNT / 4;
  const columns = Array.from({ length: COUNT }, (_, k) =>
    Float64Array.from({ length }, (_, i) => i / 3 + k),
  );
  const hosts = columns.map((column) => library.Tensor.fromTypedArray(column));
  const raw = columns.map(() => device.createBuffer({ size: 4 * length, usage: TENSOR_USAGE }));
  const scratch = new Float32Array(length);
  const way = (name, upload) => ({
    name,
    settle: settling(device),
    maxBatch: 16,
    run() {
      for (const each of upload()) each.release?.();
    },
    async verify() {
      for (const [k, each] of upload().entries()) {
        const found = await readBuffer(device, each, 4 * length);
        expect(same(found, Float32Array.from(columns[k])), `columns, ${name}`);
        each.release?.();
      }
    },
  });
  const byHand = (narrow) => () =>
    raw.map((buffer, k) => {
      device.queue.writeBuffer(buffer, 0, narrow(columns[k]));
      return buffer;
    });
  const kept = (column) => {
    scratch.set(column);
    return scratch;
  };
  return {
    ways: [
      way("dlpack-web", () => hosts.map((host) => host.to(device, { dtype: "float32" }))),
      way(
        "new Float32Array(column)+writeBuffer",
        byHand((column) => new Float32Array(column)),
      ),
      way("floor", byHand(kept)),
    ],
    done() {
      for (const host of hosts) host.release();
      for (const buffer of raw) buffer.destroy();
    },
  };
}

const ONE = `
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = 1; }`;

/**
 * A tensor of zeros on the GPU; WebGPU sees to it that a new buffer is, as late as it can: with a
 * kernel that writes into it, both have to.
 */
export function emptyWays({ bridge, device, pool, library }, bytes, layout) {
  const used = layout !== "contiguous";
  const kernel = new library.webgpu.Kernel(device, ONE);
  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module: device.createShaderModule({ code: ONE }) },
  });
  const way = (name, make) => ({
    name,
    settle: settling(device),
    maxBatch: 64,
    run: () => make().release(),
    async verify() {
      const { buffer, release } = make();
      const values = await readBuffer(device, buffer, bytes);
      expect(
        values.every((value, i) => value === (used && i === 0 ? 1 : 0)),
        name,
      );
      release();
    },
  });
  const empty = () => {
    const tensor = bridge.empty([bytes / 4], "float32", { device });
    if (used) kernel.run([tensor], { workgroups: 1 });
    return { buffer: tensor, release: () => tensor.release() };
  };
  return {
    ways: [
      way("dlpack-web", empty),
      way("dlpack-web, cold", () => {
        pool.drop();
        return empty();
      }),
      way("createBuffer()", () => {
        const buffer = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
        if (used) {
          const entries = [{ binding: 0, resource: { buffer } }];
          const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
          dispatch(device, pipeline, group);
        }
        return { buffer, release: () => buffer.destroy() };
      }),
    ],
    done() {},
  };
}

/** GPU -> an existing NumPy array. */
export function downloadWays({ pyodide, bridge, device, pool }, bytes) {
  const array = makeArray(pyodide, bytes);
  const source = bridge.tensor(array);
  const expected = source.data.slice();
  const gpu = source.to(device);
  const staging = device.createBuffer({ size: bytes, usage: USAGE.MAP_READ | USAGE.COPY_DST });

  /** A way that fills `array` again; verified after its memory was wiped. */
  const way = (name, each) => ({
    name,
    each,
    async verify() {
      source.data.fill(0);
      await each();
      expect(same(source.data, expected), `download, ${name}`);
    },
  });
  async function mapped(target, use) {
    copyBuffer(device, gpu.buffer, target, bytes);
    await target.mapAsync(GPUMapMode.READ);
    use(target.getMappedRange());
    target.unmap();
  }
  return {
    ways: [
      way("dlpack-web", () => gpu.read(source)),
      way("dlpack-web, cold", () => {
        pool.drop();
        return gpu.read(source);
      }),
      way("fresh staging+slice()+assign", async () => {
        const once = device.createBuffer({ size: bytes, usage: USAGE.MAP_READ | USAGE.COPY_DST });
        let copy;
        await mapped(once, (range) => {
          copy = new Float32Array(range.slice(0));
        });
        once.destroy();
        const borrowed = array.getBuffer();
        borrowed.data.set(copy);
        borrowed.release();
      }),
      way("floor", () => mapped(staging, (range) => source.data.set(new Float32Array(range)))),
    ],
    done() {
      gpu.release();
      staging.destroy();
      source.release();
      array.destroy();
    },
  };
}

/** 32 small tensors back at once. */
export function manyWays({ bridge, device }, bytes) {
  const COUNT = 32;
  const values = Float32Array.from({ length: bytes / 4 }, (_, i) => i);
  const host = bridge.empty([values.length], "float32");
  host.data.set(values);
  const tensors = Array.from({ length: COUNT }, () => host.to(device));
  const check = (arrays) =>
    expect(arrays.length === COUNT && arrays.every((a) => same(a, values)), "many");
  const staging = device.createBuffer({
    size: COUNT * bytes,
    usage: USAGE.MAP_READ | USAGE.COPY_DST,
  });
  const raw = tensors.map(() => device.createBuffer({ size: bytes, usage: TENSOR_USAGE }));
  for (const buffer of raw) device.queue.writeBuffer(buffer, 0, values);

  const way = (name, read) => ({
    name,
    each: read,
    async verify() {
      check(await read());
    },
  });
  return {
    ways: [
      way("dlpack-web", () => bridge.readAll(tensors)),
      way("one after the other", async () => {
        const arrays = [];
        for (const buffer of raw) arrays.push(await readBuffer(device, buffer, bytes));
        return arrays;
      }),
      way("floor", async () => {
        const encoder = device.createCommandEncoder();
        raw.forEach((buffer, i) => {
          encoder.copyBufferToBuffer(buffer, 0, staging, i * bytes, bytes);
        });
        device.queue.submit([encoder.finish()]);
        await staging.mapAsync(GPUMapMode.READ);
        const range = staging.getMappedRange();
        const arrays = raw.map((_, i) => new Float32Array(range.slice(i * bytes, (i + 1) * bytes)));
        staging.unmap();
        return arrays;
      }),
    ],
    done() {
      for (const tensor of [host, ...tensors]) tensor.release();
      for (const buffer of [staging, ...raw]) buffer.destroy();
    },
  };
}

/** 32 small arrays onto the GPU, and back. */
export function bothWays({ device, library }, bytes) {
  const arrays = Array.from({ length: 32 }, (_, i) => new Float32Array(bytes / 4).fill(i + 0.5));
  const { Tensor, webgpu } = library;
  const way = (name, each) => ({
    name,
    each,
    async verify() {
      const back = await each();
      expect(
        arrays.every((array, i) => same(array, back[i])),
        `both ways, ${name}`,
      );
    },
  });
  return {
    ways: [
      way("dlpack-web", async () => {
        const tensors = arrays.map((array) => {
          const host = Tensor.from(array);
          const tensor = host.to(device);
          host.release();
          return tensor;
        });
        const back = await webgpu.readAll(tensors);
        for (const tensor of tensors) tensor.release();
        return back;
      }),
      way("floor", async () => {
        const buffers = arrays.map(() => device.createBuffer({ size: bytes, usage: TENSOR_USAGE }));
        arrays.forEach((array, i) => {
          device.queue.writeBuffer(buffers[i], 0, array);
        });
        const size = arrays.length * bytes;
        const staging = device.createBuffer({ size, usage: USAGE.MAP_READ | USAGE.COPY_DST });
        const encoder = device.createCommandEncoder();
        buffers.forEach((buffer, i) => {
          encoder.copyBufferToBuffer(buffer, 0, staging, i * bytes, bytes);
        });
        device.queue.submit([encoder.finish()]);
        await staging.mapAsync(GPUMapMode.READ);
        const range = staging.getMappedRange();
        const back = arrays.map(
          (_, i) => new Float32Array(range.slice(i * bytes, (i + 1) * bytes)),
        );
        for (const buffer of [staging, ...buffers]) buffer.destroy();
        return back;
      }),
    ],
    done() {},
  };
}

/** 16 pictures of a quarter of a million bytes each, one after the other on a canvas. */
export function pictureWays({ device, library }, bytes) {
  const side = Math.sqrt(bytes / 4);
  const { Tensor, webgpu } = library;
  const pictures = Array.from({ length: 16 }, (_, i) => {
    const rgba = new Uint8Array(bytes).fill(10 * i);
    for (let at = 3; at < bytes; at += 4) rgba[at] = 255;
    return rgba;
  });
  const way = (name, draw) => {
    const canvas = new OffscreenCanvas(side, side);
    const each = () => draw(canvas);
    return {
      name,
      each,
      settle: () => device.queue.onSubmittedWorkDone(),
      async verify() {
        await each();
        const copy = new OffscreenCanvas(side, side).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        const [red] = copy.getImageData(side - 1, side - 1, 1, 1).data;
        expect(red === 150, `pictures, ${name}: ${red}`);
      },
    };
  };
  return {
    ways: [
      way("dlpack-web", async (canvas) => {
        for (const rgba of pictures) {
          const host = Tensor.from(rgba, { shape: [side, side, 4] });
          const tensor = host.to(device);
          await webgpu.toCanvas(tensor, canvas);
          tensor.release();
          host.release();
        }
      }),
      way("writeTexture", async (canvas) => {
        const context = canvas.getContext("webgpu");
        const format = navigator.gpu.getPreferredCanvasFormat();
        const usage = GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT;
        context.configure({ device, format, usage, alphaMode: "premultiplied" });
        for (const rgba of pictures) {
          const texture = context.getCurrentTexture();
          device.queue.writeTexture({ texture }, rgba, { bytesPerRow: 4 * side }, [side, side]);
          await device.queue.onSubmittedWorkDone();
        }
      }),
    ],
    done() {},
  };
}

function clear(device, buffer) {
  const encoder = device.createCommandEncoder();
  encoder.clearBuffer(buffer);
  device.queue.submit([encoder.finish()]);
}

export function copyBuffer(device, from, to, bytes) {
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
  device.queue.submit([encoder.finish()]);
}

export async function readBuffer(device, buffer, bytes) {
  if (buffer.read) return buffer.read(); // a tensor of ours
  const staging = device.createBuffer({ size: bytes, usage: USAGE.MAP_READ | USAGE.COPY_DST });
  copyBuffer(device, buffer, staging, bytes);
  await staging.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return values;
}
