// Packed and padded elements of one sub-byte dtype: equal by name, different in memory. The model
// is a list of numbers; every byte of the target is compared, those of neighbours included.
// Looks inside: no public name makes padded elements but by an exchange.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed, dtypeOfTriple, dtypes } from "../../../js/dist/core/dtype.js";
import { Tensor } from "../../../js/dist/index.js";
import { Random } from "../../fuzz/js/random.mjs";
import "../nothing_leaks.mjs";

const SMALL = dtypes.filter(({ step }) => step < 1);
const bitsOf = ({ packed }) => (packed >>> 8) & 255;

const noise = (random, count) => Uint8Array.from({ length: count }, () => random.below(256));

/** `count` elements of `bits`, the next one `step` bits on. */
function elements(memory, step, bits, count) {
  return Array.from({ length: count }, (_, i) => {
    let value = 0;
    for (let bit = 0; bit < bits; bit++) {
      const at = i * step + bit;
      value |= ((memory[at >> 3] >> (at & 7)) & 1) << bit;
    }
    return value;
  });
}

/** The memory with these from position `first` on; a padded element's other bits are 0. */
function put(memory, step, bits, first, values) {
  const made = memory.slice();
  values.forEach((value, i) => {
    for (let bit = 0; bit < Math.max(step, bits); bit++) {
      const at = (first + i) * step + bit;
      made[at >> 3] = (made[at >> 3] & ~(1 << (at & 7))) | (((value >> bit) & 1) << (at & 7));
    }
  });
  return made;
}

/** Row-major elements of `shape`, with the axes in the opposite order. */
function turnedOver(bytes, shape) {
  let order = [0];
  let stride = 1;
  for (const extent of [...shape].reverse()) {
    const [before, step] = [order, stride];
    order = before.flatMap((at) => Array.from({ length: extent }, (_, i) => at + i * step));
    stride *= extent;
  }
  return order.map((at) => bytes[at]);
}

for (const type of SMALL) {
  const { name } = type;
  const bits = bitsOf(type);
  for (const padded of [false, true]) {
    const [step, other] = padded ? [8, bits] : [bits, 8];
    test(`${name}, ${padded ? "packed to padded" : "padded to packed"}: values are written, neighbours stay`, () => {
      const random = new Random(bits + 100 * padded + name.length);
      for (let round = 0; round < 200; round++) {
        const shape = Array.from({ length: random.below(4) }, () => random.below(5));
        const size = shape.reduce((product, extent) => product * extent, 1);
        const first = random.below(5) * (padded ? 1 : 8 / Math.min(bits === 6 ? 2 : bits, 4));
        const memory = noise(random, Math.ceil(((first + size + random.below(9)) * step) / 8));
        const bytes = noise(random, Math.ceil((size * other) / 8));
        // A strided source, where there can be one.
        const turned = other === 8 && random.oneIn(2);
        const described = { shape, dtype: name, padded: !padded };
        let source = Tensor.fromTypedArray(bytes.slice(), described);
        if (turned) {
          const view = source.permute(shape.map((_, axis) => -1 - axis));
          source.release();
          source = view;
        }
        const values = turned ? turnedOver(bytes, shape) : elements(bytes, other, bits, size);
        const count = Math.floor((memory.length * 8) / step);
        const whole = Tensor.fromTypedArray(memory, { shape: [count], dtype: name, padded });
        const flat = whole.slice([first, first + size]);
        const part = flat.reshape(source.shape);
        const start = memory.slice();
        assert.throws(() => part.write(source), {
          name: "UnsupportedError",
          message: /is packed in one and padded in the other; convert: true converts$/,
        });
        assert.deepEqual(memory, start);
        part.write(source, { convert: true });
        const kept = values.map((value) => value & (2 ** bits - 1));
        assert.deepEqual(memory, put(start, step, bits, first, kept));
        for (const each of [source, whole, flat, part]) each.release();
      }
    });
  }

  test(`${name}: nothing is read into elements that lie otherwise`, async () => {
    for (const count of [0, 1, 2, 8]) {
      const [packed, padded] = [false, true].map((padded) => {
        const nbytes = Math.ceil((count * (padded ? 8 : bits)) / 8);
        const array = new Uint8Array(nbytes).fill(padded ? 255 : 0);
        return Tensor.fromTypedArray(array, { shape: [count], dtype: name, padded });
      });
      for (const [from, to] of [
        [packed, padded],
        [padded, packed],
      ]) {
        const start = to.copy();
        await assert.rejects(from.read(to), /packed in one and padded|out has [\d.]+ bytes/);
        assert.deepEqual(to.copy(), start);
      }
      for (const each of [packed, padded]) each.release();
    }
    // As many bytes, of another number of elements.
    const each = bits === 6 ? 4 : 8 / bits;
    const packed = Tensor.fromTypedArray(new Uint8Array((each * bits) / 8), { dtype: name });
    const padded = Tensor.fromTypedArray(packed.copy().fill(7), { dtype: name, padded: true });
    await assert.rejects(packed.read(padded), /packed in one and padded in the other/);
    await assert.rejects(padded.read(packed), /packed in one and padded in the other/);
    for (const tensor of [packed, padded]) tensor.release();
  });

  test(`${name}: copies, holds, messages and exchanges keep how elements lie`, async () => {
    for (const padded of [false, true]) {
      const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6);
      const count = padded ? 6 : Math.floor(48 / bits);
      const facts = { dtype: name, shape: [count], padded };
      const tensor = Tensor.fromTypedArray(bytes, facts);
      const exchange = tensor[Symbol.for("dlpack.exchange")]({ copy: true });
      const copies = [
        Tensor.from(tensor),
        tensor.reshape([1, -1]),
        Tensor.from({ [Symbol.for("dlpack.exchange")]: () => exchange }),
        Tensor.receive(Tensor.fromTypedArray(bytes.slice(), facts).transfer()),
        tensor.contiguous().slice(),
      ];
      for (const copy of copies) {
        assert.deepEqual([copy.dtype, copy.padded, copy.size], [name, padded, count]);
        assert.deepEqual(copy.copy(), bytes);
        const target = Tensor.fromTypedArray(new Uint8Array(6), { ...facts, shape: copy.shape });
        target.write(copy);
        assert.deepEqual(target.data, bytes);
        for (const each of [copy, target]) each.release();
      }
      tensor.release();
    }
  });

  test(`${name}: vectors are packed alone`, () => {
    const code = type.packed & 255;
    for (const lanes of [2, 3, 4, 8, 65535]) {
      const vector = `${name}x${lanes}`;
      for (let time = 0; time < 2; time++) {
        assert.throws(() => dtypeNamed(vector, true), {
          name: "UnsupportedError",
          message: `${vector} cannot be padded: DLPack defines that for single elements, and vectors are packed`,
        });
        assert.equal(dtypeNamed(vector).step, (bits * lanes) / 8);
        assert.equal(dtypeNamed(vector).flags, 0);
        assert.equal(dtypeOfTriple(code, bits, lanes, true), undefined);
        assert.equal(dtypeOfTriple(code, bits, lanes, false), dtypeNamed(vector));
      }
    }
    assert.equal(dtypeOfTriple(code, bits, 1, true), dtypeNamed(name, true));
    assert.deepEqual([dtypeNamed(name, true).step, dtypeNamed(name).step], [1, bits / 8]);
    assert.throws(
      () => Tensor.fromTypedArray(new Uint8Array(4), { dtype: `${name}x2`, padded: true }),
      { name: "UnsupportedError" },
    );
  });
}

