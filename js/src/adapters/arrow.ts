// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * Apache Arrow, and libraries that bundle a copy of it, such as DuckDB-wasm: columns of numbers
 * share memory with tensors of one axis, FixedSizeLists with tensors of several. Arrow's bools are
 * single bits and are copied. A tensor has no nulls: a second one says which elements are valid.
 */

import { type DType, type DTypeName, dtypeNamed, type TypedArray } from "../core/dtype.js";
import { textOf, UnsupportedError } from "../core/errors.js";
import { keeping, releasing } from "../core/releasing.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";

/** The part of `apache-arrow` that is used here, beside its classes of types. */
export interface Arrow {
  Vector: { prototype: any };
  makeData(options: any): any;
  makeVector(data: any): any;
  FixedSizeList: new (size: number, field: any) => any;
  Field: new (name: string, type: any, nullable: boolean) => any;
}

/** A `Vector` or `Data`, of any copy of Arrow. */
export interface ArrowVector {
  readonly type: any;
  readonly length: number;
  readonly nullCount: number;
}

/** A `Table` or `RecordBatch`, of any copy of Arrow. */
export interface ArrowTable {
  readonly schema: any;
  readonly numRows: number;
  readonly nullCount: number;
}

/** Options of {@link fromArrow}. */
export interface FromArrowOptions extends common.TakeOptions {
  /** The name of a column, in a table, record batch or struct of several. */
  column?: string | undefined;
  /** "refuse", the default, throws if there are any; with "mask" the result is a {@link Masked}. */
  nulls?: "refuse" | "mask" | undefined;
}

/** The result of {@link fromArrow} with `nulls: "mask"`: two tensors, which the caller releases. */
export interface Masked {
  /** The elements; those that are null have undefined values. */
  readonly values: Tensor;
  /** For each element of axis 0 whether it is valid, i.e. not null; all true without nulls. */
  readonly valid: Tensor<"bool">;
}

/** Options of {@link toArrow}. */
export interface ToArrowOptions extends common.GiveOptions {
  /** A tensor of bool with one element for each of axis 0, which is null where it is false. */
  valid?: Exchangeable | undefined;
}

/** Arrow's classes of types, by dtype. */
const CLASSES: Record<string, string> = {
  bool: "Bool",
  float16: "Float16",
  float32: "Float32",
  float64: "Float64",
};
for (const bits of [8, 16, 32, 64]) {
  CLASSES[`int${bits}`] = `Int${bits}`;
  CLASSES[`uint${bits}`] = `Uint${bits}`;
}

const ENCODE = "encode it to numbers";
const CAST = "cast it to an integer";
/** How to convert types without a dtype, by the beginnings of their names. */
const WAYS: Record<string, string> = {
  Null: "there is nothing in it to share",
  Decimal: "cast it to float64, in SQL CAST(x AS DOUBLE)",
  Date: CAST,
  Time: CAST, // and Timestamp
  Duration: CAST,
  Interval: "take its parts as integers",
  Utf8: ENCODE,
  LargeUtf8: ENCODE,
  Binary: "cast it to FixedSizeBinary",
  LargeBinary: "cast it to FixedSizeBinary",
  Dictionary: "share its indices, or decode it: vectorFromArray([...vector], type.dictionary)",
  Struct: "take one of its fields",
  Map: "take its keys or values",
  Union: "take one of its fields",
  List: "flatten it, or cast it to a FixedSizeList, in SQL CAST(x AS FLOAT[3])",
};

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the values of an Arrow vector or column, without a copy: one axis, and one more for
 * each FixedSizeList or FixedSizeBinary. Bools become bytes (one copy), and several chunks are joined
 * (one copy).
 *
 * ```js
 * const table = await connection.query("SELECT price FROM sales"); // DuckDB-wasm's
 * const prices = fromArrow(null, table, { column: "price" }); // throws if there are nulls
 * const { values, valid } = fromArrow(null, table, { column: "price", nulls: "mask" });
 * ```
 *
 * @param _arrow - not needed
 * @param value - a Vector, Data, RecordBatch or Table of any copy of the library, DuckDB-wasm's
 * results among them; of several columns `column` names one
 * @param options - `column`, `nulls`, and `copy`: true always copies, false never does
 * @returns a tensor, or with `nulls: "mask"` two, which the caller releases
 * @throws UnsupportedError for nulls, unless `nulls: "mask"`, types that are not numbers, and nulls
 * within lists; CopyError
 */
