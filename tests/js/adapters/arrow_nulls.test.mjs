// apache-arrow (the real one): columns by name, and which of their elements are null.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import * as arrow from "../../../build/libraries/site/arrow.mjs";
import { fromArrow, toArrow } from "../../../js/dist/adapters/arrow.js";
import { fromNdarray, toNdarray } from "../../../js/dist/adapters/ndarray.js";
import { adopt, EXCHANGE, fit, take } from "../../../js/dist/exchange/index.js";
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

/** The values that Arrow has of a tensor. */
function inArrow(tensor, options) {
  const vector = toArrow(arrow, tensor, options);
  const values = Array.from(vector, (value) => value?.toArray?.() ?? value);
  for (let [data] = vector.data; data; [data] = data.children) data.values = null; // lets go
  return values;
}

test("nulls are kept, and validity says where they are", () => {
  for (const Type of [arrow.Float64, arrow.Int16, arrow.Uint8]) {
    const vector = numbers(holes(70), Type);
    for (const [start, stop] of [
      [0, 70],
      [5, 60],
      [9, 12],
      [13, 14],
    ]) {
      const part = vector.slice(start, stop);
      const tensor = fromArrow(arrow, part, { copy: false });
      assert.ok(same(tensor.data, part.data[0].values));
      const valid = holes(70).slice(start, stop);
      const expected = valid.some((value) => value === null) ? valid.map((v) => v !== null) : null;
      assert.deepEqual(tensor.validity && [...tensor.validity], expected);
      if (expected) assert.equal(tensor.validity.dtype, "bool");
      assert.deepEqual(inArrow(tensor), valid);
      tensor.release();
    }
  }
  const flags = arrow.vectorFromArray([true, null, false, null, true], new arrow.Bool()).slice(1);
  const tensor = fromArrow(arrow, flags);
  assert.deepEqual([...tensor.validity], [false, true, false, true]);
  assert.deepEqual(inArrow(tensor), [null, false, null, true]);
  tensor.release();
});

test("the validity lives and ends with its tensor", () => {
  const tensor = fromArrow(arrow, numbers([1, null]));
  assert.equal(liveTensors(), live + 2);
  const { validity } = tensor;
  tensor.release();
  tensor.release();
  assert.ok(validity.released);
  assert.equal(tensor.validity, null);
});

test("nulls are refused where that is asked for", () => {
  const vector = numbers([1, null, 3]);
  const refuse = { nulls: "refuse" };
  assert.throws(() => fromArrow(arrow, vector, refuse), unsupported(/1 of 3 elements are null/));
  fromArrow(arrow, vector.slice(2), refuse).release();
  const odd = () => fromArrow(arrow, vector, { nulls: "drop" });
  assert.throws(odd, { name: "TypeError", message: /"keep" or "refuse", not drop/ });
});

test("views say which elements are null, or there are none", () => {
  const vector = numbers(holes(9));
  const tensor = fromArrow(arrow, vector);
  const part = tensor.slice([7, null, -2]);
  assert.deepEqual([...part.validity], [false, true, true, false]);
  assert.deepEqual(inArrow(part), [null, 5, 3, null]);
  const all = tensor.slice();
  const second = Tensor.from(tensor);
  const copied = fit(tensor, { copy: true });
  for (const each of [all, second, copied]) {
    assert.deepEqual([...each.validity], [...tensor.validity]);
  }
  for (const view of [
    () => tensor.slice(3),
    () => tensor.reshape([3, 3]),
    () => tensor.permute([0]),
  ]) {
    assert.throws(view, unsupported(/would not say which: slice\(\) along axis 0/));
  }
  tensor.release();
  assert.deepEqual([...second.validity], [...copied.validity]);
  // The protocol knows of no nulls: others get the elements alone.
  const handed = adopt(copied[EXCHANGE]());
  assert.equal(handed.validity, null);
  for (const each of [part, all, second, copied, handed]) each.release();
});

test("nulls go to another thread", () => {
  const tensor = fromArrow(arrow, numbers(holes(9)));
  const message = tensor.slice([0, null, 2]).transfer();
  tensor.release();
  const posted = structuredClone(message, { transfer: [message.buffer] });
  const received = Tensor.receive(posted);
  assert.deepEqual(inArrow(received), [0, 2, null, 6, 8]);
  received.release();
  const wrong = { ...posted, validity: new Uint8Array(4) };
  assert.throws(() => Tensor.receive(wrong), { name: "RangeError" });
  const plain = Tensor.fromTypedArray(Float32Array.of(1));
  assert.ok(!("validity" in plain.transfer()));
});

test("a library's object that comes back still has its nulls", () => {
  const tensor = fromArrow(arrow, numbers(holes(4)));
  const given = toNdarray(null, tensor);
  const back = fromNdarray(null, given);
  assert.deepEqual([...back.validity], [...tensor.validity]);
  given.data = null;
  for (const each of [tensor, back]) each.release();
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
  const tensor = fromArrow(arrow, make(0b101));
  assert.deepEqual(
    [tensor.shape, [...tensor.validity]],
    [
      [3, 2],
      [true, false, true],
    ],
  );
  assert.deepEqual(inArrow(tensor), [Float32Array.of(1, 2), null, Float32Array.of(5, 6)]);
  const rows = tensor.slice([1, 3], [null, null, -1]);
  assert.deepEqual([...rows.validity, ...rows], [false, true, rows.at(0, 0), rows.at(0, 1), 6, 5]);
  const last = fromArrow(arrow, make(0b101).slice(2));
  assert.deepEqual([last.validity, ...last], [null, 5, 6]);
  for (const bits of [undefined, 0b110, 0b111]) {
    assert.throws(() => fromArrow(arrow, make(bits)), unsupported(/elements of lists are null/));
  }
  for (const each of [rows, last, tensor]) each.release();
});

test("chunks with and without nulls are joined", () => {
  const vector = numbers([1, null]).concat(numbers([3, 4]), numbers([null]));
  const tensor = fromArrow(arrow, vector);
  assert.deepEqual([...tensor.validity], [true, false, true, true, false]);
  assert.deepEqual([tensor.at(0), tensor.at(2), tensor.at(3)], [1, 3, 4]);
  assert.deepEqual(inArrow(tensor), [1, null, 3, 4, null]);
  tensor.release();
});

test("strided and copied tensors keep their nulls", () => {
  const tensor = fromArrow(arrow, numbers(holes(9)));
  const odd = tensor.slice([0, null, 2]);
  assert.deepEqual(inArrow(odd), [0, 2, null, 6, 8]);
  assert.deepEqual(inArrow(tensor, { copy: true }), holes(9));
  for (const each of [tensor, odd]) each.release();
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
    const tensor = fromArrow(null, from, { column });
    const valid = [...tensor.validity];
    tensor.release();
    return valid;
  };
  assert.deepEqual(validOf(vector, "x"), [true, false, false, true]);
  assert.deepEqual(validOf(vector.slice(1), "x"), [false, false, true]);
  assert.deepEqual(validOf(vector, "y"), [true, false, true, true]);
  assert.throws(
    () => fromArrow(null, vector, { column: "x", nulls: "refuse" }),
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

test("a Tensor has no nulls unless it is told so", () => {
  const tensor = Tensor.fromTypedArray(new Float32Array(4));
  const second = take(tensor);
  assert.deepEqual([tensor.validity, second.validity], [null, null]);
  for (const each of [tensor, second]) each.release();
});
