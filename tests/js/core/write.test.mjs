// write() between tensors of memory that JS owns: by values, whole, or not at all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Tensor } from "../../../js/dist/index.js";
import "../nothing_leaks.mjs";

const half = (bits) => Uint16Array.from(bits);

/** [from, values, to, expected elements] of every conversion there is. */
const CONVERTED = [
  ["float64", Float64Array.of(0.1, -1e300, 2 ** -150), "float32", [Math.fround(0.1), -Infinity, 0]],
  ["complex128", Float64Array.of(0.1, 1, 2, 3), "complex64", [Math.fround(0.1), 1, 2, 3]],
  ["float16", half([0x3c00, 0x0001, 0xfbff, 0x7c00]), "float32", [1, 2 ** -24, -65504, Infinity]],
  ["int64", BigInt64Array.of(-1n, 2147483647n), "int32", [-1, 2147483647]],
  ["uint64", BigUint64Array.of(0n, 4294967295n), "uint32", [0, 4294967295]],
];

for (const [from, values, to, expected] of CONVERTED) {
  test(`${from} is written over ${to} by its values`, () => {
    const source = Tensor.fromTypedArray(values, { dtype: from });
    const Class = { complex64: Float32Array, float32: Float32Array }[to];
    const array = Class ? new Class(expected.length) : undefined;
    const target = Tensor.fromTypedArray(
      array ?? (to === "int32" ? new Int32Array(2) : new Uint32Array(2)),
      { dtype: to },
    );
    assert.throws(() => target.write(source), { name: "UnsupportedError" });
    assert.deepEqual([...target.data], Array(expected.length).fill(0), "nothing was written");
    target.write(source, { convert: true });
    assert.deepEqual([...target.data], expected);
    for (const each of [source, target]) each.release();
  });
}

test("float32 becomes 16 bits and comes back, ties to even", async () => {
  const values = Float32Array.of(1, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519.99, 65520, -0, 2 ** -25);
  const source = Tensor.fromTypedArray(values);
  const target = Tensor.fromTypedArray(new Uint16Array(7), { dtype: "float16" });
  target.write(source, { convert: true });
  const bits = [...new Uint16Array(target.data.buffer)];
  assert.deepEqual(bits, [0x3c00, 0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x8000, 0x0000]);
  source.write(target, { convert: true });
  assert.deepEqual([...values], [1, 1, 1 + 2 ** -9, 65504, Infinity, -0, 0]);
  for (const each of [source, target]) each.release();
});

/** A float32 of these bits. */
const floatOf = (bits) => new Float32Array(Uint32Array.of(bits).buffer)[0];
const bitsOf = (value) => new Uint32Array(Float32Array.of(value).buffer)[0];

/** [name, the bits of infinity, the value of the magnitude `bits` below that] of 16-bit floats. */
const HALVES = [
  [
    "float16",
    0x7c00,
    (bits) => {
      const [exponent, fraction] = [bits >> 10, bits & 1023];
      return exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    },
  ],
  ["bfloat16", 0x7f80, (bits) => floatOf(bits << 16)],
];

/** Conversions by write(): bits of 16-bit floats, and floats. */
function conversions(dtype) {
  const converted = (from, to) => {
    const [source, target] = [from, to].map(([array, name]) =>
      Tensor.fromTypedArray(new Uint8Array(array.buffer), { dtype: name }),
    );
    target.write(source, { convert: true });
    for (const each of [source, target]) each.release();
    return to[0];
  };
  return {
    narrowed: (floats) => converted([floats, "float32"], [new Uint16Array(floats.length), dtype]),
    widened: (halves) => converted([halves, dtype], [new Float32Array(halves.length), "float32"]),
  };
}

for (const [dtype, infinite, valueAt] of HALVES) {
  const { narrowed, widened } = conversions(dtype);

  test(`every bit pattern of ${dtype} has its value as float32, and comes back`, () => {
    const all = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
    const wide = widened(all);
    for (const bits of all) {
      const magnitude = bits & 0x7fff;
      const sign = bits >> 15 ? -1 : 1;
      const value =
        magnitude < infinite ? valueAt(magnitude) : magnitude > infinite ? NaN : Infinity;
      if (!Object.is(wide[bits], sign * value)) assert.equal(wide[bits], sign * value, `${bits}`);
    }
    assert.deepEqual(narrowed(wide), all, "NaNs keep their payload");
  });

  test(`${dtype} is rounded to the nearest, ties to even, at every boundary`, () => {
    const [floats, expected] = [[], []];
    const add = (float32, bits) => {
      floats.push(float32, float32 | 0x80000000);
      expected.push(bits, bits | 0x8000);
    };
    for (let bits = 0; bits < infinite; bits++) {
      // Beyond the largest number comes what would be the next one.
      const low = valueAt(bits);
      const step = bits + 1 < infinite ? valueAt(bits + 1) - low : low - valueAt(bits - 1);
      const middle = dtype === "bfloat16" ? (bits << 16) + 0x8000 : bitsOf(low + step / 2);
      add(middle, bits + (bits & 1));
      add(middle - 1, bits);
      add(middle + 1, bits + 1);
    }
    add(0x7f7fffff, infinite);
    const found = narrowed(new Float32Array(Uint32Array.from(floats).buffer));
    const wrong = expected.findIndex((bits, i) => found[i] !== bits);
    assert.equal(wrong, -1, `float32 ${floats[wrong]?.toString(16)}: ${found[wrong]}`);
  });

  test(`NaNs keep the upper bits of their payload as ${dtype}, or one`, () => {
    const dropped = dtype === "float16" ? 13 : 16;
    const bits = [];
    for (let upper = 0x7f80; upper < 0x8000; upper++) {
      for (const lower of [0, 1, 0x1fff, 0x2000, 0x7fff, 0x8000, 0xffff]) {
        if (upper > 0x7f80 || lower > 0) bits.push((upper << 16) | lower);
      }
    }
    const found = narrowed(new Float32Array(Uint32Array.from(bits).buffer));
    for (const [i, each] of bits.entries()) {
      const kept = (each >>> dropped) & (dtype === "float16" ? 0x3ff : 0x7f);
      assert.equal(found[i], infinite | (kept || 1), each.toString(16));
    }
  });
}

