// TensorFlow.js (the real one): memory shared both ways; each function is a test.
import { fromTfjs, toTfjs, useDevice } from "/js/adapters/tfjs.js";
import { counted, equal, ok, Skip, same, throws } from "../cases/js/expect.mjs";
import { keep, upload } from "../cases/js/gpu.mjs";
import { libraries } from "./libraries.mjs";

const VALUES = Float32Array.of(1, -2, 3, -4, 5, -6);
const matrix = { shape: [2, 3] };

/** Runs `use` with another backend. */
async function onBackend(tf, name, use) {
  const before = tf.getBackend();
  await tf.setBackend(name);
  try {
    return await use();
  } finally {
    await tf.setBackend(before);
  }
}

export async function gpu_tensors_go_in_and_come_out_without_a_copy(context) {
  const { tf, device } = await libraries();
  const x = upload(context, VALUES, device, matrix);
  const t = counted(context, () => toTfjs(tf, x), {});
  const y = tf.relu(t);
  const out = keep(counted(context, () => fromTfjs(tf, y), {}));
  ok(out.buffer === tf.backend().tensorMap.get(y.dataId).resource, "the buffer of TensorFlow.js");
  equal([out.shape, out.dtype, out.readOnly], [[2, 3], "float32", true]);
  tf.dispose([t, y]);
  equal(await out.read(), [1, 0, 3, 0, 5, 0]);
}

export async function a_disposed_tensor_holds_the_memory_until_its_work_was_submitted(context) {
  const { tf, device } = await libraries();
  const x = upload(context, VALUES, device, matrix);
  let given = 0;
  const { buffer } = x;
  const { Tensor } = context.library;
  const lent = Tensor.fromGPUBuffer(buffer, {
    device,
    shape: [2, 3],
    dtype: "float32",
    release: () => {
      given++;
    },
  });
  const t = toTfjs(tf, lent);
  lent.release();
  const y = tf.relu(t); // queued, not submitted
  t.dispose();
  equal(given, 0, "given back");
  const out = fromTfjs(tf, y); // submits
  equal(given, 1, "given back");
  equal(await out.read(), [1, 0, 3, 0, 5, 0]);
  y.dispose();
  out.release();
}

export async function a_buffer_without_copy_src_is_copied_on_the_gpu(context) {
  const { tf, device } = await libraries();
  const values = Float32Array.of(...VALUES, 7, 8); // the whole of a buffer that is used again
  const buffer = device.createBuffer({ size: 40, usage: 128 | 8 | 4 });
  device.queue.writeBuffer(buffer, 8, values);
  const at = { device, shape: [8], dtype: "float32", byteOffset: 8 };
  const x = keep(context.library.Tensor.fromGPUBuffer(buffer, at));
  await throws(() => toTfjs(tf, x, { copy: false }), "CopyError", /begins at byte 8/);
  const t = counted(context, () => toTfjs(tf, x), { gpu_copies: 1 });
  equal(await t.data(), values);
  t.dispose();
  buffer.destroy();
}

export async function cpu_tensors_alias_and_survive_memory_growth(context) {
  const { tf } = await libraries();
  await onBackend(tf, "cpu", async () => {
    const x = context.bridge.empty([2, 3]);
    x.data.set(VALUES);
    const t = counted(context, () => toTfjs(tf, x), {});
    ok(t.dataSync().buffer === x.data.buffer, "the same memory");
    const stale = x.data;
    for (let i = 0; i < 64 && stale.length > 0; i++) {
      context.pyodide.runPython("globals().setdefault('_b', []).append(bytearray(32 << 20))");
    }
    context.pyodide.runPython("del _b");
    x.release(); // the tf.Tensor has a hold of its own
    equal([stale.length, [...t.dataSync()]], [0, [...VALUES]]);
    const y = tf.abs(t);
    const out = counted(context, () => fromTfjs(tf, y), {});
    equal(
      [out.data, out.shape],
      [
        [1, 2, 3, 4, 5, 6],
        [2, 3],
      ],
    );
    const again = fromTfjs(tf, t);
    t.dispose();
    y.dispose();
    await null;
    equal(again.data, VALUES, "held by the tensor");
    again.release();
    out.release();
    await null;
  });
}

