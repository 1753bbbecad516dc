// Memory that moves, shrinks or goes away under a tensor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Tensor } from "../../../js/dist/index.js";
import "../nothing_leaks.mjs";

const page = () => new WebAssembly.Memory({ initial: 1, maximum: 8 });

test("fromMemory is a view of a module's memory that follows its growth", () => {
  const memory = page();
  new Float32Array(memory.buffer, 64, 6).set([0, 1, 2, 3, 4, 5]);
  let released = 0;
  const tensor = Tensor.fromMemory(memory, 64, {
    shape: [2, 3],
    dtype: "float32",
    release: () => released++,
  });
  const row = tensor.slice(1);
  assert.equal(tensor.data.buffer, memory.buffer);
  const old = tensor.data;
  memory.grow(1);
  assert.equal(old.length, 0);
  assert.deepEqual([...tensor.data], [0, 1, 2, 3, 4, 5]);
  tensor.data[4] = 40;
  tensor.release();
  assert.equal(released, 0, "a view holds it");
  assert.deepEqual([...row], [3, 40, 5]);
  row.release();
  row.release();
  assert.equal(released, 1);
});

test("fromMemory with strides, read-only", () => {
  const memory = page();
  new Int16Array(memory.buffer, 0, 6).set([0, 1, 2, 3, 4, 5]);
  const options = { shape: [3], strides: [-2], dtype: "int16", readOnly: true };
  const tensor = Tensor.fromMemory(memory, 10, options);
  assert.deepEqual([...tensor], [5, 3, 1]);
  assert.ok(tensor.readOnly);
  assert.throws(() => tensor.write(new Int16Array(3)), { name: "UnsupportedError" });
  tensor.release();
});

test("fromMemory refuses what does not lie in the memory", () => {
  const memory = page();
  const options = { shape: [4], dtype: "float32" };
  for (const ptr of [-4, 65536 - 12, 0.5, Number.NaN, 2 ** 53, "0", undefined]) {
    assert.throws(() => Tensor.fromMemory(memory, ptr, options), { name: "RangeError" }, `${ptr}`);
  }
  for (const strides of [[-1], [1 << 20]]) {
    assert.throws(() => Tensor.fromMemory(memory, 0, { ...options, strides }), {
      name: "RangeError",
    });
  }
  for (const none of [null, undefined, {}, { buffer: 3 }, new Uint8Array(8)]) {
    assert.throws(() => Tensor.fromMemory(none, 0, options), { name: "TypeError" });
  }
});

test("memory whose buffer is replaced, and not detached, is looked up anew", () => {
  const memory = { buffer: Float32Array.of(1, 2).buffer };
  const tensor = Tensor.fromMemory(memory, 0, { shape: [2], dtype: "float32" });
  const old = tensor.data;
  assert.equal(tensor.data, old, "the same view as long as it is right");
  memory.buffer = Float32Array.of(3, 4, 5).buffer;
  assert.deepEqual([...tensor.data], [3, 4]);
  assert.deepEqual([...old], [1, 2]);
  memory.buffer = new ArrayBuffer(4);
  assert.throws(() => tensor.data, { name: "UnsupportedError", message: /shrank/ });
  tensor.release();
});

test("an array that is detached is told by whatever reads it", async () => {
  const array = Float32Array.of(1, 2, 3);
  const tensor = Tensor.fromTypedArray(array);
  const view = tensor.slice([1, 3]);
  structuredClone(null, { transfer: [array.buffer] });
  for (const each of [tensor, view]) {
    for (const read of [() => each.data, () => each.at(0), () => [...each], () => each.copy()])
      assert.throws(read, { name: "UnsupportedError", message: /detached/ });
    assert.equal(inspect(each), `${each.toString()} (see its copy())`);
    await assert.rejects(each.read(), { name: "UnsupportedError", message: /detached/ });
    assert.deepEqual([each.size, each.released], [each === tensor ? 3 : 2, false]);
  }
  for (const each of [view, tensor]) each.release();
});

test("a length-tracking array is as long as it was", async () => {
  const buffer = new ArrayBuffer(16, { maxByteLength: 64 });
  const array = new Float32Array(buffer);
  array.set([1, 2, 3, 4]);
  const tensor = Tensor.fromTypedArray(array);
  buffer.resize(64);
  assert.deepEqual([tensor.shape[0], tensor.data.length], [4, 4]);
  assert.deepEqual([...(await tensor.read())], [1, 2, 3, 4]);
  assert.deepEqual([...tensor], [1, 2, 3, 4]);
  buffer.resize(12);
  assert.throws(() => tensor.data, { name: "UnsupportedError", message: /shrank/ });
  assert.throws(() => tensor.at(0), { name: "UnsupportedError", message: /shrank/ });
  buffer.resize(16);
  assert.deepEqual([...tensor.data], [1, 2, 3, 0]);
  tensor.release();
});

test("a release that throws is told, and hides nothing", (t) => {
  const log = t.mock.method(console, "error", () => {});
  const tensor = Tensor.fromMemory(page(), 0, {
    shape: [1],
    dtype: "uint8",
    release() {
      throw new Error("from release");
    },
  });
  tensor.release();
  assert.equal(log.mock.callCount(), 1);
  assert.match(String(log.mock.calls[0].arguments[0]), /from release/);
});