export function fromArrow(
  _arrow: Arrow | null,
  value: ArrowVector | ArrowTable | Exchangeable,
  options: FromArrowOptions & { nulls: "mask" },
): Masked;
export function fromArrow(
  _arrow: Arrow | null,
  value: ArrowVector | ArrowTable | Exchangeable,
  options?: FromArrowOptions & { nulls?: "refuse" | undefined },
): Tensor;
export function fromArrow(
  _arrow: Arrow | null,
  value: ArrowVector | ArrowTable | Exchangeable,
  options: FromArrowOptions,
): Tensor | Masked;
export function fromArrow(
  _arrow: Arrow | null,
  value: ArrowVector | ArrowTable | Exchangeable,
  options: FromArrowOptions = {},
): Tensor | Masked {
  const { column, nulls = "refuse" } = options;
  if (nulls !== "refuse" && nulls !== "mask") {
    throw new TypeError(`nulls must be "refuse" or "mask", not ${textOf(nulls)}`);
  }
  if (!isArrow(value)) {
    const taken = common.takeOther(value, "a vector, record batch or table", options);
    return nulls === "mask" ? masked(taken, undefined) : taken;
  }
  const { type, rows } = columnOf(value, column);
  const leaves = leavesOf(type, rows);
  const valid = validOf(rows);
  if (valid !== undefined && nulls === "refuse") throw tooManyNulls(valid);
  const values = elementsOf(leaves, options.copy);
  return nulls === "mask" ? masked(values, valid) : values;
}

/** @param valid - a byte for each element of axis 0; undefined: all are valid */
function masked(values: Tensor, valid: Uint8Array | undefined): Masked {
  const bytes = valid ?? new Uint8Array(values.shape[0] ?? 1).fill(1);
  return { values, valid: Tensor.fromTypedArray(bytes, { dtype: "bool" }) };
}

/** Some elements of a vector: the first `count` of an Arrow `Data`. */
interface Part {
  readonly data: any;
  readonly count: number;
  /** The struct whose column they are: an element is null where its row is. */
  readonly struct?: any;
}

/** A vector without elements has no chunks. */
const EMPTY: Part = { data: undefined, count: 0 };

function isArrow(x: ArrowVector | ArrowTable | Exchangeable): x is ArrowVector | ArrowTable {
  return typeof x === "object" && x !== null && "nullCount" in x && ("type" in x || "schema" in x);
}

/** The chunks of a vector, or of a column of what has columns; their counts are rows. */
function columnOf(
  value: ArrowVector | ArrowTable,
  column: string | undefined,
): { type: any; rows: Part[] } {
  const { data, schema } = value as any;
  const rows: Part[] = (Array.isArray(data) ? data : [schema ? data : value]).map((one) => ({
    data: one,
    count: one.length,
  }));
  const { type } = value as ArrowVector;
  const fields: any[] | undefined = schema?.fields ?? (isStruct(type) ? type.children : undefined);
  if (fields === undefined) {
    if (column === undefined) return { type, rows };
    throw new UnsupportedError(
      `cannot take column ${JSON.stringify(column)}: this is a vector, without columns`,
    );
  }
  const names = fields.map(({ name }) => name as string);
  const found = names.flatMap((name, i) => (column === undefined || name === column ? [i] : []));
  const [at = -1] = found;
  if (found.length !== 1) {
    const count = found.length === 0 ? "no column" : `${found.length} columns`;
    throw new UnsupportedError(
      `${names.length} columns: ${JSON.stringify(names).slice(0, 200)}; ` +
        (column === undefined
          ? "name one with column"
          : `${count} has the name ${JSON.stringify(column)}`),
      { given: column, needed: names },
    );
  }
  return {
    type: fields[at].type,
    rows: rows.map(({ data: struct, count }) => ({ data: struct.children[at], count, struct })),
  };
}

/** By name: another copy of the library has other classes. */
const isStruct = (type: any) => /^Struct\b/.test(`${type}`);

/** The numbers below all lists. */
interface Leaves {
  readonly type: DType;
  readonly shape: number[];
  readonly parts: Part[];
}

