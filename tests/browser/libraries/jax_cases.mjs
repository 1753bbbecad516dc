// jax-js (the real one): GPU memory shared both ways; each function is a test.
import { fromJax, toJax, useDevice } from "/js/adapters/jax.js";
import { counted, equal, ok, throws } from "../cases/js/expect.mjs";
import { keep, upload } from "../cases/js/gpu.mjs";
import { libraries } from "./libraries.mjs";

const VALUES = Float32Array.of(1, 2, 3, 4, 5, 6);
const matrix = { shape: [2, 3] };

export async function gpu_tensors_go_in_and_come_out_without_a_copy(context) {
  const { jax, device } = await libraries();
  const x = upload(context, VALUES, device, matrix);
  const a = counted(context, () => toJax(jax, x, { copy: false }), {});
  equal([a.shape, a.dtype, a.device], [[2, 3], "float32", "webgpu"]);
  ok((await a.ref.gpuBuffer()) === x.buffer, "jax-js has the tensor's own buffer");
  const y = jax.numpy.add(jax.numpy.square(a), 1);
  const out = keep(counted(context, () => fromJax(jax, y), {}));
  equal(y.refCount, 2, "nothing was consumed");
  ok(out.buffer === (await y.ref.gpuBuffer()), "the tensor has the buffer of jax-js");
  equal([out.shape, out.dtype, out.readOnly], [[2, 3], "float32", true]);
  y.dispose();
  equal(await out.read(), [2, 5, 10, 17, 26, 37]);
}

export async function the_hold_ends_when_jax_lets_go(context) {
  const { jax, device } = await libraries();
  const x = upload(context, VALUES, device, matrix);
  let given = 0;
  const lent = context.library.Tensor.fromGPUBuffer(x.buffer, {
    device,
    shape: [6],
    dtype: "float32",
    release: () => {
      given++;
    },
  });
  const a = toJax(jax, lent);
  lent.release();
  const y = jax.numpy.multiply(a.ref, 2);
  equal(given, 0);
  a.dispose();
  const out = keep(fromJax(jax, y));
  equal(given, 1, "given back");
  y.dispose();
  // Were the buffer in the pool of jax-js, this would get it.
  const z = jax.numpy.multiply(jax.numpy.array(VALUES), 3);
  ok((await z.ref.gpuBuffer()) !== x.buffer, "the buffer is not used by jax-js");
  z.dispose();
  equal(await x.read(), VALUES);
  equal(await out.read(), [2, 4, 6, 8, 10, 12]);
}

export async function shapes_of_every_size(context) {
  const { jax, device } = await libraries();
  for (const shape of [[], [1], [1, 1], [2], [4099]]) {
    const array = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => i + 3);
    const x = upload(context, array, device, { shape });
    const a = toJax(jax, x);
    equal(a.shape, shape);
    equal(
      await jax.numpy.add(a, 1).data(),
      array.map((v) => v + 1),
      `${shape}`,
    );
    x.release();
  }
}

export async function every_dtype(context) {
  const { jax, device } = await libraries();
  const cases = [
    ["int32", Int32Array.of(1, -2, 3), {}],
    ["uint32", Uint32Array.of(1, 2, 4000000000), {}],
    ["bool", Int32Array.of(1, 0, 1), { dtype: "bool" }],
  ];
  if (device.features.has("shader-f16")) cases.push(["float16", Float16Array.of(1, 2, 3), {}]);
  for (const [dtype, array, options] of cases) {
    const x = upload(context, array, device);
    const a = toJax(jax, x, options);
    equal(a.dtype, dtype);
    const back = fromJax(jax, a);
    equal(back.dtype, dtype === "bool" ? "int32" : dtype);
    equal([...(await back.read())], [...array], dtype);
    back.release();
    a.dispose();
    x.release();
  }
  for (const array of [new Float64Array(4), new BigInt64Array(4)]) {
    const x = upload(context, array, device);
    await throws(() => toJax(jax, x), "UnsupportedError", /on WebGPU has no (float64|int64)/);
    x.release();
  }
}

