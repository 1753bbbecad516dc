// The dtype table and the reading of single elements.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { dtypeNamed, dtypePacked, dtypes } from "../../js/dist/dtype.js";
import { Tensor, UnsupportedError } from "../../js/dist/index.js";

const table = JSON.parse(readFileSync(new URL("../dtypes.json", import.meta.url), "utf8"));

test("the table is that of tests/dtypes.json", () => {
  const ours = dtypes.map((dtype) => [
    dtype.name,
    dtype.code,
    (dtype.packed >> 8) & 255,
    dtype.packed >>> 16,
    dtype.itemsize,
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

for (const { name, itemsize } of table) {
  test(`${name}: bytes become elements and back`, () => {
    const bytes = Uint8Array.from({ length: 6 * itemsize }, (_, i) => (i * 37) & 255);
    const tensor = Tensor.fromTypedArray(bytes, { shape: [2, 3], dtype: name });
    assert.equal(tensor.dtype, name);
    assert.equal(tensor.nbytes, bytes.length);
    const { data } = tensor;
    assert.deepEqual(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), bytes);
    assert.equal(dtypePacked(tensor._type.packed), dtypeNamed(name));
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

test("vector lanes are no dtype of the table", () => {
  assert.equal(dtypePacked(2 | (32 << 8) | (4 << 16)), undefined);
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
    assert.equal(one(Uint16Array.of(bits), "float16"), value);
  }
  assert.throws(() => one(Uint8Array.of(1), "float8_e5m2"), UnsupportedError);
});
