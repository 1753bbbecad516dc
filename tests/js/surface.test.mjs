// The public names: a change here is a change for users, and goes into the changelog.
// Looks inside: classes that the public names hand out and do not export.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import * as namespace from "../../js/dist/index.js";
import { TensorFile } from "../../js/dist/open/index.js";
import { Bridge } from "../../js/dist/pyodide/bridge.js";
import { Batch } from "../../js/dist/webgpu/kernels/batch.js";

const library = { ...namespace };

test("exported names", () => {
  assert.deepEqual(Object.keys(library).sort(), [
    "CopyError",
    "DLPackError",
    "DeviceError",
    "DeviceLostError",
    "KernelError",
    "ReleasedError",
    "Tensor",
    "UnsupportedError",
    "connect",
    "liveTensors",
    "webgpu",
  ]);
  assert.deepEqual(Object.keys(library.webgpu).sort(), [
    "ElementwiseKernel",
    "Kernel",
    "ReductionKernel",
    "batch",
    "frames",
    "fromImage",
    "listenForFaults",
    "pageDevice",
    "readAll",
    "requestDevice",
    "stats",
    "timed",
    "toCanvas",
    "toTexture",
  ]);
});

test("exported names of the other entry points", async () => {
  const { exports } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url)));
  const expected = {
    "./arrow": ["fromArrow", "install", "toArrow"],
    "./core": [
      "CopyError",
      "DLPackError",
      "DeviceError",
      "DeviceLostError",
      "KernelError",
      "ReleasedError",
      "Tensor",
      "UnsupportedError",
      "liveTensors",
    ],
    "./exchange": [
      "EXCHANGE",
      "EXCHANGE_ASYNC",
      "adopt",
      "fit",
      "isExchangeable",
      "take",
      "takeAsync",
    ],
    "./features": ["features", "featuresAtOnce"],
    "./internal": [
      "CopyError",
      "ON_CPU",
      "ON_GPU",
      "ReleasedError",
      "beginRun",
      "bufferOf",
      "bytesOf",
      "calledAt",
      "checkAlive",
      "checkOptions",
      "checkWrite",
      "compile",
      "copyBytes",
      "dtypeOf",
      "emptyOn",
      "explainHere",
      "factsOf",
      "fromOrt",
      "inTurn",
      "isOfRun",
      "isUsable",
      "listenForFaults",
      "nameSession",
      "readHeader",
      "readInto",
      "realDevice",
      "requestDevice",
      "shareDevice",
      "sites",
      "tagOf",
      "tagOfDType",
      "textOf",
      "timed",
      "toCanvas",
      "toOrt",
      "unseen",
      "viewOf",
      "writeHeader",
    ],
    "./jax": ["fromJax", "install", "toJax", "useDevice"],
    "./litert": ["fromLiteRT", "install", "toLiteRT", "useDevice"],
    "./ndarray": ["fromNdarray", "toNdarray"],
    "./open": ["TensorFile", "open", "save"],
    "./opencv": ["fromMat", "install", "toMat"],
    "./ort": ["fromOrt", "install", "toOrt", "useDevice"],
    "./share": ["shareDevice"],
    "./tfjs": ["fromTfjs", "install", "toTfjs", "useDevice"],
    "./three": ["fromThree", "toThree", "useDevice"],
    "./transformers": ["fromTransformers", "install", "toTransformers", "useDevice"],
  };
  const { ".": main, "./package.json": manifest, "./types": types, ...others } = exports;
  assert.deepEqual([main, manifest], ["./js/dist/index.js", "./package.json"]);
  assert.deepEqual(types, { types: "./js/dist/exchange/types.d.ts" }, "no code at all");
  assert.deepEqual(Object.keys(others).sort(), Object.keys(expected));
  for (const [name, file] of Object.entries(others)) {
    const entry = await import(new URL(`../../${file}`, import.meta.url));
    assert.deepEqual(Object.keys(entry).sort(), expected[name], name);
  }
});

const members = (Class) =>
  Object.getOwnPropertyNames(Class.prototype)
    .filter((name) => name !== "constructor" && !name.startsWith("_"))
    .sort();

test("members of Tensor, Bridge and Kernel", () => {
  assert.deepEqual(members(library.Tensor), [
    "at",
    "buffer",
    "byteOffset",
    "contiguous",
    "copy",
    "data",
    "dataOffset",
    "is",
    "itemsize",
    "nbytes",
    "ndim",
    "padded",
    "permute",
    "read",
    "release",
    "released",
    "reshape",
    "shape",
    "slice",
    "strides",
    "to",
    "toJSON",
    "toString",
    "transfer",
    "write",
  ]);
  const tensor = library.Tensor.fromTypedArray(new Float32Array(1));
  const fields = Object.keys(tensor).filter((name) => !name.startsWith("_"));
  assert.deepEqual(fields.sort(), ["device", "dtype", "readOnly", "size"]);
  tensor.release();
  const statics = Object.getOwnPropertyNames(library.Tensor).filter((name) => name !== "prototype");
  const hidden = (name) => ["length", "name"].includes(name) || name.startsWith("_");
  assert.deepEqual(statics.filter((name) => !hidden(name)).sort(), [
    "from",
    "fromGPUBuffer",
    "fromMemory",
    "fromTypedArray",
    "receive",
  ]);
  assert.deepEqual(members(Bridge), ["empty", "hold", "readAll", "tensor", "toPython"]);
  assert.deepEqual(members(library.webgpu.Kernel), ["ready", "run"]);
  for (const kind of ["ElementwiseKernel", "ReductionKernel"]) {
    assert.deepEqual(members(library.webgpu[kind]), ["ready", "run", "wgsl"]);
  }
  assert.deepEqual(members(Batch), ["length", "record", "release", "released", "run", "update"]);
  assert.deepEqual(members(TensorFile), [
    ...["close", "closed", "get", "has", "info", "load", "name", "parts", "size"],
  ]);
});

test("an error is identified by its class, or by its name if another copy of the library made it", () => {
  for (const [name, parent] of [
    ["DLPackError", "DLPackError"],
    ["ReleasedError", "DLPackError"],
    ["DeviceError", "DLPackError"],
    ["DeviceLostError", "DeviceError"],
    ["KernelError", "DeviceError"],
    ["UnsupportedError", "DLPackError"],
    ["CopyError", "DLPackError"],
  ]) {
    const cause = new Error("underneath");
    const error = new library[name]("what", { cause, given: 1, device: "cpu" });
    assert.ok(error instanceof library[parent]);
    assert.ok(error instanceof Error);
    assert.ok(error instanceof library.DLPackError);
    assert.deepEqual([error.name, error.cause, error.given], [name, cause, 1]);
    assert.equal(Object.hasOwn(new library[name]("alone", {}), "cause"), false);
  }
});
