// apache-arrow (the real one): columns by name, and which of their elements are null.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import * as arrow from "../../../build/libraries/site/arrow.mjs";
import { fromArrow, toArrow } from "../../../js/dist/adapters/arrow.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";

const same = (a, b) => a.buffer === b.buffer && a.byteOffset === b.byteOffset;
const numbers = (values, Type = arrow.Float32) => arrow.vectorFromArray(values, new Type());
const unsupported = (message) => ({ name: "UnsupportedError", message });

let live;
beforeEach(() => {
  live = liveTensors();
});
afterEach(() => assert.equal(liveTensors(), live, "tensors alive"));

/** Every third of `length` is null. */
const holes = (length) => Array.from({ length }, (_, i) => (i % 3 === 1 ? null : i));

const MASK = { nulls: "mask" };

/** The values that Arrow has of tensors. */
function inArrow({ values: tensor, valid }, options) {
  const vector = toArrow(arrow, tensor, { valid, ...options });
  const values = Array.from(vector, (value) => value?.toArray?.() ?? value);
  for (let [data] = vector.data; data; [data] = data.children) data.values = null; // lets go
  return values;
}

/** Releases both. */
function release({ values, valid }) {
  for (const each of [values, valid]) each.release();
}

test("a second tensor says which elements are valid", () => {
  for (const Type of [arrow.Float64, arrow.Int16, arrow.Uint8]) {
    const vector = numbers(holes(70), Type);
    for (const [start, stop] of [
      [0, 70],
      [5, 60],
      [9, 12],
      [13, 14],
    ]) {
      const part = vector.slice(start, stop);
      const pair = fromArrow(arrow, part, { copy: false, ...MASK });
      assert.ok(same(pair.values.data, part.data[0].values));
      const expected = holes(70).slice(start, stop);
      assert.deepEqual(
        [...pair.valid],
        expected.map((value) => value !== null),
      );
      assert.equal(pair.valid.dtype, "bool");
      assert.deepEqual(inArrow(pair), expected);
      release(pair);
    }
  }
  const flags = arrow.vectorFromArray([true, null, false, null, true], new arrow.Bool()).slice(1);
  const pair = fromArrow(arrow, flags, MASK);
  assert.deepEqual([...pair.valid], [false, true, false, true]);
  assert.deepEqual(inArrow(pair), [null, false, null, true]);
  release(pair);
});

test("each of the two is released by itself", () => {
  const { values, valid } = fromArrow(arrow, numbers([1, null]), MASK);
  assert.equal(liveTensors(), live + 2);
  values.release();
  assert.deepEqual([...valid], [true, false]);
  valid.release();
});

test("nulls are refused", () => {
  const vector = numbers([1, null, 3]);
  for (const options of [undefined, {}, { nulls: "refuse" }, { nulls: undefined }]) {
    const said = /1 of 3 elements are null, .*nulls: "mask", which returns \{ values, valid \}/;
    assert.throws(() => fromArrow(arrow, vector, options), unsupported(said));
    fromArrow(arrow, vector.slice(2), options).release();
  }
  for (const nulls of ["drop", "keep", null]) {
    const odd = () => fromArrow(arrow, vector, { nulls });
    assert.throws(odd, {
      name: "TypeError",
      message: `nulls must be "refuse" or "mask", not ${nulls}`,
    });
  }
  for (const values of [[null], [null, null]]) {
    assert.throws(() => fromArrow(arrow, numbers(values)), unsupported(/of \d elements are null/));
  }
});

test("without nulls all are valid", () => {
  const given = Tensor.fromTypedArray(Float32Array.of(1, 2), { shape: [1, 2] });
  for (const [value, count] of [
    [numbers([1, 2, 3]), 3],
    [numbers([]), 0],
    [numbers([1]).concat(numbers([2])), 2],
    [given, 1],
  ]) {
    const pair = fromArrow(arrow, value, MASK);
    assert.deepEqual([...pair.valid], Array(count).fill(true));
    assert.equal(pair.values.shape[0], count);
    release(pair);
  }
  given.release();
});

test("what an older version posted with nulls is refused", () => {
  const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2));
  const message = tensor.transfer();
  assert.deepEqual(Object.keys(message), ["dtype", "padded", "shape", "buffer"]);
  const old = { ...message, validity: Uint8Array.of(1, 0) };
  assert.throws(() => Tensor.receive(old), { name: "TypeError" });
  Tensor.receive(message).release();
});

