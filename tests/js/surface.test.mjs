// The public names: a change here is a change for users, and goes into the changelog.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Bridge } from "../../js/dist/bridge.js";
import * as namespace from "../../js/dist/index.js";

const library = { ...namespace };

test("exported names", () => {
  assert.deepEqual(Object.keys(library).sort(), [
    "CopyError",
    "DLPackError",
    "DeviceError",
    "DeviceLostError",
    "ReleasedError",
    "Tensor",
    "UnsupportedError",
    "connect",
    "liveTensors",
    "webgpu",
  ]);
  assert.deepEqual(Object.keys(library.webgpu).sort(), [
    "Kernel",
    "fromImage",
    "requestDevice",
    "stats",
    "timed",
    "toCanvas",
    "toTexture",
  ]);
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
    "data",
    "dataOffset",
    "dtype",
    "itemsize",
    "nbytes",
    "ndim",
    "padded",
    "read",
    "release",
    "released",
    "strides",
    "to",
    "toString",
    "transfer",
    "write",
  ]);
  const tensor = library.Tensor.fromTypedArray(new Float32Array(1));
  const fields = Object.keys(tensor).filter((name) => !name.startsWith("_"));
  assert.deepEqual(fields.sort(), ["device", "readOnly", "shape", "size"]);
  tensor.release();
  assert.deepEqual(members(Bridge), ["empty", "hold", "readAll", "tensor", "toPython"]);
  assert.deepEqual(members(library.webgpu.Kernel), ["ready", "run"]);
});

test("errors are told apart by class and by name", () => {
  for (const [name, parent] of [
    ["ReleasedError", "DLPackError"],
    ["DeviceError", "DLPackError"],
    ["DeviceLostError", "DeviceError"],
    ["UnsupportedError", "DLPackError"],
    ["CopyError", "DLPackError"],
  ]) {
    const cause = new Error("underneath");
    const error = new library[name]("what", { cause, given: 1, device: "cpu" });
    assert.ok(error instanceof library[parent]);
    assert.ok(error instanceof Error);
    assert.deepEqual([error.name, error.cause, error.given], [name, cause, 1]);
  }
});
