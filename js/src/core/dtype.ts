import { IS_SUBBYTE_TYPE_PADDED } from "./dlpack.js";
import { textOf, UnsupportedError } from "./errors.js";
import { type Conversions, DTYPES, type DTypeArrays } from "./generated.js";
import type { Float16Array } from "./globals.js";
import { shared } from "./realm.js";

export type { DTypeArrays } from "./generated.js";

/** The name of one lane's dtype, in DLPack's and the array API's words. */
type ScalarName = keyof DTypeArrays;

/** The name of a vector's lanes, or the name itself: "float32x4" gives "float32". */
export function laneName(name: string): string {
  return name.replace(/(?<!comple)x\d+$/, "");
}

/** The name of a dtype: "float32", or "float32x4" where an element is a vector of four lanes. */
export type DTypeName = ScalarName | `${ScalarName}x${number}`;

/** The class of `tensor.data` for a dtype. */
export type DataOf<D extends DTypeName> = D extends ScalarName
  ? DTypeArrays[D]
  : D extends `${infer S extends ScalarName}x${number}`
    ? DTypeArrays[S]
    : TypedArray;

/**
 * The same over an `ArrayBuffer` of its own, as `slice()` and `tensor.read()` make it. TypeScript
 * before 5.7, where typed arrays are not generic, sees no difference.
 */
export type CopyOf<D extends DTypeName> = ReturnType<DataOf<D>["slice"]>;

/** Any typed array that a tensor's `data` can be. */
export type TypedArray = DTypeArrays[ScalarName];

/** Any typed array that elements are taken from, or written to. */
export type AnyTypedArray = TypedArray | Uint8ClampedArray;

/** The default dtype of an array. */
export type DTypeOf<A> = A extends Float32Array
  ? "float32"
  : A extends Float64Array
    ? "float64"
    : A extends Int8Array
      ? "int8"
      : A extends Int16Array
        ? "int16"
        : A extends Int32Array
          ? "int32"
          : A extends BigInt64Array
            ? "int64"
            : A extends Uint8Array | Uint8ClampedArray
              ? "uint8"
              : A extends Uint16Array
                ? "uint16"
                : A extends Uint32Array
                  ? "uint32"
                  : A extends BigUint64Array
                    ? "uint64"
                    : A extends Float16Array
                      ? "float16"
                      : DTypeName;

/**
 * The classes of arrays that elements of a dtype are taken from as they are, as {@link checkHolds} knows
 * them: that of `data`, bytes, and for elements of two bytes (which a vector's may be) a `Uint16Array`.
 */
export type ArrayOf<D extends DTypeName> =
  | DataOf<D>
  | Uint8Array
  | Uint8ClampedArray
  | (D extends "int16" | "uint16" | "float16" | "bfloat16" | `${ScalarName}x${number}`
      ? Uint16Array
      : never);

/**
 * `D` if an array of class `A` may hold it; else, for the error message, the dtype that it holds.
 */
export type HeldBy<A, D extends DTypeName> = A extends Uint8Array | Uint8ClampedArray
  ? D
  : A extends ArrayOf<D>
    ? D
    : DTypeOf<A>;

type Converted<S extends ScalarName> = S extends keyof Conversions ? Conversions[S] : never;

/**
 * The dtypes that elements may have after `to(device, { dtype })`: their own, or a converted one. A
 * table, because TypeScript can index one by a type parameter.
 */
export type Becomes = {
  [S in ScalarName]: S | Converted<S>;
} & {
  [S in ScalarName as `${S}x${number}`]: `${S | Converted<S>}x${number}`;
};

/** Makes a view of `length` components at `byteOffset`. */
type ViewConstructor = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  new (length: number): CopyOf<DTypeName>;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
};

/** A dtype; there is one object for each. */
export interface DType {
  readonly name: DTypeName;
  /** code | bits << 8 | lanes << 16: the four bytes of a `DLDataType`, as one unsigned integer. */
  readonly packed: number;
  /** DLPack's flag IS_SUBBYTE_TYPE_PADDED if each sub-byte element has a byte of its own, or 0. */
  readonly flags: number;
  /** Bytes from an element to the next; a fraction where elements share bytes. */
  readonly step: number;
  /** The class of `tensor.data`. */
  readonly View: ViewConstructor;
  /** Entries of `data` for each element; a fraction where elements share bytes. */
  readonly components: number;
}

/** All dtypes; all copies of this library in a page share the objects. */
interface Table {
  readonly byName: Map<string, DType>;
  /** By `packed`, negative where sub-byte elements are padded. */
  readonly byPacked: Map<number, DType>;
}

const { byName, byPacked } = shared("dtypes", makeTable);

function enter(
  table: Table,
  name: string,
  packed: number,
  View: ViewConstructor,
  flags: number,
): DType {
  const step = flags ? 1 : (((packed >>> 8) & 255) * (packed >>> 16)) / 8;
  const components = step / View.BYTES_PER_ELEMENT;
  const dtype = { name: name as DTypeName, packed, flags, step, View, components };
  if (!flags) table.byName.set(name, dtype);
  table.byPacked.set(flags ? -packed : packed, dtype);
  return dtype;
}

function makeTable(): Table {
  const table: Table = { byName: new Map(), byPacked: new Map() };
  for (const [name, code, bits, View = Uint8Array] of DTYPES) {
    enter(table, name, code | (bits << 8) | (1 << 16), View, 0);
  }
  return table;
}