test("valid has a bool for each element of axis 0", () => {
  const values = Tensor.fromTypedArray(Float32Array.of(1, 2, 3, 4, 5, 6), { shape: [3, 2] });
  const bytes = Uint8Array.of(1, 0, 0, 1, 1, 1);
  const bools = (options) => Tensor.fromTypedArray(bytes, { dtype: "bool", ...options });
  const valid = bools({ shape: [3], strides: [-2], offset: 4 });
  assert.deepEqual(inArrow({ values, valid }), [
    Float32Array.of(1, 2),
    null,
    Float32Array.of(5, 6),
  ]);
  const wrong = [
    bools(),
    bools({ shape: [3, 2] }),
    bools({ shape: [], offset: 5, strides: [] }),
    Tensor.fromTypedArray(Uint8Array.of(1, 0, 1)),
    Tensor.fromTypedArray(Uint8Array.of(1, 0, 1), { dtype: "bool", shape: [3, 1] }),
  ];
  for (const each of wrong) {
    const give = () => toArrow(arrow, values, { valid: each });
    assert.throws(give, unsupported(/^valid must be a tensor of bool of shape \[3\], not Tensor /));
  }
  assert.throws(() => toArrow(arrow, values, { valid: [true] }), { name: "TypeError" });
  for (const each of [values, valid, ...wrong]) each.release();
});

test("a count of nulls may be wrong, but 0 says that there are none", () => {
  const make = (nullCount, nullBitmap) =>
    arrow.makeVector(
      arrow.makeData({
        type: new arrow.Int8(),
        length: 3,
        data: Int8Array.of(1, 2, 3),
        nullCount,
        nullBitmap,
      }),
    );
  for (const nullCount of [-1, 1, 3]) {
    const vector = make(nullCount, Uint8Array.of(0b100));
    assert.throws(() => fromArrow(null, vector), unsupported(/^2 of 3 elements are null/));
    fromArrow(null, make(nullCount, Uint8Array.of(0b111))).release();
  }
  for (const [nullCount, bits] of [
    [0, Uint8Array.of(0b100)],
    [0, undefined],
    [-1, undefined],
  ]) {
    fromArrow(null, make(nullCount, bits)).release();
  }
  assert.throws(() => fromArrow(null, make(2, undefined)), unsupported(/malformed/));
  // Other copies of Arrow may not have counted.
  const uncounted = make(0, undefined);
  Object.defineProperty(uncounted.data[0], "nullCount", { value: -1 });
  fromArrow(null, uncounted).release();
  for (const whole of [uncounted, make(0, Uint8Array.of(0))]) {
    const pair = fromArrow(null, whole.concat(make(1, Uint8Array.of(0b101))), MASK);
    assert.deepEqual([...pair.valid], [true, true, true, true, false, true]);
    release(pair);
  }
  const data = new Int8Array(16);
  const nullBitmap = Uint8Array.of(255);
  const type = new arrow.Int8();
  const short = arrow.makeData({ type, length: 8, offset: 8, data, nullCount: 1, nullBitmap });
  assert.throws(() => fromArrow(null, short, MASK), unsupported(/malformed/));
});

test("lists are null as a whole", () => {
  const pairs = new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Float32(), true));
  const child = numbers([1, 2, null, null, 5, 6]).data[0];
  const make = (bits) =>
    arrow.makeVector(
      arrow.makeData({
        type: pairs,
        length: 3,
        nullCount: bits ? -1 : 0,
        nullBitmap: bits && Uint8Array.of(bits),
        child,
      }),
    );
  assert.throws(() => fromArrow(arrow, make(0b101)), unsupported(/1 of 3 elements are null/));
  const pair = fromArrow(arrow, make(0b101), MASK);
  assert.deepEqual([pair.values.shape, ...pair.valid], [[3, 2], true, false, true]);
  assert.deepEqual(inArrow(pair), [Float32Array.of(1, 2), null, Float32Array.of(5, 6)]);
  const last = fromArrow(arrow, make(0b101).slice(2));
  assert.deepEqual([...last], [5, 6]);
  for (const bits of [undefined, 0b110, 0b111]) {
    for (const options of [{}, MASK]) {
      const take = () => fromArrow(arrow, make(bits), options);
      assert.throws(take, unsupported(/elements of lists are null/));
    }
  }
  release(pair);
  last.release();
});

test("chunks with and without nulls are joined", () => {
  const vector = numbers([1, null]).concat(numbers([3, 4]), numbers([null]));
  const pair = fromArrow(arrow, vector, MASK);
  assert.deepEqual([...pair.valid], [true, false, true, true, false]);
  assert.deepEqual([pair.values.at(0), pair.values.at(2), pair.values.at(3)], [1, 3, 4]);
  assert.deepEqual(inArrow(pair), [1, null, 3, 4, null]);
  release(pair);
  assert.throws(() => fromArrow(arrow, vector), unsupported(/2 of 5 elements are null/));
});

