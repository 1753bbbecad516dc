// Short uses of WebGPU, in each call of which something may go wrong. `make` makes, before anything
// does, what a scenario needs; `act` gives a value that is the same each time. What either passes to
// `keep` is released when it is over.

const SMALL = 6;
/** From 64 KiB on the making of a buffer is watched. */
const LARGE = 20_000;

const DOUBLE = `
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&src)) { dst[id.x] = 2 * src[id.x]; }
}`;
const ADD = `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<uniform> y: u32;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] += y; }
}`;

const floats = (count) => Float32Array.from({ length: count }, (_, i) => i - 3.5);
const bytes = (count) => Uint8Array.from({ length: count }, (_, i) => 7 * i + 1);

/** What is uploaded in three pieces. */
const pieces = (value) => new Uint8Array(9 << 20).fill(value);

/** The value that all have: they are too many to be compared as text. */
function only(values) {
  if (values.some((value) => value !== values[0])) throw new Error("some are of another upload");
  return values[0];
}

/** A buffer that somebody else made. */
function borrowed(device, size) {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ size, usage });
  device.queue.writeBuffer(buffer, 0, bytes(size));
  return buffer;
}

function picture() {
  const data = Uint8ClampedArray.from({ length: 5 * 3 * 4 }, (_, i) => (i % 4 === 3 ? 255 : 9 * i));
  return new ImageData(data, 5, 3);
}

function canvas() {
  const made = new OffscreenCanvas(5, 3);
  made.getContext("2d").putImageData(picture(), 0, 0);
  return made;
}

/** Python that is to be run with a function `main(device, array)`. */
const PYTHON = `
import numpy as np
import dlpack_web as dlw

ADD = '''${ADD}'''

async def upload(device, array):
    with dlw.from_dlpack(np.arange(6.0), device=f"webgpu:{device}", dtype="float32") as t:
        return (await t.to_host()).tolist()

async def kernel(device, array):
    with dlw.empty(5, "uint32", device=f"webgpu:{device}") as t:
        dlw.webgpu.Kernel(ADD)(t, 3)
        return (await t.to_host()).tolist()

async def blocking(device, array):
    with dlw.from_dlpack(np.arange(6, dtype="u1"), device=f"webgpu:{device}") as t:
        return np.asarray(t).tolist()

async def image(device, canvas):
    with await dlw.webgpu.from_image(canvas, f"webgpu:{device}") as t:
        return (await t.to_host()).tolist()
`;