/** All dtypes of one lane, in the table's order. */
export const dtypes: readonly DType[] = [...byName.values()].filter(
  ({ packed }) => packed >>> 16 === 1,
);

/**
 * The dtype of a name, `padded` if elements of less than a byte have one each; throws UnsupportedError
 * listing the names that exist.
 */
export function dtypeNamed(name: string, padded = false): DType {
  const known = unpadded(name);
  const { packed } = known;
  if (!padded || ((packed >>> 8) & 255) >= 8) return known;
  if (packed >>> 16 === 1) return dtypePacked(packed, IS_SUBBYTE_TYPE_PADDED);
  throw new UnsupportedError(
    `${name} cannot be padded: DLPack defines that for single elements, and vectors are packed`,
    { given: name },
  );
}

function unpadded(name: string): DType {
  const known = byName.get(name);
  if (known) return known;
  const [, scalar, lanes] = /^(.+)x([1-9]\d*)$/.exec(name) ?? [];
  const lane = byName.get(scalar as string); // a vector's own name is there, too, once it is used
  if (lane && lane.packed >>> 16 === 1 && Number(lanes) > 1 && Number(lanes) < 65536) {
    return dtypePacked((lane.packed & 0xffff) | (Number(lanes) << 16));
  }
  const given = textOf(name);
  const needed = dtypes.map((dtype) => dtype.name);
  throw new UnsupportedError(
    `dtype "${given}" is unknown: use ${
      meantBy(given) ??
      "bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, complex64, another name " +
        "of DLPack's, or a vector's, float32x4"
    }`,
    { given, needed },
  );
}

/** The dtype for a short name, or one of another library: "float32" for "float", "f32", Float32Array. */
function meantBy(given: string): string | undefined {
  const word = /^(?:function )?(bf|[fiu])(?:loat|i?nt)?(\d*)(?:array\b|$)/i.exec(given);
  const [, letter = "", bits] = word ?? [];
  const kinds = { f: "float", i: "int", u: "uint", bf: "bfloat" };
  const name = `${kinds[letter.toLowerCase() as "f"]}${bits || 32}`;
  if (byName.has(name)) return name;
  const size = ["half", "single", "double"].indexOf(given);
  return size < 0 ? undefined : `float${16 << size}`;
}

/** The dtype for the four bytes of a `DLDataType`, and its flags, that the C core let pass. */
export function dtypePacked(packed: number, flags = 0): DType {
  const key = packed >>> 0;
  const lanes = key >>> 16;
  const known = byPacked.get(flags ? -key : key);
  if (known) return known;
  const lane = byPacked.get((key & 0xffff) | (1 << 16)) as DType;
  const name = lanes > 1 ? `${lane.name}x${lanes}` : lane.name;
  return enter({ byName, byPacked }, name, key, lane.View, flags);
}

/** The dtype for a foreign `DLDataType`; undefined if DLPack has none, or numbers are out of range. */
export function dtypeOfTriple(
  code: unknown,
  bits: unknown,
  lanes: unknown,
  padded: boolean,
): DType | undefined {
  const fits = (n: unknown, most: number) => Number.isInteger(n) && (n as number) <= most;
  if (!fits(code, 255) || !fits(bits, 255) || !fits(lanes, 65535)) return undefined;
  const [c, b, l] = [code, bits, lanes] as [number, number, number];
  if (c < 0 || b < 1 || l < 1 || !byPacked.has(c | (b << 8) | (1 << 16))) return undefined;
  if (padded && b < 8 && l > 1) return undefined; // DLPack does not define this
  return dtypePacked(c | (b << 8) | (l << 16), padded && b < 8 ? IS_SUBBYTE_TYPE_PADDED : 0);
}

/** Bytes that `size` elements take. */
export function bytesOf(dtype: DType, size: number): number {
  return Math.ceil(size * dtype.step);
}

/** The dtype whose `data` has this array's class; bytes are uint8. Undefined for a `DataView`. */
export function dtypeOfArray(array: ArrayBufferView): DType | undefined {
  const tag = classOf(array);
  if (tag === "Uint8ClampedArray") return byName.get("uint8");
  return dtypes.find((dtype) => dtype.View.name === tag);
}

/** Throws TypeError unless the bytes of `array` may be used as elements of `dtype`. */
export function checkHolds(array: ArrayBufferView, { name, step, View }: DType): void {
  const tag = classOf(array);
  if (/^(Uint8|Uint8Clamped)Array$/.test(tag) || (tag === "Uint16Array" && step === 2)) return;
  if (tag === View.name) return;
  throw new TypeError(`a ${tag} does not hold ${name}: give a ${View.name} or raw bytes`);
}

/** The class's name, which works across realms (frames), unlike `instanceof`. */
export function classOf(array: ArrayBufferView): string {
  return (array as unknown as { [Symbol.toStringTag]: string })[Symbol.toStringTag];
}

/** The same bytes in an array of another class. */
export function viewAs<A extends TypedArray>(
  View: { new (buffer: ArrayBufferLike, byteOffset: number, length: number): A },
  { buffer, byteOffset, byteLength }: ArrayBufferView,
): A {
  const { BYTES_PER_ELEMENT } = View as unknown as { BYTES_PER_ELEMENT: number };
  return new View(buffer, byteOffset, byteLength / BYTES_PER_ELEMENT);
}
