/** Conversions of elements during a copy: those of wasm/convert.c, in JavaScript. */
import { type DType, laneName, type TypedArray, viewAs } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import { BECOME, CONVERSIONS, type Conversions } from "./generated.js";

/** The name of a dtype's lanes, which are converted one by one. */
const laneOf = ({ name }: DType) => laneName(name);

type Pair = { [S in keyof Conversions]: `${S} ${Conversions[S]}` }[keyof Conversions];

const becomes = (name: string): readonly string[] =>
  Object.hasOwn(CONVERSIONS, name) ? CONVERSIONS[name as keyof Conversions] : [];

/** Whether both are one dtype, packed in one and padded in the other. */
const repads = (from: DType, to: DType) => from.packed === to.packed && from.flags !== to.flags;

/** Whether there is a conversion between two dtypes. */
export function canConvert(from: DType, to: DType): boolean {
  const lanes = from.packed >>> 16 === to.packed >>> 16;
  return repads(from, to) || (lanes && becomes(laneOf(from)).includes(laneOf(to)));
}

/** Why elements cannot be written over others as they are. */
export function misfitOf(from: DType, to: DType): string {
  if (repads(from, to)) return `${from.name} is packed in one and padded in the other`;
  return "shape and dtype must be the same";
}

/** Throws UnsupportedError, which names `what`, unless elements of `from` may become elements of `to`. */
export function checkConversion(from: DType, to: DType, what: string): void {
  if (canConvert(from, to)) return;
  throw new UnsupportedError(
    `${what} cannot become ${to.name} on the way: conversions are ${BECOME}; convert the array itself`,
    { given: from.name, needed: to.name },
  );
}

/**
 * Row-major elements as another dtype, in a new array, or at the start of `into`.
 *
 * @param values - in memory aligned for them, though their class may be of bytes; in `into`,
 * narrower ones end where the converted ones will
 * @param size - number of elements
 * @param first - position of the first one, for messages
 * @throws UnsupportedError for other pairs than above, and for an integer that does not fit
 */
export function convertElements(
  values: TypedArray,
  from: DType,
  to: DType,
  size: number,
  what: string,
  first = 0,
  into?: ArrayBuffer,
) {
  checkConversion(from, to, what);
  const length = Math.ceil(size * to.components);
  const made = into ? new to.View(into, 0, length) : new to.View(length);
  if (repads(from, to)) {
    repad(made as Uint8Array, values as Uint8Array, from, to, size);
    return made;
  }
  const pair = `${laneOf(from)} ${laneOf(to)}` as Pair;
  switch (pair) {
    case "float32 bfloat16":
      toBfloat16(viewAs(Uint16Array, made), values as Float32Array);
      break;
    case "bfloat16 float32":
      fromBfloat16(made as Float32Array, viewAs(Uint16Array, values));
      break;
    case "float32 float16":
      toHalf(viewAs(Uint16Array, made), values as Float32Array);
      break;
    case "float16 float32":
      fromHalf(made as Float32Array, viewAs(Uint16Array, values));
      break;
    case "int64 int32":
    case "uint64 uint32":
      narrow(made as Int32Array, values as BigInt64Array, to, what, first);
      break;
    case "float64 float32":
    case "complex128 complex64":
      (made as Float32Array).set(values as Float64Array); // rounded to nearest, ties to even
      break;
    default:
      pair satisfies never;
  }
  return made;
}

/** As dlw_repad of wasm/convert.c. */
function repad(target: Uint8Array, source: Uint8Array, from: DType, to: DType, size: number): void {
  const bits = (from.packed >>> 8) & 255;
  let [read, unread, at] = [0, 0, 0];
  let [written, done, next] = [0, 0, 0];
  for (let i = 0; i < size; i++) {
    if (unread < bits) {
      read |= (source[at++] as number) << unread;
      unread += 8;
    }
    written |= (read & ((1 << bits) - 1)) << done;
    read >>= from.step * 8;
    unread -= from.step * 8;
    done += to.step * 8;
    if (done < 8) continue;
    target[next++] = written;
    written >>= 8;
    done -= 8;
  }
  if (done > 0) target[next] = written;
}

/** The bits of floats. */
const patternsOf = (values: Float32Array) => viewAs(Uint32Array, values);

/** The upper half, rounded to nearest, ties to even; NaNs keep the upper bits of their payload. */
function toBfloat16(target: Uint16Array, values: Float32Array): void {
  patternsOf(values).forEach((bits, i) => {
    if ((bits & 0x7fffffff) > 0x7f800000)
      target[i] = (bits >>> 16) | ((bits >>> 16) & 0x7f ? 0 : 1);
    else target[i] = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
  });
}

/** bfloat16 is the upper half of a float32. */
export function fromBfloat16(target: Float32Array, halves: Uint16Array): void {
  const bits = patternsOf(target);
  halves.forEach((half, i) => {
    bits[i] = half << 16;
  });
}

/** IEEE 754 binary16, as wasm/convert.c does it: engines differ for NaNs. */
function toHalf(target: Uint16Array, values: Float32Array): void {
  patternsOf(values).forEach((bits, i) => {
    const magnitude = bits & 0x7fffffff;
    let half: number;
    if (magnitude > 0x7f800000) half = 0x7c00 + ((magnitude >>> 13) & 0x3ff || 1);
    else if (magnitude >= 0x47800000) half = 0x7c00;
    // Below 2^-14 the steps are 2^-24, those of floats from 0.5 to 1: adding 0.5 rounds.
    else if (magnitude < 0x38800000) {
      half = (Math.fround(Math.abs(values[i] as number) + 0.5) - 0.5) * 2 ** 24;
    } else half = (magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13;
    target[i] = ((bits >>> 16) & 0x8000) | half;
  });
}

/** IEEE 754 binary16. */
export function fromHalf(target: Float32Array, halves: Uint16Array): void {
  const bits = patternsOf(target);
  halves.forEach((half, i) => {
    const magnitude = half & 0x7fff;
    if (magnitude < 0x0400) target[i] = magnitude * 2 ** -24;
    else bits[i] = (magnitude << 13) + (magnitude < 0x7c00 ? 0x38000000 : 0x70000000);
    bits[i] = (bits[i] as number) | ((half & 0x8000) << 16);
  });
}

function narrow(
  target: Int32Array,
  values: BigInt64Array,
  to: DType,
  what: string,
  first: number,
): void {
  values.forEach((value, i) => {
    target[i] = Number(value);
    if (BigInt(target[i] as number) === value) return;
    throw new UnsupportedError(
      `element ${first + i} of ${what}, in row-major order, is ${value}, which ${to.name} cannot hold; move ` +
        "the elements as they are, without dtype",
      { given: value, needed: to.name },
    );
  });
}
