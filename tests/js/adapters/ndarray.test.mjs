// ndarray of scijs and zarrita (the real ones): memory shared both ways.
import assert from "node:assert/strict";
import { test } from "node:test";
import ndarray from "../../../build/libraries/site/ndarray.mjs";
import * as zarr from "../../../build/libraries/site/zarrita.mjs";
import { fromNdarray, toNdarray } from "../../../js/dist/adapters/ndarray.js";
import { Tensor } from "../../../js/dist/index.js";

const VALUES = Float32Array.from({ length: 12 }, (_, i) => i);

test("an ndarray and its views are tensors, whatever their strides", () => {
  const array = ndarray(VALUES, [3, 4]);
  const views = [
    [array, [3, 4], [4, 1], 0],
    [array.transpose(1, 0), [4, 3], [1, 4], 0],
    [array.step(-1, 2), [3, 2], [-4, 2], 8],
    [array.pick(1, null), [4], [1], 4],
    [array.lo(1, 2), [2, 2], [4, 1], 6],
  ];
  for (const [view, shape, strides, first] of views) {
    const tensor = fromNdarray(ndarray, view);
    assert.deepEqual([tensor.shape, tensor.strides], [shape, strides]);
    assert.equal(tensor.at(...shape.map(() => 0)), first);
    assert.equal(tensor.at(...shape.map(() => -1)), view.get(...shape.map((dim) => dim - 1)));
    assert.equal(tensor.data.buffer, VALUES.buffer);
    tensor.release();
  }
});

test("a tensor is an ndarray, whatever its strides", () => {
  const data = VALUES.slice();
  const options = { shape: [2, 3], strides: [-4, 1], offset: 5 };
  const tensor = Tensor.fromTypedArray(data, options);
  const array = toNdarray(ndarray, tensor, { copy: false });
  tensor.release();
  assert.deepEqual([array.shape, array.get(0, 0), array.get(1, 2)], [[2, 3], 5, 3]);
  array.set(0, 1, 60);
  assert.equal(data[6], 60);
  assert.equal(array.pick(0, null).get(1), 60);
});

test("an ndarray follows memory that grows", () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const view = new Float32Array(memory.buffer, 0, 3);
  view.set([1, 2, 3]);
  const tensor = Tensor.fromTypedArray(view);
  const array = toNdarray(ndarray, tensor);
  memory.grow(1);
  // A typed array that is detached is an error, and not three times undefined.
  assert.throws(() => array.get(0), { name: "UnsupportedError", message: /detached/ });
  tensor.release();
});

test("what comes back from an ndarray of a tensor holds the tensor's memory", () => {
  for (const library of [null, ndarray]) {
    for (const shape of [[], [3], [2, 1, 3]]) {
      let released = 0;
      const memory = new WebAssembly.Memory({ initial: 1 });
      const options = { shape, dtype: "float32", release: () => released++ };
      const tensor = Tensor.fromMemory(memory, 64, options);
      const array = toNdarray(library, tensor);
      const back = fromNdarray(library, array);
      tensor.release();
      array.data = null;
      memory.grow(1);
      assert.deepEqual([back.data[0], released], [0, 0], `[${shape}]`);
      back.release();
      assert.equal(released, 1);
    }
  }
});

test("chunks of zarrita go both ways", async () => {
  const array = await zarr.create(new Map(), {
    shape: [4, 4],
    chunkShape: [2, 2],
    dtype: "float32",
  });
  const tensor = Tensor.fromTypedArray(VALUES.subarray(0, 6), { shape: [2, 3], strides: [1, 2] });
  const chunk = toNdarray(null, tensor);
  assert.deepEqual(Object.keys(chunk).sort(), ["data", "offset", "shape", "stride"]);
  await zarr.set(array, [zarr.slice(1, 3), zarr.slice(0, 3)], chunk);
  const region = await zarr.get(array, [zarr.slice(1, 3), zarr.slice(0, 3)]);
  const back = fromNdarray(null, region);
  assert.deepEqual(back.shape, [2, 3]);
  assert.equal(back.data.buffer, region.data.buffer);
  for (const [i, j] of [
    [0, 0],
    [0, 2],
    [1, 1],
  ]) {
    assert.equal(back.at(i, j), tensor.at(i, j));
  }
  back.release();
  tensor.release();
});

test("zarrita's bools are bools, and its strings are refused", async () => {
  const array = await zarr.create(new Map(), { shape: [2, 3], chunkShape: [2, 2], dtype: "bool" });
  const flags = Tensor.fromTypedArray(Uint8Array.of(1, 0, 1, 0, 1, 1), {
    shape: [2, 3],
    dtype: "bool",
  });
  await zarr.set(array, null, toNdarray(null, flags));
  const region = await zarr.get(array);
  assert.ok(!ArrayBuffer.isView(region.data), "a class of its own");
  const back = fromNdarray(null, region);
  assert.deepEqual([back.dtype, back.shape, ...back], ["bool", [2, 3], ...flags]);
  assert.equal(back.data.buffer, region.data.buffer);
  for (const each of [back, flags]) each.release();
  for (const dtype of ["v2:U2", "v2:S1", "v2:S2"]) {
    const options = { shape: [2], chunkShape: [2], dtype, fillValue: "" };
    const text = await zarr.create(new Map(), options);
    const strings = await zarr.get(text);
    const take = () => fromNdarray(null, strings);
    assert.throws(
      take,
      { name: "UnsupportedError", message: /not a typed array of numbers/ },
      dtype,
    );
  }
});

test("zarrita gets numbers of every class, bigints among them", async () => {
  for (const [dtype, data] of [
    ["int64", BigInt64Array.of(1n, -2n)],
    ["uint8", Uint8Array.of(1, 255)],
    ["int16", Int16Array.of(1, -2)],
    ["float64", Float64Array.of(0.5, -2)],
  ]) {
    const array = await zarr.create(new Map(), { shape: [2], chunkShape: [2], dtype });
    const tensor = Tensor.fromTypedArray(data);
    await zarr.set(array, null, toNdarray(null, tensor));
    const back = fromNdarray(null, await zarr.get(array));
    assert.deepEqual([back.dtype, ...back.data], [dtype, ...data]);
    for (const each of [tensor, back]) each.release();
  }
});

test("zarrita knows no offset: what does not begin with its first element is copied", async () => {
  const array = await zarr.create(new Map(), { shape: [3], chunkShape: [2], dtype: "float32" });
  const whole = Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
  const reversed = whole.slice([null, null, -1]);
  assert.throws(() => toNdarray(null, reversed, { copy: false }), { name: "CopyError" });
  await zarr.set(array, null, toNdarray(null, reversed));
  assert.deepEqual([...(await zarr.get(array)).data], [3, 2, 1]);
  for (const each of [reversed, whole]) each.release();
});

test("dtypes that have no class of arrays are told", () => {
  const flags = ndarray(Uint8Array.of(1, 0), [2]);
  const tensor = fromNdarray(ndarray, flags, { dtype: "bool" });
  assert.deepEqual([tensor.dtype, tensor.at(0)], ["bool", true]);
  tensor.release();
});

test("what is not in a typed array is refused", () => {
  const list = ndarray([1, 2, 3]);
  assert.throws(() => fromNdarray(ndarray, list), { name: "UnsupportedError", message: /typed/ });
  const outside = { data: VALUES, shape: [4, 4], stride: [4, 1] };
  assert.throws(() => fromNdarray(null, outside), {
    name: "RangeError",
    message: /needs 64 bytes/,
  });
});
