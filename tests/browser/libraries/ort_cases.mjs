// onnxruntime-web (the real one): memory shared both ways; each function is a test.
import { fromOrt, toOrt, useDevice } from "/js/adapters/ort.js";
import { counted, equal, ok, throws } from "../cases/js/expect.mjs";
import { keep, upload } from "../cases/js/gpu.mjs";
import { libraries, session } from "./libraries.mjs";

const range = (n, from = 0) => Float32Array.from({ length: n }, (_, i) => i + from);

/** Reads a result of ORT on the GPU, and disposes of it. */
async function valuesOf(ort, value) {
  const tensor = fromOrt(ort, value);
  const values = await tensor.read();
  tensor.release();
  value.dispose();
  return values;
}

export async function gpu_tensors_go_in_and_come_out_without_a_copy(context) {
  const { ort, device } = await libraries();
  const double = await session(ort, "Add", "float32");
  // 16-byte padding: none, some, and the most that is missing.
  for (const n of [4, 5, 6, 7, 101]) {
    const x = upload(context, range(n), device);
    const feed = counted(context, () => toOrt(ort, x), {});
    ok(feed.gpuBuffer === x.buffer, "ORT has the tensor's own buffer");
    const { y } = await double.run({ x: feed });
    const out = counted(context, () => fromOrt(ort, y), {});
    ok(out.buffer === y.gpuBuffer, "the tensor has ORT's own buffer");
    equal([out.shape, out.dtype, `${out.device}`], [[n], "float32", `${x.device}`]);
    equal(
      await out.read(),
      range(n).map((v) => 2 * v),
      `n = ${n}`,
    );
    out.release();
    y.dispose();
    feed.dispose();
    x.release();
  }
}

export async function a_buffer_that_is_not_padded_is_copied_on_the_gpu(context) {
  const { ort, device } = await libraries();
  const { Tensor } = context.library;
  const double = await session(ort, "Add", "float32");
  const buffer = device.createBuffer({ size: 20, usage: 128 | 4 | 8 });
  device.queue.writeBuffer(buffer, 0, range(5, 1));
  const x = keep(Tensor.fromGPUBuffer(buffer, { device, shape: [5], dtype: "float32" }));
  await throws(() => toOrt(ort, x, { copy: false }), "CopyError", /has 20 bytes.*not 32/);
  const feed = counted(context, () => toOrt(ort, x), { gpu_copies: 1 });
  ok(feed.gpuBuffer !== buffer && feed.gpuBuffer.size === 32, "a padded buffer");
  const { y } = await double.run({ x: feed });
  equal(await valuesOf(ort, y), [2, 4, 6, 8, 10]);
  feed.dispose();
  buffer.destroy();
}

export async function a_tensor_in_the_middle_of_a_buffer_is_copied_on_the_gpu(context) {
  const { ort, device } = await libraries();
  const { Tensor } = context.library;
  const double = await session(ort, "Add", "float32");
  const whole = upload(context, range(12), device);
  const middle = { device, shape: [4], dtype: "float32", byteOffset: 16 };
  const x = keep(Tensor.fromGPUBuffer(whole.buffer, middle));
  await throws(() => toOrt(ort, x, { copy: false }), "CopyError", /begins at byte 16/);
  const feed = toOrt(ort, x);
  const { y } = await double.run({ x: feed });
  equal(await valuesOf(ort, y), [8, 10, 12, 14]);
  feed.dispose();
}

