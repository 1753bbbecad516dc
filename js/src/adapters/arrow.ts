// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * Apache Arrow: vectors of numbers share memory with tensors of one axis, nested FixedSizeLists
 * with tensors of several. Arrow's bools are single bits, and are copied.
 */
import { type DType, type DTypeName, dtypeNamed, type TypedArray } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import {
  alias,
  checkDType,
  copiedIf,
  type GiveOptions,
  makeExchangeable,
  onCPU,
  refuseCopy,
  shareOf,
  type TakeOptions,
  takeOther,
  viewAs,
} from "./common.js";

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

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the values of an Arrow `Vector` or `Data`, without a copy: one axis, and one more
 * for each FixedSizeList. Bools become bytes (one copy), and so does what lies in several chunks.
 *
 * @param value - of any copy of the library: another package may have brought its own
 * @throws UnsupportedError for nulls and for types that are no numbers; CopyError
 */
export function fromArrow(
  _arrow: Arrow,
  value: ArrowVector | Exchangeable,
  options: TakeOptions = {},
): Tensor {
  if (!isVector(value)) return takeOther(value, "a vector (of a table: getChild(name))", options);
  const { copy } = options;
  const { name, shape, parts } = leavesOf(value);
  const type = dtypeNamed(name);
  const [only = EMPTY, ...more] = parts.filter(({ count }) => count > 0);
  if (more.length === 0 && (name !== "bool" || only.count === 0)) {
    const { data, count } = only;
    const ours = data?.length === count ? shareOf(data, shape) : undefined;
    const made = () => Tensor.fromTypedArray(elementsOf(only, type), { dtype: name, shape });
    return copiedIf(copy, ours ?? made());
  }
  refuseCopy(
    copy,
    `this Arrow vector has ${parts.length} chunks of ${name} (a bool is one bit in Arrow): a copy is ` +
      "needed",
  );
  const joined = new type.View(sizeOf(shape)) as any;
  let at = 0;
  for (const part of parts) {
    joined.set(elementsOf(part, type), at);
    at += part.count;
  }
  return Tensor.fromTypedArray(joined as TypedArray, { dtype: name, shape });
}

/** Some elements of a vector: the first `count` of an Arrow `Data`. */
interface Part {
  readonly data: any;
  readonly count: number;
}

/** What a vector without elements has: no chunks at all. */
const EMPTY: Part = { data: undefined, count: 0 };

function isVector(x: ArrowVector | Exchangeable): x is ArrowVector {
  return typeof x === "object" && x !== null && "nullCount" in x && "type" in x;
}

/** The numbers below all FixedSizeLists; throws UnsupportedError where there are none, or nulls. */
function leavesOf(value: ArrowVector): { name: DTypeName; shape: number[]; parts: Part[] } {
  const { data } = value as { data?: unknown };
  let parts: Part[] = (Array.isArray(data) ? data : [value]).map((one) => ({
    data: one,
    count: one.length,
  }));
  let { type } = value;
  const shape = [value.length];
  checkNulls(parts);
  while (type.listSize !== undefined) {
    const size: number = type.listSize;
    shape.push(size);
    type = type.children[0].type;
    // The child of a slice is sliced as well.
    parts = parts.map(({ data, count }) => ({ data: data.children[0], count: count * size }));
    checkNulls(parts);
  }
  // By its name: of another copy of the library the classes are others.
  const name = `${type}`.toLowerCase();
  if (Object.hasOwn(CLASSES, name)) return { name: name as DTypeName, shape, parts };
  throw new UnsupportedError(
    `Arrow's type ${type} is no tensor: columns of numbers, bools and FixedSizeLists of them are` +
      (type.dictionary ? "; decode it, e.g. vectorFromArray([...vector], type.dictionary)" : ""),
    { given: `${type}` },
  );
}

/** The elements themselves; bools as bytes. */
function elementsOf({ data, count }: Part, { name, View }: DType): TypedArray {
  if (data === undefined) return new View(0);
  // Arrow applies a slice's offset to values, but not to bits.
  if (name === "bool") return bytesOf(data, count);
  return viewAs<TypedArray>(View, data.values.subarray(0, count));
}

function bytesOf({ values, offset }: any, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => {
    const bit = offset + i;
    return ((values[bit >> 3] as number) >> (bit & 7)) & 1;
  });
}

function checkNulls(parts: readonly Part[]): void {
  const nulls = parts.reduce((sum, { data }) => sum + data.nullCount, 0);
  if (nulls === 0) return;
  throw new UnsupportedError(
    `this Arrow vector has ${nulls} nulls, which tensors lack: fill or drop them first`,
    { given: nulls, needed: 0 },
  );
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * An Arrow `Vector` over a tensor's memory: a tensor of several axes is a vector of nested
 * FixedSizeLists. It holds the memory until it is garbage-collected; slices of it do not. Strided
 * tensors and bools are copied.
 *
 * @throws CopyError; UnsupportedError for a WebGPU tensor, a dtype that Arrow lacks, or no axes
 */
export function toArrow<L extends Arrow>(
  arrow: L,
  x: Exchangeable,
  { copy }: GiveOptions = {},
): L["Vector"]["prototype"] {
  const held = onCPU("Arrow", fit(x, { copy }));
  try {
    const { dtype, shape, size } = held;
    checkDType("Arrow", dtype, Object.keys(CLASSES));
    if (shape.length === 0) {
      throw new UnsupportedError("a vector has one axis at least, and this tensor has none");
    }
    const bits = dtype === "bool";
    if (bits) refuseCopy(copy, "a bool is one bit in Arrow: a copy is needed");
    // Arrow has the raw bits of float16.
    const values = () => (dtype === "float16" ? viewAs(Uint16Array, held.data) : held.data);
    let type = new (arrow as any)[CLASSES[dtype] as string]();
    let data = arrow.makeData({
      type,
      length: size,
      nullCount: 0,
      data: bits ? bitsOf(held.data as Uint8Array) : values(),
    });
    if (bits) held.release();
    else alias(data, "values", held, values);
    for (let axis = shape.length - 1; axis > 0; axis--) {
      type = new arrow.FixedSizeList(shape[axis] as number, new arrow.Field("item", type, false));
      const length = sizeOf(shape.slice(0, axis));
      data = arrow.makeData({ type, length, nullCount: 0, child: data });
    }
    return arrow.makeVector(data);
  } catch (error) {
    held.release();
    throw error;
  }
}

function bitsOf(bytes: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(bytes.length / 8));
  bytes.forEach((byte, i) => {
    if (byte) bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
  });
  return bits;
}

/** Lets every consumer of the exchange protocol take Arrow's vectors, `bridge.tensor()` among them. */
export function install(arrow: Arrow): void {
  makeExchangeable<ArrowVector>(arrow.Vector, (value, options) => fromArrow(arrow, value, options));
}
