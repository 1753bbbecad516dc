// Whole messages of kernels and images, and the fields that come with them. The device is a fake: all of
// these are found before a GPU is asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";

const STORAGE = 4 | 8 | 128;
const texture = (fields) => ({
  format: "rgba8unorm",
  usage: 4,
  dimension: "2d",
  depthOrArrayLayers: 1,
  sampleCount: 1,
  width: 4,
  height: 2,
  [Symbol.toStringTag]: "GPUTexture",
  ...fields,
});
const device = {
  ...fakeDevice(),
  label: "mine",
  limits: {
    ...fakeDevice().limits,
    maxBufferSize: 4096,
    maxTextureDimension2D: 64,
    minUniformBufferOffsetAlignment: 256,
    maxStorageBufferBindingSize: 512,
    maxUniformBufferBindingSize: 256,
  },
  createBuffer: (it) => ({ ...it, destroy() {}, [Symbol.toStringTag]: "GPUBuffer" }),
  createComputePipeline: () => ({ getBindGroupLayout: () => ({}) }),
};
const shader = (bindings, size = "64", body = "") => `
  ${bindings.map((it, i) => `@group(0) @binding(${i}) ${it};`).join("\n")}
  @compute @workgroup_size(${size}) fn main() { ${body} }`;
const R = "var<storage, read> r: array<f32>";
const W = "var<storage, read_write> w: array<f32>";
const U = "var<uniform> u: f32";
const run = (bindings, args, options, size) =>
  new webgpu.Kernel(device, shader(bindings, size), { label: "k" }).run(args, options);
const on = (shape, options = {}, size = 1024, usage = STORAGE) =>
  Tensor.fromGPUBuffer(device.createBuffer({ size, usage }), {
    device,
    shape,
    dtype: "float32",
    ...options,
  });
const named = (kind, fields) => ({ [Symbol.toStringTag]: kind, ...fields });

