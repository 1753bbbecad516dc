// What all adapters have in common: tensors of another copy, holds that end whatever fails.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach, mock, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as ort from "../../../build/libraries/node_modules/onnxruntime-common/dist/esm/index.js";
import * as THREE from "../../../build/libraries/node_modules/three/build/three.module.js";
import * as arrow from "../../../build/libraries/site/arrow.mjs";
import ndarray from "../../../build/libraries/site/ndarray.mjs";
import { fromArrow, toArrow } from "../../../js/dist/adapters/arrow.js";
import { fromJax } from "../../../js/dist/adapters/jax.js";
import { fromNdarray, toNdarray } from "../../../js/dist/adapters/ndarray.js";
import { fromMat } from "../../../js/dist/adapters/opencv.js";
import { fromOrt, install, toOrt } from "../../../js/dist/adapters/ort.js";
import { fromTfjs } from "../../../js/dist/adapters/tfjs.js";
import { fromThree, toThree } from "../../../js/dist/adapters/three.js";
import { fromTransformers, toTransformers } from "../../../js/dist/adapters/transformers.js";
import { EXCHANGE } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { described } from "../exchange/described.mjs";

const folder = mkdtempSync(join(tmpdir(), "dlpack-web-"));
after(() => rmSync(folder, { recursive: true }));
cpSync(fileURLToPath(new URL("../../../js/dist", import.meta.url)), folder, { recursive: true });
writeFileSync(join(folder, "package.json"), '{"type": "module"}');
const theirs = await import(pathToFileURL(join(folder, "index.js")));

/** As transformers.js has it: a wrapper of an `ort.Tensor`. */
const transformers = {
  Tensor: class {
    constructor(...args) {
      this.ort_tensor = new ort.Tensor(...args);
    }
  },
  env: { backends: { onnx: {} } },
};

const LIBRARIES = {
  arrow: { library: arrow, from: fromArrow, to: toArrow },
  ndarray: { library: ndarray, from: fromNdarray, to: toNdarray },
  ort: { library: ort, from: fromOrt, to: toOrt },
  three: { library: THREE, from: fromThree, to: toThree },
  transformers: { library: transformers, from: fromTransformers, to: toTransformers },
  // These two need a browser for their own tensors.
  jax: { library: {}, from: fromJax },
  tfjs: { library: {}, from: fromTfjs },
  // This one shares no arrays of JavaScript; opencv.test.mjs has its Mats.
  opencv: { library: {}, from: fromMat },
};
const both = Object.entries(LIBRARIES).filter(([, { to }]) => to);

let live;
beforeEach(() => {
  live = [liveTensors(), theirs.liveTensors()];
});
afterEach(() => assert.deepEqual([liveTensors(), theirs.liveTensors()], live, "tensors alive"));