test("strided and copied tensors go to Arrow with their nulls", () => {
  const pair = fromArrow(arrow, numbers(holes(9)), MASK);
  const odd = { values: pair.values.slice([0, null, 2]), valid: pair.valid.slice([0, null, 2]) };
  assert.deepEqual(inArrow(odd), [0, 2, null, 6, 8]);
  assert.deepEqual(inArrow(pair, { copy: true }), holes(9));
  for (const each of [pair, odd]) release(each);
});

test("columns go by their names", () => {
  const x = Float32Array.of(1, 2, 3);
  const table = arrow.tableFromArrays({ x, y: Int32Array.of(4, 5, 6) });
  for (const value of [table, table.batches[0], arrow.makeVector(table.batches[0].data)]) {
    const tensor = fromArrow(null, value, { column: "x", copy: false });
    assert.ok(same(tensor.data, table.getChild("x").data[0].values));
    tensor.release();
  }
  const part = fromArrow(null, table.slice(1), { column: "y", copy: false });
  assert.deepEqual([...part], [5, 6]);
  part.release();
  const only = fromArrow(null, table.select(["y"]));
  assert.deepEqual([...only], [4, 5, 6]);
  only.release();
  const two = table.concat(table);
  const joined = fromArrow(null, two, { column: "x" });
  assert.deepEqual([...joined], [1, 2, 3, 1, 2, 3]);
  joined.release();
  const none = fromArrow(null, new arrow.Table(table.schema), { column: "x" });
  assert.deepEqual([none.dtype, none.shape], ["float32", [0]]);
  none.release();
  const take = (options) => () => fromArrow(null, table, options);
  assert.throws(take({}), unsupported(/2 columns: \["x","y"\]; name one with column/));
  assert.throws(take({ column: "z" }), unsupported(/no column has the name "z"/));
  const vector = table.getChild("x");
  const columnless = () => fromArrow(null, vector, { column: "x" });
  assert.throws(columnless, unsupported(/column "x".*without columns/));
});

test("columns of one name are refused", () => {
  const { fields } = arrow.tableFromArrays({ x: Int8Array.of(1) }).schema;
  const type = new arrow.Struct([fields[0], fields[0]]);
  const children = [numbers([1, 2], arrow.Int8), numbers([3, 4], arrow.Int8)].map((v) => v.data[0]);
  const twice = arrow.makeVector(arrow.makeData({ type, length: 2, nullCount: 0, children }));
  assert.throws(
    () => fromArrow(null, twice, { column: "x" }),
    unsupported(/2 columns has the name/),
  );
});

test("a row that is null is null in each of its columns", () => {
  const type = new arrow.Struct([
    new arrow.Field("x", new arrow.Int8(), true),
    new arrow.Field(
      "y",
      new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Int8())),
      true,
    ),
  ]);
  const x = arrow.makeData({
    type: new arrow.Int8(),
    length: 4,
    data: Int8Array.of(1, 2, 3, 4),
    nullCount: 1,
    nullBitmap: Uint8Array.of(0b1011),
  });
  const items = arrow.makeData({
    type: new arrow.Int8(),
    length: 8,
    data: Int8Array.of(1, 2, 3, 4, 5, 6, 7, 8),
    nullCount: 1,
    nullBitmap: Uint8Array.of(0b11110111), // in row 1
  });
  const y = arrow.makeData({ type: type.children[1].type, length: 4, nullCount: 0, child: items });
  const rows = {
    type,
    length: 4,
    children: [x, y],
    nullCount: 1,
    nullBitmap: Uint8Array.of(0b1101),
  };
  const vector = arrow.makeVector(arrow.makeData(rows));
  const validOf = (from, column) => {
    const pair = fromArrow(null, from, { column, ...MASK });
    const valid = [...pair.valid];
    release(pair);
    return valid;
  };
  assert.deepEqual(validOf(vector, "x"), [true, false, false, true]);
  assert.deepEqual(validOf(vector.slice(1), "x"), [false, false, true]);
  assert.deepEqual(validOf(vector, "y"), [true, false, true, true]);
  assert.throws(
    () => fromArrow(null, vector, { column: "x" }),
    unsupported(/2 of 4 elements are null/),
  );
  const there = arrow.makeVector(arrow.makeData({ ...rows, nullCount: 0, nullBitmap: undefined }));
  const inLists = () => fromArrow(null, there, { column: "y" });
  assert.throws(inLists, unsupported(/elements of lists are null/));
});

test("fixed-size binary is bytes, an axis of them", () => {
  const type = new arrow.FixedSizeBinary(3);
  const data = Uint8Array.of(1, 2, 3, 4, 5, 6);
  const vector = arrow.makeVector(arrow.makeData({ type, length: 2, data }));
  const tensor = fromArrow(arrow, vector.slice(1), { copy: false });
  assert.deepEqual([tensor.dtype, tensor.shape, ...tensor], ["uint8", [1, 3], 4, 5, 6]);
  assert.equal(tensor.data.buffer, data.buffer);
  tensor.release();
});
