// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * Apache Arrow, libraries that bundle a copy of it, such as DuckDB-wasm, and flechette's tables: columns
 * of numbers share memory with tensors of one axis, FixedSizeLists with tensors of several. Arrow's bools are
 * single bits and are copied. A tensor has no nulls: a second one says which elements are valid.
 */

import { MAX_NDIM } from "../core/dlpack.js";
import { type DType, dtypeNamed, type TypedArray, viewAs } from "../core/dtype.js";
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

/** A `Table` or `RecordBatch`, of any copy of Arrow, or of flechette. */
export interface ArrowTable {
  readonly schema: any;
  readonly numRows: number;
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
/** How to convert types without a dtype, by the beginnings of their names. */
const WAYS: Record<string, string> = {
  Null: "there is nothing in it to share",
  Decimal: "cast it to float64, in SQL CAST(x AS DOUBLE)",
  Interval: "take its parts as integers",
  Utf8: ENCODE,
  LargeUtf8: ENCODE,
  Binary: "cast it to FixedSizeBinary",
  LargeBinary: "cast it to FixedSizeBinary",
  Dictionary: "share its indices, or decode it: vectorFromArray([...vector], type.dictionary)",
  Struct: "take one of its fields",
  Map: "take its keys or values",
  Union: "take one of its fields",
  List: "share its values and offsets, or cast it to a FixedSizeList, in SQL CAST(x AS FLOAT[3])",
};

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the values of an Arrow vector or column, without a copy: one axis, and one more for
 * each FixedSizeList or FixedSizeBinary. Bools become bytes (one copy), and several chunks are joined
 * (one copy). Dates, times, timestamps and durations are counts of their unit. In a table or record
 * batch, `arrow.fixed_shape_tensor` keeps its shape and permutation, and `arrow.bool8` is bool, without a
 * copy if its bytes are 0 and 1 and no tensor's; other extension types become their storage. A vector
 * has no extension type: pass the table, and `column`.
 *
 * ```js
 * const table = await connection.query("SELECT price FROM sales"); // DuckDB-wasm's
 * const prices = fromArrow(null, table, { column: "price" }); // throws if there are nulls
 * const { values, valid } = fromArrow(null, table, { column: "price", nulls: "mask" });
 * ```
 *
 * @param _arrow - not needed
 * @param value - a Vector, Data, RecordBatch or Table of any copy of the library, DuckDB-wasm's
 * results among them, or a Column or Table of flechette; of several columns `column` names one
 * @param options - `column`, `nulls`, and `copy`: true always copies, false never does
 * @returns a tensor, or with `nulls: "mask"` two, which the caller releases
 * @throws UnsupportedError for nulls, unless `nulls: "mask"`, types that are not numbers or times, and
 * nulls within lists; CopyError
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
  const { field, rows } = columnOf(value, column);
  const leaves = leavesOf(field, rows);
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
  const { nullCount, type, schema, children } = Object(x);
  return nullCount !== undefined ? Boolean(type ?? schema) : Boolean(schema?.fields && children);
}