export async function cpu_tensors_alias_and_survive_memory_growth(context) {
  const { ort } = await libraries();
  const double = await session(ort, "Add", "float32", { device: "wasm" });
  const x = context.bridge.empty([5]);
  x.data.set([1, 2, 3, 4, 5]);
  const feed = counted(context, () => toOrt(ort, x), {});
  equal([feed.dims, feed.type, feed.location], [[5], "float32", "cpu"]);
  ok(feed.data.buffer === x.data.buffer, "the same memory");
  x.release(); // ORT's value has a hold of its own
  const stale = feed.data;
  for (let i = 0; i < 64 && stale.length > 0; i++) {
    context.pyodide.runPython("globals().setdefault('_ballast', []).append(bytearray(32 << 20))");
  }
  context.pyodide.runPython("del _ballast");
  equal([stale.length, feed.data.length], [0, 5]);
  const { y } = await double.run({ x: feed });
  equal(y.data, [2, 4, 6, 8, 10]);
  const back = keep(counted(context, () => fromOrt(ort, y), {}));
  ok(back.data === y.data, "the tensor views ORT's array");
  feed.dispose();
}

export async function every_dtype_that_ort_has_on_the_gpu(context) {
  const { ort, device } = await libraries();
  const cases = [
    ["int32", Int32Array.of(1, -2, 3), "Add", [2, -4, 6]],
    ["bool", Uint8Array.of(1, 0, 1), "Not", [0, 1, 0]],
    ["int64", BigInt64Array.of(1n, -2n, 3n), "Identity", [1n, -2n, 3n]],
  ];
  if (device.features.has("shader-f16")) {
    cases.push(["float16", Float16Array.of(1, 2, 3), "Add", [2, 4, 6]]);
  }
  for (const [dtype, array, op, expected] of cases) {
    const run = await session(ort, op, dtype);
    const x = upload(context, array, device, { dtype });
    const feed = toOrt(ort, x);
    const { y } = await run.run({ x: feed });
    const out = fromOrt(ort, y);
    equal([out.dtype, [...(await out.read())]], [dtype, expected], dtype);
    out.release();
    y.dispose();
    feed.dispose();
    x.release();
  }
}

export async function a_disposed_value_does_not_take_its_buffer_away(context) {
  const { ort, device } = await libraries();
  const double = await session(ort, "Add", "float32");
  const x = upload(context, range(64, 1), device);
  const feed = toOrt(ort, x);
  const { y } = await double.run({ x: feed });
  const kept = fromOrt(ort, y);
  const { gpuBuffer } = y;
  y.dispose();
  y.dispose();
  // ORT would reuse the buffer for this result, had it got it back.
  const { y: next } = await double.run({ x: feed });
  ok(next.gpuBuffer !== gpuBuffer, "ORT has not got the buffer back");
  equal(
    await kept.read(),
    range(64, 1).map((v) => 2 * v),
  );
  await throws(() => fromOrt(ort, y), "ReleasedError", /disposed/);
  kept.release();
  const more = [next];
  for (let i = 0; i < 3; i++) more.push((await double.run({ x: feed })).y);
  ok(more.map((value) => value.gpuBuffer).includes(gpuBuffer), "and uses it again afterwards");
  for (const value of more) value.dispose();
  feed.dispose();
}

export async function an_unknown_version_gets_copies(context) {
  const { ort, device } = await libraries();
  const double = await session(ort, "Add", "float32");
  const x = upload(context, range(4), device);
  const feed = toOrt(ort, x);
  const { y } = await double.run({ x: feed });
  // As if these two of its fields had other names.
  const { type, dims, location, gpuBuffer } = y;
  const value = { type, dims, location, gpuBuffer };
  const copy = keep(counted(context, () => fromOrt(ort, value), { gpu_copies: 1 }));
  y.dispose();
  equal(await copy.read(), [0, 2, 4, 6]);
  class Other extends ort.Tensor {
    constructor(kind, data, shape) {
      super(kind, data.slice(), shape);
    }
  }
  const other = { ...ort, Tensor: Other };
  const host = keep(context.library.Tensor.fromTypedArray(range(4)));
  await throws(() => toOrt(other, host, { copy: false }), "CopyError", /onnxruntime-web copies/);
  equal(toOrt(other, host).data, range(4));
  feed.dispose();
}

