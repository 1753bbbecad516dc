// apache-arrow (the real one): memory shared both ways.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as nested from "../../../build/libraries/node_modules/apache-arrow/Arrow.mjs";
import * as arrow from "../../../build/libraries/site/arrow.mjs";
import { fromArrow, install, toArrow } from "../../../js/dist/adapters/arrow.js";
import { adopt, EXCHANGE, take } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { described } from "../exchange/described.mjs";

const same = (a, b) => a.buffer === b.buffer && a.byteOffset === b.byteOffset;

test("vectors of every class of numbers alias both ways", () => {
  const arrays = [
    Int8Array,
    Int16Array,
    Int32Array,
    BigInt64Array,
    Uint8Array,
    Uint16Array,
    Uint32Array,
    BigUint64Array,
    Float32Array,
    Float64Array,
  ];
  for (const TypedArray of arrays) {
    const one = TypedArray.name.startsWith("Big") ? 1n : 1;
    const array = TypedArray.of(one, one + one);
    const tensor = Tensor.fromTypedArray(array);
    const vector = toArrow(arrow, tensor, { copy: false });
    assert.equal(`${vector.type}`.toLowerCase(), tensor.dtype);
    assert.deepEqual([...vector], [...array]);
    assert.ok(same(vector.data[0].values, array));
    const back = fromArrow(arrow, vector, { copy: false });
    assert.equal(back.dtype, tensor.dtype);
    assert.ok(same(back.data, array));
    back.release();
    tensor.release();
  }
});

test("float16 goes by its bits", () => {
  const bits = Uint16Array.of(0x3c00, 0xc000);
  const tensor = Tensor.fromTypedArray(bits, { dtype: "float16" });
  const vector = toArrow(arrow, tensor);
  assert.deepEqual([...vector], [1, -2]);
  const back = fromArrow(arrow, vector);
  assert.deepEqual([back.dtype, back.at(1)], ["float16", -2]);
  back.release();
  tensor.release();
});

test("float16 in several chunks, or copied, keeps its numbers", () => {
  const parts = [Uint16Array.of(0x3c00, 0xc000), Uint16Array.of(0x3555)].map((bits) => {
    const tensor = Tensor.fromTypedArray(bits, { dtype: "float16" });
    const vector = toArrow(arrow, tensor);
    tensor.release();
    return vector;
  });
  const joined = fromArrow(arrow, parts[0].concat(parts[1]));
  assert.deepEqual([joined.dtype, joined.at(0), joined.at(1)], ["float16", 1, -2]);
  assert.ok(Math.abs(joined.at(2) - 1 / 3) < 1e-3);
  const copied = fromArrow(arrow, parts[0], { copy: true });
  assert.deepEqual([...copied], [1, -2]);
  assert.notEqual(copied.data.buffer, parts[0].data[0].values.buffer);
  const given = toArrow(arrow, copied, { copy: true });
  assert.deepEqual([...given], [1, -2]);
  for (const each of [joined, copied]) each.release();
});

test("vectors of another copy of Arrow are taken, and made", () => {
  assert.notEqual(nested.Vector, arrow.Vector);
  const type = new nested.Float32();
  const vector = nested.vectorFromArray([1, 2, 3, 4], type);
  const list = new nested.FixedSizeList(2, new nested.Field("item", type, false));
  const pairs = nested.makeData({ type: list, length: 2, nullCount: 0, child: vector.data[0] });
  for (const [value, shape] of [
    [vector, [4]],
    [vector.data[0], [4]],
    [nested.makeVector(pairs), [2, 2]],
    [nested.makeVector(pairs).slice(1), [1, 2]],
  ]) {
    const tensor = fromArrow(arrow, value, { copy: false });
    assert.deepEqual([tensor.dtype, tensor.shape], ["float32", shape]);
    assert.equal(tensor.data.buffer, vector.data[0].values.buffer);
    tensor.release();
  }
  const flags = nested.vectorFromArray([true, false, true], new nested.Bool());
  const bools = fromArrow(arrow, flags);
  assert.deepEqual([bools.dtype, ...bools], ["bool", true, false, true]);
  const back = toArrow(nested, bools);
  assert.ok(back instanceof nested.Vector);
  bools.release();
});

test("a vector without elements has a shape", () => {
  for (const vector of [
    arrow.makeVector(new Float64Array(0)),
    arrow.makeVector(Float64Array.of(1, 2)).slice(2),
    new arrow.Vector([arrow.makeData({ type: new arrow.Float64(), length: 0 })]),
  ]) {
    const tensor = fromArrow(arrow, vector);
    assert.deepEqual([tensor.dtype, tensor.shape], ["float64", [0]]);
    const back = toArrow(arrow, tensor);
    assert.equal(back.length, 0);
    tensor.release();
  }
});

