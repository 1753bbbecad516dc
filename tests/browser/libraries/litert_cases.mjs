// LiteRT.js (the real one): GPU memory shared both ways; each function is a test.
import { fromLiteRT, toLiteRT, useDevice } from "/js/adapters/litert.js";
import { fromOrt, toOrt } from "/js/adapters/ort.js";
import { fit } from "/js/exchange/index.js";
import { open } from "/js/open/index.js";
import { counted, equal, ok, throws } from "../cases/js/expect.mjs";
import { keep, upload } from "../cases/js/gpu.mjs";
import { libraries, loadLiteRT, session } from "./libraries.mjs";

const VALUES = Float32Array.of(1, 2, 3, 4, 5, 6);
const matrix = { shape: [2, 3] };
const STORAGE_COPY = 128 | 4 | 8;

/** LiteRT.js on the device of all libraries. */
async function loaded() {
  const { device, ...others } = await libraries();
  const litert = await loadLiteRT();
  await useDevice(litert, device);
  return { ...others, device, litert };
}

/** The digits' network on the GPU, the pixels of 200 digits, and what NumPy makes of them. */
async function digits(litert) {
  const file = await open("/model/digits_tflite.npz");
  const [pixels, logits] = await Promise.all(["pixels", "logits"].map((name) => file.get(name)));
  file.close();
  const model = await litert.loadAndCompile("/model/digits.tflite", { accelerator: "webgpu" });
  ok(model.isFullyAccelerated, "all of it runs on the GPU");
  const expected = logits.data.slice();
  logits.release();
  return { model, pixels, logits: expected };
}

function near(values, expected) {
  equal(values.length, expected.length);
  const most = Math.max(...values.map((value, i) => Math.abs(value - expected[i])));
  ok(most < 1e-4, `the largest difference from NumPy is ${most}`);
}

/** A buffer of somebody else's, with a tensor over it that counts how often it is given back. */
function lend({ library }, device, values = VALUES, usage = STORAGE_COPY) {
  const buffer = device.createBuffer({ size: values.byteLength, usage });
  device.queue.writeBuffer(buffer, 0, values);
  const lent = { buffer, released: 0 };
  const release = () => {
    lent.released++;
  };
  const options = { device, shape: [values.length], dtype: "float32", release };
  lent.tensor = library.Tensor.fromGPUBuffer(buffer, options);
  return lent;
}

/** What a buffer has, by no code of ours. */
async function elementsOf(device, buffer) {
  const staging = device.createBuffer({ size: buffer.size, usage: 1 | 8 });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(1);
  const values = new Float32Array(staging.getMappedRange()).slice();
  staging.destroy();
  return values;
}

export async function a_model_runs_on_the_shared_device_without_a_copy(context) {
  const { litert, device } = await loaded();
  const { model, pixels, logits } = await digits(litert);
  const x = keep(pixels.to(device));
  const feed = counted(context, () => toLiteRT(litert, x, { copy: false }), {});
  equal(
    [feed.accelerator, feed.type],
    ["webgpu", { dtype: "float32", layout: { dimensions: [200, 64] } }],
  );
  const [result] = await model.run([feed]);
  const y = keep(counted(context, () => fromLiteRT(litert, result, { copy: false }), {}));
  ok(y.buffer === result.toGpuBuffer(), "the tensor has LiteRT's own buffer");
  equal(
    [y.shape, y.dtype, `${y.device}`, y.readOnly],
    [[200, 10], "float32", `${x.device}`, false],
  );
  near(await y.read(), logits);
  const { size } = y.buffer;
  ok(size > y.nbytes, "LiteRT pads it");
  fit(y, { copy: false, needs: { padTo: size } }).release();
  for (const each of [feed, result, model]) each.delete();
  pixels.release();
}

