// ndarray of scijs and zarrita (the real ones): memory shared both ways.
import assert from "node:assert/strict";
import { test } from "node:test";
import ndarray from "../../build/libraries/site/ndarray.mjs";
import * as zarr from "../../build/libraries/site/zarrita.mjs";
import { fromNdarray, toNdarray } from "../../js/dist/adapters/ndarray.js";
import { Tensor } from "../../js/dist/index.js";

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