test("integers that do not fit are an error, and nothing is written", () => {
  const target = Tensor.fromTypedArray(Int32Array.of(7, 8));
  const source = Tensor.fromTypedArray(BigInt64Array.of(1n, 2n ** 31n));
  assert.throws(
    () => target.write(source, { convert: true }),
    /2147483648.*int32|int32.*2147483648/,
  );
  assert.deepEqual([...target.data], [7, 8]);
  for (const each of [source, target]) each.release();
});

test("what cannot be converted is refused, whatever it is written over", () => {
  const target = Tensor.fromTypedArray(new Float32Array(2));
  for (const array of [new Int32Array(2), new BigInt64Array(2), new Uint8Array(2)]) {
    const source = Tensor.fromTypedArray(array);
    assert.throws(() => target.write(source, { convert: true }), {
      name: "UnsupportedError",
      message: /cannot become float32/,
    });
    source.release();
  }
  target.release();
});

test("a view is written to where it lies, and nothing beside it", () => {
  const array = new Float32Array(8).fill(9);
  const whole = Tensor.fromTypedArray(array);
  const middle = whole.slice([2, 5]);
  const source = Tensor.fromTypedArray(Float64Array.of(1, 2, 3));
  middle.write(source, { convert: true });
  assert.deepEqual([...array], [9, 9, 1, 2, 3, 9, 9, 9]);
  const turned = source.slice([null, null, -1]);
  middle.write(turned, { convert: true });
  assert.deepEqual([...array], [9, 9, 3, 2, 1, 9, 9, 9]);
  assert.throws(() => middle.write(new Float32Array(2)), /needs 12 bytes; the array has 8/);
  for (const each of [whole, middle, source, turned]) each.release();
});

test("overlapping parts of one array are copied as by memmove", () => {
  for (const [from, to] of [
    [0, 2],
    [2, 0],
    [1, 1],
  ]) {
    const array = Int16Array.of(0, 1, 2, 3, 4, 5);
    const whole = Tensor.fromTypedArray(array);
    const [source, target] = [whole.slice([from, from + 4]), whole.slice([to, to + 4])];
    const expected = Int16Array.from(array).copyWithin(to, from, from + 4);
    target.write(source);
    assert.deepEqual([...array], [...expected]);
    const turned = source.slice([null, null, -1]);
    target.write(turned);
    for (const each of [whole, source, target, turned]) each.release();
  }
});

test("a strided source is written in its order; a strided target is refused", () => {
  const matrix = Tensor.fromTypedArray(Float32Array.of(0, 1, 2, 3, 4, 5), { shape: [2, 3] });
  const turned = matrix.permute([1, 0]);
  const target = Tensor.fromTypedArray(new Float32Array(6), { shape: [3, 2] });
  target.write(turned);
  assert.deepEqual([...target.data], [0, 3, 1, 4, 2, 5]);
  assert.throws(() => turned.write(target), { name: "UnsupportedError", message: /strided/ });
  for (const each of [matrix, turned, target]) each.release();
});

test("shapes are compared, also of as many elements", () => {
  const target = Tensor.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  const source = Tensor.fromTypedArray(new Float32Array(6), { shape: [3, 2] });
  assert.throws(() => target.write(source), { name: "UnsupportedError" });
  target.write(new Float32Array([1, 2, 3, 4, 5, 6]));
  assert.deepEqual([...target.data], [1, 2, 3, 4, 5, 6]);
  assert.throws(() => target.write(new Float64Array(6)), { name: "TypeError" });
  assert.throws(() => target.write(new Float32Array(5)), { name: "RangeError" });
  for (const each of [source, target]) each.release();
  assert.throws(() => target.write(new Float32Array(6)), { name: "ReleasedError" });
});

test("packed elements that end within a byte leave their neighbour alone, and take nothing of it along", async () => {
  for (const [dtype, count, bytes] of [
    ["uint4", 3, [0xff, 0x4f]],
    ["uint1", 5, [0x3f, 0x43]],
  ]) {
    const whole = Tensor.fromTypedArray(Uint8Array.of(0x21, 0x43), {
      dtype,
      shape: [dtype === "uint4" ? 4 : 16],
    });
    const part = whole.slice([0, count]);
    part.write(new Uint8Array(Math.ceil(part.nbytes)).fill(0xff));
    assert.deepEqual([...whole.data], bytes, dtype);
    const all = await part.read();
    assert.equal(all.at(-1), 2 ** ((count * (dtype === "uint4" ? 4 : 1)) % 8) - 1, dtype);
    await part.read(part);
    assert.deepEqual([...whole.data], bytes, dtype);
    const message = part.transfer();
    assert.deepEqual(new Uint8Array(message.buffer), all);
    whole.release();
  }
});