test("other dtypes of as many bytes are no conversion, padded or not", () => {
  const array = new Uint8Array(3).fill(9);
  const target = Tensor.fromTypedArray(array);
  for (const dtype of ["int4", "uint4", "float6_e2m3fn", "uint1"]) {
    const source = Tensor.fromTypedArray(new Uint8Array(3), { dtype, padded: true });
    assert.throws(() => target.write(source), /: shape and dtype must be the same$/);
    assert.throws(() => target.write(source, { convert: true }), /cannot become uint8 on the way/);
    assert.throws(() => source.write(target, { convert: true }), /uint8\[3\] on cpu cannot become/);
    assert.deepEqual([...array], [9, 9, 9]);
    source.release();
  }
  target.release();
});

test("elements of whole bytes are never padded, whatever is asked for", () => {
  for (const { name, step } of dtypes.filter((each) => each.step >= 1)) {
    assert.equal(dtypeNamed(name, true), dtypeNamed(name), name);
    assert.equal(dtypeNamed(`${name}x3`, true).step, 3 * step);
  }
});

test("a read into elements that share their last byte writes their bits alone", async () => {
  const array = Uint8Array.of(0x21, 0x43);
  const four = Tensor.fromTypedArray(array, { dtype: "uint4" });
  const three = four.slice([0, 3]); // its last byte is shared
  const bytes = Tensor.fromTypedArray(Uint8Array.of(255, 255));
  await assert.rejects(bytes.read(three), { name: "RangeError", message: /out has 1.5 bytes/ });
  await assert.rejects(three.read(bytes), { name: "RangeError", message: /needs 1.5/ });
  assert.deepEqual(
    [[...array], [...bytes.data]],
    [
      [0x21, 0x43],
      [255, 255],
    ],
  );
  const refused = { name: "UnsupportedError", message: /shape and dtype must be the same/ };
  await assert.rejects(four.read(bytes), refused);
  await assert.rejects(bytes.read(four), refused);
  const other = Tensor.fromTypedArray(Uint8Array.of(255, 255), { dtype: "uint4" });
  const part = other.slice([0, 3]);
  await three.read(part);
  assert.deepEqual([...other.data], [0x21, 0xf3]);
  for (const each of [four, three, bytes, other, part]) each.release();
});
