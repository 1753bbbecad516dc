// WebGPU from JavaScript; each function is a test (hosts/harness.mjs).
import { equal, Skip, throws } from "./expect.mjs";
import { deviceOf, keep } from "./gpu.mjs";

const DOUBLE = `
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&src)) { dst[id.x] = 2 * src[id.x]; }
}`;

const pattern = (length) => Uint8Array.from({ length }, (_, i) => (i * 37) % 251);
const bytes = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

export async function every_dtype_makes_the_round_trip(context) {
  const device = await deviceOf(context);
  const table = await (await fetch("/tests/dtypes.json")).json();
  const vectors = [{ name: "float32x4" }, { name: "float4_e2m1fnx2" }];
  for (const { name } of [...table, ...vectors]) {
    for (const shape of [[3, 5], [1], [7], [], [0, 4]]) {
      const host = keep(context.bridge.empty(shape, name));
      bytes(host.data).set(pattern(host.nbytes));
      const gpu = keep(host.to(device));
      equal([gpu.dtype, gpu.shape], [name, shape]);
      const back = await gpu.read();
      // Without what lies behind packed elements, in the last byte.
      const elements = bytes(await host.read());
      equal(elements.slice(0, -1), bytes(host.data).slice(0, -1), `${name} ${shape}`);
      equal(bytes(back), elements, `${name} ${shape}`);
      equal(back.constructor.name, host.data.constructor.name, name);
    }
  }
}

export async function gpu_tensors_cross_to_python_and_back(context) {
  const { bridge, pyodide } = context;
  const device = await deviceOf(context);
  const gpu = bridge.empty([4], "int32", { device });
  const proxy = bridge.toPython(gpu);
  gpu.release();
  pyodide.globals.set("from_js", proxy);
  equal(pyodide.runPython("str(from_js.device).startswith('webgpu:')"), true);
  const again = keep(bridge.tensor(proxy));
  pyodide.runPython("from_js.release(); del from_js");
  proxy.destroy();
  equal(await again.read(), [0, 0, 0, 0]);
}

export async function strided_gpu_tensors_are_read_in_their_order(context) {
  const device = await deviceOf(context);
  const { Tensor } = context.library;
  const STORAGE_COPY = 0x80 | 0x08 | 0x04;
  const buffer = device.createBuffer({ size: 64, usage: STORAGE_COPY });
  device.queue.writeBuffer(
    buffer,
    0,
    Uint8Array.from({ length: 64 }, (_, i) => i),
  );
  const bytesAt = (dtype, step, ...starts) => {
    const bytes = starts.flatMap((start) => Array.from({ length: step }, (_, i) => start + i));
    return [dtype, bytes];
  };
  for (const [shape, strides, byteOffset, [dtype, expected]] of [
    [[2, 3], [1, 2], 0, bytesAt("float32", 4, 0, 8, 16, 4, 12, 20)],
    [[3], [-1], 8, bytesAt("float32", 4, 8, 4, 0)],
    [[2, 2], [0, 3], 4, bytesAt("int32", 4, 4, 16, 4, 16)],
    [[3], [3], 1, bytesAt("uint8", 1, 1, 4, 7)],
    [[2, 2], [-5, 2], 33, bytesAt("uint8", 1, 33, 35, 28, 30)],
    [[2], [4], 6, bytesAt("uint16", 2, 6, 14)],
    [[3], [1], 5, bytesAt("uint8", 1, 5, 6, 7)], // row-major at an odd place
  ]) {
    const tensor = keep(
      Tensor.fromGPUBuffer(buffer, { device, shape, dtype, byteOffset, strides }),
    );
    equal([...bytes(await tensor.read())], expected, `${dtype} [${shape}] by [${strides}]`);
    equal([...tensor.strides], strides);
  }
  const strided = keep(
    Tensor.fromGPUBuffer(buffer, {
      device,
      shape: [2, 3],
      strides: [1, 2],
      dtype: "float32",
    }),
  );
  const kernel = new context.library.webgpu.Kernel(device, DOUBLE);
  const out = keep(context.bridge.empty([6], "float32", { device }));
  const lent = (strides) =>
    Tensor.fromGPUBuffer(buffer, { device, shape: [2], strides, dtype: "int8" });
  for (const [name, refused] of [
    ["UnsupportedError", () => kernel.run([strided, out], { workgroups: 1 })],
    ["UnsupportedError", () => strided.contiguous()],
    ["RangeError", () => lent([64])],
    ["RangeError", () => lent([-1])],
    ["RangeError", () => lent([1, 1])],
  ]) {
    await throws(refused, name, /strides|reaches from byte/);
  }
  const proxy = context.bridge.toPython(strided);
  equal(proxy.strides.toJs(), [1, 2]);
  proxy.release();
  proxy.destroy();
  buffer.destroy();
}

/** A buffer of somebody else's, with 4 (COPY_SRC), 8 (COPY_DST) and more. */
const bufferOf = (device, size, usage) => device.createBuffer({ size, usage: usage | 4 | 8 });

export async function the_rest_of_a_buffer_is_its_last_tensors(context) {
  const device = await deviceOf(context);
  const { Tensor } = context.library;
  const buffer = bufferOf(device, 32, 128);
  const over = (byteOffset, count) =>
    Tensor.fromGPUBuffer(buffer, { device, shape: [count], dtype: "uint8", byteOffset });
  const last = keep(over(8, 9)); // 15 bytes are behind it
  last.write(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9));
  equal([...(await last.read())], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const other = keep(over(0, 5));
  await throws(() => other.write(new Uint8Array(5)), "UnsupportedError", /neighbours/);
}

export async function memory_of_more_than_2_GiB_is_uploaded(context) {
  const device = await deviceOf(context);
  const { Tensor } = context.library;
  let memory;
  try {
    memory = new WebAssembly.Memory({ initial: 2 ** 15 + 1 });
  } catch {
    throw new Skip("there is no memory of 2 GiB to be had");
  }
  for (const from of [64, 2 ** 31 + 64]) {
    for (const shape of [[7], [8]]) {
      new Uint8Array(memory.buffer, from, 8).set(pattern(8));
      const host = keep(Tensor.fromMemory(memory, from, { shape, dtype: "uint8" }));
      const gpu = keep(host.to(device));
      equal([...(await gpu.read())], [...pattern(shape[0])]);
    }
  }
}
