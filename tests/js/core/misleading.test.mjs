// Wrong lines that people write, and the words that the error must have; the Python of the same rows runs in
// tests/native/tensor/test_misleading.py, which says what a row has.
// Looks inside: the rows name readers that the public names reach with a file or a GPU alone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { adapters } from "../../../js/dist/adapters/all.js";
import { liveTensors, Tensor, webgpu } from "../../../js/dist/index.js";
import { dtypeOfDescr } from "../../../js/dist/open/dtypes.js";
import { helpFor } from "../../../js/dist/webgpu/errors/compiling.js";
import { formula } from "../../../js/dist/webgpu/formulas/formulas.js";
import { parseShader } from "../../../js/dist/webgpu/kernels/wgsl.js";
import { fakeDevice } from "../fake_device.mjs";

const ROWS = JSON.parse(readFileSync(new URL("../../misleading.json", import.meta.url), "utf8"));
const device = {
  ...fakeDevice(),
  createComputePipeline: () => ({ getBindGroupLayout() {} }),
};
const buffer = device.createBuffer({ size: 64, usage: 4 | 8 | 128 });
const limits = { maxBufferSize: 2 ** 31, maxStorageBufferBindingSize: 2 ** 31 };
class GPUAdapter {
  [Symbol.toStringTag] = "GPUAdapter";
  features = new Set();
  limits = limits;
  requestDevice = async () => device;
}
const gpu = { requestAdapter: async () => new GPUAdapter() };
Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });

const KERNEL = "@compute @workgroup_size(64) fn main() {}";
const X = "var<storage, read_write> x: array<f32>";
const say = (text) => {
  throw new Error(text);
};
const gives = Object.values(adapters).map(({ give }) => [give.name, give]);
const scope = {
  ...Object.fromEntries(gives),
  fromOrt: adapters.ort.take,
  buffer,
  device,
  Tensor,
  webgpu,
  formula: (text) => formula(text, "operation"),
  help: (row, said = "operation, line 1") => say(helpFor(row, said)),
  size: (wgsl) => say(`${parseShader(wgsl, "main").workgroup}`),
  npy: (descr) => say(dtypeOfDescr(descr).why),
};

for (const row of ROWS.filter(({ js }) => js)) {
  test(`${row.js} gets an answer`, async () => {
    const before = liveTensors();
    const t = Tensor.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
    const g = Tensor.fromGPUBuffer(buffer, { device, shape: [4], dtype: "float32" });
    const run = (binding, source = `@group(0) @binding(0) ${binding};`) =>
      new webgpu.Kernel(device, source + KERNEL).run([g]);
    const k = new webgpu.Kernel(device, `@group(0) @binding(0) ${X};${KERNEL}`);
    const e = new webgpu.ElementwiseKernel(device, {
      inputs: "f32 x",
      outputs: "f32 y",
      operation: "y = x",
    });
    const names = { ...scope, t, g, run, k, e };
    const line = new Function(...Object.keys(names), `return (async () => ${row.js})()`);
    const { name, message } = await line(...Object.values(names)).then(
      () => assert.fail("no error"),
      (error) => error,
    );
    if (row.error) assert.equal(name, [row.error].flat().at(-1));
    if (row.is) assert.equal(message, row.is);
    for (const word of row.say ?? []) assert.ok(message.includes(word), message);
    if (row.not) assert.ok(!message.includes(row.not), message);
    t.release();
    g.release();
    if (row.error) assert.equal(liveTensors(), before);
  });
}