export async function a_cpu_tensor_moved_to_another_backend_keeps_its_memory(context) {
  if (!globalThis.gc) throw new Skip("this browser's garbage collector cannot be called");
  const { tf } = await libraries();
  const { Tensor } = context.library;
  const before = context.library.liveTensors();
  let t = await onBackend(tf, "cpu", () => {
    const x = Tensor.fromTypedArray(VALUES.slice());
    try {
      return toTfjs(tf, x);
    } finally {
      x.release();
    }
  });
  const y = tf.neg(t); // on the GPU: TensorFlow.js moves t there
  equal(
    await y.data(),
    VALUES.map((v) => -v),
  );
  t.dispose();
  y.dispose();
  t = null;
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (call) => setTimeout(call, 1); // a minute is long
  for (let i = 0; i < 1000 && context.library.liveTensors() > before; i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    globalThis.gc();
  }
  globalThis.setTimeout = setTimeout;
  equal(context.library.liveTensors(), before, "tensors alive after garbage collection");
}

export async function cpu_tensors_are_uploaded_to_the_webgpu_backend(context) {
  const { tf } = await libraries();
  const { Tensor } = context.library;
  const x = keep(Tensor.fromTypedArray(VALUES, matrix));
  await throws(() => toTfjs(tf, x, { copy: false }), "CopyError", /is not on that GPUDevice/);
  const t = counted(context, () => toTfjs(tf, x), { copies: 1 });
  const y = tf.relu(t);
  equal(await y.data(), [1, 0, 3, 0, 5, 0]);
  tf.dispose([t, y]);
}

export async function bools_are_int32_on_the_gpu(context) {
  const { tf, device } = await libraries();
  const x = upload(context, Int32Array.of(1, 0, 1), device);
  const t = toTfjs(tf, x, { dtype: "bool" });
  const y = tf.logicalNot(t);
  equal([t.dtype, y.dtype], ["bool", "bool"]);
  const out = fromTfjs(tf, y);
  equal([out.dtype, [...(await out.read())]], ["int32", [0, 1, 0]]);
  tf.dispose([t, y]);
  out.release();
  x.release();
  const narrow = upload(context, Uint8Array.of(1, 0, 1, 0), device, { dtype: "bool" });
  await throws(() => toTfjs(tf, narrow), "UnsupportedError", /4 bytes for each bool.*int32/s);
}

export async function every_dtype_on_the_cpu(context) {
  const { tf } = await libraries();
  const { Tensor } = context.library;
  await onBackend(tf, "cpu", async () => {
    for (const [dtype, array] of [
      ["float32", VALUES],
      ["int32", Int32Array.of(1, -2)],
      ["bool", Uint8Array.of(1, 0)],
    ]) {
      const x = Tensor.fromTypedArray(array, { dtype });
      const t = counted(context, () => toTfjs(tf, x, { copy: false }), {});
      equal(t.dtype, dtype);
      const back = fromTfjs(tf, t);
      equal([back.dtype, same(back.data, x.data)], [dtype, true]);
      back.release();
      t.dispose();
      x.release();
      await null;
    }
    for (const array of [new BigInt64Array(2), new Float64Array(2), new Uint32Array(2)]) {
      const x = Tensor.fromTypedArray(array);
      await throws(() => toTfjs(tf, x), "UnsupportedError", /no (int64|float64|uint32) there/);
      x.release();
    }
  });
}

export async function mistakes_are_named(context) {
  const { tf, foreign } = await libraries();
  const other = upload(context, VALUES, foreign);
  await throws(() => toTfjs(tf, other), "DeviceError", /.*on webgpu.*cannot be used|another/);
  other.release();
  await throws(() => useDevice(tf, foreign), "DeviceError", /before setBackend/);
  const gone = tf.tensor(VALUES);
  gone.dispose();
  await throws(() => fromTfjs(tf, gone), "ReleasedError", /was disposed of/);
  const complex = tf.complex([1], [2]);
  await throws(() => fromTfjs(tf, complex), "UnsupportedError", /no complex64 there/);
  complex.dispose();
}

export async function an_unknown_version_gets_copies_on_the_gpu(context) {
  const { tf, device } = await libraries();
  const y = tf.relu(tf.tensor(VALUES));
  const backend = tf.backend();
  const { tensorMap } = backend;
  // As if the record had another name for the buffer.
  const get = (id) => ({ ...tensorMap.get(id), resource: undefined });
  backend.tensorMap = { get, has: (id) => tensorMap.has(id) };
  let out;
  try {
    const { dataToGPU } = tf.Tensor.prototype;
    y.dataToGPU = function () {
      backend.tensorMap = tensorMap;
      return dataToGPU.call(this);
    };
    out = counted(context, () => fromTfjs(tf, y), { gpu_copies: 1 });
  } finally {
    backend.tensorMap = tensorMap;
  }
  equal([out.device.gpu === device, [...(await out.read())]], [true, [1, 0, 3, 0, 5, 0]]);
  out.release();
  y.dispose();
}