export async function what_onnxruntime_computed_goes_on_to_litert(context) {
  const { litert, device, ort } = await loaded();
  const { model, pixels, logits } = await digits(litert);
  const double = await session(ort, "Add", "float32");
  const halves = upload(
    context,
    pixels.data.map((value) => value / 2),
    device,
  );
  const feed = toOrt(ort, halves);
  const { y: doubled } = await double.run({ x: feed });
  const flat = fromOrt(ort, doubled);
  const shared = flat.reshape([200, 64]);
  const input = counted(context, () => toLiteRT(litert, shared, { copy: false }), {});
  flat.release();
  shared.release();
  const [result] = await model.run([input]);
  const y = fromLiteRT(litert, result);
  near(await y.read(), logits);
  for (const each of [input, result, model]) each.delete();
  for (const each of [y, pixels]) each.release();
  for (const each of [feed, doubled]) each.dispose();
}

export async function a_result_outlives_its_deletion(context) {
  const { litert, device } = await loaded();
  const { model, pixels, logits } = await digits(litert);
  const x = keep(pixels.to(device));
  const feed = toLiteRT(litert, x);
  const [result] = await model.run([feed]);
  const handle = result.liteRtTensorBuffer;
  const y = fromLiteRT(litert, result);
  const { count } = handle.$$; // of all handles of the same memory
  result.delete();
  ok(result.deleted && handle.isDeleted(), "LiteRT takes it for deleted");
  await throws(() => fromLiteRT(litert, result), "ReleasedError", /was deleted/);
  const none = upload(context, new Float32Array(200 * 64), device, { shape: [200, 64] });
  const zeros = toLiteRT(litert, none);
  none.release();
  const [other] = await model.run([zeros]);
  near(await y.read(), logits);
  model.delete();
  near(await y.read(), logits);
  equal(count.value, 1, "our handle");
  y.release();
  equal(count.value, 0, "handles of the result");
  for (const each of [feed, zeros, other]) each.delete();
  pixels.release();
}

export async function the_hold_ends_when_litert_deletes_it(context) {
  const { litert, device } = await loaded();
  const lent = lend(context, device);
  const feed = toLiteRT(litert, lent.tensor, { copy: false });
  ok(feed.toGpuBuffer() === lent.buffer, "LiteRT has the lender's own buffer");
  lent.tensor.release();
  equal(lent.released, 0, "LiteRT holds it");
  equal([...(await feed.data())], [...VALUES], "LiteRT reads it");
  feed.delete();
  feed.delete();
  equal(lent.released, 1, "given back once");
  equal([...(await elementsOf(device, lent.buffer))], [...VALUES], "and not destroyed");
  lent.buffer.destroy();
}

export async function what_litert_does_at_a_deletion_waits_for_all_holds(context) {
  const { litert, device } = await loaded();
  const { buffer, tensor } = lend(context, device);
  for (const order of ["delete first", "delete between", "delete last"]) {
    let deleted = 0;
    const count = () => {
      deleted++;
    };
    const value = new litert.Tensor(buffer, [6], "float32", litert.getDefaultEnvironment(), count);
    const holds = [fromLiteRT(litert, value), fromLiteRT(litert, value)];
    const steps = holds.map((hold) => () => hold.release());
    steps.splice(["delete first", "delete between", "delete last"].indexOf(order), 0, () =>
      value.delete(),
    );
    for (const step of steps) {
      equal(deleted, 0, order);
      step();
      step();
    }
    equal(deleted, 1, `${order}: once`);
  }
  tensor.release();
  buffer.destroy();
}

export async function a_tensor_of_ours_comes_back_as_it_is(context) {
  const { litert, device } = await loaded();
  const x = upload(context, VALUES, device, matrix);
  const feed = toLiteRT(litert, x);
  const back = keep(counted(context, () => fromLiteRT(litert, feed, { copy: false }), {}));
  equal([back.buffer === x.buffer, back.shape, back.nbytes], [true, [2, 3], 24]);
  feed.delete();
  x.release();
  equal([...(await back.read())], [...VALUES]);
  const feed2 = toLiteRT(litert, back);
  const copied = keep(
    counted(context, () => fromLiteRT(litert, feed2, { copy: true }), {
      gpu_copies: 1,
    }),
  );
  ok(copied.buffer !== back.buffer, "copy: true copies");
  feed2.delete();
}