/** Throws UnsupportedError for types that are not numbers and for nulls within lists. */
function leavesOf(given: any, rows: Part[]): Leaves {
  let type = given;
  let parts = rows;
  const shape = [rows.reduce((sum, { count }) => sum + count, 0)];
  while (type.listSize !== undefined) {
    const size: number = type.listSize;
    shape.push(size);
    type = type.children[0].type;
    // The child of a slice is sliced as well.
    parts = parts.map(({ data, count }) => ({ data: data.children[0], count: count * size }));
    checkInside(rows, parts, sizeOf(shape.slice(1)));
  }
  if (type.byteWidth !== undefined && /^FixedSizeBinary/.test(`${type}`)) {
    shape.push(type.byteWidth);
    parts = parts.map(({ data, count }) => ({ data, count: count * type.byteWidth }));
    return { type: dtypeNamed("uint8"), shape, parts };
  }
  const name = `${type}`.toLowerCase();
  if (Object.hasOwn(CLASSES, name)) return { type: dtypeNamed(name as DTypeName), shape, parts };
  const way = Object.entries(WAYS).find(([start]) => `${type}`.startsWith(start))?.[1];
  throw new UnsupportedError(
    `cannot share Arrow's type ${type}: numbers, bools and FixedSizeLists of them are supported` +
      (way === undefined ? "" : `; ${way}`),
    { given: `${type}` },
  );
}

/** Only null lists may contain nulls. */
function checkInside(rows: readonly Part[], parts: readonly Part[], each: number): void {
  for (const [chunk, { data }] of parts.entries()) {
    const lists = rows[chunk] as Part;
    if (!hasNulls(data, lists.count * each)) continue;
    for (let i = 0; i < lists.count * each; i++) {
      if (isValid(data, i) || !isValidRow(lists, Math.floor(i / each))) continue;
      throw new UnsupportedError("elements of lists are null: fill them first");
    }
  }
}

// --- elements -----------------------------------------------------------------------------------------

function elementsOf({ type, shape, parts }: Leaves, copy: boolean | undefined): Tensor {
  const { name: dtype, View } = type;
  const filled = parts.filter(({ count }) => count > 0);
  const [only = EMPTY, ...more] = filled;
  if (more.length === 0 && (dtype !== "bool" || only.count === 0)) {
    const { data, count } = only;
    const ours = data?.length === count ? common.shareOf(data, shape) : undefined;
    return common.copiedIf(
      copy,
      ours ?? Tensor.fromTypedArray(valuesOf(only, type), { dtype, shape }),
    );
  }
  common.refuseCopy(
    copy,
    `this Arrow vector has ${filled.length} chunks of ${dtype} (a bool is one bit in Arrow): a copy ` +
      "is needed",
  );
  const joined = new View(sizeOf(shape)) as any;
  let at = 0;
  for (const part of filled) {
    joined.set(valuesOf(part, type), at);
    at += part.count;
  }
  return Tensor.fromTypedArray(joined as TypedArray, { dtype, shape });
}

/** The elements themselves; bools as bytes. */
function valuesOf({ data, count }: Part, { name, View }: DType): TypedArray {
  if (data === undefined) return new View(0);
  // Arrow applies a slice's offset to values, but not to bits.
  if (name === "bool") return unpack(data.values, data.offset, new Uint8Array(count));
  if (data.values.length < count) throw tooFew(data.values.length, count);
  return common.viewAs<TypedArray>(View, data.values.subarray(0, count));
}

/** A byte for each element of axis 0, 0 where it is null; undefined without nulls. */
function validOf(rows: readonly Part[]): Uint8Array | undefined {
  const some = rows.map(
    ({ data, count, struct }) => hasNulls(data, count) || (struct && hasNulls(struct, count)),
  );
  if (!some.includes(true)) return undefined;
  const valid = new Uint8Array(rows.reduce((sum, { count }) => sum + count, 0));
  let at = 0;
  for (const row of rows) {
    for (let i = 0; i < row.count; i++, at++) valid[at] = isValidRow(row, i) ? 1 : 0;
  }
  return valid;
}

function tooManyNulls(valid: Uint8Array): UnsupportedError {
  const missing = valid.reduce((sum, byte) => sum + 1 - byte, 0);
  return new UnsupportedError(
    `${missing} of ${valid.length} elements are null, and a Tensor has no nulls: fill or drop them ` +
      'first, or use nulls: "mask", which returns { values, valid }',
    { given: missing, needed: 0 },
  );
}

/**
 * Whether some of the first `count` elements are null. A `nullCount` of 0 says that there are none, as
 * in all of Arrow; any other may be wrong, and the bitmap says it.
 */
function hasNulls(data: any, count: number): boolean {
  const bytes = data.nullBitmap?.length ?? 0;
  if (data.nullCount === 0 || (data.nullCount < 0 && bytes === 0)) return false;
  const room = bytes * 8 - data.offset;
  if (room < count) throw tooFew(room, count);
  for (let i = 0; i < count; i++) if (!isValid(data, i)) return true;
  return false;
}

