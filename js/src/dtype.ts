import { UnsupportedError } from "./errors.js";

/** `Float16Array` where the reader's TypeScript and the engine know it, its raw bits elsewhere. */
export type Float16Data<B extends ArrayBufferLike = ArrayBufferLike> = typeof globalThis extends {
  Float16Array: { new (length: number): infer A };
}
  ? A
  : Uint16Array<B>;

/** The typed array that `tensor.data` is, by dtype. */
export interface DTypeArrays<B extends ArrayBufferLike = ArrayBufferLike> {
  bool: Uint8Array<B>;
  int8: Int8Array<B>;
  int16: Int16Array<B>;
  int32: Int32Array<B>;
  int64: BigInt64Array<B>;
  uint8: Uint8Array<B>;
  uint16: Uint16Array<B>;
  uint32: Uint32Array<B>;
  uint64: BigUint64Array<B>;
  float16: Float16Data<B> | Uint16Array<B>;
  float32: Float32Array<B>;
  float64: Float64Array<B>;
  /** Interleaved real and imaginary parts. */
  complex64: Float32Array<B>;
  /** Interleaved real and imaginary parts. */
  complex128: Float64Array<B>;
  bfloat16: Uint8Array<B>;
  float8_e3m4: Uint8Array<B>;
  float8_e4m3: Uint8Array<B>;
  float8_e4m3b11fnuz: Uint8Array<B>;
  float8_e4m3fn: Uint8Array<B>;
  float8_e4m3fnuz: Uint8Array<B>;
  float8_e5m2: Uint8Array<B>;
  float8_e5m2fnuz: Uint8Array<B>;
  float8_e8m0fnu: Uint8Array<B>;
}

/** The name of a dtype in DLPack's and the array API's words. */
export type DTypeName = keyof DTypeArrays;

/** Any typed array that a tensor's `data` can be. */
export type TypedArray<B extends ArrayBufferLike = ArrayBufferLike> = DTypeArrays<B>[DTypeName];

/** Makes a view of `length` components at `byteOffset`. */
type ViewConstructor = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  new (length: number): TypedArray<ArrayBuffer>;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
};

/** One row of the dtype table. */
export interface DType {
  readonly name: DTypeName;
  /** `DLDataTypeCode` of DLPack 1.3. */
  readonly code: number;
  /** Bytes of one element; both parts of a complex number together. */
  readonly itemsize: number;
  /** code | bits << 8 | lanes << 16: the four bytes of a `DLDataType`, as one integer. */
  readonly packed: number;
  /** The class of `tensor.data`. */
  readonly View: ViewConstructor;
  /** Entries of `data` for each element. */
  readonly components: number;
}

const Float16: ViewConstructor =
  (globalThis as { Float16Array?: ViewConstructor }).Float16Array ?? Uint16Array;

const byName = new Map<string, DType>();
const byPacked = new Map<number, DType>();

function add(name: DTypeName, code: number, bits: number, View: ViewConstructor = Uint8Array) {
  const itemsize = bits / 8;
  const packed = code | (bits << 8) | (1 << 16);
  const components = itemsize / View.BYTES_PER_ELEMENT;
  const dtype: DType = { name, code, itemsize, packed, View, components };
  byName.set(name, dtype);
  byPacked.set(packed, dtype);
}

// DLDataTypeCode of DLPack 1.3: kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLComplex 5,
// kDLBool 6, the float8 formats 7 to 14. The same table as tests/dtypes.json.
add("bool", 6, 8);
add("int8", 0, 8, Int8Array);
add("int16", 0, 16, Int16Array);
add("int32", 0, 32, Int32Array);
add("int64", 0, 64, BigInt64Array);
add("uint8", 1, 8);
add("uint16", 1, 16, Uint16Array);
add("uint32", 1, 32, Uint32Array);
add("uint64", 1, 64, BigUint64Array);
add("float16", 2, 16, Float16);
add("float32", 2, 32, Float32Array);
add("float64", 2, 64, Float64Array);
add("complex64", 5, 64, Float32Array);
add("complex128", 5, 128, Float64Array);
add("bfloat16", 4, 16);
add("float8_e3m4", 7, 8);
add("float8_e4m3", 8, 8);
add("float8_e4m3b11fnuz", 9, 8);
add("float8_e4m3fn", 10, 8);
add("float8_e4m3fnuz", 11, 8);
add("float8_e5m2", 12, 8);
add("float8_e5m2fnuz", 13, 8);
add("float8_e8m0fnu", 14, 8);

/** All dtypes, in the table's order. */
export const dtypes: readonly DType[] = [...byName.values()];

/** The table's row for a name; throws UnsupportedError listing the names that exist. */
export function dtypeNamed(name: string): DType {
  const dtype = byName.get(name);
  if (dtype) return dtype;
  const needed = [...byName.keys()];
  throw new UnsupportedError(`dtype "${name}" is not supported; use one of ${needed.join(", ")}`, {
    given: name,
    needed,
  });
}

/** The row for the four bytes of a `DLDataType`, or undefined (vector lanes, unknown codes). */
export function dtypePacked(packed: number): DType | undefined {
  return byPacked.get(packed);
}

/** The dtype whose `data` has this array's class; bytes are uint8. Undefined for a `DataView`. */
export function dtypeOfArray(array: ArrayBufferView): DType | undefined {
  const tag = classOf(array);
  if (tag === "Uint8ClampedArray") return byName.get("uint8");
  // bool is an array of bytes too, but bytes do not say so of themselves.
  return dtypes.find((dtype) => dtype.View.name === tag && dtype.name !== "bool");
}

/** Whether the bytes of `array` may be taken as elements of `dtype` without a second thought. */
export function arrayHolds(array: ArrayBufferView, dtype: DType): boolean {
  const tag = classOf(array);
  return (
    tag === dtype.View.name ||
    tag === "Uint8Array" ||
    tag === "Uint8ClampedArray" ||
    (tag === "Uint16Array" && dtype.itemsize === 2)
  );
}

/** The class's name, which holds across realms (frames), where `instanceof` does not. */
export function classOf(array: ArrayBufferView): string {
  return (array as unknown as { [Symbol.toStringTag]: string })[Symbol.toStringTag];
}
