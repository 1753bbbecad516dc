// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * ndarray (scijs) and objects of the same form, such as zarrita's chunks: `{ data, shape, stride,
 * offset }`, strides in elements. They share memory both ways, with any strides. Arrays of npyjs,
 * numpy-ts and @stdlib/ndarray are taken: they have more fields, of which none is ignored that could
 * change the elements.
 */
import {
  type DataOf,
  type DType,
  type DTypeName,
  dtypeOfArray,
  type TypedArray,
} from "../core/dtype.js";
import { textOf, UnsupportedError } from "../core/errors.js";
import { listOf, sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { isExchangeable, take } from "../exchange/take.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";

/** Elements with a shape; zarrita has no `offset`, others have `strides`. */
export interface Strided {
  readonly data: unknown;
  readonly shape: ArrayLike<number>;
  readonly stride?: ArrayLike<number>;
  readonly strides?: ArrayLike<number>;
  readonly offset?: number;
  /** Bools, complex numbers and float16 are in arrays of a class that does not say so. */
  readonly dtype?: unknown;
  /** Without strides: "column-major" of @stdlib/ndarray. ndarray has its axes here. */
  readonly order?: unknown;
  /** The same in npyjs. */
  readonly fortranOrder?: boolean;
  /** `READONLY` of @stdlib/ndarray. */
  readonly flags?: any;
  /** Of numpy-ts: its `offset`, and the `wasmRegion` of its memory. */
  readonly storage?: any;
}

/** The fields above, and those that say the same once more. */
const KNOWN =
  /^(data|shape|strides?|offset|dtype|order|fortranOrder|flags|storage|base|size|length|dimension|ndims?|itemsize|nbytes|byteLength|BYTES_PER_ELEMENT|T|_.*)$/;

/** DLPack's names of dtypes, by those of others; "": the class of `data` determines it. */
const NAMES: { [name: string]: string } = {
  array: "",
  generic: "",
  buffer: "",
  binary: "uint8",
  uint8c: "uint8",
  uint8_clamped: "uint8",
  bigint64: "int64",
  biguint64: "uint64",
  b1: "bool",
};
const KINDS: { [letter: string]: string } = { i: "int", u: "uint", f: "float", c: "complex" };

/** The result of {@link toNdarray} without a library. */
export interface Chunk<A = TypedArray> {
  data: A;
  shape: number[];
  stride: number[];
  offset: number;
}

/** The function that `ndarray` is; without it, plain objects are made. */
export type Ndarray = (data: any, shape?: any, stride?: any, offset?: any) => any;

/** Options of {@link fromNdarray}. */
export interface FromNdarrayOptions extends common.TakeOptions {
  /** If the class of `data` does not determine it, e.g. "bool" in a Uint8Array. */
  dtype?: DTypeName | undefined;
}

/**
 * A tensor over the array's elements, without a copy. A `BoolArray` of zarrita is bool; `dtype`,
 * `order`, `fortranOrder` and `flags.READONLY` of other libraries' arrays count.
 *
 * @param _ndarray - not needed
 * @param value - an array of `ndarray` or zarrita, strides and offset in entries of its `data`, or
 * another object with the exchange protocol
 * @param options - `dtype`, and `copy`: true always copies, false never does
 * @throws UnsupportedError for data in other forms than typed arrays, and for a field that is not
 * known, since it may change the elements; RangeError for strides that reach out of them
 */
export function fromNdarray(
  _ndarray: Ndarray | null,
  value: Strided | Exchangeable,
  options: FromNdarrayOptions = {},
): Tensor {
  if (!isStrided(value)) return common.takeOther(value, "{ data, shape, stride }", options);
  const { array, dtype } = elementsOf(value.data);
  for (const key of Object.keys(value)) {
    const field = KNOWN.test(key) ? undefined : (value as any)[key];
    if (field === undefined || typeof field === "function") continue;
    throw new UnsupportedError(
      `this array has the field ${key}, which may change its elements and is not known: pass ` +
        "{ data, shape, stride, offset } alone",
      { given: key },
    );
  }
  const { shape, storage } = value;
  const extents = listOf(shape, "shape");
  const offset = value.offset ?? storage?.offset ?? 0;
  const strides = stridesOf(value, extents);
  const ours = common.shareOf(value, extents);
  const same = ours && `${ours.strides}` === `${strides}` && ours.dataOffset === offset;
  if (same && (options.dtype ?? ours.dtype) === ours.dtype)
    return common.copiedIf(options.copy, ours);
  ours?.release(); // another view of it by now
  const described = {
    dtype: options.dtype ?? dtypeOf(value.dtype, array) ?? dtype,
    shape: extents,
    offset,
    strides,
  };
  const { wasmRegion } = Object(storage);
  const readOnly = value.flags?.READONLY === true;
  if (!(wasmRegion || readOnly)) {
    return common.copiedIf(options.copy, Tensor.fromTypedArray(array, described));
  }
  wasmRegion?.retain(); // numpy-ts frees it with the array
  const made = common.lending(
    () => wasmRegion?.release(),
    (release) => common.overArray(array, described, release, readOnly),
  );
  return common.copiedIf(options.copy, made);
}

/** The strides of an array, in elements; undefined in row-major order. */
function stridesOf(value: Strided, shape: readonly number[]): ArrayLike<number> | undefined {
  const { order = value.fortranOrder ? "F" : "C" } = value;
  const strides = value.stride ?? value.strides;
  if (shape.length === 0) return []; // @stdlib/ndarray has one stride then
  if (strides || /^(C|row-major)$/.test(`${order}`)) return strides;
  if (/^(F|column-major)$/.test(`${order}`)) {
    return shape.map((_, axis) => sizeOf(shape.slice(0, axis)));
  }
  throw new UnsupportedError(`this array has the order ${textOf(order)} and no strides`, {
    given: order,
    needed: ["row-major", "column-major"],
  });
}

/** The dtype of an array by its name for it; undefined if the class of `data` determines it. */
function dtypeOf(given: unknown, array: TypedArray): DTypeName | undefined {
  const [, text = "", kind, bytes] = /^[<|=]?(([iufc])(\d+)|.*)$/s.exec(
    `${given ?? ""}`,
  ) as RegExpExecArray;
  const name = NAMES[text] ?? (kind ? `${KINDS[kind]}${8 * Number(bytes)}` : text);
  const { name: own } = dtypeOfArray(array) as DType;
  // npyjs converts float16, and so does numpy-ts in engines without a Float16Array.
  if (name === "float16" && own === "float32") return own;
  return (name as DTypeName) || undefined;
}

function isStrided(x: Strided | Exchangeable): x is Strided {
  // A tensor of any copy of this library has `strides`, too, and says so itself.
  const { data, shape } = Object(x) as Partial<Strided>;
  return data !== undefined && typeof shape?.length === "number" && !isExchangeable(x);
}

/** The typed array of the elements, and their dtype if its class does not determine it. */
function elementsOf(data: unknown): { array: TypedArray; dtype?: "bool" } {
  if (ArrayBuffer.isView(data) && dtypeOfArray(data)) return { array: data as TypedArray };
  // zarrita has its own classes, also for strings, whose names minifiers change.
  const own = Object(data) as ArrayBufferView & { BYTES_PER_ELEMENT?: number };
  if (own.BYTES_PER_ELEMENT === 1 && own.buffer?.byteLength >= 0 && !("chars" in own)) {
    return { array: new Uint8Array(own.buffer, own.byteOffset, own.byteLength), dtype: "bool" };
  }
  throw new UnsupportedError(
    "this array's data is not a typed array of numbers or bools: make one, e.g. " +
      "ndarray(Float32Array.from(a.data), a.shape)",
  );
}

/**
 * An array over a tensor's elements, of any strides, without a copy. It holds the memory until its
 * `data` is assigned to or it is garbage-collected; the arrays that are derived from it (`pick`,
 * `transpose`, …) do not.
 *
 * @param ndarray - the library; null makes `{ data, shape, stride, offset }`, as zarrita has them.
 * zarrita knows no offset: a tensor of negative strides is copied for it
 * @param x - a tensor, or another object with the exchange protocol, on the CPU
 * @param options - `copy`: true always copies, false never does
 * @throws UnsupportedError for a WebGPU tensor, and for dtypes whose elements are several entries of
 * `tensor.data`, or share one: complex numbers, bfloat16, packed int4; CopyError
 */
export function toNdarray<F extends Ndarray | null, X extends Exchangeable>(
  ndarray: F,
  x: X,
  { copy }: common.GiveOptions = {},
): ArrayOf<F, X> {
  let held = common.onCPU("ndarray", take(x, { copy }));
  try {
    checkEntries(held);
    if (ndarray === null && held.dataOffset !== 0) {
      common.refuseCopy(copy, `${held.toString()} does not begin with its first element`);
      held = common.copiedIf(true, held);
    }
    const { data, dataOffset: offset } = held;
    const shape = [...held.shape];
    const stride = [...held.strides];
    const made = ndarray ? ndarray(data, shape, stride, offset) : { data, shape, stride, offset };
    common.alias(made, "data", held);
    return made;
  } catch (error) {
    held.release();
    throw error;
  }
}

/** Throws UnsupportedError for elements of several entries of `data`, or parts of one. */
function checkEntries({ _managed: { dtype } }: Tensor): void {
  const { name, components } = dtype;
  if (components === 1) return;
  throw new UnsupportedError(
    `ndarray has no ${name}: an element is ${components} entries of tensor.data, and its strides count ` +
      "entries",
    { given: name },
  );
}

/** The result of {@link toNdarray}: the library's own array, or a chunk of the tensor's class. */
export type ArrayOf<F, X> = F extends Ndarray
  ? ReturnType<F>
  : Chunk<X extends Tensor<infer D> ? DataOf<D> : TypedArray>;