export async function dtypes_and_shapes(context) {
  const { litert, device } = await loaded();
  const arrays = [VALUES, Int32Array.of(1, -2, 3), Uint8Array.of(1, 2, 255), Uint8Array.of(7)];
  for (const array of arrays) {
    for (const shape of [
      [array.length],
      [1, array.length, 1],
      ...(array.length === 1 ? [[]] : []),
    ]) {
      const x = upload(context, array, device, { shape });
      const feed = toLiteRT(litert, x);
      equal([feed.type.dtype, [...feed.type.layout.dimensions]], [x.dtype, shape]);
      equal([...(await feed.data())], [...array], x.toString());
      feed.delete();
      x.release();
    }
  }
  for (const array of [
    new BigInt64Array(2),
    Uint32Array.of(1),
    Int8Array.of(1),
    new Float64Array(1),
  ]) {
    const x = upload(context, array, device);
    await throws(
      () => toLiteRT(litert, x),
      "UnsupportedError",
      /LiteRT\.js has no .*float32, int32, uint8/,
    );
    x.release();
  }
  const bools = upload(context, Uint8Array.of(1, 0), device, { dtype: "bool" });
  await throws(() => toLiteRT(litert, bools), "UnsupportedError", /no bool there/);
  bools.release();
  const nothing = upload(context, new Float32Array(0), device, { shape: [2, 0] });
  await throws(() => toLiteRT(litert, nothing), "UnsupportedError", /empty tensors/);
}

export async function what_does_not_begin_its_buffer_is_copied_on_the_gpu(context) {
  const { litert, device } = await loaded();
  const x = upload(context, Float32Array.of(9, 9, ...VALUES), device);
  const { Tensor } = context.library;
  const options = { device, shape: [6], dtype: "float32", byteOffset: 8 };
  const middle = Tensor.fromGPUBuffer(x.buffer, options);
  await throws(() => toLiteRT(litert, middle, { copy: false }), "CopyError", /begins at byte 8/);
  const feed = counted(context, () => toLiteRT(litert, middle), { gpu_copies: 1 });
  equal([...(await feed.data())], [...VALUES]);
  feed.delete();
  middle.release();
  x.release();
  const lent = lend(context, device, VALUES, 128 | 8);
  await throws(
    () => toLiteRT(litert, lent.tensor, { copy: false }),
    "CopyError",
    /lacks GPUBufferUsage/,
  );
  lent.tensor.release();
  equal(lent.released, 1, "a refused tensor is not kept");
  lent.buffer.destroy();
}

export async function elements_on_the_cpu_are_copied_by_litert(context) {
  const { litert } = await loaded();
  const { Tensor } = context.library;
  const x = keep(Tensor.fromTypedArray(VALUES, matrix));
  await throws(() => toLiteRT(litert, x, { copy: false }), "CopyError", /LiteRT\.js copies/);
  const value = toLiteRT(litert, x);
  equal([value.accelerator, value.type.layout.dimensions], ["wasm", [2, 3]]);
  await throws(() => fromLiteRT(litert, value, { copy: false }), "CopyError", /LiteRT\.js copies/);
  const back = keep(fromLiteRT(litert, value));
  value.delete();
  equal([back.shape, back.dtype, [...back.data]], [[2, 3], "float32", [...VALUES]]);
  const empty = keep(Tensor.fromTypedArray(new Float32Array(0)));
  await throws(() => toLiteRT(litert, empty), "UnsupportedError", /empty tensors/);
}

export async function devices_are_told_apart(context) {
  const { litert, device, foreign } = await loaded();
  const x = upload(context, VALUES, foreign);
  await throws(() => toLiteRT(litert, x), "DeviceError", /another GPUDevice than LiteRT\.js/);
  const elsewhere = await litert.Environment.create({ webGpuDevice: foreign });
  const feed = toLiteRT(litert, x, { environment: elsewhere });
  const back = keep(fromLiteRT(litert, feed));
  equal([back.device.gpu === foreign, feed.environment === elsewhere], [true, true]);
  equal([...(await back.read())], [...VALUES]);
  const none = await litert.Environment.create({ webGpuDevice: null });
  await throws(() => toLiteRT(litert, x, { environment: none }), "DeviceError", /no GPUDevice yet/);
  ok(litert.getWebGpuDevice() === device, "the default stays what it was");
  feed.delete();
}

