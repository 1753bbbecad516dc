/**
 * formulas/: kernels that are made from a user's formula, element-wise and reductions. This file has the WGSL
 * around a formula (py/dlpack_web/_formulas/formulas.py writes the same text; tests/fuzz/twins compares both).
 * Other folders use the types `Param`, `Part` and `Source` alone.
 *
 * Names that begin with an underscore are ours: parameters may not. That of x's binding, _x_, ends
 * with one, too, which no other does. The formula is on lines of its own, from column 1 on, and `parts`
 * says where: so an error of the compiler is shown at the user's own line and column.
 */
import type { CopyOf } from "../../core/dtype.js";
import { tagOf } from "../../core/errors.js";
import { sizeOf } from "../../core/shape.js";
import { BLANKS, DTYPES, type Scalar, tokensOf, withLines } from "../kernels/wgsl.js";
import { ELEMENTWISE, IN_MODULE, OURS, REDUCTION, WIDTH } from "./generated.js";

export type ParamType = Scalar;

/** A parameter: "f32 x", or "raw f32 x". */
export interface Param {
  readonly type: ParamType;
  readonly name: string;
  readonly raw: boolean;
  readonly output: boolean;
  /** As it is written. */
  readonly text: string;
}

/** Lines of a source that are the user's: their name, the first from 1 on, and how many. */
export type Part = readonly [name: string, first: number, lines: number];

export interface Source {
  readonly wgsl: string;
  readonly parts: readonly Part[];
  /**
   * Of each argument of a call, and of ours. null: it cannot change; false: nor is it bound, because an
   * output is the same tensor.
   */
  readonly params: readonly (Param | null | false)[];
}

const AROUND = new RegExp(`^[${BLANKS}]+|[${BLANKS}]+$`, "g");
const PARAM = new RegExp(`^(raw[${BLANKS}]+)?(\\w+)[${BLANKS}]+([A-Za-z_]\\w*)$`);

/** The parameters of "f32 x, f32 k" and of the outputs; throws RangeError for others, as reserved names. */
export function parse(inputs: unknown, outputs: unknown, reserved = ""): [Param[], Param[]] {
  const [ins, outs] = [params(inputs, reserved, false), params(outputs, reserved, true)];
  if (outs.length === 0) throw new RangeError('there is no output parameter, such as "f32 y"');
  for (const { raw, text } of outs) {
    if (raw) throw new RangeError(`"${text}": only inputs can be raw`);
  }
  const names = [...ins, ...outs].map(({ name }) => name);
  for (const [at, name] of names.entries()) {
    if (names.indexOf(name) !== at) {
      throw new RangeError(`two parameters have the name "${name}"`);
    }
  }
  return [ins, outs];
}

function params(text: unknown, reserved: string, output: boolean): Param[] {
  if (typeof text !== "string") {
    throw new TypeError(`parameters are a string such as "f32 x, f32 k", not ${tagOf(text)}`);
  }
  const list = text.replace(AROUND, "");
  return list === "" ? [] : list.split(",").map((part) => param(part, reserved, output));
}

function param(part: string, reserved: string, output: boolean): Param {
  const text = part.replace(AROUND, "");
  const [, raw, given = "", name = ""] = PARAM.exec(text) ?? [];
  if (name === "") {
    throw new RangeError(`"${text}" is not a parameter: write a type and a name, such as "f32 x"`);
  }
  const type = Object.entries(DTYPES).find((pair) => pair.includes(given as never))?.[0];
  if (type === undefined) {
    throw new RangeError(
      `"${text}": the type of a parameter is f32, i32, u32 or f16, not ${given}`,
    );
  }
  // A raw parameter is a variable of the module, others are of a function.
  const ours = `${OURS} ${reserved} ${raw ? IN_MODULE : ""}`;
  if (name.startsWith("_") || ours.split(" ").includes(name)) {
    throw new RangeError(`"${text}": the name ${name} is reserved, so choose another`);
  }
  const said = `${raw ? "raw " : ""}${type} ${name}`;
  return { type: type as ParamType, name, raw: raw !== undefined, output, text: said };
}

/** A formula, after checking that it is one. */
export function formula(text: unknown, name: string): string {
  if (typeof text !== "string") {
    throw new TypeError(`${name} is a string of WGSL, not ${tagOf(text)}`);
  }
  if (text.replace(AROUND, "") === "") throw new RangeError(`${name} is empty`);
  const misread = misreadIn(tokensOf(text, true));
  if (misread) throw new RangeError(`${name}: ${misread}`);
  return withLines(text);
}

