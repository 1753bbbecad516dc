/** Facts about inputs and outputs of a model's graph that onnxruntime-web does not report. */
import { ELEMENTS } from "./generated.js";
import {
  fieldOf,
  fields,
  flawOfName,
  flawOfStrings,
  integersIn,
  isMessage,
  messagesIn,
  partOf,
  textOf,
} from "./onnx.js";

/** An input or output; `type` in onnxruntime's words, such as "seq(map(int64,tensor(float)))". */
export interface GraphSlot {
  name: string;
  type: string;
  /** Extents, names of dynamic ones, and -1 for those without a name. */
  shape: (number | string)[];
}

export type GraphFacts = ReturnType<typeof graphFacts>;

/** A graph's inputs have values that may be replaced from this version of the file format on. */
const OVERRIDABLE_FROM = 4;

/** The type of results that are strings. */
const STRINGS = "tensor(string)";

/** Types that onnxruntime-web has in models, but not in tensors. */
const REFUSED = /^tensor\((?:bfloat|complex|float[48]|undefined)/;

/** onnxruntime-web's value for an unknown extent: -1 as an unsigned number. */
const UNKNOWN = 2 ** 32 - 1;

const elementOf = (number: unknown) => ELEMENTS[number as number] ?? "undefined";

/** The type in a TypeProto. */
function typeOf(proto: Uint8Array): string {
  for (const [id, value] of fields(proto)) {
    if (!isMessage(value)) continue;
    if (id === 1) return `tensor(${elementOf(fieldOf(value, 1))})`;
    if (id === 4) return `seq(${typeOf(partOf(value, 1))})`;
    if (id === 5) return `map(${elementOf(fieldOf(value, 1))},${typeOf(partOf(value, 2))})`;
    if (id === 8) return `sparse_tensor(${elementOf(fieldOf(value, 1))})`;
    if (id === 9) return `optional(${typeOf(partOf(value, 1))})`;
  }
  return "unknown";
}

/** The extents in a TypeProto; none without a shape. */
function shapeOf(proto: Uint8Array): (number | string)[] {
  const shape: (number | string)[] = [];
  for (const dimension of messagesIn(partOf(partOf(proto, 1), 2), 1)) {
    let extent: number | string = -1;
    for (const [part, value] of fields(dimension)) {
      if (part === 1) extent = Number(value) < UNKNOWN ? Number(value) : -1;
      else if (part === 2) extent = textOf(value) || -1;
    }
    shape.push(extent);
  }
  return shape;
}

function slotOf(info: Uint8Array): GraphSlot {
  const proto = partOf(info, 2);
  return { name: textOf(partOf(info, 1)), type: typeOf(proto), shape: shapeOf(proto) };
}

/** What is wrong with the name of an input or output. */
function misnamed(info: Uint8Array): string | undefined {
  const name = textOf(partOf(info, 1));
  const flaw =
    name === "__proto__" ? "every JavaScript object has it" : flawOfName(partOf(info, 1));
  if (flaw === undefined) return undefined;
  return (
    `onnxruntime-web would take the name ${JSON.stringify(name)} (${flaw}) of an input or ` +
    "output for another one: rename it in the model"
  );
}

/** The inputs and outputs of a model's graph. */
export function graphFacts(model: Uint8Array) {
  const inputs: GraphSlot[] = [];
  const outputs: GraphSlot[] = [];
  const values = new Map<string, Uint8Array>();
  const gathers: Uint8Array[] = [];
  let wrongName: string | undefined;
  for (const [id, value] of fields(partOf(model, 7))) {
    if (!isMessage(value)) continue;
    if (id === 11 || id === 12) {
      (id === 11 ? inputs : outputs).push(slotOf(value));
      wrongName ??= misnamed(value);
    } else if (id === 5) values.set(textOf(partOf(value, 8)), value);
    else if (id === 1 && textOf(partOf(value, 4)) === "Gather") gathers.push(value);
  }
  const has = ({ name }: GraphSlot) => values.has(name);
  const version = Number(fieldOf(model, 1) ?? 0);
  return {
    inputs: inputs.filter((slot) => !has(slot)),
    outputs,
    /** Inputs with a default value in the model, which a run may replace. */
    overridable: version < OVERRIDABLE_FROM ? [] : inputs.filter(has),
    /**
     * Inputs that are indices into a value of the model, and how many there are to choose from. GPUs
     * read arbitrary values for an index out of bounds, where a CPU raises an error.
     */
    indices: indicesOf(gathers, inputs, values),
    /** What is wrong with the first name that onnxruntime-web would take for another one. */
    wrongName,
    /** The first input or output whose elements onnxruntime-web has no tensors for. */
    refused: [...inputs, ...outputs].find(({ type }) => REFUSED.test(type)),
    /**
     * What onnxruntime-web would change in strings of the model, which may be results: "NUL".
     * undefined: nothing, or there are no results of strings.
     */
    flaw: outputs.some(({ type }) => type === STRINGS) ? flawOfStrings(model) : undefined,
  };
}

/** For nodes `Gather(value of the model, input)`; the smallest extent if there are several. */
function indicesOf(
  gathers: readonly Uint8Array[],
  inputs: readonly GraphSlot[],
  values: ReadonlyMap<string, Uint8Array>,
): Map<string, number> {
  const found = new Map<string, number>();
  for (const node of gathers) {
    const [data, name] = [...messagesIn(node, 1)].map(textOf);
    const tensor = values.get(data as string);
    if (name === undefined || !tensor || !inputs.some((slot) => slot.name === name)) continue;
    const extent = integersIn(tensor, 1).map(Number)[axisOf(node)];
    if (extent !== undefined) found.set(name, Math.min(extent, found.get(name) ?? extent));
  }
  return found;
}

/** The attribute `axis`: 0 if absent; large for a negative one, which is not decoded. */
function axisOf(node: Uint8Array): number {
  const attributes = [...messagesIn(node, 5)];
  const axis = attributes.find((attribute) => textOf(partOf(attribute, 1)) === "axis");
  return Number((axis && fieldOf(axis, 3)) ?? 0);
}