/** Bits from `offset` on as bytes of `out`. */
function unpack(bits: Uint8Array, offset: number, out: Uint8Array): Uint8Array {
  const room = bits.length * 8 - offset;
  if (room < out.length) throw tooFew(room, out.length);
  for (let i = 0; i < out.length; i++) out[i] = bitAt(bits, offset + i);
  return out;
}

const bitAt = (bits: Uint8Array, i: number) => ((bits[i >> 3] as number) >> (i & 7)) & 1;

const isValid = ({ nullCount, nullBitmap, offset }: any, i: number) =>
  nullCount === 0 || !nullBitmap?.length || bitAt(nullBitmap, offset + i) === 1;

const isValidRow = ({ data, struct }: Part, i: number) =>
  isValid(data, i) && (struct === undefined || isValid(struct, i));

function tooFew(has: number, count: number): UnsupportedError {
  return new UnsupportedError(
    `this Arrow vector is malformed: it claims ${count} elements and has ${has}`,
    { given: has, needed: count },
  );
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * An Arrow `Vector` over a tensor's memory: a tensor of several axes is a vector of nested
 * FixedSizeLists. It holds the memory until it is garbage-collected; slices of it do not. Strided
 * tensors and bools are copied.
 *
 * @param arrow - the module `apache-arrow`
 * @param x - a tensor, or another object with the exchange protocol, on the CPU
 * @param options - `valid`, and `copy`: true always copies, false never does
 * @throws CopyError; UnsupportedError for a WebGPU tensor, a dtype that Arrow lacks, no axes, or
 * another `valid`
 */
export function toArrow<L extends Arrow>(
  arrow: L,
  x: Exchangeable,
  { copy, valid }: ToArrowOptions = {},
): L["Vector"]["prototype"] {
  return keeping(common.onCPU("Arrow", fit(x, { copy })), (held) => {
    const { dtype, shape, size } = held;
    common.checkDType("Arrow", dtype, Object.keys(CLASSES));
    if (shape.length === 0) {
      throw new UnsupportedError(
        "an Arrow vector has at least one axis and this tensor has none: use reshape()",
      );
    }
    const bits = dtype === "bool";
    if (bits) common.refuseCopy(copy, "a bool is one bit in Arrow: a copy is needed");
    const nulls = nullsOf(valid, shape[0] as number);
    const inner = shape.length > 1 ? { nullCount: 0 } : nulls;
    // Arrow has the raw bits of float16.
    const values = () => (dtype === "float16" ? common.viewAs(Uint16Array, held.data) : held.data);
    let type = new (arrow as any)[CLASSES[dtype] as string]();
    let data = arrow.makeData({
      type,
      length: size,
      ...inner,
      data: bits ? bitsOf(held.data as Uint8Array) : values(),
    });
    if (bits) held.release();
    else common.alias(data, "values", held, values);
    for (let axis = shape.length - 1; axis > 0; axis--) {
      type = new arrow.FixedSizeList(shape[axis] as number, new arrow.Field("item", type, false));
      const length = sizeOf(shape.slice(0, axis));
      const outer = axis > 1 ? { nullCount: 0 } : nulls;
      data = arrow.makeData({ type, length, ...outer, child: data });
    }
    return arrow.makeVector(data);
  });
}

/** The nulls of `rows` elements as a bitmap for Arrow, in memory of its own. */
function nullsOf(
  valid: Exchangeable | undefined,
  rows: number,
): { nullCount: number; nullBitmap?: Uint8Array } {
  if (valid === undefined) return { nullCount: 0 };
  return releasing(common.onCPU("Arrow", fit(valid)), (packed) => {
    if (packed.dtype !== "bool" || packed.ndim !== 1 || packed.size !== rows) {
      throw new UnsupportedError(
        `valid must be a tensor of bool of shape [${rows}], not ${packed.toString()}`,
        { given: packed.shape, needed: [rows] },
      );
    }
    const bytes = packed.data as Uint8Array;
    const nullCount = bytes.reduce((sum, byte) => sum + (byte === 0 ? 1 : 0), 0);
    return { nullCount, nullBitmap: bitsOf(bytes) };
  });
}

function bitsOf(bytes: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(bytes.length / 8));
  bytes.forEach((byte, i) => {
    if (byte) bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
  });
  return bits;
}

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take Arrow's vectors,
 * except those with nulls.
 *
 * @param arrow - the module `apache-arrow`
 */
export function install(arrow: Arrow): void {
  common.makeExchangeable<ArrowVector>(arrow.Vector, (value, options) =>
    fromArrow(arrow, value, options),
  );
}
