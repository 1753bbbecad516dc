// Exchanges that lie, change between reads, or throw: an error, everything released, and nothing
// outside the tensor read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { adopt } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { described, LIES } from "./described.mjs";

/** An exchange of six float32 that counts its releases; `lie` replaces fields. */
function exchangeOf(lie = {}) {
  const exchange = described({ release: () => exchange.released++, released: 0 });
  return Object.defineProperties(exchange, Object.getOwnPropertyDescriptors(lie));
}

function refused(exchange, what) {
  const before = liveTensors();
  assert.throws(
    () => adopt(exchange),
    (error) => /^(UnsupportedError|TypeError)$/.test(error.name) && error.message !== "",
    what,
  );
  assert.equal(liveTensors(), before, what);
}

for (const [field, lies] of Object.entries(LIES)) {
  test(`nonsense in ${field} is refused and released`, () => {
    for (const [i, lie] of lies.entries()) {
      const exchange = exchangeOf(lie);
      refused(exchange, `${field}, case ${i}`);
      assert.equal(exchange.released, 1, `${field}, case ${i}`);
    }
  });
}

test("each field is read once, so that it cannot change its mind", () => {
  const reads = {};
  const lying = {
    shape: [[2, 3], [1 << 20]],
    strides: [null, [1 << 20, 1]],
    byteOffset: [0, 1 << 20],
    capacity: [24, 1 << 20],
    flags: [0, 1],
  };
  const traps = {};
  for (const [key, [first, later]] of Object.entries(lying)) {
    traps[key] = {
      enumerable: true,
      get() {
        reads[key] = (reads[key] ?? 0) + 1;
        return reads[key] === 1 ? first : later;
      },
    };
  }
  const exchange = Object.defineProperties(exchangeOf(), traps);
  const tensor = adopt(exchange);
  assert.deepEqual([...tensor], [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(reads, { shape: 1, strides: 1, byteOffset: 1, capacity: 1, flags: 1 });
  tensor.release();
  assert.equal(exchange.released, 1);
});

test("a release that throws does not hide what was wrong", (t) => {
  const log = t.mock.method(console, "error", () => {});
  const exchange = exchangeOf({ shape: [9] });
  exchange.release = () => {
    throw new Error("from release");
  };
  assert.throws(() => adopt(exchange), { name: "UnsupportedError", message: /shape|36/ });
  assert.match(String(log.mock.calls[0]?.arguments[0]), /from release/);
});

test("packed elements with strides are refused", () => {
  const packed = { dtype: { code: 1, bits: 4, lanes: 1 }, shape: [4], data: new Uint8Array(8) };
  refused(exchangeOf({ ...packed, strides: [2], capacity: 8 }));
  const memory = new WebAssembly.Memory({ initial: 1 });
  assert.throws(() => Tensor.fromMemory(memory, 0, { shape: [4], dtype: "uint4", strides: [2] }), {
    name: "UnsupportedError",
    message: /row-major/,
  });
  const plain = adopt(exchangeOf({ ...packed, strides: [1], capacity: 8 }));
  assert.equal(plain.nbytes, 2);
  plain.release();
});

test("what receive() is given is checked", () => {
  for (const message of [
    null,
    undefined,
    1,
    {},
    { buffer: 8, dtype: "float32", shape: [2] },
    { buffer: new Uint8Array(8), dtype: "float32", shape: [2] },
    { buffer: { byteLength: 8 }, dtype: "float32", shape: [2] },
    { buffer: new ArrayBuffer(8), shape: [2] },
  ]) {
    assert.throws(() => Tensor.receive(message), { name: "TypeError", message: /transfer\(\)/ });
  }
  for (const shape of [[3], [-2], [0.5], "2"]) {
    const message = { buffer: new ArrayBuffer(8), dtype: "float32", shape };
    assert.throws(() => Tensor.receive(message), /RangeError|TypeError/);
  }
});
