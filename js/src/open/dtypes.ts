import { type DType, dtypeNamed } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";

/** NumPy's letters and widths, as `.npy` files have them, by the names of dtypes. */
const NUMPY: Record<string, string> = {
  bool: "b1",
  int8: "i1",
  int16: "i2",
  int32: "i4",
  int64: "i8",
  uint8: "u1",
  uint16: "u2",
  uint32: "u4",
  uint64: "u8",
  float16: "f2",
  float32: "f4",
  float64: "f8",
  complex64: "c8",
  complex128: "c16",
};

/** Safetensors' names of dtypes. */
const SAFETENSORS: Record<string, string> = {
  BOOL: "bool",
  I8: "int8",
  I16: "int16",
  I32: "int32",
  I64: "int64",
  U8: "uint8",
  U16: "uint16",
  U32: "uint32",
  U64: "uint64",
  F8_E4M3: "float8_e4m3fn",
  F8_E4M3FNUZ: "float8_e4m3fnuz",
  F8_E5M2: "float8_e5m2",
  F8_E5M2FNUZ: "float8_e5m2fnuz",
  F8_E8M0: "float8_e8m0fnu",
  F16: "float16",
  BF16: "bfloat16",
  F32: "float32",
  F64: "float64",
  C64: "complex64",
};

/** Bits of safetensors' dtypes that this library lacks; there may be newer ones. */
const LACKING: Record<string, number> = { F4: 4, F6_E2M3: 6, F6_E3M2: 6 };

/** Kinds that `.npy` files have and DLPack lacks. */
const KINDS: Record<string, string> = {
  O: "Python objects, which are pickled: loading them runs code that came with the file",
  S: "byte strings",
  a: "byte strings",
  U: "strings",
  T: "strings",
  M: "times: save their counts, x.view('int64')",
  m: "time spans: save their counts, x.view('int64')",
  V: "structures or raw bytes: save each field, or x.view('uint8')",
};

/** The dtype of a `descr` in the header of a `.npy` file: "<f4". */
export function dtypeOfDescr(descr: string, what: string): DType {
  const [, order = "", code = ""] = /^([<>=|]?)(.*)$/s.exec(descr) ?? [];
  const found = Object.keys(NUMPY).find((name) => NUMPY[name] === code);
  const fail = (why: string) => {
    throw new UnsupportedError(`${what} has elements of dtype "${descr}", ${why}`, {
      given: descr,
    });
  };
  if (found === undefined) {
    const kind = KINDS[code[0] as string];
    return fail(kind ? `which are ${kind}` : "which DLPack lacks: save it with another one");
  }
  const type = dtypeNamed(found);
  // One byte has no order; wider elements without an order are ambiguous.
  if (order === ">") {
    if (type.step > 1) fail("which is big-endian: save x.astype(x.dtype.newbyteorder('<'))");
  } else if (order !== "<" && type.step > 1) fail("which does not say that it is little-endian");
  return type;
}

/** A dtype's name in a `.npy` file; UnsupportedError if it has none. */
export function descrOf(type: DType, what: string): string {
  const code = NUMPY[type.name];
  if (code !== undefined) return `${type.step > 1 ? "<" : "|"}${code}`;
  throw new UnsupportedError(
    `${what}: .npy files have no ${type.name}; save it as safetensors, if that has it`,
    { given: type.name, needed: Object.keys(NUMPY) },
  );
}

/** The dtype of safetensors' name, or the name if this library lacks it. */
export function dtypeOfTag(tag: string, what: string): DType | string {
  if (Object.hasOwn(SAFETENSORS, tag)) return dtypeNamed(SAFETENSORS[tag] as string);
  if (/^[A-Z][A-Z0-9_]{0,31}$/.test(tag)) return tag;
  throw lacking(tag, what);
}

/** The error for a dtype that this library lacks. */
export function lacking(tag: string, what: string, more = ""): UnsupportedError {
  const needed = Object.keys(SAFETENSORS);
  const which = `${what} has dtype "${tag}", which is not supported`;
  return new UnsupportedError(`${which}: ${needed.join(", ")} are${more}`, { given: tag, needed });
}

/** Bits of an element; undefined for an unknown name. */
export function bitsOf(type: DType | string): number | undefined {
  return typeof type === "string" ? LACKING[type] : 8 * type.step;
}

/** Safetensors' name of a dtype; UnsupportedError if it has none. */
export function tagOfDType(type: DType, what: string): string {
  const tag = Object.keys(SAFETENSORS).find((each) => SAFETENSORS[each] === type.name);
  if (tag !== undefined) return tag;
  throw new UnsupportedError(
    `${what}: safetensors has no ${type.name}; it has ${Object.values(SAFETENSORS).join(", ")}`,
    { given: type.name, needed: Object.values(SAFETENSORS) },
  );
}