export async function cpu_tensors_are_copied_by_jax(context) {
  const { jax } = await libraries();
  const { Tensor } = context.library;
  const x = Tensor.fromTypedArray(VALUES.slice(), matrix);
  await throws(() => toJax(jax, x, { copy: false }), "CopyError", /jax-js copies/);
  const a = toJax(jax, x);
  x.data.fill(0);
  equal(await jax.numpy.add(a, 1).data(), [2, 3, 4, 5, 6, 7]);
  x.release();
  const bools = Tensor.fromTypedArray(Uint8Array.of(1, 0, 1), { dtype: "bool" });
  const b = toJax(jax, bools);
  equal([b.dtype, [...(await b.data())]], ["bool", [1, 0, 1]]);
  bools.release();
  const wide = keep(Tensor.fromTypedArray(new Float64Array(4)));
  await throws(() => toJax(jax, wide), "UnsupportedError", /webgpu has no float64/);
}

export async function arrays_on_the_cpu_are_copied_out(context) {
  const { jax } = await libraries();
  await jax.init("cpu");
  const before = context.library.liveTensors();
  const a = jax.numpy.array(VALUES, { shape: [3, 2], device: "cpu" });
  const x = fromJax(jax, a);
  equal([x.shape, x.dtype, [...x.data]], [[3, 2], "float32", [...VALUES]]);
  a.dispose();
  equal(x.data, VALUES);
  x.release();
  equal(context.library.liveTensors(), before, "tensors alive");
}

export async function an_unknown_version_gets_one_copy_on_the_gpu(context) {
  const { jax, device } = await libraries();
  const x = upload(context, VALUES, device, matrix);
  // As if its internals had other names.
  const unknown = { ...jax, getWebGPUDevice: () => device };
  await throws(() => toJax(unknown, x, { copy: false }), "CopyError", /cannot share/);
  // The other copy is jax-js's, of the zeros that it starts with.
  const a = counted(context, () => toJax(unknown, x), { gpu_copies: 1, copies: 1 });
  equal(await jax.numpy.add(a, 1).data(), [2, 3, 4, 5, 6, 7]);
}

export async function mistakes_are_named(context) {
  const { jax, foreign } = await libraries();
  const other = upload(context, VALUES, foreign);
  await throws(() => toJax(jax, other), "DeviceError", /another GPUDevice than jax-js/);
  other.release();
  await throws(() => useDevice(jax, foreign), "DeviceError", /before its init/);
  const gone = jax.numpy.add(jax.numpy.array(VALUES), 1);
  gone.dispose();
  await throws(() => fromJax(jax, gone), "ReleasedError", /disposed of, or consumed/);
}

export async function what_fails_half_way_keeps_nothing(context) {
  const { jax, device } = await libraries();
  const { Tensor, liveTensors } = context.library;
  const live = liveTensors();
  const y = jax.numpy.multiply(jax.numpy.array(VALUES), 2);
  const lost = {
    ...jax,
    getWebGPUDevice() {
      throw new Error("the library failed");
    },
  };
  await throws(() => fromJax(lost, y), "Error", /the library failed/);
  equal(y.refCount, 1, "references");
  y.dispose();
  const x = upload(context, VALUES, device);
  let given = 0;
  const lent = Tensor.fromGPUBuffer(x.buffer, {
    device,
    shape: [6],
    dtype: "float32",
    release() {
      given++;
      throw new Error("and so did the release");
    },
  });
  const numpy = {
    array() {
      throw new Error("the library failed");
    },
  };
  await throws(() => toJax({ ...jax, numpy }, lent), "Error", /the library failed/);
  equal(given, 0, "given back");
  const { error } = console;
  const told = [];
  console.error = (one) => told.push(one.message);
  lent.release();
  console.error = error;
  equal([given, told], [1, ["and so did the release"]]);
  x.release();
  equal(liveTensors(), live, "tensors that are left");
}

export async function a_version_that_asks_for_more_memory_gets_a_copy(context) {
  const { jax, device } = await libraries();
  const x = upload(context, VALUES, device);
  const { array } = jax.numpy;
  let dropped;
  // As if it asked twice as it makes one array.
  const numpy = {
    ...jax.numpy,
    array(...args) {
      dropped = array(...args);
      return array(...args);
    },
  };
  const lib = { ...jax, numpy };
  await throws(() => toJax(lib, x, { copy: false }), "CopyError", /cannot share/);
  dropped.dispose();
  const a = toJax(lib, x);
  dropped.dispose();
  ok((await a.ref.gpuBuffer()) !== x.buffer, "a buffer of jax-js");
  equal(await a.ref.data(), VALUES);
  a.dispose();
  equal(await x.read(), VALUES);
}
