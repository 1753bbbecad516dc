// A module in C without Python (wasm/example), whose tensors are this library's.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, test } from "node:test";
import { EXCHANGE } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { load } from "../../../wasm/example/example.mjs";

const source = await readFile(new URL("../../../build/example/example.wasm", import.meta.url));

let c;
beforeEach(async () => {
  c = await load(source, Tensor);
});
afterEach(() => assert.deepEqual([c.liveTensors(), liveTensors()], [0, 0], "tensors alive"));

/** Makes the module's memory grow, which detaches all views of it. */
function grow() {
  const before = c.memory.buffer;
  c.memory.grow(1);
  assert.equal(before.byteLength, 0);
}

/** A tensor in the module's memory with such elements. */
function put(array, options) {
  const tensor = Tensor.fromTypedArray(array, options);
  const made = c.copy(tensor);
  tensor.release();
  return made;
}

test("a tensor that C made is read where it is, strides and all, also after its memory grew", () => {
  const picture = c.picture(3, 5);
  assert.deepEqual([picture.dtype, picture.shape, picture.strides], ["uint8", [3, 5], [16, 1]]);
  const { data, release } = picture[EXCHANGE]();
  assert.equal(data.memory, c.memory);
  release();
  grow();
  assert.deepEqual(
    [...picture],
    Array.from({ length: 15 }, (_, i) => i),
  );
  picture.release();
});

test("the deleter in C is called once, after the last of its holders let go", () => {
  const picture = c.picture(2, 2);
  const holds = [picture.slice(1), Tensor.from(picture), picture[EXCHANGE]()];
  picture.release();
  picture.release();
  for (const hold of holds) {
    assert.equal(c.liveTensors(), 1);
    hold.release();
    hold.release();
  }
  assert.equal(c.liveTensors(), 0);
  assert.throws(() => c.sum(picture), { name: "ReleasedError" });
});

test("no memory: a RangeError, and nothing is held", () => {
  assert.throws(() => c.picture(2 ** 14, 2 ** 14), RangeError);
  const one = Tensor.fromTypedArray(Float32Array.of(1));
  for (const length of [2 ** 25, 2 ** 30]) {
    const broad = Tensor.from(broadOf(one, length));
    assert.throws(() => c.sum(broad), RangeError); // more than the memory may grow to
    broad.release();
  }
  one.release();
});

/** One element of a tensor, again and again. */
const broadOf = (tensor, length) => ({
  [EXCHANGE]: () => ({ ...tensor[EXCHANGE](), shape: [length], strides: [0], capacity: 4 }),
});

test("what lies in the module's memory is passed without a copy, whatever its strides", () => {
  const picture = c.picture(4, 7);
  const view = picture.slice([null, null, -2], [1, 6, 2]);
  const { buffer } = c.memory;
  const before = [...picture];
  assert.equal(
    c.sum(view),
    [...view].reduce((a, b) => a + b),
  );
  assert.throws(() => c.scale(view, 2), TypeError); // uint8
  assert.deepEqual([c.memory.buffer, [...picture]], [buffer, before]);
  const row = put(Float32Array.of(1, 2, 3, 4));
  const backwards = row.slice([null, null, -2]);
  c.scale(backwards, 10);
  assert.deepEqual([...row], [1, 20, 3, 40]);
  for (const each of [picture, view, row, backwards]) each.release();
});

test("what lies elsewhere is copied, and back where C writes: its elements and nothing else", () => {
  const data = Float32Array.of(1, 2, 3, 4, 5, 6);
  const tensor = Tensor.fromTypedArray(data);
  const [part, strided] = [tensor.slice([1, 4]), tensor.slice([null, null, -2])];
  assert.deepEqual([c.sum(part), c.sum(strided)], [9, 12]);
  c.scale(part, 10);
  assert.deepEqual([...data], [1, 20, 30, 40, 5, 6]);
  const readOnly = Tensor.from({
    [EXCHANGE]: (request) => ({ ...tensor[EXCHANGE](request), flags: 1 }),
  });
  for (const refused of [strided, readOnly]) {
    assert.throws(() => c.scale(refused, 2), { name: "UnsupportedError" });
  }
  assert.deepEqual([c.sum(readOnly), data[5]], [102, 6]);
  for (const each of [tensor, part, strided, readOnly]) each.release();
});