/** Each scenario by its name. */
export function scenarios({ library, exchange, bridge, pyodide }) {
  const { Tensor, webgpu } = library;
  const { Kernel, fromImage, toCanvas, toTexture, timed } = webgpu;
  const { take, fit } = exchange;

  const up = (keep, device, array, options = {}) => {
    const host = Tensor.fromTypedArray(array, options);
    try {
      return keep(host.to(device));
    } finally {
      host.release();
    }
  };
  const uploading = (array, { to, ...how } = {}) => ({
    make: () => ({ host: Tensor.fromTypedArray(array, how) }),
    act: ({ device, keep, host }) => keep(host.to(device, to)).read(),
  });
  const uploaded = (array, act) => ({
    make: ({ device, keep }) => ({ x: up(keep, device, array) }),
    act,
  });

  pyodide.runPython(PYTHON);
  const python = (name, argument = () => null) => ({
    make: ({ device, keep }) => {
      const empty = keep(bridge.empty([1], "uint8", { device })); // registers the device
      return { id: empty.device.id, argument: argument() };
    },
    act: async ({ id, argument }) => {
      const main = pyodide.globals.get(name);
      const result = await main(id, argument);
      try {
        return result.toJs();
      } finally {
        result.destroy();
        main.destroy();
      }
    },
  });

  return {
    upload: uploading(floats(SMALL)),
    upload_large: uploading(floats(LARGE)),
    upload_odd: uploading(bytes(7)),
    upload_strided: uploading(floats(SMALL), { shape: [2, 3], strides: [1, 2] }),
    upload_pieces: {
      make: () => ({ host: Tensor.fromTypedArray(pieces(3)) }),
      act: async ({ device, keep, host }) => only(await keep(host.to(device)).read()),
    },
    upload_usage: uploading(floats(SMALL), { to: { usage: 128 | 4 } }),
    upload_converted: uploading(Float64Array.from(floats(SMALL)), { to: { dtype: "float32" } }),
    upload_from_python: {
      make: () => ({ array: pyodide.runPython("import numpy; numpy.arange(12.0)[::-2]") }),
      act: ({ device, keep, array }) => {
        const host = keep(bridge.tensor(array));
        return keep(host.to(device, { dtype: "float32" })).read();
      },
      end: ({ array }) => array.destroy(),
    },
    empty: {
      act: ({ device, keep }) => keep(bridge.empty([5], "uint16", { device })).read(),
    },
    empty_again: {
      make: ({ device }) => up((x) => x, device, floats(SMALL)).release(),
      act: ({ device, keep }) => keep(bridge.empty([5], "float32", { device })).read(),
    },
    upload_again: {
      make: ({ device }) => up((x) => x, device, floats(SMALL)).release(),
      act: ({ device, keep }) => up(keep, device, bytes(17)).read(),
    },
    read: uploaded(floats(SMALL), ({ x }) => x.read()),
    read_large: uploaded(floats(LARGE), ({ x }) => x.read()),
    read_view: uploaded(bytes(23), ({ keep, x }) => keep(x.slice([5, 20, 3])).read()),
    read_into: uploaded(floats(SMALL), async ({ keep, x }) => {
      const out = keep(bridge.empty([SMALL]));
      await x.read(out);
      return out.data.slice();
    }),
    read_none: uploaded(floats(0), ({ x }) => x.read()),
    read_all: {
      make: ({ device, keep }) => {
        const buffer = borrowed(device, 32);
        const lent = { device, shape: [4], dtype: "int32", byteOffset: 8 };
        return {
          buffer,
          tensors: [
            up(keep, device, floats(SMALL)),
            keep(Tensor.fromGPUBuffer(buffer, lent)),
            up(keep, device, bytes(3)),
            keep(Tensor.fromTypedArray(floats(2))),
          ],
        };
      },
      act: ({ tensors }) => webgpu.readAll(tensors),
      end: ({ buffer }) => buffer.destroy(),
    },
    reads_at_once: uploaded(floats(SMALL), async ({ keep, x }) => {
      const view = keep(x.slice([1, 4]));
      const reads = [x.read(), view.read(), x.read()];
      view.release();
      for (const { status, reason } of await Promise.allSettled(reads)) {
        if (status === "rejected") throw reason;
      }
      return Promise.all(reads);
    }),
    read_released: uploaded(floats(SMALL), ({ x }) => {
      const read = x.read();
      x.release();
      return read;
    }),
    write: uploaded(floats(SMALL), ({ x }) => {
      x.write(floats(SMALL).map((value) => -value));
      return x.read();
    }),
    write_pieces: uploaded(pieces(3), async ({ x }) => {
      try {
        x.write(pieces(4));
      } catch (error) {
        only(await x.read()); // the first piece failed: all are what they were
        throw error;
      }
      return only(await x.read());
    }),
    write_view: uploaded(floats(SMALL), ({ keep, x }) => {
      keep(x.slice([2, 5])).write(floats(3));
      return x.read();
    }),
    write_from_gpu: uploaded(bytes(7), ({ device, keep, x }) => {
      const y = keep(bridge.empty([7], "uint8", { device }));
      y.write(x);
      return y.read();
    }),
    write_within: uploaded(bytes(16), ({ keep, x }) => {
      keep(x.slice([8, 16])).write(keep(x.slice([0, 8])));
      return x.read();
    }),
    kernel: uploaded(floats(SMALL), ({ device, keep, x }) => {
      const y = keep(bridge.empty([SMALL], "float32", { device }));
      new Kernel(device, DOUBLE).run([x, y]);
      return y.read();
    }),
    kernel_again: {
      make: ({ device, keep }) => {
        const [x, y] = [up(keep, device, floats(SMALL)), up(keep, device, floats(SMALL))];
        const kernel = new Kernel(device, DOUBLE);
        kernel.run([x, y]);
        return { kernel, x, y };
      },
      act: ({ kernel, x, y }) => {
        kernel.run([y, x]);
        kernel.run([x, y]);
        return y.read();
      },
    },
    kernel_aside: {
      ...uploaded(bytes(64), ({ device, keep, x }) => {
        new Kernel(device, ADD).run([keep(x.slice([4, 12])), 3]);
        return x.read();
      }),
      keeps: 1,
    },
    kernel_small: {
      make: ({ device, keep }) => ({ x: up(keep, device, bytes(7)) }),
      act: ({ device, keep, x }) => {
        new Kernel(device, ADD).run([x, keep(bridge.empty([1], "uint32", { device }))]);
        return x.read();
      },
    },
    kernel_over_one_buffer: uploaded(bytes(512 + 64), ({ device, keep, x }) => {
      const [from, to] = [keep(x.slice([0, 64])), keep(x.slice([512, 576]))];
      new Kernel(device, DOUBLE, { check: false }).run([from, to]);
      return x.read();
    }),
    ready: {
      act: async ({ device }) => {
        await new Kernel(device, DOUBLE).ready;
        return 1;
      },
    },
    time: uploaded(floats(SMALL), async ({ device, keep, x }) => {
      const y = keep(bridge.empty([SMALL], "float32", { device }));
      const kernel = new Kernel(device, DOUBLE);
      const time = await timed(device, (timestampWrites) => {
        kernel.run([x, y], { workgroups: 1, timestampWrites });
      });
      return [time >= 0, await y.read()];
    }),
    image_data: {
      act: async ({ device, keep }) => keep(await fromImage(device, picture())).read(),
    },
    image_canvas: {
      make: () => ({ source: canvas() }),
      act: async ({ device, keep, source }) => {
        const options = { dtype: "float32", channels: 3 };
        return keep(await fromImage(device, source, options)).read();
      },
    },
    image_texture: {
      make: ({ device }) => {
        const usage = GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.COPY_DST;
        const texture = device.createTexture({ size: [5, 3], format: "rgba8unorm", usage });
        const { data } = picture();
        device.queue.writeTexture({ texture }, data, { bytesPerRow: 20 }, [5, 3]);
        return { texture };
      },
      act: async ({ device, keep, texture }) => {
        const options = { channels: 3 };
        return keep(await fromImage(device, texture, options)).read();
      },
      end: ({ texture }) => texture.destroy(),
    },
    to_canvas: {
      make: ({ device, keep }) => {
        const source = canvas();
        return { x: up(keep, device, bytes(60), { shape: [3, 5, 4] }), source };
      },
      act: async ({ x }) => {
        const target = new OffscreenCanvas(1, 1);
        await toCanvas(x, target);
        return [target.width, target.height];
      },
    },
    to_texture: {
      make: ({ device, keep }) => ({ x: up(keep, device, bytes(45), { shape: [3, 5, 3] }) }),
      act: async ({ device, keep, x }) => {
        const texture = await toTexture(x);
        try {
          return await keep(await fromImage(device, texture)).read();
        } finally {
          texture.destroy();
        }
      },
    },
    contiguous: {
      make: () => ({ host: Tensor.fromTypedArray(floats(SMALL), { strides: [2], shape: [3] }) }),
      act: ({ device, keep, host }) => keep(keep(host.contiguous()).to(device)).read(),
    },
    copy: uploaded(bytes(9), ({ keep, x }) => keep(take(x, { copy: true })).read()),
    fit_padded: uploaded(bytes(9), ({ device, keep, x }) =>
      keep(fit(x, { device, needs: { offset: 0, padTo: 48 } })).read(),
    ),
    fit_usage: uploaded(floats(SMALL), ({ device, keep, x }) =>
      keep(fit(x, { device, needs: { usage: GPUBufferUsage.VERTEX } })).read(),
    ),
    fit_upload: {
      make: () => ({ host: Tensor.fromTypedArray(bytes(9)) }),
      act: ({ device, keep, host }) => keep(fit(host, { device, needs: { padTo: 64 } })).read(),
    },
    lent_and_back: uploaded(floats(SMALL), async ({ keep, x }) => {
      const proxy = bridge.toPython(x);
      try {
        return await keep(bridge.tensor(proxy)).read();
      } finally {
        proxy.destroy();
      }
    }),
    request_device: {
      act: async ({ keep }) => {
        const device = await webgpu.requestDevice();
        try {
          return await keep(bridge.empty([1], "int8", { device })).read();
        } finally {
          device.destroy();
        }
      },
    },
    python_upload: python("upload"),
    python_kernel: { ...python("kernel"), keeps: 1 },
    python_blocking: { ...python("blocking"), retries: true }, // NumPy asks twice
    python_image: python("image", canvas),
  };
}
