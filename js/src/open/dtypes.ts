import { type DType, dtypeNamed } from "../core/dtype.js";
import { bounded, cut, UnsupportedError } from "../core/errors.js";
import { ML_DTYPES, NPY, SAFETENSORS, SUB_BYTE } from "./generated.js";

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

/** The dtype of a `descr` in the header of a `.npy` file, "<f4"; or why DLPack has none. */
export function dtypeOfDescr(descr: string): { type: DType } | { why: string } {
  if (descr[0] === "[") {
    return { why: "has elements which are structures: save each field separately" };
  }
  const [, order = "", code = ""] = /^([<>=|]?)(.*)$/s.exec(descr) ?? [];
  const found = Object.keys(NPY).find((name) => NPY[name] === code);
  const because = (why: string) => ({ why: `has elements of dtype "${cut(descr)}", ${why}` });
  if (found === undefined) {
    const kind = Object.hasOwn(KINDS, code.slice(0, 1)) ? KINDS[code[0] as string] : undefined;
    const lacks = kind ? `are ${kind}` : "DLPack lacks: save it with another one";
    const raw = Object.hasOwn(ML_DTYPES, code) && ML_DTYPES[code];
    const way = raw ? `; if ml_dtypes made them, give their dtype, such as "${raw}"` : "";
    return because(`which ${lacks}${way}`);
  }
  const type = dtypeNamed(found);
  // One byte has no order; wider elements without an order are ambiguous.
  if (type.step === 1 || order === "<") return { type };
  if (order === ">") {
    return because("which is big-endian: save x.astype(x.dtype.newbyteorder('<'))");
  }
  return because("which does not say that it is little-endian");
}

/**
 * Whether elements that NumPy wrote without their dtype may be of this one, as those of ml_dtypes
 * are: "<V2" of bfloat16, "<V1" and "<f1" of float8.
 */
export function isRaw(descr: string, type: DType): boolean {
  const [, code] = /^[<|](.*)/.exec(descr) ?? [];
  if (code === "f1") return type.name === "float8_e5m2";
  return !Object.hasOwn(NPY, type.name) && type.step % 1 === 0 && code === `V${type.step}`;
}

/** A dtype's name in a `.npy` file; UnsupportedError if it has none. */
export function descrOf(type: DType, what: string): string {
  const code = NPY[type.name];
  if (code !== undefined) return `${type.step > 1 ? "<" : "|"}${code}`;
  throw new UnsupportedError(
    `${what}: .npy files have no ${type.name}; save it as safetensors, if that has it`,
    { given: type.name, needed: Object.keys(NPY) },
  );
}

/** The dtype of safetensors' name, or the name if this library lacks it. */
export function dtypeOfTag(tag: string, what: string): DType | string {
  if (Object.hasOwn(SAFETENSORS, tag)) return dtypeNamed(SAFETENSORS[tag] as string);
  if (/^[A-Z][A-Z0-9_]{0,31}$/.test(tag)) return tag;
  const given = cut(tag);
  const needed = Object.keys(SAFETENSORS);
  throw new UnsupportedError(bounded(`${what} ${whyLacking(given)}`), { given, needed });
}

/** Why a tensor with such a dtype cannot be loaded. */
export function whyLacking(tag: string): string {
  return `has dtype "${tag}", which is not supported: ${Object.keys(SAFETENSORS).join(", ")} are`;
}

/** Bits of an element; undefined for an unknown name. */
export function bitsOf(type: DType | string): number | undefined {
  return typeof type === "string" ? SUB_BYTE[type] : 8 * type.step;
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
