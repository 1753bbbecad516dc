// Whole texts of errors. texts.txt has lines that people write, and below each the error: its name, its
// message and its fields (what was given, what is needed, the device). `UPDATE=1 node --test
// tests/js/texts/texts.test.mjs` writes the errors of all lines again; read the change. The device is a fake: all
// of these are found before a GPU is asked.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { adopt, EXCHANGE, take } from "../../../js/dist/exchange/index.js";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";
import "../nothing_leaks.mjs";

const STORAGE = 4 | 8 | 128;
const idle = fakeDevice();
const device = {
  ...idle,
  label: "mine",
  limits: {
    ...idle.limits,
    maxBufferSize: 4096,
    maxTextureDimension2D: 64,
    minUniformBufferOffsetAlignment: 256,
    maxStorageBufferBindingSize: 512,
    maxUniformBufferBindingSize: 256,
  },
  createComputePipeline: () => ({ getBindGroupLayout: () => ({}) }),
  createCommandEncoder() {
    throw new Error("the kernel ran");
  },
};
const buffer = device.createBuffer({ size: 64, usage: STORAGE });
const array = () => Float32Array.of(0, 1, 2, 3, 4, 5);
/** What a line made, to be released behind it. */
const made = [];
const kept = (tensor) => {
  made.push(tensor);
  return tensor;
};
const of = (given, options) => kept(Tensor.fromTypedArray(given, options));
const named = (kind, fields) => ({ [Symbol.toStringTag]: kind, ...fields });
const shader = (bindings, size = "64") => `
  ${bindings.map((it, i) => `@group(0) @binding(${i}) ${it};`).join("\n")}
  @compute @workgroup_size(${size}) fn main() {}`;

/** What the lines use; t is on the CPU, g on the GPU. */
const scope = {
  ...{ Tensor, webgpu, adopt, take, EXCHANGE },
  ...{ device, buffer, array, kept, of, named },
  other: { ...device, label: "theirs" },
  memory: new WebAssembly.Memory({ initial: 1 }),
  WGSL: shader(["var<storage, read_write> x: array<f32>"]),
  R: "var<storage, read> r: array<f32>",
  W: "var<storage, read_write> w: array<f32>",
  U: "var<uniform> u: f32",
  on: (shape, options = {}, size = 1024, usage = STORAGE) =>
    kept(
      Tensor.fromGPUBuffer(device.createBuffer({ size, usage }), {
        device,
        shape,
        dtype: "float32",
        ...options,
      }),
    ),
  run: (bindings, args, options, size) =>
    new webgpu.Kernel(device, shader(bindings, size), { label: "k" }).run(args, options),
  saying: (fields) => ({ ...of(array(), { shape: [2, 3] })[EXCHANGE](), ...fields }),
  texture: (fields) =>
    named("GPUTexture", {
      format: "rgba8unorm",
      usage: 4,
      dimension: "2d",
      depthOrArrayLayers: 1,
      sampleCount: 1,
      width: 4,
      height: 2,
      ...fields,
    }),
};

/** The text of an error, as texts.txt has it. */
function described({ name, message, given, needed, device: id }) {
  const big = (_, value) => (typeof value === "bigint" ? `${value}n` : value);
  const fields = JSON.stringify({ given, needed, device: id }, big);
  return [
    `  ${name}: ${message.replaceAll("\n", "\\n")}`,
    ...(fields === "{}" ? [] : [`  ${fields}`]),
  ].join("\n");
}

async function errorOf(line) {
  const t = of(array(), { shape: [2, 3] });
  const g = Tensor.fromGPUBuffer(buffer, { device, shape: [4], dtype: "float32" });
  const k = new webgpu.Kernel(device, scope.WGSL);
  const formula = { inputs: "f32 x", outputs: "f32 y", operation: "y = x" };
  const e = new webgpu.ElementwiseKernel(device, formula);
  const names = { ...scope, t, g, k, e };
  const call = new Function(...Object.keys(names), `return (async () => ${line})()`);
  try {
    await call(...Object.values(names));
  } catch (error) {
    return error;
  } finally {
    for (const each of [t, g, ...made.splice(0)]) each.release();
  }
  return assert.fail("no error");
}

const FILE = new URL("texts.txt", import.meta.url);
const TEXTS = readFileSync(FILE, "utf8")
  .trimEnd()
  .split(/\n(?! )/);
const found = [];

for (const text of TEXTS) {
  const [line, ...expected] = text.split("\n");
  test(line, async () => {
    const error = await errorOf(line);
    found.push(`${line}\n${described(error)}\n`);
    if (!process.env.UPDATE) assert.equal(described(error), expected.join("\n"));
    // What a check found wrong is the cause of the error that names the field.
    const [, inner] = /^this exchange's \w+ is [^;]*?: (.*)$/.exec(error.message) ?? [];
    if (inner) assert.equal(error.cause.message, inner);
  });
}

after(() => {
  if (process.env.UPDATE) writeFileSync(FILE, found.join(""));
});
