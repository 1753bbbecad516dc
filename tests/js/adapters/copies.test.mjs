// Two copies of this library that share tensors with one other library.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as THREE from "../../../build/libraries/node_modules/three/build/three.webgpu.js";
import WebGPUBackend from "../../../build/libraries/node_modules/three/src/renderers/webgpu/WebGPUBackend.js";
import * as faults from "../../../js/dist/adapters/faults.js";
import * as three from "../../../js/dist/adapters/three.js";
import { adopt } from "../../../js/dist/exchange/index.js";
import * as index from "../../../js/dist/index.js";
import { described } from "../exchange/described.mjs";
import { fakeDevice } from "../fake_device.mjs";
import { load } from "../second_copy.mjs";

const ours = { ...index, ...faults, ...three };
const names = ["index.js", "adapters/faults.js", "adapters/three.js"];
const USAGE = 4 | 8 | 128; // COPY_SRC | COPY_DST | STORAGE
const theirs = Object.assign({}, ...(await Promise.all(names.map(load))));

test("three.js destroys no buffer that a tensor of either copy holds", () => {
  const gpu = fakeDevice();
  const { createBuffer } = gpu;
  const destroyed = [];
  gpu.createBuffer = (it) => Object.assign(createBuffer(it), { destroy: () => destroyed.push(it) });
  const renderer = { backend: new WebGPUBackend() };
  const { backend } = renderer;
  backend.device = gpu;
  for (const { Tensor, fromThree, toThree } of [ours, theirs]) {
    const x = Tensor.fromTypedArray(new Float32Array(4)).to(gpu);
    const lent = toThree(THREE, x, { renderer });
    const attribute = new THREE.StorageBufferAttribute(new Float32Array(4), 1);
    const theirOwn = { size: 16, usage: USAGE };
    backend.get(attribute).buffer = gpu.createBuffer(theirOwn);
    const y = fromThree(THREE, attribute, { renderer });
    for (const each of [lent, attribute]) backend.destroyAttribute(each);
    assert.deepEqual(destroyed, []);
    y.release();
    assert.equal(destroyed.pop(), theirOwn);
    x.release();
  }
});

test("a library's results have the fault of what either copy gave it", async () => {
  let answer = null;
  const gpu = { ...fakeDevice(), popErrorScope: async () => answer };
  const source = `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(1) fn main() { x[0] = 1; }`;
  const library = {};
  for (const [giver, taker] of [
    [ours, theirs],
    [theirs, ours],
  ]) {
    answer = null;
    const kernel = new giver.webgpu.Kernel(gpu, source);
    await kernel.ready;
    const x = giver.Tensor.fromTypedArray(new Float32Array(4)).to(gpu);
    answer = { message: "no such buffer" };
    kernel.run([x], { workgroups: 1 });
    answer = null;
    giver.handed(library, "Library", x);
    const buffer = gpu.createBuffer({ size: 16, usage: USAGE });
    const options = { device: gpu, shape: [4], dtype: "float32" };
    const result = taker.joined(library, "Library", taker.Tensor.fromGPUBuffer(buffer, options));
    await assert.rejects(result.read(), /^DeviceError: Library was given Tensor float32\[4\]/);
    for (const each of [x, result]) each.release();
  }
});

test("what one copy lent is held by the other, and follows the memory as it grows", () => {
  for (const itemSize of [2, 3]) {
    const memory = new WebAssembly.Memory({ initial: 1 });
    new Float32Array(memory.buffer).set([1, 2, 3, 4, 5, 6]);
    let ended = 0;
    const lent = adopt(described({ data: { memory, ptr: 0 }, release: () => ended++ }));
    const attribute = ours.toThree(THREE, lent, { itemSize });
    lent.release();
    const taken = theirs.fromThree(THREE, attribute);
    assert.ok(taken instanceof theirs.Tensor);
    attribute.array = null;
    memory.grow(1);
    assert.deepEqual([ended, ...taken.data], [0, 1, 2, 3, 4, 5, 6]);
    taken.release();
    assert.equal(ended, 1);
  }
});