test("several axes are nested FixedSizeLists", () => {
  const array = Float32Array.from({ length: 24 }, (_, i) => i);
  const tensor = Tensor.fromTypedArray(array, { shape: [2, 3, 4] });
  const vector = toArrow(arrow, tensor);
  assert.equal(vector.length, 2);
  assert.deepEqual([...vector.get(1).get(2)], [20, 21, 22, 23]);
  const back = fromArrow(arrow, vector);
  assert.deepEqual(back.shape, [2, 3, 4]);
  assert.ok(same(back.data, array));
  const second = fromArrow(arrow, vector.slice(1));
  assert.deepEqual([second.shape, second.at(0, 0, 0)], [[1, 3, 4], 12]);
  for (const each of [second, back, tensor]) each.release();
  const bits = arrow.vectorFromArray([true, false, false, true, true, false], new arrow.Bool());
  const type = new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Bool(), false));
  const child = bits.data[0];
  const pairs = arrow.makeVector(arrow.makeData({ type, length: 3, nullCount: 0, child }));
  const last = fromArrow(arrow, pairs.slice(1));
  assert.deepEqual([last.shape, ...last.data], [[2, 2], 0, 1, 1, 0]);
  last.release();
});

test("slices begin where they should", () => {
  const vector = arrow.makeVector(Float64Array.of(0, 1, 2, 3, 4)).slice(2, 4);
  const tensor = fromArrow(arrow, vector, { copy: false });
  assert.deepEqual([...tensor.data], [2, 3]);
  tensor.release();
  const flags = Array.from({ length: 21 }, (_, i) => i % 3 === 0);
  const bools = arrow.vectorFromArray(flags, new arrow.Bool()).slice(5, 20);
  const bytes = fromArrow(arrow, bools);
  assert.deepEqual([...bytes.data], flags.slice(5, 20).map(Number));
  bytes.release();
});

test("bools are packed into bits, with one copy", () => {
  const bytes = Uint8Array.from({ length: 11 }, (_, i) => (i % 2 ? 0 : 1));
  const tensor = Tensor.fromTypedArray(bytes, { dtype: "bool" });
  assert.throws(() => toArrow(arrow, tensor, { copy: false }), { name: "CopyError" });
  const vector = toArrow(arrow, tensor);
  assert.deepEqual([...vector].map(Number), [...bytes]);
  assert.throws(() => fromArrow(arrow, vector, { copy: false }), { name: "CopyError" });
  const back = fromArrow(arrow, vector);
  assert.deepEqual([back.dtype, ...back.data], ["bool", ...bytes]);
  back.release();
  tensor.release();
});

test("chunks are joined, with one copy", () => {
  const parts = [Int32Array.of(1, 2), Int32Array.of(3)].map((part) => arrow.makeVector(part));
  const vector = parts[0].concat(parts[1]);
  const refuse = () => fromArrow(arrow, vector, { copy: false });
  assert.throws(refuse, { name: "CopyError", message: /2 chunks/ });
  const tensor = fromArrow(arrow, vector);
  assert.deepEqual([...tensor.data], [1, 2, 3]);
  tensor.release();
});

test("strided tensors are packed, with one copy", () => {
  const array = Float32Array.of(0, 1, 2, 3, 4, 5);
  const tensor = Tensor.fromTypedArray(array, { shape: [3, 2], strides: [1, 3] });
  assert.throws(() => toArrow(arrow, tensor, { copy: false }), { name: "CopyError" });
  const vector = toArrow(arrow, tensor);
  assert.deepEqual(
    [...vector].map((row) => [...row]),
    [
      [0, 3],
      [1, 4],
      [2, 5],
    ],
  );
  tensor.release();
});

test("a vector follows memory that grows, and holds it", () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Float32Array(memory.buffer, 0, 3).set([1, 2, 3]);
  let released = 0;
  const release = () => void released++;
  const place = { shape: [3], data: { memory, ptr: 0 }, capacity: 12 };
  const tensor = adopt(described({ ...place, release }));
  const vector = toArrow(arrow, tensor);
  tensor.release();
  memory.grow(1);
  assert.deepEqual([...vector], [1, 2, 3]);
  assert.equal(released, 0);
});

