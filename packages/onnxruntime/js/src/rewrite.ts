/** Rewrites models for features that onnxruntime-web lacks. */
import {
  type Field,
  fields,
  integersIn,
  isMessage,
  isUTF8,
  messagesIn,
  partOf,
  textOf,
} from "./onnx.js";

/** The labels of an output that is a list of dicts, one for each row. */
export type Labels = (string | bigint)[];

const encoder = new TextEncoder();

/** Bytes one after the other. */
function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

/** A field that is a message. */
function message(id: number, ...parts: Uint8Array[]): Uint8Array {
  const body = concat(parts);
  return concat([Uint8Array.from([...varint(id * 8 + 2), ...varint(body.length)]), body]);
}

const text = (id: number, value: string) => message(id, encoder.encode(value));

/** A message with replaced fields; `change` returns the bytes of each. */
const changed = (whole: Uint8Array, change: (field: Field) => Uint8Array) =>
  concat([...fields(whole)].map(change));

const changeGraph = (model: Uint8Array, change: (field: Field) => Uint8Array) =>
  changed(model, ([id, value, whole]) =>
    id === 7 && isMessage(value) ? message(7, changed(value, change)) : whole,
  );

/** A model in which some inputs lose their default values. */
export function withoutValues(model: Uint8Array, names: readonly string[]): Uint8Array {
  return changeGraph(model, ([id, value, whole]) =>
    id === 5 && isMessage(value) && names.includes(textOf(partOf(value, 8)))
      ? new Uint8Array()
      : whole,
  );
}

/**
 * A model whose outputs of `ZipMap`, lists of dicts, are the tensors that those are made of, with the
 * labels of each by the output's name.
 */
export function withoutZipMaps(model: Uint8Array): {
  model: Uint8Array;
  zipped: Map<string, Labels>;
} {
  const zipped = new Map<string, Labels>();
  const graph = partOf(model, 7);
  const outputs = [...messagesIn(graph, 12)].map((value) => textOf(partOf(value, 1)));
  for (const node of messagesIn(graph, 1)) {
    if (textOf(partOf(node, 4)) !== "ZipMap") continue;
    const name = textOf(partOf(node, 2));
    const labels = outputs.includes(name) && labelsOf(node);
    if (labels) zipped.set(name, labels);
  }
  if (zipped.size === 0) return { model, zipped };
  const changedGraph = changeGraph(model, ([id, value, whole]) => {
    if (!isMessage(value)) return whole;
    if (id === 1 && zipped.has(textOf(partOf(value, 2)))) return identity(value);
    const name = textOf(partOf(value, 1));
    return id === 12 && zipped.has(name) ? tensorOutput(name) : whole;
  });
  return { model: withIdentity(changedGraph), zipped };
}

/** The node whose output is the given node's input. */
function identity(node: Uint8Array): Uint8Array {
  const kept = [...fields(node)].filter(([id]) => id <= 3).map(([, , whole]) => whole);
  return message(1, ...kept, text(4, "Identity"));
}

/** An output of floats of any shape: one row for each dict, or one axis for a single dict. */
function tensorOutput(name: string): Uint8Array {
  const tensor = message(1, Uint8Array.of(8, 1));
  return message(12, text(1, name), message(2, tensor));
}

/** ONNX's own operators, for a model that imports only ai.onnx.ml. */
function withIdentity(model: Uint8Array): Uint8Array {
  const domains = [...messagesIn(model, 8)].map((value) => textOf(partOf(value, 1)));
  if (domains.includes("") || domains.includes("ai.onnx")) return model;
  return concat([model, message(8, Uint8Array.of(16, 13))]);
}

/**
 * The attribute of a ZipMap, one of two; undefined if it has none or both, which ORT refuses, or
 * strings that are not UTF-8.
 */
function labelsOf(node: Uint8Array): Labels | undefined {
  const attributes = [...messagesIn(node, 5)];
  const strings = attributes.flatMap((attribute) => [...messagesIn(attribute, 9)]);
  const integers = attributes.flatMap((attribute) => integersIn(attribute, 8));
  if (strings.length > 0 === integers.length > 0 || !strings.every(isUTF8)) return undefined;
  return strings.length > 0 ? strings.map(textOf) : integers;
}
