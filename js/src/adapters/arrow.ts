// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * Apache Arrow: vectors of numbers share memory with tensors of one axis, nested FixedSizeLists
 * with tensors of several. Arrow's bools are single bits, and are copied.
 */
import { type DTypeName, dtypeNamed, type TypedArray } from "../core/dtype.js";
import { CopyError, UnsupportedError } from "../core/errors.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import { alias, checkDType, type GiveOptions, makeExchangeable, onCPU } from "./common.js";

/** The part of `apache-arrow` that is used here. */
export interface Arrow {
  Vector: { prototype: any };
  makeData(options: any): any;
  makeVector(data: any): any;
  FixedSizeList: new (size: number, field: any) => any;
  Field: new (name: string, type: any, nullable: boolean) => any;
  [name: string]: any;
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

/**
 * A tensor over the values of an Arrow `Vector` or `Data`, without a copy: one axis, and one more
 * for each FixedSizeList. Bools become bytes (one copy), and so does what lies in several chunks.
 *
 * @throws UnsupportedError for nulls and for types that are no numbers; CopyError
 */
export function fromArrow(
  _arrow: Arrow,
  value: { readonly type: any; readonly length: number; readonly nullCount: number },
  { copy }: GiveOptions = {},
): Tensor {
  const chunks: any[] = (value as any).data ?? [value];
  const list = Array.isArray(chunks) ? chunks : [value];
  const shape = [value.length];
  let parts = list;
  let each = 1;
  let { type } = value;
  checkNulls(list);
  while (type.listSize !== undefined) {
    const size: number = type.listSize;
    shape.push(size);
    type = type.children[0].type;
    each *= size;
    // The child of a slice is sliced as well.
    parts = parts.map((data) => data.children[0]);
    checkNulls(parts);
  }
  const name = nameOf(type);
  if (name === undefined) {
    throw new UnsupportedError(
      `Arrow's type ${type} is no tensor: columns of numbers, bools and FixedSizeLists of them are`,
      { given: `${type}` },
    );
  }
  const packed = parts.length !== 1 || name === "bool";
  if (packed && copy === false) {
    throw new CopyError(
      `this Arrow vector has ${parts.length} chunks of ${name}: a copy is needed, which copy: ` +
        "false forbids (a bool is one bit in Arrow)",
    );
  }
  const { View } = dtypeNamed(name);
  const values = parts.map((data, i): TypedArray => {
    const count = list[i].length * each;
    return name === "bool" ? bitsOf(data, count) : data.values.subarray(0, count);
  });
  if (!packed && !copy) {
    const [only] = values as [TypedArray];
    return Tensor.fromTypedArray(only, { dtype: name, shape });
  }
  const all = new View(values.reduce((sum, one) => sum + one.length, 0)) as any;
  let at = 0;
  for (const one of values) {
    all.set(one, at);
    at += one.length;
  }
  return Tensor.fromTypedArray(all, { dtype: name, shape });
}

function bitsOf(data: any, count: number): TypedArray {
  const bits: Uint8Array = data.values;
  return Uint8Array.from({ length: count }, (_, i) => {
    // Arrow applies a slice's offset to values, but not to bits.
    const bit = data.offset + i;
    return ((bits[bit >> 3] as number) >> (bit & 7)) & 1;
  });
}

function nameOf(type: any): DTypeName | undefined {
  const text = `${type}`.toLowerCase();
  return text in CLASSES ? (text as DTypeName) : undefined;
}

function checkNulls(chunks: any[]): void {
  const nulls = chunks.reduce((sum, data) => sum + data.nullCount, 0);
  if (nulls === 0) return;
  throw new UnsupportedError(
    `this Arrow vector has ${nulls} nulls, which tensors lack: fill or drop them first`,
    { given: nulls, needed: 0 },
  );
}

/**
 * An Arrow `Vector` over a tensor's memory: a tensor of several axes is a vector of nested
 * FixedSizeLists. It holds the memory until it is garbage-collected. Strided tensors and bools
 * are copied.
 *
 * @throws CopyError; UnsupportedError for a WebGPU tensor, a dtype that Arrow lacks, or no axes
 */
export function toArrow(arrow: Arrow, x: Exchangeable, { copy }: GiveOptions = {}): any {
  const held = onCPU("Arrow", fit(x, { copy }));
  try {
    const { dtype, shape, size } = held;
    checkDType("Arrow", dtype, Object.keys(CLASSES));
    if (shape.length === 0) {
      throw new UnsupportedError("a vector has one axis at least, and this tensor has none");
    }
    let type = new arrow[CLASSES[dtype] as string]();
    if (dtype === "bool" && copy === false) {
      throw new CopyError(
        "a bool is one bit in Arrow: a copy is needed, which copy: false forbids",
      );
    }
    const values = () => (dtype === "float16" ? halves(held.data) : held.data);
    let data = arrow.makeData({
      type,
      length: size,
      nullCount: 0,
      data: dtype === "bool" ? toBits(held.data as Uint8Array) : values(),
    });
    if (dtype === "bool") held.release();
    else alias(data, "values", held, values);
    for (let axis = shape.length - 1; axis > 0; axis--) {
      type = new arrow.FixedSizeList(shape[axis] as number, new arrow.Field("item", type, false));
      const length = shape.slice(0, axis).reduce((a, b) => a * b, 1);
      data = arrow.makeData({ type, length, nullCount: 0, child: data });
    }
    return arrow.makeVector(data);
  } catch (error) {
    held.release();
    throw error;
  }
}

/** Arrow has the raw bits of float16. */
function halves({ buffer, byteOffset, length }: TypedArray): Uint16Array {
  return new Uint16Array(buffer, byteOffset, length);
}

function toBits(bytes: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(bytes.length / 8));
  bytes.forEach((byte, i) => {
    if (byte) bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
  });
  return bits;
}

/** Lets every consumer of the exchange protocol take Arrow's vectors, `bridge.tensor()` among them. */
export function install(arrow: Arrow): void {
  makeExchangeable<any>(arrow.Vector, (value) => fromArrow(arrow, value));
}