/** Tokens behind which no value has ended: `//` is no division there. */
const OPERATOR = /^[-+*/%&|^!~<>=,;:({}[@?]/;
const WHOLE = /^[1-9]\d{0,8}$/;

/** What WGSL computes otherwise than it is written, without an error: x // 2 and 1 / 2; or "". */
function misreadIn(tokens: readonly string[]): string {
  // Of the integers that were multiplied so far: NaN in x * 1 / 2, whose product is divided.
  let product = Number.NaN;
  let [by, last] = ["", ""];
  for (const [i, token] of tokens.entries()) {
    const before = tokens[i - 1] ?? ";";
    if (token.startsWith("//") && !OPERATOR.test(before)) {
      return "// begins a comment in WGSL: write floor(x / y), or the comment in /* */";
    }
    if (/^[*/%]$/.test(token)) {
      by = token;
      last = before;
    } else if (WHOLE.test(token)) {
      const rest = product % Number(token);
      if (by === "/" && rest > 0) {
        return `${last} / ${token} is an integer division in WGSL: write ${last}.0 / ${token}`;
      }
      if (by === "") product = Number(token);
      else if (by === "*") product *= Number(token);
      else product = by === "/" ? product / Number(token) : rest;
    } else if (token !== "-" || !OPERATOR.test(before)) {
      product = Number.NaN;
      by = "";
    }
  }
  return "";
}

/** The type of the components of a reduced type: of "vec4f" f32. */
export function scalarOf(type: string): ParamType {
  return (type.startsWith("vec") ? `${type.at(-1)}32` : type) as ParamType;
}

/** The integers that a type has. */
const RANGES: { readonly [type: string]: readonly [number, number] } = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
};
/** The largest finite numbers, and WGSL's text of them. */
const LARGEST: { readonly [type: string]: readonly [number, string] } = {
  f32: [(2 - 2 ** -23) * 2 ** 127, "0x1.fffffep+127f"],
  f16: [65504, "0x1.ffcp+15h"],
};

/** The identity as WGSL of a type: a number, or the text of one. */
export function identityOf(value: unknown, type: string): string {
  if (typeof value === "string") return formula(value, "identity");
  if (typeof value !== "number") {
    throw new TypeError(
      `identity is a number, or a string of WGSL such as "-0x1.fffffep+127f", not ${tagOf(value)}`,
    );
  }
  const scalar = scalarOf(type);
  const range = RANGES[scalar];
  if (range) {
    const [least, most] = range;
    if (Number.isInteger(value) && value >= least && value <= most) return literal(value + 0);
    throw new RangeError(
      `identity ${literal(value)} is not an ${scalar}: those are the integers from ${least} to ${most}`,
    );
  }
  const [most, text] = LARGEST[scalar] as readonly [number, string];
  if (!Number.isFinite(value)) {
    throw new RangeError(
      `WGSL has no literal for ${value}: use the largest finite number, ` +
        `"${value < 0 ? "-" : ""}${text}" for ${scalar}`,
    );
  }
  const near = Math.fround(value);
  if (Math.abs(near) > most) {
    throw new RangeError(`identity ${literal(value)} is not an ${scalar}: the largest is ${text}`);
  }
  // Compilers refuse literals beyond the largest number, and read very small ones differently.
  const size = Math.abs(value);
  return literal(size > most || size < 2 ** -126 ? near : value);
}

/** The shortest decimal text of a number, as Python writes it, too. */
function literal(value: number): string {
  if (Object.is(value, -0)) return "-0.0";
  const size = Math.abs(value);
  return value === 0 || (size >= 1e-4 && size < 1e16) ? String(value) : value.toExponential();
}

// --- the source ---

/** The user's lines, under a name for messages: between two of ours that fail only because of them. */
interface Formula {
  readonly name: string;
  readonly text: string;
}
type Lines = readonly (string | Formula)[];
type Binding = readonly [access: string, name: string, type: string, param?: Param];

/** A template, with `words` within lines, and `blocks` in place of lines. */
function sourceOf(
  template: string,
  types: readonly string[],
  bindings: readonly Binding[],
  words: Readonly<Record<string, string>>,
  blocks: Readonly<Record<string, Lines>>,
): Source {
  const lines = types.includes("f16") ? ["enable f16;"] : [];
  const parts: Part[] = [];
  const declared = bindings.map(
    ([access, name, type], i) => `@group(0) @binding(${i}) var<${access}> ${name}: ${type};`,
  );
  const all: Readonly<Record<string, Lines>> = { ...blocks, $bindings: declared };
  for (const line of template.trimEnd().split("\n")) {
    for (const each of all[line] ?? [line.replace(/\$\w+/g, (word) => words[word] ?? word)]) {
      if (typeof each === "string") lines.push(each);
      else {
        const text = each.text.split("\n");
        parts.push([each.name, lines.length + 1, text.length]);
        lines.push(...text);
      }
    }
  }
  const params = bindings.map(([, , , param = null]) => param);
  return { wgsl: `${lines.join("\n")}\n`, parts, params };
}

function inputBindings(inputs: readonly Param[], kinds: readonly string[]): Binding[] {
  return inputs.flatMap((param, at): Binding[] => {
    const { type, name } = param;
    const kind = kinds[at] as string;
    if (kind === "n") return [["uniform", `_${name}_`, type === "f16" ? "f32" : type, param]];
    if (kind !== "r" && kind !== "s" && kind !== "t") return [];
    return [["storage, read", kind === "r" ? name : `_${name}_`, `array<${type}>`, param]];
  });
}

function outputBindings(outputs: readonly Param[]): Binding[] {
  return outputs.map((param) => [
    "storage, read_write",
    `_${param.name}_`,
    `array<${param.type}>`,
    param,
  ]);
}

function load(
  inputs: readonly Param[],
  kinds: readonly string[],
  outputs: readonly Param[],
): string[] {
  return inputs.flatMap(({ type, name }, at) => {
    const kind = kinds[at] as string;
    if (kind === "r") return [];
    if (kind === "n") return `  let ${name} = ${type === "f16" ? `f16(_${name}_)` : `_${name}_`};`;
    if (kind === "s") return `  let ${name} = _${name}_[0];`;
    const from = kind === "t" ? name : outputs[Number(kind.slice(1))]?.name;
    return `  let ${name} = _${from}_[i];`;
  });
}

/**
 * Statements that set the outputs. They are loaded first, so `y += x` works; compilers drop a
 * load that the formula does not use.
 */
function operate(outputs: readonly Param[], name: string, text: string): Lines {
  const loads = outputs.map((out) => `  var ${out.name} = _${out.name}_[i];`);
  const stores = outputs.map((out) => `  _${out.name}_[i] = ${out.name};`);
  return [...loads, "  {", { name, text }, "  ;}", ...stores];
}

const returned = (type: string, name: string, text: string): Lines => [
  `  return ${type}(`,
  { name, text },
  "  );",
];

export const typesOf = (...all: readonly Param[]): string[] => all.map(({ type }) => type);

/** Whether the number of elements is an argument: arrayLength would count the padding of f16. */
export const countsElements = ([output]: readonly Param[]): boolean => output?.type === "f16";

/**
 * A shader that sets element i of each output. `kinds`, of each input: "t" a tensor, "s" one of
 * shape [], "n" a number, "r" raw, "=0" the same tensor as output 0.
 */
export function elementwise(
  inputs: readonly Param[],
  outputs: readonly Param[],
  operation: string,
  kinds: readonly string[],
): Source {
  const isCounted = countsElements(outputs);
  const bindings = [...inputBindings(inputs, kinds), ...outputBindings(outputs)];
  if (isCounted) bindings.push(["uniform", "_n", "u32"]);
  const { params, ...source } = sourceOf(
    ELEMENTWISE,
    typesOf(...inputs, ...outputs),
    bindings,
    { $n: isCounted ? "_n" : `arrayLength(&_${outputs[0]?.name}_)` },
    {
      $load: load(inputs, kinds, outputs),
      $operation: operate(outputs, "operation", operation),
    },
  );
  const both: unknown[] = kinds.map((kind) => kind[0] === "=" && outputs[Number(kind.slice(1))]);
  const bound = params.map((param) => (both.includes(param) ? null : param));
  return { ...source, params: [...both.map((one) => !one && (bound.shift() ?? null)), ...bound] };
}

/** The definition of a reduction. */
export interface Reduction {
  readonly inputs: readonly Param[];
  readonly outputs: readonly Param[];
  readonly map: string;
  readonly reduce: string;
  readonly postMap: string;
  readonly identity: string;
  readonly type: string;
  /** Names of the three formulas, for messages. */
  readonly names: readonly [string, string, string];
}

/** In one pass, or in two with an array of partial results between. */
export type Pass = "whole" | "first" | "last";

/**
 * A shader that reduces pieces of an axis: each of `_lanes` neighbouring invocations every so many
 * elements, then all of them in workgroup memory.
 *
 * @param isOneAxis - whether {@link sizes} counts one axis that is reduced: several take divisions
 */
export function reduction(
  what: Reduction,
  kinds: readonly string[],
  pass: Pass,
  isOneAxis = true,
): Source {
  const { inputs, outputs, type, names } = what;
  const isLast = pass === "last";
  const partial = ["_partial", `array<${type}>`] as const;
  // The formulas after the first may read what is raw.
  const read = isLast ? kinds.map((kind) => (kind === "r" ? kind : "")) : kinds;
  const bindings: Binding[] = inputBindings(inputs, read);
  if (isLast) bindings.push(["storage, read", ...partial]);
  if (pass === "first") bindings.push(["storage, read_write", ...partial]);
  else bindings.push(...outputBindings(outputs));
  bindings.push(["uniform", "_sizes", `array<vec4u, ${SIZES}>`]);
  return sourceOf(
    REDUCTION,
    [...typesOf(...inputs, ...outputs), type],
    bindings,
    { $type: type, $at: isOneAxis ? "k * step" : "_offset(k, _sizes[1].w, 2)" },
    {
      $identity: returned(type, "identity", what.identity),
      $map: isLast
        ? ["  return _partial[i];"]
        : [...load(inputs, kinds, outputs), ...returned(type, names[0], what.map)],
      $reduce: returned(type, names[1], what.reduce),
      $finish:
        pass === "first" ? ["  _partial[_at] = a;"] : operate(outputs, names[2], what.postMap),
    },
  );
}

/**
 * vec4u of the sizes: the numbers of outputs, lanes, elements of a chunk and chunks; the elements that
 * are reduced, those that are reduced to one in all passes, the last axes; and then an axis that is kept and one that is reduced in each, the
 * last ones first. 2 ** 32 elements have at most 16 of each.
 */
const SIZES = 2 + 16;

// --- sizes ---

/**
 * The words of `_sizes` for a shape and the axes of it that are reduced. Neighbouring axes that are
 * all kept, or all reduced, count as one.
 *
 * `lanes` invocations share one output, a power of two: neighbouring ones read neighbouring elements,
 * of the reduced axes or of the outputs. Long axes are reduced in `chunks`, whose results a last pass
 * reduces.
 *
 * @param outputs - the number of those
 * @param n - the number of elements that are reduced to one: for the last pass
 */
export function sizes(
  shape: readonly number[],
  isReduced: readonly boolean[],
  outputs: number,
  n?: number,
): CopyOf<"uint32"> {
  const words = new Uint32Array(4 * SIZES);
  const length = sizeOf(shape) / outputs;
  const last = [1, 1]; // of the axes that are kept, and reduced
  let stride = 1;
  for (let at = shape.length - 1; at >= 0; at--) {
    const extent = shape[at] as number;
    const which = Number(isReduced[at]);
    const place = 4 * (last[which] as number) + 2 * which;
    if (place >= 8 && (words[place] as number) * (words[place + 1] as number) === stride) {
      words[place] = (words[place] as number) * extent;
    } else if (extent !== 1) {
      // Without elements there may be more than fit, which nothing reads.
      words[place + 4] = extent;
      words[place + 5] = stride;
      last[which] = (last[which] as number) + 1;
    }
    stride *= extent;
  }
  const isNear = n === undefined ? (words[11] as number) < 16 : outputs < 4096;
  const lanes = isNear && length > 1 ? 1 << Math.min(6, 32 - Math.clz32(length - 1)) : 1;
  let chunks = 1;
  const steps = length / lanes;
  // Loads under way: eight of 2 ** 16 invocations, as many as kept an H100 busy (tests/bench/GPU.md).
  // More invocations make the last pass longer, and each costs a GPU in software.
  if (n === undefined && steps > 64) {
    chunks = Math.floor(Math.min(2 ** 16 / outputs / lanes, 4 * Math.sqrt(steps), steps / 16)) || 1;
  }
  const chunk = Math.ceil(length / chunks);
  const rest = last.map((at) => Math.max(at, 2));
  words.set([outputs, lanes, chunk, Math.ceil(length / chunk) || 1, length, n ?? length, ...rest]);
  return words;
}

/** Workgroups on two axes: each has at most 65535 on every device. */
export function grid(invocations: number): [number, number, number] {
  const groups = Math.ceil(invocations / WIDTH);
  const rows = Math.ceil(groups / 65535);
  return [Math.ceil(groups / rows), rows, 1];
}