test("memory that grows while elements are copied within it", () => {
  const size = 60_000;
  const kept = [put(Float32Array.from({ length: size }, (_, i) => i))];
  const { buffer } = c.memory;
  while (c.memory.buffer === buffer) kept.push(c.copy(kept[0]));
  for (const tensor of kept) assert.equal(c.sum(tensor), (size * (size - 1)) / 2);
  for (const tensor of kept) tensor.release();
});

test("every dtype that C knows is summed, at any address; others are not a number", () => {
  const half = new Uint8Array(Uint16Array.of(0x3c00, 0xc200, 0x0001).buffer); // 1, -3, 2 ** -24
  for (const [array, dtype, expected] of [
    [Int8Array.of(-1, 5), "int8", 4],
    [Int16Array.of(-1, 500), "int16", 499],
    [Int32Array.of(-(2 ** 31), 5), "int32", 5 - 2 ** 31],
    [BigInt64Array.of(-1n, 2n ** 40n), "int64", 2 ** 40 - 1],
    [Uint8Array.of(255, 1), "uint8", 256],
    [Uint16Array.of(65535, 1), "uint16", 65536],
    [Uint32Array.of(2 ** 32 - 1, 1), "uint32", 2 ** 32],
    [BigUint64Array.of(2n ** 63n, 1n), "uint64", 2 ** 63],
    [Float32Array.of(0.5, -3), "float32", -2.5],
    [Float64Array.of(0.1, -3), "float64", 0.1 - 3],
    [Uint8Array.of(1, 0, 7), "bool", 2],
    [half, "float16", -2 + 2 ** -24],
    [Uint8Array.of(1, 2), "bfloat16", Number.NaN],
    [Float32Array.of(1, 2), "complex64", Number.NaN],
    [Uint8Array.of(0x21, 0x43), "int4", Number.NaN],
    [Float32Array.of(1, 2, 3, 4), "float32x4", Number.NaN],
  ]) {
    const bytes = new Uint8Array(array.buffer);
    const odd = new Uint8Array(bytes.length + 1);
    odd.set(bytes, 1);
    const tensor = Tensor.fromTypedArray(odd.subarray(1), { dtype });
    const mine = c.copy(tensor);
    for (const each of [tensor, mine]) assert.equal(c.sum(each), expected, dtype);
    assert.deepEqual([mine.dtype, mine.shape], [dtype, tensor.shape]);
    assert.deepEqual([...mine._managed.bytes()], [...bytes], dtype);
    for (const each of [tensor, mine]) each.release();
  }
});

test("own memory at an odd address is summed where it is", () => {
  const whole = put(new Uint8Array(9));
  const { data, release } = whole[EXCHANGE]();
  release();
  const { ptr } = data;
  new Uint8Array(c.memory.buffer, ptr + 1, 8).set(new Uint8Array(Float32Array.of(1, 2).buffer));
  const mine = Tensor.fromMemory(c.memory, ptr + 1, { shape: [2], dtype: "float32" });
  c.scale(mine, 3);
  assert.equal(c.sum(mine), 9);
  mine.release();
  whole.release();
});

test("shapes without elements and without axes", () => {
  for (const [shape, values, expected] of [
    [[0], [], 0],
    [[3, 0, 2], [], 0],
    [[], [7], 7],
    [Array(64).fill(1), [8], 8],
  ]) {
    const tensor = Tensor.fromTypedArray(Float32Array.from(values), { shape });
    const mine = c.copy(tensor);
    for (const each of [tensor, mine]) {
      c.scale(each, 1);
      assert.equal(c.sum(each), expected);
    }
    assert.deepEqual(mine.shape, shape);
    for (const each of [tensor, mine]) each.release();
  }
});