export async function what_fails_half_way_keeps_nothing(context) {
  const { tf, device } = await libraries();
  const { liveTensors } = context.library;
  const live = liveTensors();
  const x = upload(context, VALUES, device);
  const t = toTfjs(tf, x);
  const y = tf.relu(t);
  const { numTensors } = tf.memory();
  const { shape } = y;
  y.shape = [1e6];
  await throws(() => fromTfjs(tf, y), "RangeError", /reaches from byte 0/);
  y.shape = shape;
  equal(tf.memory().numTensors, numTensors, "clones that are kept");
  const failing = {
    tensor() {
      throw new Error("the library failed");
    },
  };
  await throws(() => toTfjs({ ...tf, ...failing }, x), "Error", /the library failed/);
  await onBackend(tf, "cpu", async () => {
    const host = context.library.Tensor.fromTypedArray(VALUES);
    await throws(() => toTfjs({ ...tf, ...failing }, host), "Error", /the library failed/);
    const own = tf.tensor(VALUES);
    const before = tf.memory().numTensors;
    own.shape = [7];
    await throws(() => fromTfjs(tf, own), "RangeError", /needs 28 bytes/);
    own.shape = [6];
    equal(tf.memory().numTensors, before, "clones that are kept");
    own.dispose();
    host.release();
  });
  tf.dispose([t, y]);
  x.release();
  await null;
  equal(liveTensors(), live, "tensors that are left");
}

export async function what_came_from_us_comes_back_as_it_was(context) {
  const { tf, device } = await libraries();
  const x = upload(context, VALUES, device, matrix);
  const t = toTfjs(tf, x);
  const back = keep(counted(context, () => fromTfjs(tf, t, { copy: false }), {}));
  equal([back.buffer === x.buffer, back.shape, back.readOnly], [true, [2, 3], true]);
  const copied = keep(counted(context, () => fromTfjs(tf, t, { copy: true }), { gpu_copies: 1 }));
  ok(copied.buffer !== x.buffer, "a copy");
  equal(await copied.read(), VALUES);
  t.dispose();
}

export async function a_cast_on_the_gpu_has_the_values_of_its_dtype(context) {
  const { tf, device } = await libraries();
  const x = upload(context, Int32Array.of(1, -2, 3, 2 ** 20), device, { shape: [4] });
  const bits = upload(context, Int32Array.of(1, 0, 1, 1), device, { shape: [4] });
  const held = [x, bits];
  const values = [];
  const cast = (value, dtype) => {
    values.push(tf.cast(value, dtype));
    return values.at(-1);
  };
  const check = async (value, dtype, expected, shares) => {
    const out = fromTfjs(tf, value);
    held.push(out);
    equal([out.dtype, out.readOnly], [dtype, true]);
    equal(await out.read(), expected);
    if (shares) fromTfjs(tf, value, { copy: false }).release();
    else await throws(() => fromTfjs(tf, value, { copy: false }), "CopyError", /as (int32|bool)/);
  };
  const ours = toTfjs(tf, x);
  const flags = toTfjs(tf, bits, { dtype: "bool" });
  const theirs = tf.add(ours, tf.scalar(0, "int32"));
  const small = tf.tensor([5, -6], [2], "int32"); // on the CPU until it is used
  const same = tf.equal(theirs, theirs);
  values.push(ours, flags, theirs, small, same);
  const numbers = [1, -2, 3, 2 ** 20];
  await check(cast(ours, "float32"), "float32", Float32Array.from(numbers), false);
  await check(cast(theirs, "float32"), "float32", Float32Array.from(numbers), false);
  await check(cast(small, "float32"), "float32", Float32Array.of(5, -6), false);
  await check(cast(flags, "float32"), "float32", Float32Array.of(1, 0, 1, 1), false);
  await check(cast(same, "float32"), "float32", new Float32Array(4).fill(1), false);
  await check(cast(flags, "int32"), "int32", Int32Array.of(1, 0, 1, 1), true);
  await check(cast(cast(ours, "float32"), "int32"), "int32", Int32Array.from(numbers), true);
  values.push(tf.reshape(cast(ours, "float32"), [2, 2]), tf.abs(theirs));
  await check(values.at(-2), "float32", Float32Array.from(numbers), false);
  await check(values.at(-1), "int32", Int32Array.of(1, 2, 3, 2 ** 20), true);
  tf.dispose(values);
  equal(await held.at(2).read(), Float32Array.from(numbers), "after dispose()");
  for (const each of held) each.release();
}
