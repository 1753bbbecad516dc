// The dtype table and the reading of single elements.
// Looks inside: no public name has the packed form, nor the number of bits.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { dtypeNamed, dtypeOfTriple, dtypePacked, dtypes } from "../../../js/dist/core/dtype.js";
import { Tensor, UnsupportedError } from "../../../js/dist/index.js";

const table = JSON.parse(readFileSync(new URL("../../dtypes.json", import.meta.url), "utf8"));

test("the table is that of tests/dtypes.json", () => {
  const ours = dtypes.map((dtype) => [
    dtype.name,
    dtype.packed & 255,
    (dtype.packed >> 8) & 255,
    dtype.packed >>> 16,
    Math.ceil(dtype.step),
    dtype.View.name,
  ]);
  const bits = typeof Float16Array === "undefined" ? "Uint16Array" : "Float16Array";
  const theirs = table.map((row) => [
    row.name,
    row.code,
    row.bits,
    row.lanes,
    row.itemsize,
    row.typed_array === "Float16Array" ? bits : row.typed_array,
  ]);
  assert.deepEqual(ours.sort(), theirs.sort());
});

const bytesOf = ({ bits, lanes }, count) => Math.ceil((count * bits * lanes) / 8);

for (const row of table) {
  const { name } = row;
  test(`${name}: bytes become elements and back`, () => {
    const bytes = Uint8Array.from({ length: bytesOf(row, 6) }, (_, i) => (i * 37) & 255);
    const tensor = Tensor.fromTypedArray(bytes, { shape: [2, 3], dtype: name });
    assert.equal(tensor.dtype, name);
    assert.equal(tensor.nbytes, bytes.length);
    const { data } = tensor;
    assert.deepEqual(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), bytes);
    assert.equal(dtypePacked(tensor._managed.dtype.packed), dtypeNamed(name));
    tensor.release();
  });
}

test("an unknown name lists the known ones", () => {
  assert.throws(() => dtypeNamed("float31"), {
    name: "UnsupportedError",
    message: /"float31".*float32/,
    given: "float31",
  });
});

for (const row of table) {
  test(`${row.name}: elements may be vectors`, () => {
    for (const lanes of [2, 3, 16, 65535]) {
      const dtype = dtypeNamed(`${row.name}x${lanes}`);
      assert.equal(dtype.packed, (row.code | (row.bits << 8) | (lanes << 16)) >>> 0);
      assert.equal(dtypePacked(dtype.packed | 0), dtype, "from memory, as a signed integer");
      const length = bytesOf({ ...row, lanes }, 5);
      const bytes = new Uint8Array(length).fill(1);
      const tensor = Tensor.fromTypedArray(bytes, { shape: [5], dtype: dtype.name });
      assert.equal(tensor.nbytes, length);
      assert.equal(tensor.data.byteLength, length);
      assert.throws(() => tensor.at(0), UnsupportedError);
      tensor.release();
    }
  });
}

test("a vector that was used is no lane of another", () => {
  assert.equal(dtypeNamed("float32x3").name, "float32x3");
  assert.throws(() => dtypeNamed("float32x3x2"), { name: "UnsupportedError" });
});

test("no other vector has a name", () => {
  for (const name of ["float32x", "float32x1", "float32x04", "float32x65536", "x4", "int3x2"]) {
    assert.throws(() => dtypeNamed(name), UnsupportedError, name);
  }
});

test("a foreign triple is a dtype where DLPack has one, and nothing else", () => {
  const known = new Map(dtypes.map((dtype) => [dtype.packed & 0xffff, dtype]));
  const count = (n, most) => Number.isInteger(n) && n >= 0 && n <= most;
  const codes = [...Array(20).keys(), 255, 256, 257, -1, 1.5, "1", null, undefined];
  const widths = [0, 1, 2, 3, 4, 6, 7, 8, 12, 16, 32, 64, 128, 255, 256, 264, -8, 8.5, "8", NaN];
  const vectors = [1, 2, 65535, 0, 65536, 65537, -1, 1.5, "1", undefined];
  for (const code of codes) {
    for (const bits of widths) {
      for (const lanes of vectors) {
        for (const padded of [false, true]) {
          const lane = count(code, 255) && count(bits, 255) && known.get(code | (bits << 8));
          const small = padded && bits < 8;
          const is = lane && count(lanes, 65535) && lanes > 0 && !(small && lanes > 1);
          const found = dtypeOfTriple(code, bits, lanes, padded);
          const what = `${code} ${bits} ${lanes} ${padded}`;
          assert.equal(
            found?.packed,
            is ? (code | (bits << 8) | (lanes << 16)) >>> 0 : undefined,
            what,
          );
          assert.equal(found?.flags, is ? (small ? 4 : 0) : undefined, what);
        }
      }
    }
  }
});

test("sub-byte elements share bytes, unless they are padded", () => {
  const tensor = Tensor.fromTypedArray(Uint8Array.of(0x21, 0x03), { shape: [3], dtype: "int4" });
  assert.deepEqual([tensor.itemsize, tensor.nbytes, tensor.padded], [1, 2, false]);
  assert.deepEqual(tensor.data, Uint8Array.of(0x21, 0x03));
  tensor.release();
  const padded = dtypePacked(tensor._managed.dtype.packed, 4);
  assert.deepEqual([padded.name, padded.step, padded.components], ["int4", 1, 1]);
  assert.equal(dtypePacked(tensor._managed.dtype.packed), tensor._managed.dtype);
  assert.equal(dtypePacked(tensor._managed.dtype.packed, 4), padded);
});

const one = (array, dtype) => {
  const tensor = Tensor.fromTypedArray(array, { shape: [], dtype });
  try {
    return tensor.at();
  } finally {
    tensor.release();
  }
};

test("elements have the types of JS", () => {
  assert.equal(one(Uint8Array.of(1), "bool"), true);
  assert.equal(one(BigInt64Array.of(-5n)), -5n);
  assert.deepEqual(one(Float32Array.of(1.5, -2), "complex64"), [1.5, -2]);
  assert.equal(one(new Uint8Array(Uint16Array.of(0x3fc0).buffer), "bfloat16"), 1.5);
  for (const [bits, value] of [
    [0x3e00, 1.5],
    [0xfc00, Number.NEGATIVE_INFINITY],
    [0x7e00, Number.NaN],
    [0x0001, 2 ** -24],
    [0x8000, -0],
  ]) {
    for (const array of [Uint16Array.of(bits), runInNewContext(`Uint16Array.of(${bits})`)])
      assert.equal(one(array, "float16"), value);
  }
  assert.throws(() => one(Uint8Array.of(1), "float8_e5m2"), UnsupportedError);
});