test("dates, times, timestamps and durations are counts of their unit", () => {
  const narrow = [arrow.DateDay, arrow.TimeSecond, arrow.TimeMillisecond];
  const units = ["Second", "Millisecond", "Microsecond", "Nanosecond"];
  const wide = [arrow.DateMillisecond, arrow.TimeMicrosecond, arrow.TimeNanosecond];
  const { ...types } = arrow;
  for (const unit of units) wide.push(types[`Timestamp${unit}`], types[`Duration${unit}`]);
  for (const Type of [...narrow, ...wide]) {
    const isNarrow = narrow.includes(Type);
    const data = isNarrow ? Int32Array.of(-1, 0, 7) : BigInt64Array.of(-1n, 0n, 7n);
    for (const type of [new Type(), new Type("+03:32")]) {
      const given = arrow.makeVector(arrow.makeData({ type, length: 3, data }));
      const tensor = fromArrow(arrow, given, { copy: false });
      assert.deepEqual([tensor.dtype, tensor.shape], [isNarrow ? "int32" : "int64", [3]]);
      assert.ok(same(tensor.data, data));
      tensor.release();
    }
  }
  // Older versions have pairs of int32.
  const pairs = arrow.makeData({ type: new arrow.DateMillisecond(), length: 3 });
  const old = new arrow.Vector([Object.assign(pairs, { values: new Int32Array(6) })]);
  assert.throws(() => fromArrow(arrow, old), RangeError);
});

test("lists are shared as values and offsets", () => {
  const type = new arrow.List(new arrow.Field("item", new arrow.Float32(), false));
  const [data] = arrow.vectorFromArray([[1.5], [], [2.5, 3.5]], type).data;
  const values = fromArrow(arrow, data.children[0], { copy: false });
  const offsets = Tensor.fromTypedArray(data.valueOffsets.subarray(0, data.length + 1));
  assert.deepEqual(
    [[...values], [...offsets]],
    [
      [1.5, 2.5, 3.5],
      [0, 1, 1, 3],
    ],
  );
  for (const each of [values, offsets]) each.release();
});

test("types that are no numbers are refused", () => {
  const text = arrow.vectorFromArray(["a", "b"]);
  const refused = { name: "UnsupportedError", message: /Dictionary.*decode it/ };
  assert.throws(() => fromArrow(arrow, text), refused);
  const item = new arrow.Field("item", new arrow.Int8(), true);
  const others = [
    [new arrow.Null(), /nothing in it/],
    [new arrow.Utf8(), /encode it/],
    [new arrow.LargeUtf8(), /encode it/],
    [new arrow.Binary(), /cast it to FixedSizeBinary/],
    [new arrow.Decimal(0, 38, 128), /float64/],
    [new arrow.IntervalYearMonth(), /its parts/],
    [new arrow.List(item), /share its values and offsets, or cast it/],
  ];
  for (const [type, way] of others) {
    const values = new arrow.Vector([new arrow.Data(type, 0, 0, 0)]);
    const named = { name: "UnsupportedError", message: new RegExp(`type ${type.toString()[0]}`) };
    assert.throws(() => fromArrow(arrow, values), named);
    assert.throws(() => fromArrow(arrow, values), { message: way });
  }
  const scalar = Tensor.fromTypedArray(Float32Array.of(1), { shape: [] });
  assert.throws(() => toArrow(arrow, scalar), { name: "UnsupportedError", message: /one axis/ });
  scalar.release();
  const complex = Tensor.fromTypedArray(new Float32Array(4), { dtype: "complex64" });
  assert.throws(() => toArrow(arrow, complex), { name: "UnsupportedError", message: /complex64/ });
  complex.release();
});

test("an object that says more than it has is no tensor", () => {
  const lie = (given) => new arrow.Vector([Object.assign(arrow.makeData(given), { length: 100 })]);
  const short = { name: "UnsupportedError", message: /malformed/ };
  const numbers = { type: new arrow.Int8(), data: new Int8Array(9) };
  assert.throws(() => fromArrow(arrow, lie(numbers)), short);
  const flags = { type: new arrow.Bool(), length: 9, data: new Uint8Array(2) };
  assert.throws(() => fromArrow(arrow, lie(flags)), short);
  const nulls = { type: new arrow.Int8(), data: new Int8Array(100), nullCount: 1 };
  const bitmap = { ...nulls, nullBitmap: new Uint8Array(12) };
  assert.throws(() => fromArrow(arrow, lie(bitmap)), short);
  assert.throws(() => fromArrow(arrow, {}), {
    name: "TypeError",
    message: /record batch or table/,
  });
});

test("vectors are exchangeable once installed", () => {
  const vector = arrow.makeVector(Float32Array.of(1, 2));
  assert.equal(vector[EXCHANGE], undefined);
  install(arrow);
  const live = liveTensors();
  const tensor = take(vector);
  assert.ok(same(tensor.data, vector.data[0].values));
  tensor.release();
  const nulls = arrow.vectorFromArray([1, null], new arrow.Int8());
  assert.throws(() => take(nulls), {
    name: "UnsupportedError",
    message: /1 of 2 elements are null/,
  });
  assert.equal(liveTensors(), live);
});