// [what is called, the error's name, its message, its other fields]
const CALLS = [
  [
    () => on([4]).to(device, { dtype: "float16" }),
    "UnsupportedError",
    "Tensor float32[4] on webgpu:0 is on the GPU: only uploads convert",
    { given: "float16", needed: "float32" },
  ],
  [
    () => run([], [on([4])]),
    "RangeError",
    'kernel "k" takes an argument for each binding that it declares (none): 0, not 1',
  ],
  [
    () => run([R], [on([4])]),
    "UnsupportedError",
    'kernel "k": it writes to no binding, so workgroups must be given',
  ],
  [
    () => run([W], [on([4])], {}, "8, 8"),
    "UnsupportedError",
    'kernel "k": its @workgroup_size(8,8,1) has several axes, so workgroups must be given',
  ],
  [
    () => run([W], [on([4])], {}, "N"),
    "UnsupportedError",
    'kernel "k": its @workgroup_size is not of numbers, so workgroups must be given',
  ],
  [
    () => run(["var<storage, read_write> w: S"], [on([4])]),
    "UnsupportedError",
    'kernel "k": the elements of its binding 0, S, are unknown, so workgroups must be given',
  ],
  [
    () => run(["var<uniform> u: vec4f"], [5], { workgroups: 1 }),
    "TypeError",
    "binding 0 takes a tensor: numbers are for var<uniform> of f32, i32 and u32",
  ],
  [
    () => run(["var<uniform> u: i32"], [0.5], { workgroups: 1 }),
    "RangeError",
    "binding 0: 0.5 is not a valid i32",
  ],
  [
    () => run(["var<uniform> u: u32"], [-1], { workgroups: 1 }),
    "RangeError",
    "binding 0: -1 is not a valid u32",
  ],
  [
    () => run([U], [1e300], { workgroups: 1 }),
    "RangeError",
    "binding 0: 1e+300 is not a valid f32",
  ],
  [
    () => run([W], [on([4], { readOnly: true })]),
    "UnsupportedError",
    "binding 0: Tensor float32[4] on webgpu:0 is read-only, the shader's binding is read_write",
  ],
  [
    () => run([W], [on([4], { dtype: "int32" })]),
    "UnsupportedError",
    "binding 0: Tensor int32[4] on webgpu:0 is int32, the shader's array<f32> is of f32: give a tensor of float32, or declare the shader otherwise (narrower types come as words of u32); check: false binds the bytes as they are",
    { given: "int32", needed: "f32" },
  ],
  [
    () => run([W], [on([4], { dtype: "float64" })]),
    "UnsupportedError",
    'binding 0: Tensor float64[4] on webgpu:0 is float64, the shader\'s array<f32> is of f32: WGSL has no 64-bit types; upload it with dtype "float32"',
    { given: "float64", needed: "f32" },
  ],
  [
    () => run([W], [on([4], { dtype: "complex128" })]),
    "UnsupportedError",
    'binding 0: Tensor complex128[4] on webgpu:0 is complex128, the shader\'s array<f32> is of f32: WGSL has no 64-bit types; upload it with dtype "complex64"',
    { given: "complex128", needed: "f32" },
  ],
  [
    () => run(["var<storage, read_write> w: array<u32>"], [on([4], { dtype: "int64" })]),
    "UnsupportedError",
    'binding 0: Tensor int64[4] on webgpu:0 is int64, the shader\'s array<u32> is of u32: WGSL has no 64-bit types; upload it with dtype "int32"',
    { given: "int64", needed: "u32" },
  ],
  [
    () => run(["var<storage, read_write> w: array<i32>"], [on([4], { dtype: "uint64" })]),
    "UnsupportedError",
    'binding 0: Tensor uint64[4] on webgpu:0 is uint64, the shader\'s array<i32> is of i32: WGSL has no 64-bit types; upload it with dtype "uint32"',
    { given: "uint64", needed: "i32" },
  ],
  [
    () => run(["var<storage, read_write> w: array<f16>"], [on([4])]),
    "UnsupportedError",
    "binding 0: Tensor float32[4] on webgpu:0 is float32, the shader's array<f16> is of f16: give a tensor of float16, or declare the shader otherwise (narrower types come as words of u32); check: false binds the bytes as they are",
    { given: "float32", needed: "f16" },
  ],
  [
    () => run(["var<storage, read_write> w: array<vec3f>"], [on([3, 3])], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[3,3] on webgpu:0 has 12 bytes in its last axis, the elements of the shader's array<vec3f> are 16 bytes apart: pad that axis to 4, or declare array<f32>",
    { given: 12, needed: 16 },
  ],
  [
    () => run(["var<storage, read_write> w: array<mat3x3f>"], [on([2, 3, 3])], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[2,3,3] on webgpu:0 has 12 bytes in its last axis, the elements of the shader's array<mat3x3f> are 48 bytes apart: pad that axis to 4, or declare array<f32>",
    { given: 12, needed: 48 },
  ],
  [
    () => run(["var<storage, read_write> w: array<vec4f>"], [on([4, 3])], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[4,3] on webgpu:0 has 12 bytes in its last axis, the elements of the shader's array<vec4f> are 16 bytes apart: pad that axis to 4, or declare array<f32>",
    { given: 12, needed: 16 },
  ],
  [
    () => run(["var<storage, read_write> w: array<vec3f, 2>"], [on([9])], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[9] on webgpu:0 has 36 bytes in its last axis, the elements of the shader's array<vec3f, 2> are 16 bytes apart: pad that axis to 12, or declare array<f32>",
    { given: 36, needed: 16 },
  ],
  [
    () =>
      run(["var<storage> w: T; struct T { n: f32, x: array<mat2x3f> }"], [on([15])], {
        workgroups: 1,
      }),
    "UnsupportedError",
    "binding 0: Tensor float32[15] on webgpu:0 has 60 bytes in its last axis, the elements of the shader's T are 32 bytes apart: pad that axis to 20, or declare array<f32>",
    { given: 60, needed: 32 },
  ],
  [
    () => run(["var<storage, read_write> w: array<f32, 8>"], [on([4])], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[4] on webgpu:0 has 16 bytes, the shader's array<f32, 8> needs 32",
    { given: 16, needed: 32 },
  ],
  [
    () => run(["var<uniform> u: mat4x4f"], [on([4], {}, 1024, 64)], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[4] on webgpu:0 has 16 bytes, the shader's mat4x4f needs 64",
    { given: 16, needed: 64 },
  ],
  [
    () => run([U], [on([1])], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0 needs a GPUBuffer with GPUBufferUsage.UNIFORM; that of Tensor float32[1] on webgpu:0 has COPY_SRC | COPY_DST | STORAGE: create it with UNIFORM too",
    { given: 140, needed: 64, device: "webgpu:0" },
  ],
  [
    () => run([W], [on([4], {}, 64, 4)]),
    "UnsupportedError",
    "binding 0 needs a GPUBuffer with GPUBufferUsage.STORAGE; that of Tensor float32[4] on webgpu:0 has COPY_SRC: create it with STORAGE too",
    { given: 4, needed: 128, device: "webgpu:0" },
  ],
  [
    () => run([W], [on([200])]),
    "UnsupportedError",
    "binding 0: Tensor float32[200] on webgpu:0 needs 800 bytes, of which 512 can be bound: use a device from requestDevice({ maxStorageBufferBindingSize: 800 })",
    { given: 800, needed: 512, device: "webgpu:0" },
  ],
  [
    () => run(["var<uniform> u: array<vec4f, 20>"], [on([80], {}, 1024, 64)], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float32[80] on webgpu:0 needs 320 bytes, of which 256 can be bound: use a device from requestDevice({ maxUniformBufferBindingSize: 320 })",
    { given: 320, needed: 256, device: "webgpu:0" },
  ],
  [
    () => run([W], [on([4, 4], { strides: [1, 4] })]),
    "UnsupportedError",
    "Tensor float32[4,4] on webgpu:0 has strides [1,4]: on WebGPU it can be read, and nothing else; upload the result of read()",
    { device: "webgpu:0" },
  ],
  [
    () => {
      const t = on([8]);
      run([W, "var<storage, read_write> v: array<f32>"], [t, t.slice([2, 6])]);
    },
    "UnsupportedError",
    "arguments 0 and 1 of the kernel overlap, and both are read_write: give one of them a copy",
  ],
  [
    () => {
      const t = on([6], { dtype: "uint8", byteOffset: 4 });
      run(["var<storage, read_write> w: array<u32>"], [t.slice([0, 2])], { workgroups: 1 });
    },
    "UnsupportedError",
    "binding 0: Tensor uint8[2] on webgpu:0 shares its last word of 4 bytes with a neighbour, which the shader may write to: give it a buffer of its own (a copy), or a multiple of 4 bytes",
    { given: 2, device: "webgpu:0" },
  ],
  [
    () => run([W], [on([4], { byteOffset: 2, dtype: "float16" })], { workgroups: 1 }),
    "UnsupportedError",
    "binding 0: Tensor float16[4] on webgpu:0 is float16, the shader's array<f32> is of f32: give a tensor of float32, or declare the shader otherwise (narrower types come as words of u32); check: false binds the bytes as they are",
    { given: "float16", needed: "f32" },
  ],
  [
    () =>
      run(
        ["var<storage, read_write> w: array<u32>"],
        [on([4], { byteOffset: 4, dtype: "uint32" }, 64, 4 | 128)],
      ),
    "UnsupportedError",
    "binding 0: Tensor uint32[4] on webgpu:0 needs a GPUBuffer with GPUBufferUsage.COPY_DST; that of Tensor uint32[4] on webgpu:0 has COPY_SRC | STORAGE: create it with COPY_DST too",
    { given: 132, needed: 8, device: "webgpu:0" },
  ],
  [
    () => webgpu.timed(device, () => {}),
    "UnsupportedError",
    'webgpu:0 ("mine") cannot measure: it was made without the feature "timestamp-query", which requestDevice() asks for where the adapter has it',
    { needed: "timestamp-query", device: "webgpu:0" },
  ],
  [
    () => webgpu.fromImage(device, 5),
    "TypeError",
    "fromImage takes a canvas, ImageBitmap, ImageData, VideoFrame, <img>, <video> or GPUTexture, not Number",
  ],
  [
    () => webgpu.fromImage(device, named("ImageBitmap", { width: 0, height: 0 })),
    "UnsupportedError",
    "ImageBitmap of 0 x 0 has no pixels: it is empty, closed, or not loaded yet",
  ],
  [
    () => webgpu.fromImage(device, named("ImageBitmap", { width: 65, height: 2 })),
    "UnsupportedError",
    'ImageBitmap of 65 x 2: webgpu:0 ("mine") has textures of up to 64 x 64; use a device from requestDevice({ maxTextureDimension2D: 65 })',
    { given: 65, needed: 64, device: "webgpu:0" },
  ],
  [
    () =>
      webgpu.fromImage(
        device,
        named("HTMLVideoElement", { width: 8, height: 8, videoWidth: 2, videoHeight: 70 }),
      ),
    "UnsupportedError",
    'HTMLVideoElement of 2 x 70: webgpu:0 ("mine") has textures of up to 64 x 64; use a device from requestDevice({ maxTextureDimension2D: 70 })',
    { given: 70, needed: 64, device: "webgpu:0" },
  ],
  [
    () => webgpu.fromImage(device, named("VideoFrame", { displayWidth: 99, displayHeight: 2 })),
    "UnsupportedError",
    'VideoFrame of 99 x 2: webgpu:0 ("mine") has textures of up to 64 x 64; use a device from requestDevice({ maxTextureDimension2D: 99 })',
    { given: 99, needed: 64, device: "webgpu:0" },
  ],
  [
    () =>
      webgpu.fromImage(
        device,
        named("HTMLImageElement", { naturalWidth: 0, naturalHeight: 0, width: 3, height: 3 }),
      ),
    "UnsupportedError",
    "HTMLImageElement of 0 x 0 has no pixels: it is empty, closed, or not loaded yet",
  ],
  [
    () =>
      webgpu.fromImage(device, named("ImageBitmap", { width: 2, height: 2 }), { dtype: "int8" }),
    "UnsupportedError",
    "an image as int8 is not supported: use uint8 (0 to 255) or float32 (0 to 1)",
    { given: "int8", needed: ["uint8", "float32"] },
  ],
  [
    () =>
      webgpu.fromImage(device, named("ImageBitmap", { width: 2, height: 2 }), { channels: "4" }),
    "RangeError",
    "channels must be 4 (with alpha) or 3 (without), not 4",
  ],
  [
    () => webgpu.fromImage(device, texture({ format: "r8unorm" })),
    "UnsupportedError",
    "fromImage needs a GPUTexture of format rgba8unorm or bgra8unorm with GPUTextureUsage.TEXTURE_BINDING, 2d, of one layer and one sample; this is r8unorm with usage 4, 2d, of 1 and 1",
    { given: "r8unorm", needed: ["rgba8unorm", "bgra8unorm"] },
  ],
  [
    () => webgpu.fromImage(device, texture({ usage: 8 })),
    "UnsupportedError",
    "fromImage needs a GPUTexture of format rgba8unorm or bgra8unorm with GPUTextureUsage.TEXTURE_BINDING, 2d, of one layer and one sample; this is rgba8unorm with usage 8, 2d, of 1 and 1",
    { given: "rgba8unorm", needed: ["rgba8unorm", "bgra8unorm"] },
  ],
  [
    () => webgpu.fromImage(device, texture({ dimension: "3d" })),
    "UnsupportedError",
    "fromImage needs a GPUTexture of format rgba8unorm or bgra8unorm with GPUTextureUsage.TEXTURE_BINDING, 2d, of one layer and one sample; this is rgba8unorm with usage 4, 3d, of 1 and 1",
    { given: "rgba8unorm", needed: ["rgba8unorm", "bgra8unorm"] },
  ],
  [
    () => webgpu.fromImage(device, texture({ depthOrArrayLayers: 2 })),
    "UnsupportedError",
    "fromImage needs a GPUTexture of format rgba8unorm or bgra8unorm with GPUTextureUsage.TEXTURE_BINDING, 2d, of one layer and one sample; this is rgba8unorm with usage 4, 2d, of 2 and 1",
    { given: "rgba8unorm", needed: ["rgba8unorm", "bgra8unorm"] },
  ],
  [
    () => webgpu.fromImage(device, texture({ sampleCount: 4 })),
    "UnsupportedError",
    "fromImage needs a GPUTexture of format rgba8unorm or bgra8unorm with GPUTextureUsage.TEXTURE_BINDING, 2d, of one layer and one sample; this is rgba8unorm with usage 4, 2d, of 1 and 4",
    { given: "rgba8unorm", needed: ["rgba8unorm", "bgra8unorm"] },
  ],
  [
    () => webgpu.fromImage(device, named("ImageBitmap", { width: 2, height: 2 })),
    "UnsupportedError",
    "ImageBitmap of 2 x 2: queue.copyExternalImageToTexture is missing: pass ImageData in sRGB, or a tensor",
    { needed: "ImageData" },
  ],
  [() => webgpu.toTexture(5), "TypeError", "a Tensor is needed, not 5"],
  [
    () => webgpu.toTexture(Tensor.fromTypedArray(new Float32Array(12), { shape: [2, 2, 3] })),
    "UnsupportedError",
    "Tensor float32[2,2,3] on cpu is not on a GPU: upload it with to(gpuDevice)",
    { device: "cpu" },
  ],
  [
    () => webgpu.toTexture(on([2, 2, 3], { dtype: "int32" })),
    "UnsupportedError",
    "Tensor int32[2,2,3] on webgpu:0 as an image is not supported: use uint8 (0 to 255) or float32 (0 to 1)",
    { given: "int32", needed: ["uint8", "float32"] },
  ],
  [
    () => webgpu.toTexture(on([2, 2])),
    "UnsupportedError",
    "Tensor float32[2,2] on webgpu:0 is not an image: its shape must be [height, width, channels], channels being 1, 3 or 4",
    { given: [2, 2], needed: "[height, width, channels], channels being 1, 3 or 4" },
  ],
  [
    () => webgpu.toTexture(on([2, 2, 2])),
    "UnsupportedError",
    "Tensor float32[2,2,2] on webgpu:0 is not an image: its shape must be [height, width, channels], channels being 1, 3 or 4",
    { given: [2, 2, 2], needed: "[height, width, channels], channels being 1, 3 or 4" },
  ],
  [
    () => webgpu.toTexture(on([0, 2, 3])),
    "UnsupportedError",
    "Tensor float32[0,2,3] on webgpu:0 has no pixels: it is empty, closed, or not loaded yet",
  ],
  [
    () => webgpu.toTexture(on([65, 1, 1])),
    "UnsupportedError",
    'Tensor float32[65,1,1] on webgpu:0: webgpu:0 ("mine") has textures of up to 64 x 64; use a device from requestDevice({ maxTextureDimension2D: 65 })',
    { given: 65, needed: 64, device: "webgpu:0" },
  ],
  [
    () => webgpu.toTexture(on([1, 65, 1])),
    "UnsupportedError",
    'Tensor float32[1,65,1] on webgpu:0: webgpu:0 ("mine") has textures of up to 64 x 64; use a device from requestDevice({ maxTextureDimension2D: 65 })',
    { given: 65, needed: 64, device: "webgpu:0" },
  ],
  [
    () => webgpu.toCanvas(on([2, 2, 3]), {}),
    "TypeError",
    "toCanvas needs a canvas, not [object Object]",
  ],
  [
    () => webgpu.toCanvas(on([2, 2, 3]), { getContext: () => null }),
    "UnsupportedError",
    'the canvas has a context of another kind, and toCanvas needs its "webgpu" context: use another canvas, which drawImage() of a 2d context takes',
  ],
  [
    () =>
      webgpu.toCanvas(on([2, 2, 3]), {
        getContext() {
          throw new Error("transferred");
        },
      }),
    "UnsupportedError",
    "the canvas cannot be drawn on (transferred)",
  ],
];

for (const [call, name, message, { device: id, ...fields } = {}] of CALLS) {
  test(`${call.toString().replace(/^.*?=> /, "")}: ${name}`, async () => {
    const error = await (async () => call())().then(
      () => null,
      (thrown) => thrown,
    );
    assert.deepEqual([error?.name, error?.message], [name, message]);
    assert.equal(error.device, id);
    const { given, needed } = error;
    assert.deepEqual({ given, needed }, { given: undefined, needed: undefined, ...fields });
  });
}
