// The JavaScript side of compare_twins.py: a line of JSON with inputs gives a line with their results.
import { existsSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { dtypeNamed } from "../../../js/dist/core/dtype.js";
import { open } from "../../../js/dist/open/index.js";
import { checkNames, parseIndex } from "../../../js/dist/open/shards.js";
import { requestDevice } from "../../../js/dist/webgpu/device/request.js";
import { helpFor, placeIn } from "../../../js/dist/webgpu/errors/compiling.js";
import * as formulas from "../../../js/dist/webgpu/formulas/formulas.js";
import { IN_REDUCTIONS } from "../../../js/dist/webgpu/formulas/generated.js";
import { boundSize } from "../../../js/dist/webgpu/kernels/checks.js";
import { parseShader } from "../../../js/dist/webgpu/kernels/wgsl.js";

const bytesOf = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
const numberOf = (value) => (value?.number === undefined ? value : Number(value.number));
const kindsOf = (params, kinds) =>
  params.map(({ raw }, i) => (raw ? "r" : kinds[i % kinds.length]));

function elementwise({ inputs, outputs, operation, kinds }) {
  const [ins, outs] = formulas.parse(inputs, outputs);
  const text = formulas.formula(operation, "operation");
  return formulas.elementwise(ins, outs, text, kindsOf(ins, kinds));
}

function reduction(given) {
  const { inputs, outputs, map, reduce, post, identity, type, kinds, pass } = given;
  const [ins, outs] = formulas.parse(inputs, outputs, IN_REDUCTIONS);
  const what = {
    inputs: ins,
    outputs: outs,
    map: formulas.formula(map, "map"),
    reduce: formulas.formula(reduce, "reduce"),
    postMap: formulas.formula(post, "postMap"),
    identity: formulas.identityOf(numberOf(identity), type),
    type,
    names: ["map", "reduce", "postMap"],
  };
  return formulas.reduction(what, kindsOf(ins, kinds), pass, given.one_axis);
}

function plans({ shape, axes }) {
  if (shape.some((extent, at) => extent === 0 && !axes[at])) return [];
  const outputs = shape.reduce((count, extent, at) => (axes[at] ? count : count * extent), 1);
  const words = formulas.sizes(shape, axes, outputs);
  const [, lanes, , chunks, n] = words;
  const last = formulas.sizes([chunks, outputs], [true, false], outputs, n);
  return [[...words], [...last], formulas.grid(outputs * chunks * lanes)];
}

function place({ wgsl, parts, line, column }) {
  const found = placeIn(wgsl.split("\n"), parts, line, column);
  return [found.where, found.line, found.column, found.number ?? null, helpFor(wgsl)];
}

async function loaded(tensor) {
  const { buffer, byteOffset, byteLength } = await tensor.read();
  const found = [
    tensor.dtype,
    [...tensor.shape],
    hexOf(new Uint8Array(buffer, byteOffset, byteLength)),
  ];
  tensor.release();
  return found;
}

async function file(hex) {
  const opened = await open(bytesOf(hex));
  if (!opened.names) return loaded(opened);
  const found = [];
  for (const name of opened.names) {
    const { dtype, shape } = opened.info(name);
    try {
      found.push([name, ...(await loaded(await opened.get(name)))]);
    } catch (error) {
      if (error.name !== "UnsupportedError") throw error;
      found.push([name, dtype, [...shape], null]);
    }
  }
  opened.close();
  return { metadata: opened.metadata, found };
}

async function part({ bytes: hex, ranges, options: pairs }) {
  const [bytes, options] = [bytesOf(hex), Object.fromEntries(pairs)];
  const { format = hex.startsWith("934e554d5059") ? "npy" : "safetensors" } = options;
  if (format !== "safetensors") {
    return loaded(await open(bytes, { ...options, part: ranges ?? undefined }));
  }
  const opened = await open(bytes, options);
  const found = [];
  for (const name of opened.names) {
    if (opened._why(name)) continue;
    try {
      const { shape, nbytes } = opened.info(name, { part: ranges ?? [] });
      const some = await loaded(await opened.load(name, { part: ranges ?? [] }));
      found.push([name, [...shape], nbytes, ...some]);
    } catch (error) {
      if (!(error.name in KINDS)) throw error;
      found.push([name, KINDS[error.name]]);
    }
  }
  opened.close();
  return found;
}

function index({ bytes, beside }) {
  const { shards, shardOf, metadata } = parseIndex(bytesOf(bytes), "it");
  checkNames(shards, beside, "it");
  const sorted = (pairs) =>
    pairs.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return [sorted([...shardOf]), sorted(Object.keys(metadata).map((key) => [key]))];
}

function fit({ declared, shape, dtype: name }) {
  const dtype = dtypeNamed(name);
  const nbytes = Math.ceil(shape.reduce((size, extent) => size * extent, dtype.step));
  return boundSize({ nbytes, shape, dtype }, parseShader(declared, "main").bindings[0], true, "it");
}

/** What is asked of an adapter with these limits and features. */
async function device({ options, limits, features }) {
  const asked = {};
  class Stop extends Error {}
  const adapter = {
    limits,
    features: new Set(features),
    requestDevice: ({ label, requiredFeatures, requiredLimits }) => {
      Object.assign(asked, { label, features: requiredFeatures, limits: requiredLimits });
      throw new Stop();
    },
  };
  const gpu = {
    requestAdapter: async ({ powerPreference }) => {
      asked.powerPreference = powerPreference ?? null;
      return adapter;
    },
  };
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
  const given = options.map(([name, value]) => [name, numberOf(value)]);
  try {
    await requestDevice(Object.fromEntries(given));
  } catch (error) {
    if (!(error.cause instanceof Stop)) throw error;
  }
  return { ...asked, limits: Object.entries(asked.limits).sort() };
}

const SUBJECTS = {
  shader: ({ source, entry }) => parseShader(source, entry),
  elementwise,
  reduction,
  plans,
  place,
  fit,
  dtype: (name) => dtypeNamed(name).packed >>> 0,
  device,
  part,
  index,
  npy: file,
  safetensors: file,
  npz: file,
  damaged: file,
};
const PACKAGES = new URL("../../../packages/", import.meta.url);
for (const name of existsSync(PACKAGES) ? readdirSync(PACKAGES) : []) {
  const twins = new URL(`${name}/tests/twins/`, PACKAGES);
  for (const file of existsSync(twins) ? readdirSync(twins) : []) {
    if (file.endsWith(".mjs")) Object.assign(SUBJECTS, await import(new URL(file, twins)));
  }
}
const KINDS = { TypeError: "type", RangeError: "value", UnsupportedError: "data" };

async function resultOf([subject, input]) {
  try {
    return { is: (await SUBJECTS[subject](input)) ?? null };
  } catch (error) {
    const kind = KINDS[error.name] ?? `${error.stack}`;
    return { error: kind, message: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const results = [];
  for (const one of JSON.parse(line)) results.push(await resultOf(one));
  process.stdout.write(`${JSON.stringify(results)}\n`);
}
