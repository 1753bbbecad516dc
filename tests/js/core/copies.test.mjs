// Two copies of the library in one realm, as a wheel and an npm package make them.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as ours from "../../../js/dist/index.js";
import { load } from "../second_copy.mjs";

const theirs = await load("index.js");
const exchange = await load("exchange/index.js");

test("tensors of one come into the other by the protocol, without a copy", async () => {
  assert.notEqual(ours.Tensor, theirs.Tensor);
  const array = Float32Array.of(0, 1, 2, 3, 4, 5);
  const tensor = ours.Tensor.fromTypedArray(array, { shape: [2, 3] });
  const before = theirs.liveTensors();
  for (const [take, x] of [
    [theirs.Tensor.from, tensor],
    [exchange.take, tensor],
    [exchange.take, { js: tensor }], // as Python's tensors are
    [exchange.takeAsync, { js: tensor }],
  ]) {
    const taken = await take(x);
    assert.ok(taken instanceof theirs.Tensor);
    assert.equal(taken.data.buffer, array.buffer);
    taken.release();
  }
  const fitted = exchange.fit(tensor, { copy: true });
  assert.deepEqual([...fitted], [0, 1, 2, 3, 4, 5]);
  fitted.release();
  assert.equal(theirs.liveTensors(), before);
  tensor.release();
});

test("each writes tensors of the other over its own", () => {
  const mine = ours.Tensor.fromTypedArray(new Float32Array(3));
  const other = theirs.Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
  mine.write(other);
  assert.deepEqual([...mine], [1, 2, 3]);
  const turned = mine.slice([null, null, -1]);
  other.write(turned);
  assert.deepEqual([...other], [3, 2, 1]);
  const wide = theirs.Tensor.fromTypedArray(Float64Array.of(7, 8, 9));
  mine.write(wide, { convert: true });
  assert.deepEqual([...mine], [7, 8, 9]);
  for (const each of [mine, other, turned, wide]) each.release();
});

test("a released tensor of the other is refused", () => {
  const other = theirs.Tensor.fromTypedArray(new Float32Array(3));
  other.release();
  assert.throws(() => ours.Tensor.from(other), { name: "ReleasedError" });
});

test("what looks like a tensor is none", () => {
  const tensor = ours.Tensor.fromTypedArray(new Float32Array(3));
  const forged = Object.create(ours.Tensor.prototype);
  for (const fake of [forged, { ...tensor }]) {
    assert.throws(() => ours.Tensor.from(fake));
    assert.throws(() => tensor.write(fake));
  }
  tensor.release();
});