for (const [name, { library, from, to }] of Object.entries(LIBRARIES)) {
  test(`${name}: a tensor of another copy of dlpack-web is taken as it is`, () => {
    const array = Float32Array.of(1, 2, 3);
    const foreign = theirs.Tensor.fromTypedArray(array);
    const taken = from(library, foreign, { copy: false });
    assert.ok(taken instanceof Tensor);
    assert.equal(taken.data.buffer, array.buffer);
    const copied = from(library, foreign, { copy: true });
    assert.deepEqual([...copied], [1, 2, 3]);
    assert.notEqual(copied.data.buffer, array.buffer);
    if (to) {
      const value = to(library, foreign, { copy: false });
      const back = from(library, value);
      assert.equal(back.data.buffer, array.buffer);
      back.release();
      letGo(name, value);
    }
    for (const each of [taken, copied, foreign]) each.release();
  });

  test(`${name}: what is no tensor at all is named`, () => {
    for (const wrong of [undefined, null, 3, {}, [1, 2], new Float32Array(2)]) {
      assert.throws(() => from(library, wrong), {
        name: "TypeError",
        message: /is needed, not \[/,
      });
    }
  });
}

/** Ends the hold that a library's value has. */
function letGo(name, value) {
  if (name === "arrow") value.data[0].values = null;
  else if (name === "ndarray") value.data = null;
  else if (name === "three") value.array = null;
  else value.dispose ? value.dispose() : value.ort_tensor.dispose();
}

for (const [name, { library, from, to }] of both) {
  test(`${name}: copy decides, both ways`, () => {
    const array = Float32Array.of(1, 2, 3);
    const tensor = Tensor.fromTypedArray(array);
    for (const [copy, shared] of [
      [true, false],
      [false, true],
      [undefined, true],
    ]) {
      const value = to(library, tensor, { copy });
      const back = from(library, value);
      assert.equal(back.data.buffer === array.buffer, shared, `to, copy: ${copy}`);
      back.release();
      const again = from(library, value, { copy });
      const first = from(library, value);
      assert.equal(again.data.buffer === first.data.buffer, shared, `from, copy: ${copy}`);
      for (const each of [again, first]) each.release();
      letGo(name, value);
    }
    tensor.release();
  });
}

/** The library whose second step fails. */
const FAILING = {
  arrow: { ...arrow, makeVector: fail },
  ndarray: fail,
  ort: { ...ort, Tensor: fail },
  three: { ...THREE, BufferAttribute: fail },
  transformers: { ...transformers, Tensor: failing(transformers.Tensor) },
};

function fail() {
  throw new RangeError("the library failed");
}

/** A class of which only the first can be made. */
function failing(Class) {
  let made = 0;
  return class extends Class {
    constructor(...args) {
      if (made++ > 0) fail();
      super(...args);
    }
  };
}

for (const [name, { to }] of both) {
  test(`${name}: a library that fails keeps nothing, and its error is the one that is told`, () => {
    const told = mock.method(console, "error", () => {});
    let released = 0;
    const producer = {
      [EXCHANGE]: () =>
        described({
          shape: [6],
          release() {
            released++;
            throw new Error("and so did the release");
          },
        }),
    };
    try {
      const message = "the library failed";
      assert.throws(() => to(FAILING[name], producer), { name: "RangeError", message });
      assert.equal(released, 1, "released once");
      assert.equal(told.mock.callCount(), 1, "the other error is not swallowed");
    } finally {
      told.mock.restore();
    }
  });
}

test("a library's value that was disposed of takes nothing away from a tensor over it", () => {
  const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
  const value = toOrt(ort, tensor);
  tensor.release();
  const kept = fromOrt(ort, value);
  value.dispose();
  assert.deepEqual([...kept], [1, 2, 3]);
  assert.throws(() => fromOrt(ort, value), { name: "ReleasedError" });
  kept.release();
});

test("a library's tensor without its adapter: the message names that", () => {
  const vector = arrow.makeVector(Float32Array.of(1));
  const array = ndarray(Float32Array.of(1), [1]);
  for (const [name, value] of [
    ["arrow", vector],
    ["litert", { liteRtTensorBuffer: {} }],
    ["ndarray", array],
    ["ort", new ort.Tensor("float32", Float32Array.of(1), [1])],
    ["three", new THREE.BufferAttribute(Float32Array.of(1), 1)],
    ["transformers", new transformers.Tensor("float32", Float32Array.of(1), [1])],
  ]) {
    const message = new RegExp(`not a tensor.*"dlpack-web/${name}" makes one`);
    assert.throws(() => Tensor.from(value), { name: "TypeError", message });
  }
});

test("an installed adapter copies once where a copy is asked for", () => {
  install(ort);
  const value = new ort.Tensor("float32", Float32Array.of(1, 2), [2]);
  const { data, release } = value[EXCHANGE]({ copy: true });
  assert.notEqual(data.buffer, value.data.buffer);
  assert.deepEqual([...data], [1, 2]);
  release();
});

test("int4 and uint4 of onnxruntime are packed", () => {
  const value = new ort.Tensor("int4", Uint8Array.of(0x21, 0x43), [4]);
  const tensor = fromOrt(ort, value);
  assert.deepEqual([tensor.dtype, tensor.shape, ...tensor.data], ["int4", [4], 0x21, 0x43]);
  const back = toOrt(ort, tensor, { copy: false });
  assert.deepEqual([back.type, back.dims, back.data.constructor], ["int4", [4], Uint8Array]);
  back.dispose();
  const padded = Tensor.fromTypedArray(Uint8Array.of(1, 2), { dtype: "uint4", padded: true });
  assert.throws(() => toOrt(ort, padded), { name: "UnsupportedError", message: /packs uint4/ });
  for (const each of [tensor, padded]) each.release();
});
