/**
 * Metadata of an ONNX file that onnxruntime-web does not report, read by the field numbers of
 * onnx.proto. Nothing for invalid models, which ORT reports.
 */

/** A field's number and value, and its own bytes, tag included. */
export type Field = readonly [id: number, value: number | Uint8Array, whole: Uint8Array];

/** The fields of a message, up to the first invalid one. */
export function* fields(bytes: Uint8Array): Generator<Field> {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    return Number.NaN;
  };
  while (at < bytes.length) {
    const start = at;
    const tag = varint();
    const [id, kind] = [Math.floor(tag / 8), tag % 8];
    if (kind === 0) {
      yield [id, varint(), bytes.subarray(start, at)];
    } else {
      const length = kind === 2 ? varint() : kind === 5 ? 4 : kind === 1 ? 8 : Number.NaN;
      if (!(at + length <= bytes.length)) return;
      const from = at;
      at += length;
      yield [id, bytes.subarray(from, at), bytes.subarray(start, at)];
    }
  }
}

/** The int64 numbers of a repeated field, which may be packed. */
export function integersIn(message: Uint8Array, wanted: number): bigint[] {
  const found: bigint[] = [];
  for (const [id, value, whole] of fields(message)) {
    if (id !== wanted) continue;
    if (isMessage(value)) found.push(...varints(value));
    else found.push(...varints(whole).slice(1)); // after the tag
  }
  return found;
}

function varints(bytes: Uint8Array): bigint[] {
  const found: bigint[] = [];
  let [number, shift] = [0n, 0n];
  for (const byte of bytes) {
    if (shift < 64n) number |= BigInt(byte & 127) << shift; // or one without end would grow for ever
    shift += 7n;
    if (byte < 128) {
      found.push(BigInt.asIntN(64, number));
      [number, shift] = [0n, 0n];
    }
  }
  return found;
}

export const isMessage = (value: Field[1]): value is Uint8Array => typeof value !== "number";
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
export const textOf = (value: Field[1]): string => (isMessage(value) ? decoder.decode(value) : "");

export function isUTF8(text: Uint8Array): boolean {
  try {
    strict.decode(text);
    return true;
  } catch {
    return false;
  }
}

/** What onnxruntime-web changes in a name, in words; undefined: nothing. */
export function flawOfName(text: Uint8Array): string | undefined {
  if (!isUTF8(text)) return "bytes that are not UTF-8";
  if (text.includes(0)) return "NUL";
  // More than 16 bytes are decoded by TextDecoder, which drops U+FEFF at the start.
  return text.length > 16 && textOf(text).startsWith("\ufeff") ? "U+FEFF" : undefined;
}

/** The same of a string of the model, which may cut or join strings. */
function flawOf(text: Uint8Array): string | undefined {
  return flawOfName(text) ?? (textOf(text).includes("\ufeff") ? "U+FEFF" : undefined);
}

/** The nested messages, or strings, in the fields with a number. */
export function* messagesIn(message: Uint8Array, wanted: number): Generator<Uint8Array> {
  for (const [id, value] of fields(message)) if (id === wanted && isMessage(value)) yield value;
}

/** The last field with a number, as protobuf reads singular fields. */
export function fieldOf(message: Uint8Array, wanted: number): Field[1] | undefined {
  let found: Field[1] | undefined;
  for (const [id, value] of fields(message)) if (id === wanted) found = value;
  return found;
}
/** A nested message; empty if it is absent. */
export function partOf(message: Uint8Array, wanted: number): Uint8Array {
  const found = fieldOf(message, wanted);
  return found !== undefined && isMessage(found) ? found : new Uint8Array();
}

export type ModelFacts = ReturnType<typeof modelFacts>;

/** The head of a model, by the names that Python's `ModelMetadata` has. */
export function modelFacts(model: Uint8Array) {
  const graph = partOf(model, 7);
  const version = fieldOf(model, 5);
  return {
    producer_name: textOf(partOf(model, 2)),
    graph_name: textOf(partOf(graph, 2)),
    domain: textOf(partOf(model, 4)),
    description: textOf(partOf(model, 6)),
    graph_description: textOf(partOf(graph, 10)),
    // Only if the file has it.
    ...(version !== undefined && { version: Number(version) }),
    custom_metadata_map: new Map([...messagesIn(model, 14)].map(pairOf)),
  };
}

/** A StringStringEntryProto. */
function pairOf(entry: Uint8Array): [string, string] {
  return [textOf(partOf(entry, 1)), textOf(partOf(entry, 2))];
}

/**
 * A nested graph is three messages deeper than the graph around it; protobuf, and so ORT, reads a
 * hundred levels.
 */
const DEEPEST = 100 / 3;

/** The names of a model's external data files in its folder and below. */
export function externalFiles(model: Uint8Array): string[] {
  const found = new Set<string>();
  for (const part of constantsOf(model)) {
    for (const entry of part.isTensor ? messagesIn(part.bytes, 13) : []) {
      const [key, value] = pairOf(entry);
      if (key === "location") found.add(value);
    }
  }
  return [...found].filter((name) => !/^$|^\/|\\|:|(^|\/)\.\.(\/|$)/.test(name));
}

/** The flaw of a string among a model's values, see {@link flawOf}. */
export function flawOfStrings(model: Uint8Array): string | undefined {
  for (const part of constantsOf(model)) {
    for (const text of part.isTensor ? messagesIn(part.bytes, 6) : [part.bytes]) {
      const flaw = flawOf(text);
      if (flaw) return flaw;
    }
  }
  return undefined;
}

/** A TensorProto, or a string of an attribute. */
interface Constant {
  isTensor: boolean;
  bytes: Uint8Array;
}

/** A model's values: initializers, and attributes of nodes, also of nested graphs and functions. */
function* constantsOf(model: Uint8Array): Generator<Constant> {
  for (const [id, value] of fields(model)) {
    if (!isMessage(value)) continue;
    if (id === 7) yield* inGraph(value, 1);
    else if (id === 25) yield* inNodes(value, 7, 1);
  }
}

function* inGraph(graph: Uint8Array, depth: number): Generator<Constant> {
  if (depth > DEEPEST) return;
  for (const bytes of messagesIn(graph, 5)) yield { isTensor: true, bytes };
  yield* inNodes(graph, 1, depth);
}

/** Of the nodes in the field `nodes` of a graph or function. */
function* inNodes(owner: Uint8Array, nodes: number, depth: number): Generator<Constant> {
  for (const node of messagesIn(owner, nodes)) {
    for (const attribute of messagesIn(node, 5)) yield* inAttribute(attribute, depth);
  }
}

function* inAttribute(attribute: Uint8Array, depth: number): Generator<Constant> {
  for (const [id, value] of fields(attribute)) {
    if (!isMessage(value)) continue;
    if (id === 5 || id === 10) yield { isTensor: true, bytes: value };
    else if (id === 4 || id === 9) yield { isTensor: false, bytes: value };
    else if (id === 6 || id === 11) yield* inGraph(value, depth + 1);
  }
}