export async function models_of_before_stay_on_their_device(context) {
  const { litert, device, foreign } = await loaded();
  const { model, pixels, logits } = await digits(litert);
  const x = pixels.to(device);
  const before = litert.getDefaultEnvironment();
  await useDevice(litert, device);
  ok(litert.getDefaultEnvironment() === before, "nothing is made for the same device");
  try {
    await useDevice(litert, foreign);
    ok(litert.getWebGpuDevice() === foreign);
    await throws(() => toLiteRT(litert, x), "DeviceError", /another GPUDevice/);
    const feed = toLiteRT(litert, x, { environment: before });
    const [result] = await model.run([feed]);
    const y = counted(context, () => fromLiteRT(litert, result), {});
    ok(y.device.gpu === device, "a result knows its own device");
    near(await y.read(), logits);
    for (const each of [feed, result, model]) each.delete();
    for (const each of [x, y, pixels]) each.release();
  } finally {
    await useDevice(litert, device);
  }
}

export async function lost_devices_are_reported(context) {
  const { litert, device } = await loaded();
  const adapter = await navigator.gpu.requestAdapter();
  const mortal = await adapter.requestDevice();
  await useDevice(litert, mortal);
  try {
    const x = upload(context, VALUES, mortal);
    const own = mortal.createBuffer({ size: 24, usage: STORAGE_COPY });
    const value = new litert.Tensor(own, [6], "float32");
    const y = fromLiteRT(litert, value);
    mortal.destroy();
    await mortal.lost;
    await throws(() => toLiteRT(litert, x), "DeviceLostError", /lost/);
    await throws(() => y.read(), "DeviceLostError", /lost/);
    await throws(() => useDevice(litert, mortal), "DeviceLostError", /lost/);
    value.delete();
    x.release();
    y.release();
  } finally {
    await useDevice(litert, device);
  }
}

export async function what_cannot_be_taken_is_refused_in_words(context) {
  const { litert, device } = await loaded();
  await throws(
    () => fromLiteRT(litert, { type: {} }),
    "TypeError",
    /a Tensor of this copy of LiteRT\.js/,
  );
  await throws(() => fromLiteRT(litert, null), "TypeError", /LiteRT\.js/);
  const large = device.createBuffer({ size: 256, usage: STORAGE_COPY });
  const value = new litert.Tensor(large, [6], "float32");
  await throws(() => fromLiteRT(litert, value), "UnsupportedError", /Tensor\.fromGPUBuffer\(\)/);
  value.delete();
  large.destroy();
  const asleep = {
    ...litert,
    getDefaultEnvironment: () => {
      throw new Error("not loaded");
    },
  };
  await throws(() => useDevice(asleep, device), "DeviceError", /await its loadLiteRt\(\)/);
  const x = upload(context, VALUES, device);
  await throws(() => toLiteRT(asleep, x), "DeviceError", /await its loadLiteRt\(\)/);
}

export async function a_version_whose_memory_cannot_be_held_is_copied_from(context) {
  const { litert, device } = await loaded();
  const { buffer, tensor } = lend(context, device);
  const value = new litert.Tensor(buffer, [6], "float32");
  Object.defineProperty(value.liteRtTensorBuffer, "clone", { value: undefined });
  await throws(() => fromLiteRT(litert, value, { copy: false }), "CopyError", /cannot share/);
  const y = keep(counted(context, () => fromLiteRT(litert, value), { gpu_copies: 1 }));
  value.delete();
  buffer.destroy();
  equal([...(await y.read())], [...VALUES]);
  tensor.release();
}

export async function consumers_of_the_protocol_take_its_tensors(context) {
  const { litert, device } = await loaded();
  const { buffer, tensor } = lend(context, device);
  const value = new litert.Tensor(buffer, [2, 3], "float32");
  const taken = keep(counted(context, () => context.bridge.tensor(value), {}));
  ok(taken.buffer === buffer, "the same buffer");
  const python = context.bridge.toPython(taken);
  equal(python.shape.toJs ? [...python.shape.toJs()] : [...python.shape], [2, 3]);
  python.destroy();
  value.delete();
  equal([...(await taken.read())], [...VALUES]);
  tensor.release();
  buffer.destroy();
}
