// Lines that are wrong in a natural way: what the error says of what was given, and what to do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor, webgpu } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";

const device = {
  ...fakeDevice(),
  createBuffer: (it) => ({ ...it, destroy() {}, [Symbol.toStringTag]: "GPUBuffer" }),
  createCommandEncoder() {
    throw new Error("the kernel ran");
  },
};
const SOURCE = `
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = 1; }`;

const array = () => Float32Array.of(0, 1, 2, 3, 4, 5);
const buffer = device.createBuffer({ size: 64, usage: 4 | 8 | 128 });
const memory = new WebAssembly.Memory({ initial: 1 });

// [the line, the error, what its message says]
const LINES = [
  [() => new Tensor([1]), TypeError, /do not call new Tensor\(\): .*Tensor\.from\(/],
  [() => new Tensor(), TypeError, /do not call new Tensor\(\): .*Tensor\.from\(/],
  [() => Tensor.from([1, 2]), TypeError, /Array.*new Float32Array\(/],
  [() => Tensor.from([1, 2], [1, 2]), TypeError, /Array.*new Float32Array\(/],
  [() => Tensor.from(array(), [2, 3]), TypeError, /options of Tensor\.from.*\{ shape: .* not 2,3/],
  [() => Tensor.from(array(), { shapes: [2, 3] }), TypeError, /no option "shapes": it has shape,/],
  [(t) => Tensor.from(t, { shape: [3, 2] }), TypeError, /typed arrays only: use reshape\(shape\)/],
  [() => Tensor.fromTypedArray([1, 2]), TypeError, /typed array, not \[object Array\]/],
  [() => Tensor.fromTypedArray(array().buffer), TypeError, /not \[object ArrayBuffer\]/],
  [() => Tensor.fromTypedArray(array(), [2, 3]), TypeError, /options.*\{ shape: \[2, 3\] \}/],
  [() => Tensor.fromTypedArray(array(), "float32"), TypeError, /options.*not float32/],
  [() => Tensor.fromTypedArray(array(), { shape: 6 }), TypeError, /\[2, 3\], not 6/],
  [() => Tensor.from(array(), { dtype: "float" }), "UnsupportedError", /unknown: use float32$/],
  [() => Tensor.from(array(), { dtype: "f64" }), "UnsupportedError", /unknown: use float64$/],
  [() => Tensor.from(array(), { dtype: "Int8Array" }), "UnsupportedError", /unknown: use int8$/],
  [() => Tensor.from(array(), { dtype: "double" }), "UnsupportedError", /unknown: use float64$/],
  [() => Tensor.from(array(), { dtype: "f4" }), "UnsupportedError", /use bool, int8 to int64,/],
  [
    () => Tensor.from(array(), { dtype: "toString" }),
    "UnsupportedError",
    /use bool, int8 to int64,/,
  ],
  [() => Tensor.fromTypedArray(array(), { dtype: "int64" }), TypeError, /BigInt64Array/],
  [() => Tensor.fromTypedArray(array(), { strides: 2 }), TypeError, /strides must be .*not 2/],
  [() => Tensor.fromGPUBuffer(buffer), TypeError, /options.*\{ device, shape.*not undefined/],
  [() => Tensor.fromGPUBuffer(array()), TypeError, /GPUBuffer is needed, not .*Float32Array/],
  [() => Tensor.fromGPUBuffer(buffer, { device, dtype: "int8" }), TypeError, /not undefined/],
  [() => Tensor.fromMemory(memory, 0), TypeError, /options.*not undefined/],
  [(t) => t.reshape(3, 2), TypeError, /shape must be an array of integers.*not 3/],
  [(t) => t.reshape("32"), TypeError, /shape must be an array of integers.*not 32/],
  [(t) => t.permute(1, 0), TypeError, /axes must be an array of integers.*not 1/],
  [(t) => t.slice(0, 1, 2), RangeError, /3 ranges for 2 axes.*\[start, stop\]/],
  [(t) => t.at([0, 1]), TypeError, /needs 2 indices, not 1: one number for each axis/],
  [(t) => t.at("0", 1), TypeError, /index \[object String\] is not an integer/],
  [(t) => t.at([0], 1), TypeError, /index \[object Array\] is not an integer/],
  [(t) => t.to("webgpu"), TypeError, /GPUDevice.*not webgpu.*requestDevice\(\)/],
  [(t) => t.to(), TypeError, /GPUDevice.*not undefined.*requestDevice\(\)/],
  [(t) => t.write([1, 2, 3, 4, 5, 6]), TypeError, /Array.*new Float32Array\(/],
  [(t) => t.write(1), TypeError, /Number.* is not a tensor/],
  [(t) => t.read([]), TypeError, /typed array/],
  [(_, g, k) => k.run(g), TypeError, /array of arguments, not Tensor float32\[4\].*run\(\[/],
  [(_, g, k) => k.run(g, g), TypeError, /array of arguments, not Tensor float32\[4\].*run\(\[/],
  [(_, __, k) => k.run(), TypeError, /array of arguments, not \[object Undefined\]/],
  [
    (_, __, k) => k.run([]),
    RangeError,
    /takes an argument for each binding that it declares \(x\): 1, not 0/,
  ],
  [(_, __, k) => k.run([new Float32Array(3)]), TypeError, /Float32Array.*Tensor\.from\(.*\.to\(/],
  [(_, __, k) => k.run([buffer]), TypeError, /binding 0 takes a tensor.*Tensor\.fromGPUBuffer\(/],
  [(_, __, k) => k.run([1]), TypeError, /binding 0 takes a tensor: numbers are for/],
  [(_, __, k) => k.run([undefined]), TypeError, /binding 0 takes a tensor, not .*Undefined/],
  [(t, _, k) => k.run([t]), "DeviceError", /on cpu.*to\(gpuDevice\)/],
  [(_, g, k) => k.run([g], 16), TypeError, /options.*\{ workgroups: .*, not 16/],
  [(_, g, k) => k.run([g], [4, 4]), TypeError, /options.*\{ workgroups: .*, not 4,4/],
  [(_, g, k) => k.run([g], { workgroups: "4" }), RangeError, /1 to 3 integers.*not 4/],
  [(_, g, k) => k.run([g], { workgroups: [1, 1, 1, 1] }), RangeError, /1 to 3 .*not 1,1,1,1/],
  [(t) => t.to(device, { dtype: "int32" }), "UnsupportedError", /cannot become int32.*float16/],
  [(t) => t.write(new BigInt64Array(6)), TypeError, /BigInt64Array does not hold float32/],
  [(t) => t.write(new Float64Array(6)), TypeError, /Float64Array does not hold float32/],
  [(t) => t.length, TypeError, /no length.*\.data.*\.copy\(\)/],
  [(t) => t[0], TypeError, /no 0\..*\.data.*\.copy\(\)/],
  [(t) => t + 1, TypeError, /not a number.*\.data.*\.copy\(\)/],
  [(t) => `${t}`, TypeError, /not a string; \.toString\(\)/],
  [(_, g) => g.copy(), "UnsupportedError", /await tensor\.read\(\)/],
  [
    () => webgpu.requestDevice("high-performance"),
    TypeError,
    /options of requestDevice.*powerPreference: "high-performance" \}, not high-performance/,
  ],
  [() => webgpu.requestDevice({ features: "shader-f16" }), TypeError, /list.*\["shader-f16"\]/],
  [() => new webgpu.Kernel(SOURCE), TypeError, /source is a string.*new Kernel\(device, wgsl\)/],
  [
    () => new webgpu.Kernel(device, "no WGSL"),
    RangeError,
    /"no WGSL" declares no function of WGSL/,
  ],
  [
    () => new webgpu.Kernel(device, SOURCE, { entry: "mian" }),
    RangeError,
    /no function "mian":.*entry/,
  ],
  [
    (_, __, ___, e) => e.run([array()]),
    TypeError,
    /x takes a tensor or a number, not .*Float32Array.*: Tensor\.from\(array\)\.to\(device\)/,
  ],
  [() => new webgpu.Kernel("webgpu", SOURCE), TypeError, /GPUDevice is needed/],
];

for (const [line, error, message] of LINES) {
  const name = typeof error === "string" ? error : error.name;
  test(`${line.toString().replace(/^.*?=> /, "")} is a ${name} with a way out`, async () => {
    const before = liveTensors();
    const cpu = Tensor.fromTypedArray(array(), { shape: [2, 3] });
    const gpu = Tensor.fromGPUBuffer(buffer, { device, shape: [4], dtype: "float32" });
    const kernel = new webgpu.Kernel(device, SOURCE);
    const formula = new webgpu.ElementwiseKernel(device, {
      inputs: "f32 x",
      outputs: "f32 y",
      operation: "y = x",
    });
    await assert.rejects(async () => line(cpu, gpu, kernel, formula), { name, message });
    cpu.release();
    gpu.release();
    assert.equal(liveTensors(), before);
  });
}