/** The chunks of a vector, or of a column of what has columns; their counts are rows. */
function columnOf(
  value: ArrowVector | ArrowTable,
  column: string | undefined,
): { field: any; rows: Part[] } {
  const { data, schema, children } = value as any;
  // flechette's tables have columns, and Arrow's have batches.
  const isColumns = schema !== undefined && data === undefined;
  const chunks = Array.isArray(data) ? data : isColumns ? [] : [schema ? data : value];
  const rows: Part[] = chunks.map((one) => ({ data: one, count: one.length }));
  const { type } = value as ArrowVector;
  const fields: any[] | undefined = schema?.fields ?? (isStruct(type) ? type.children : undefined);
  if (fields === undefined) {
    if (column === undefined) return { field: { type }, rows };
    throw new UnsupportedError(
      `cannot take column ${JSON.stringify(column)}: this is a vector, without columns`,
    );
  }
  if (schema?.endianness === 1) {
    throw new UnsupportedError("this table is big-endian: write it again on a machine that is not");
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
  const field = fields[at];
  if (isColumns) return { field, rows: columnOf(children[at], undefined).rows };
  return {
    field,
    rows: rows.map(({ data: struct, count }) => ({ data: struct.children[at], count, struct })),
  };
}

/** flechette's types have only the numbers of Arrow's format, from -1 on. */
const TYPES = (
  "Dictionary,,Null,,,Binary,Utf8,Bool,Decimal,Date,Time,Timestamp,Interval,List,Struct,Union," +
  "FixedSizeBinary,FixedSizeList,Map,Duration,LargeBinary,LargeUtf8,LargeList"
).split(",");

/** The name of a type, by which it is known: another copy of the library has other classes. */
function nameOf(type: any): string {
  const { typeId, bitWidth, precision, signed } = type;
  if (`${type}` !== "[object Object]") return `${type}`;
  if (typeId === 2) return `${signed ? "Int" : "Uint"}${bitWidth}`;
  return typeId === 3 ? `Float${16 << precision}` : TYPES[typeId + 1] || `number ${typeId}`;
}

const isStruct = (type: any) => type && /^Struct\b/.test(nameOf(type));

/** The numbers below all lists. */
interface Leaves {
  readonly type: DType;
  readonly shape: number[];
  /** The axes of `shape` in the order of the tensor's. */
  readonly order: number[];
  readonly parts: Part[];
  /** Whether bools are bits, or bytes of which any but 0 is true. */
  readonly bits: boolean;
}

/** Throws UnsupportedError for types that are not numbers and for nulls within lists. */
function leavesOf(given: any, rows: Part[]): Leaves {
  let field = given;
  let parts = rows;
  const shape = [rows.reduce((sum, { count }) => sum + count, 0)];
  const order = [0];
  let name = nameOf(field.type);
  while (/^FixedSizeList/.test(name)) {
    const size = widthOf(field.type);
    const isTensor = isExtension(field, "fixed_shape_tensor");
    const [extents, permutation] = isTensor ? axesOf(field, size) : [[size], [0]];
    order.push(...permutation.map((axis) => axis + shape.length));
    shape.push(...extents);
    field = field.type.children[0];
    name = nameOf(field.type);
    // The child of a slice is sliced as well.
    parts = parts.map(({ data, count }) => ({ data: data.children[0], count: count * size }));
    checkInside(rows, parts, sizeOf(shape.slice(1)));
  }
  const made = { shape, order, parts, bits: name === "Bool" };
  const isBool8 = isExtension(field, "bool8");
  if (isExtension(field, "fixed_shape_tensor") || (isBool8 && name !== "Int8")) {
    throw malformed(field, `is of ${name}`);
  }
  if (/^FixedSizeBinary/.test(name)) {
    const width = widthOf(field.type);
    order.push(shape.length);
    shape.push(width);
    made.parts = parts.map(({ data, count }) => ({ data, count: count * width }));
    return { ...made, type: dtypeNamed("uint8") };
  }
  const isTime = /^(Date|Time|Duration)/.test(name); // and Timestamp
  const dtype = isBool8 ? "bool" : isTime ? countsOf(name, field.type) : name.toLowerCase();
  if (Object.hasOwn(CLASSES, dtype)) return { ...made, type: dtypeNamed(dtype) };
  const way = Object.entries(WAYS).find(([start]) => name.startsWith(start))?.[1];
  throw new UnsupportedError(
    `cannot share Arrow's type ${name}: numbers, bools, times and FixedSizeLists of them are supported` +
      (way === undefined ? "" : `; ${way}`),
    { given: name },
  );
}

/** The dtype of dates, times, timestamps and durations; flechette's names have no widths. */
function countsOf(name: string, { values }: any): string {
  return /^\w+32/.test(name) || values?.BYTES_PER_ELEMENT === 4 ? "int32" : "int64";
}

/** Elements of a list, or bytes of a binary: `stride` in flechette. */
const widthOf = ({ listSize, byteWidth, stride }: any): number => listSize ?? byteWidth ?? stride;

const EXTENSION = "ARROW:extension:";

function isExtension({ metadata }: any, name: string): boolean {
  return metadata?.get(`${EXTENSION}name`) === `arrow.${name}`;
}

function malformed(field: any, why: string): UnsupportedError {
  const given = textOf(field.metadata.get(`${EXTENSION}metadata`));
  const name = field.metadata.get(`${EXTENSION}name`);
  return new UnsupportedError(`this ${name} of Arrow is malformed: it ${why}: ${given}`, { given });
}

/** Extents of an `arrow.fixed_shape_tensor`, and their order: axis i is that of permutation[i]. */
function axesOf(field: any, size: number): [shape: number[], permutation: number[]] {
  let said: any;
  try {
    said = Object(JSON.parse(field.metadata.get(`${EXTENSION}metadata`)));
  } catch {
    throw malformed(field, "has no object of JSON");
  }
  const { shape, dim_names: names } = said;
  const isList = (list: any) => Array.isArray(list) && list.length <= MAX_NDIM;
  const isExtent = (n: unknown) => Number.isSafeInteger(n) && (n as number) >= 0;
  if (!isList(shape) || !shape.every(isExtent) || sizeOf(shape) !== size) {
    throw malformed(field, `has no shape of ${size} elements`);
  }
  // arrow-rs 58 writes the word in the plural.
  const permutation = said.permutation ?? said.permutations ?? [...shape.keys()];
  const isNamed = names == null || (isList(names) && names.length === shape.length);
  const isOrder = isList(permutation) && permutation.every(isExtent);
  if (!isNamed || !isOrder || `${[...permutation].sort()}` !== `${[...shape.keys()].sort()}`) {
    throw malformed(field, "names other axes than its own");
  }
  return [shape, permutation];
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

function elementsOf(
  { type, shape, order, parts, bits }: Leaves,
  copy: boolean | undefined,
): Tensor {
  const { name: dtype, View } = type;
  const filled = parts.filter(({ count }) => count > 0);
  const [only = EMPTY, ...more] = filled;
  const ordered = (tensor: Tensor) =>
    order.every((axis, i) => axis === i) ? tensor : releasing(tensor, () => tensor.permute(order));
  const isBool = dtype === "bool";
  if (more.length === 0 && (!bits || only.count === 0)) {
    const { data, count } = only;
    const values = valuesOf(only, type, bits);
    if (!(isBool && values.some((byte) => byte > 1))) {
      const ours = data?.length === count ? common.shareOf(data, shape) : undefined;
      if (!ours || ours.dtype === dtype) {
        const made = ours ?? Tensor.fromTypedArray(values, { dtype, shape });
        return common.copiedIf(copy, ordered(made));
      }
      ours.release(); // int8 that are bools by now
    }
  }
  common.refuseCopy(
    copy,
    `this Arrow vector has ${filled.length} chunks of ${dtype} (a bool is one bit in Arrow, or any ` +
      "byte but 0): a copy is needed",
  );
  const joined = new View(sizeOf(shape)) as any;
  let at = 0;
  for (const part of filled) {
    joined.set(valuesOf(part, type, bits), at);
    at += part.count;
  }
  const whole = isBool ? joined.map(Boolean) : joined;
  return ordered(Tensor.fromTypedArray(whole as TypedArray, { dtype, shape }));
}

/** The elements themselves; bools as bytes. */
function valuesOf({ data, count }: Part, { View }: DType, bits: boolean): TypedArray {
  if (data === undefined) return new View(0);
  // Arrow applies a slice's offset to values, but not to bits.
  if (bits) return unpack(data.values, offsetOf(data), new Uint8Array(count));
  if (data.values.length < count) throw tooFew(data.values.length, count);
  return viewAs<TypedArray>(View, data.values.subarray(0, count));
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
  const bytes = bitmapOf(data)?.length ?? 0;
  if (data.nullCount === 0 || (data.nullCount < 0 && bytes === 0)) return false;
  const room = bytes * 8 - offsetOf(data);
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

/** flechette's batches have another name for it, and no offset. */
const bitmapOf = ({ nullBitmap, validity }: any): Uint8Array | undefined => nullBitmap ?? validity;
const offsetOf = ({ offset = 0 }: any): number => offset;

function isValid(data: any, i: number): boolean {
  const bitmap = bitmapOf(data);
  return data.nullCount === 0 || !bitmap?.length || bitAt(bitmap, offsetOf(data) + i) === 1;
}

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
  common.checkLibrary(arrow, "makeVector", "the module apache-arrow");
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
    const values = () => (dtype === "float16" ? viewAs(Uint16Array, held.data) : held.data);
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
  common.makeExchangeable(arrow, arrow.Vector, (lib, value, options) =>
    fromArrow(lib, value, options),
  );
}
