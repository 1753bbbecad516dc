// transformers.js 3 and 4 (the real ones), each with its own copy of onnxruntime-web, beside a third
// of the page: memory shared both ways. Each function is a test.
import { fromOrt, toOrt, useDevice as useOrt } from "/js/adapters/ort.js";
import { fromTransformers, toTransformers, useDevice } from "/js/adapters/transformers.js";
import { webgpu } from "/js/index.js";
import { counted, equal, ok, same, throws } from "../cases/js/expect.mjs";
import { upload } from "../cases/js/gpu.mjs";
import { doubling, loadOrt, loadTransformers, session } from "./libraries.mjs";

const range = (n, from = 0) => Float32Array.from({ length: n }, (_, i) => i + from);
const doubled = (array) => array.map((v) => 2 * v);

let promise;

/** `{device, all}`: for each major `{transformers, session_options}`, all on one device. */
function libraries() {
  promise ??= load();
  return promise;
}

async function load() {
  const device = await webgpu.requestDevice({ label: "ours" });
  const all = [];
  for (const major of [3, 4]) {
    const transformers = await loadTransformers(major);
    const options = await useDevice(transformers, device);
    const session_options = { ...options, preferredOutputLocation: "gpu-buffer" };
    all.push({ major, transformers, session_options });
  }
  return { device, all };
}

const loadModel = ({ transformers, session_options }) => doubling(transformers, session_options);

export async function gpu_tensors_go_through_a_model_without_a_copy(context) {
  const { device, all } = await libraries();
  for (const each of all) {
    const { transformers, major } = each;
    const net = await loadModel(each);
    for (const n of [4, 5, 101]) {
      const x = upload(context, range(n), device);
      const feed = counted(context, () => toTransformers(transformers, x, { copy: false }), {});
      ok(feed instanceof transformers.Tensor, `a Tensor of transformers.js ${major}`);
      equal([feed.type, feed.dims, feed.location], ["float32", [n], "gpu-buffer"]);
      ok(feed.ort_tensor.gpuBuffer === x.buffer, "over the tensor's own buffer");
      const { y } = await net({ x: feed });
      equal(y.location, "gpu-buffer");
      const out = counted(context, () => fromTransformers(transformers, y, { copy: false }), {});
      ok(out.buffer === y.ort_tensor.gpuBuffer, "the tensor has the model's own buffer");
      y.dispose();
      equal(await out.read(), doubled(range(n)), `transformers.js ${major}, n = ${n}`);
      for (const tensor of [x, out]) tensor.release();
      feed.dispose();
    }
    await net.dispose();
  }
}

export async function a_third_copy_of_onnxruntime_takes_part_on_the_same_device(context) {
  const { device, all } = await libraries();
  const ort = await loadOrt();
  await useOrt(ort, device);
  const twice = await session(ort, "Add", "float32");
  for (const each of all) {
    const net = await loadModel(each);
    const x = upload(context, range(6), device);
    const first = toTransformers(each.transformers, x);
    const { y } = await net({ x: first });
    await throws(() => fromOrt(ort, y), "DeviceError", /another copy.*fromTransformers/);
    const between = fromTransformers(each.transformers, y);
    const feed = counted(context, () => toOrt(ort, between, { copy: false }), {});
    const result = await twice.run({ x: feed });
    const out = fromOrt(ort, result.y);
    equal(await out.read(), doubled(doubled(range(6))), `transformers.js ${each.major}`);
    for (const tensor of [x, between, out]) tensor.release();
    for (const value of [first, y, feed, result.y]) value.dispose();
    await net.dispose();
  }
}