export async function mistakes_are_named(context) {
  const { ort, device, foreign } = await libraries();
  const { Tensor } = context.library;
  const other = upload(context, range(4), foreign);
  await throws(() => toOrt(ort, other), "DeviceError", /another GPUDevice/);
  other.release();
  await throws(() => useDevice(ort, foreign), "DeviceError", /before the first session/);
  const session = { executionProviders: [{ name: "webgpu", device: foreign }] };
  ok((await useDevice(ort, device)).device === device, "the same device again is no error");
  ok(session.executionProviders[0].device === foreign, "options of others are left alone");
  const strings = new ort.Tensor("string", ["a"], [1]);
  await throws(() => fromOrt(ort, strings), "UnsupportedError", /no string there/);
  const f64 = upload(context, new Float64Array(4), device);
  await throws(() => toOrt(ort, f64), "UnsupportedError", /on WebGPU has no float64.*float32/);
  f64.release();
  const strided = Tensor.fromTypedArray(range(6), { shape: [3, 2], strides: [1, 3] });
  await throws(() => toOrt(ort, strided, { copy: false }), "CopyError", /strides \[1,3\]/);
  const packed = toOrt(ort, strided);
  equal(packed.data, [0, 3, 1, 4, 2, 5]);
  packed.dispose();
  strided.release();
  await throws(() => toOrt(ort, [1, 2]), "TypeError", /dlpack\.exchange/);
  const released = Tensor.fromTypedArray(range(1));
  released.release();
  await throws(() => toOrt(ort, released), "ReleasedError", /was released/);
}

export async function the_padding_of_what_ort_gets_is_0(context) {
  const { ort, device } = await libraries();
  const { Tensor } = context.library;
  for (const n of [1, 5, 6, 7, 9]) {
    const secret = upload(context, new Uint8Array(64).fill(255), device);
    secret.release(); // its buffer is used again for the next ones
    const host = Tensor.fromTypedArray(Uint8Array.from({ length: n }, (_, i) => i + 1));
    const up = host.to(device);
    const outer = upload(context, new Uint8Array(80).fill(170), device);
    const { buffer } = outer;
    const at = { device, shape: [n], dtype: "uint8", byteOffset: 8, capacity: n };
    const inner = Tensor.fromGPUBuffer(buffer, at);
    for (const [x, first] of [
      [up, 1],
      [inner, 170],
    ]) {
      const feed = toOrt(ort, x);
      const { gpuBuffer } = feed;
      ok(gpuBuffer.size % 16 === 0, "padded to 16 bytes");
      const shape = [gpuBuffer.size];
      const all = Tensor.fromGPUBuffer(gpuBuffer, { device, shape, dtype: "uint8" });
      const bytes = await all.read();
      equal([bytes[0], bytes.subarray(n).some(Boolean)], [first, false], `${n} bytes`);
      all.release();
      feed.dispose();
    }
    for (const each of [host, up, inner, outer]) each.release();
  }
}

export async function what_fails_half_way_keeps_nothing(context) {
  const { ort, device } = await libraries();
  const double = await session(ort, "Add", "float32");
  const x = upload(context, range(64), device);
  const feed = toOrt(ort, x);
  const { y } = await double.run({ x: feed });
  const { gpuBuffer, dims } = y;
  y.dims = [1e6];
  await throws(() => fromOrt(ort, y), "RangeError", /reaches from byte 0/);
  y.dims = dims;
  y.dispose();
  const more = [];
  for (let i = 0; i < 4; i++) more.push((await double.run({ x: feed })).y);
  ok(more.map((value) => value.gpuBuffer).includes(gpuBuffer), "ORT uses the buffer again");
  for (const value of more) value.dispose();
  feed.dispose();
  const broken = { ...ort, Tensor: { fromGpuBuffer: fail } };
  await throws(() => toOrt(broken, x), "Error", /the library failed/);
}

function fail() {
  throw new Error("the library failed");
}
