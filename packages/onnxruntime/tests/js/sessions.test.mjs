// Sessions of onnxruntime-web: runs that are released, given up, or fail in the middle. The library is a
// stand-in, whose runs end when a test says so; what sessions compute is tested in Chromium
// (tests/browser).
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Tensor } from "../../../../js/dist/index.js";
import * as internal from "../../../../js/dist/internal.js";
import { fakeDevice } from "../../../../tests/js/fake_device.mjs";
import script from "../../js/dist/script.js";

const Sessions = script(internal);

globalThis.GPUBufferUsage ??= { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, STORAGE: 128 };

const device = fakeDevice();
const gpu = { requestAdapter: async () => ({ requestDevice: async () => device }) };
Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
const ON_GPU = { executionProviders: ["webgpu"] };

/** A result on the GPU. */
function onGPU(dims) {
  const buffer = device.createBuffer({ size: 32, usage: 0x8c });
  return OrtTensor.fromGpuBuffer(buffer, { dataType: "float32", dims });
}

class OrtTensor {
  location = "cpu";

  constructor(type, data, dims) {
    Object.assign(this, { type, data, dims, cpuData: data });
  }

  static fromGpuBuffer(gpuBuffer, { dataType: type, dims }) {
    const made = { type, dims, gpuBuffer, location: "gpu-buffer" };
    return Object.assign(Object.create(OrtTensor.prototype), made);
  }

  dispose() {}
}

/** A library whose models have one output `y`; `ends` are the runs that wait for their end. */
async function world({ dims = [3], result } = {}) {
  const ends = [];
  const models = [];
  class Session {
    inputMetadata = [];
    outputMetadata = [{ name: "y", isTensor: true, type: "float32", shape: dims }];
    inputNames = [];
    outputNames = ["y"];
    released = false;

    async run() {
      assert.ok(!this.released, "a session runs after its release");
      await new Promise((resolve, reject) => ends.push({ resolve, reject }));
      assert.ok(!this.released, "a session is released amid its run");
      return { y: result?.(dims) ?? new OrtTensor("float32", Float32Array.of(1, 2, 3), dims) };
    }

    async release() {
      this.released = true;
    }
  }
  const create = async (model) => {
    models.push(new TextDecoder().decode(model));
    return new Session();
  };
  const ort = {
    Tensor: OrtTensor,
    InferenceSession: { create },
    env: { webgpu: {}, versions: {} },
  };
  const targets = new Map();
  const python = {
    waits: {},
    tensorAt: (address) => targets.get(address).reshape(targets.get(address).shape),
    filled: (shape, dtype, data) => Tensor.fromTypedArray(data.slice(), { shape, dtype }),
  };
  return { library: await new Sessions(python).library(ort, 1, false), ends, models, targets };
}

/** The end of run `i`, which may still wait for its turn. */
async function endOf(ends, i) {
  for (let turns = 0; ends.length <= i && turns < 100; turns++) await turn();
  assert.ok(ends[i], `run ${i} has begun`);
  return ends[i];
}

const ON_CPU = { executionProviders: ["wasm"] };
const begin = (session, number, to = 0) => session.start(number, undefined, undefined, 0, 0, to);

test("a session is released after the runs that have started", async () => {
  for (const waits of [false, true]) {
    const { library, ends } = await world();
    const session = library.open(new Uint8Array(), {}, ON_CPU);
    await session.ready;
    begin(session, 1);
    begin(session, 2);
    if (waits) await turn();
    session.release();
    const dones = [session.done(1), session.done(2)];
    for (let i = 0; i < 2; i++) {
      (await endOf(ends, i)).resolve();
    }
    await Promise.all(dones);
    begin(session, 3);
    await assert.rejects(session.done(3), { name: "ReleasedError" });
  }
});

test("a run that was given up writes to no target", async () => {
  const { library, ends, targets } = await world();
  const session = library.open(new Uint8Array(), {}, ON_CPU);
  await session.ready;
  const array = new Float32Array(3);
  targets.set(8, Tensor.fromTypedArray(array));
  begin(session, 1, 8);
  const done = session.done(1);
  const { resolve } = await endOf(ends, 0);
  session.end(1);
  array.fill(7);
  resolve();
  await done;
  assert.deepEqual([...array], [7, 7, 7]);
});

test("a run that was given up while its result is read back writes to no target", async () => {
  const { library, ends, targets } = await world({ dims: [2, 3], result: onGPU });
  const session = library.open(new Uint8Array(), {}, ON_GPU, undefined, device);
  await session.ready;
  const array = new Float32Array(6);
  targets.set(8, Tensor.fromTypedArray(array, { shape: [2, 3] }));
  const { createBuffer } = device;
  const maps = [];
  const mapAsync = () => new Promise((resolve) => maps.push({ resolve }));
  device.createBuffer = (it) => ({ ...createBuffer(it), mapAsync });
  try {
    begin(session, 1, 8);
    (await endOf(ends, 0)).resolve();
    const { resolve } = await endOf(maps, 0);
    const done = session.done(1);
    session.end(1);
    array.fill(7);
    resolve();
    await done;
    assert.deepEqual([...array], [7, 7, 7, 7, 7, 7]);
  } finally {
    device.createBuffer = createBuffer;
  }
});

test("on a GPU, failed runs renew the session, and targets of another shape or dtype are refused", async () => {
  const { library, ends, targets, models } = await world({ dims: [2, 3], result: onGPU });
  const session = library.open(new Uint8Array(), {}, ON_GPU, undefined, device);
  await session.ready;
  for (const [i, array, shape] of [
    [0, new Int32Array(6), [2, 3]],
    [1, new Float32Array(6), [3, 2]],
    [2, new Float64Array(3), [3]],
  ]) {
    targets.set(8, Tensor.fromTypedArray(array, { shape }));
    begin(session, i, 8);
    (await endOf(ends, i)).resolve();
    await assert.rejects(session.done(i), /cannot be written over/);
    session.end(i);
  }
  begin(session, 7);
  begin(session, 8);
  const dones = [session.done(7), session.done(8)].map((done) => done.catch((error) => error));
  const { reject } = await endOf(ends, 3);
  session.release();
  reject(new Error("terminated"));
  const [failed, next] = await Promise.all(dones);
  assert.match(failed.message, /terminated/);
  assert.equal(next.name, "ReleasedError"); // its session may have the inputs of the failed run
  assert.equal(models.length, 1);
});

test("the model of a URL is fetched once", async () => {
  const { library, ends, models } = await world();
  let fetches = 0;
  const { fetch } = globalThis;
  globalThis.fetch = async () => new Response(`version ${++fetches}`);
  try {
    const session = library.open("model.onnx", {}, ON_GPU, undefined, device);
    await session.ready;
    for (let i = 0; i < 2; i++) {
      begin(session, i);
      (await endOf(ends, i)).reject(new Error("failed"));
      await assert.rejects(session.done(i), /failed/);
    }
    assert.deepEqual(models, ["version 1", "version 1"]);
  } finally {
    globalThis.fetch = fetch;
  }
});