export async function results_are_exchangeable_and_hold_their_memory(context) {
  const { Tensor, liveTensors } = context.library;
  const { device, all } = await libraries();
  for (const each of all) {
    const net = await loadModel(each);
    const live = liveTensors();
    const x = upload(context, range(64, 1), device);
    const feed = toTransformers(each.transformers, x);
    x.release();
    const { y } = await net({ x: feed });
    const kept = Tensor.from(y);
    const { gpuBuffer } = y.ort_tensor;
    ok(kept.buffer === gpuBuffer, "Tensor.from() takes a result");
    y.dispose();
    const { y: next } = await net({ x: feed });
    ok(next.ort_tensor.gpuBuffer !== gpuBuffer, "the buffer is not used again while it is held");
    equal(await kept.read(), doubled(range(64, 1)));
    await throws(() => Tensor.from(y), "ReleasedError", /disposed/);
    kept.release();
    for (const value of [next, feed]) value.dispose();
    equal(liveTensors(), live, "tensors that are left");
    await net.dispose();
  }
}

export async function cpu_tensors_share_memory(context) {
  const { Tensor, liveTensors } = context.library;
  const { all } = await libraries();
  for (const { transformers } of all) {
    const live = liveTensors();
    const x = Tensor.fromTypedArray(range(6), { shape: [2, 3] });
    const value = counted(context, () => toTransformers(transformers, x, { copy: false }), {});
    ok(same(value.data, x.data), "the same memory");
    equal(value.tolist(), [
      [0, 1, 2],
      [3, 4, 5],
    ]);
    const back = fromTransformers(transformers, value, { copy: false });
    ok(same(back.data, x.data), "and back");
    value.dispose();
    for (const each of [x, back]) each.release();
    const own = new transformers.Tensor("int64", [1n, 2n], [2]);
    const numbers = counted(context, () => fromTransformers(transformers, own), {});
    equal([numbers.dtype, numbers.shape, [...numbers.data]], ["int64", [2], [1n, 2n]]);
    numbers.release();
    equal(liveTensors(), live, "tensors that are left");
  }
}

export async function mistakes_are_named(context) {
  const { Tensor, liveTensors } = context.library;
  const { device, all } = await libraries();
  const foreign = await webgpu.requestDevice({ label: "foreign" });
  const live = liveTensors();
  const other = upload(context, range(4), foreign);
  const f64 = upload(context, new Float64Array(4), device);
  for (const { transformers } of all) {
    await throws(
      () => useDevice(transformers, foreign),
      "DeviceError",
      /already uses another GPUDevice/,
    );
    await throws(() => toTransformers(transformers, other), "DeviceError", /another GPUDevice/);
    await throws(() => toTransformers(transformers, f64), "UnsupportedError", /no float64/);
    await throws(() => fromTransformers(transformers, [1]), "TypeError", /an ort.Tensor/);
    const taken = fromTransformers(transformers, other); // what is a tensor already
    ok(taken.buffer === other.buffer, "a tensor is taken as it is");
    taken.release();
    const text = new transformers.Tensor("string", ["a"], [1]);
    await throws(() => fromTransformers(transformers, text), "UnsupportedError", /no string/);
    // A wrapper that fails gives the memory back.
    let made = 0;
    class Broken extends transformers.Tensor {
      constructor(...args) {
        if (++made > 1) throw new Error("broken");
        super(...args);
      }
    }
    const x = Tensor.fromTypedArray(range(2));
    const give = () => toTransformers({ ...transformers, Tensor: Broken }, x);
    await throws(give, "Error", /broken/);
    x.release();
  }
  for (const each of [other, f64]) each.release();
  equal(liveTensors(), live, "tensors that are left");
}

export async function a_model_without_the_session_options_is_found_out(context) {
  const { device, all } = await libraries();
  for (const { major, transformers } of all) {
    const net = await loadModel({ transformers, session_options: {} });
    const x = upload(context, range(4), device);
    const give = () => toTransformers(transformers, x);
    if (major === 4) await throws(give, "DeviceError", /pass its result to all sessions/);
    else give().dispose(); // its onnxruntime-web has one device for all
    await net.dispose();
    await useDevice(transformers, device); // that session is gone
    give().dispose();
    x.release();
  }
}
