// Whole messages of errors, and the fields that come with them: what was given, what is supported, and
// the device. Lines that are wrong in a natural way are in wrong_lines.test.mjs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { adopt, EXCHANGE, take } from "../../../js/dist/exchange/index.js";
import { Tensor } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";

const f32 = (n = 6) => Float32Array.from({ length: n }, (_, i) => i);
const of = (array, options) => Tensor.fromTypedArray(array, options);
const memory = new WebAssembly.Memory({ initial: 1 });
const usage = 4 | 8 | 128;
const device = {
  ...fakeDevice(),
  label: "mine",
  limits: { ...fakeDevice().limits, maxBufferSize: 1024 },
};
const other = { ...device, label: "theirs" };
const buffer = (size, flags = usage) => device.createBuffer({ size, usage: flags });
const gpu = (options, size = 64, flags) =>
  Tensor.fromGPUBuffer(buffer(size, flags), { device, shape: [4], dtype: "float32", ...options });
const saying = (fields) => ({ ...of(f32(), { shape: [2, 3] })[EXCHANGE](), ...fields });

// [what is called, the error's name, its message, its other fields]
const CALLS = [
  [
    () => of(f32(), { shape: [2, 3], strides: [4, 1] }),
    "RangeError",
    "shape [2,3] of float32 with strides [4,1] from element 0 on needs 28 bytes; the array has 24",
  ],
  [
    () => of(f32(), { shape: new Array(65).fill(1) }),
    "RangeError",
    "shape has 65 dimensions; the limit is 64",
  ],
  [
    () => of(f32(), { shape: [2, -3] }),
    "RangeError",
    "shape [2,-3]: -3 is not a non-negative integer",
  ],
  [
    () => of(f32(), { shape: [2, 3], strides: [1] }),
    "RangeError",
    "strides [1] must be 2 integers, in elements",
  ],
  [
    () => of(new Uint8Array(4), { shape: [2, 2], dtype: "int4", strides: [4, 1] }),
    "RangeError",
    "shape [2,2] of int4 with strides [4,1] from element 0 on needs 3 bytes; the array has 4",
  ],
  [() => of(f32()).at(6), "RangeError", "index 6 is out of bounds for axis 0 with size 6"],
  [
    () => Tensor.fromMemory({}, 0, { shape: [1], dtype: "int8" }),
    "TypeError",
    "fromMemory needs a WebAssembly.Memory or an object with its buffer",
  ],
  [
    () => Tensor.fromMemory(memory, 65530, { shape: [4], dtype: "int16" }),
    "RangeError",
    "shape [4] of int16 from byte 65530 reaches from byte 65530 to 65538; the memory has 65536",
  ],
  [
    () => of(f32(), { shape: [2, 3] }).write(gpu({ shape: [2, 3] })),
    "UnsupportedError",
    "Tensor float32[2,3] on webgpu:0 is on a GPU: await its read(out) into this tensor",
  ],
  [
    () => of(f32(), { shape: [2, 3] }).slice([0, 1, 0]),
    "RangeError",
    "axis 0: the step must not be 0",
  ],
  [
    () => of(f32(), { shape: [2, 3] }).slice("1"),
    "TypeError",
    "axis 0: a number, null or [start, stop, step] is needed",
  ],
  [
    () => of(new Uint8Array(4), { dtype: "float8_e4m3fn" }).at(0),
    "UnsupportedError",
    "at() cannot decode float8_e4m3fn: it is carried as bytes; read tensor.data",
    { given: "float8_e4m3fn" },
  ],
  [
    () => {
      const t = of(f32());
      t.release();
      return t.data;
    },
    "ReleasedError",
    "Tensor float32[6] on cpu was released: keep it (in Python, the Tensor whose .js it is) until after the last use",
    { device: "cpu" },
  ],
  [
    () => of(f32(), { shape: [2, 3] }).read(of(f32(), { shape: [3, 2] }).permute([1, 0])),
    "UnsupportedError",
    "out must be a writable, row-major CPU tensor, not Tensor float32[2,3] on cpu with strides [1,2]",
  ],
  [
    () => gpu().transfer(),
    "UnsupportedError",
    "Tensor float32[4] on webgpu:0 cannot be posted: post the result of await read()",
  ],
  [
    () => gpu().data,
    "UnsupportedError",
    "Tensor float32[4] on webgpu:0 has no data that JS can see: use await tensor.read(), or tensor.buffer",
    { device: "webgpu:0" },
  ],
  [
    () => gpu({}, 64, 128).read(),
    "UnsupportedError",
    "reading needs a GPUBuffer with GPUBufferUsage.COPY_SRC; that of Tensor float32[4] on webgpu:0 has STORAGE: create it with COPY_SRC too",
    { given: 128, needed: 4, device: "webgpu:0" },
  ],
  [
    () => gpu({ shape: [2, 2], strides: [1, 2] }).contiguous(),
    "UnsupportedError",
    "Tensor float32[2,2] on webgpu:0 has strides [1,2]: on WebGPU it can be read, and nothing else; upload the result of read()",
    { device: "webgpu:0" },
  ],
  [() => gpu({ byteOffset: -4 }), "RangeError", "byteOffset -4 is not a non-negative integer"],
  [
    () => of(new Float32Array(300)).to(device),
    "UnsupportedError",
    '1200 bytes are needed, webgpu:0 ("mine") allows 1024 (maxBufferSize) in one buffer: use a device from requestDevice({ maxBufferSize: 1200 })',
    { given: 1200, needed: 1024, device: "webgpu:0" },
  ],
  [
    () => of(BigInt64Array.of(1n, 2n ** 40n)).to(device, { dtype: "int32" }),
    "UnsupportedError",
    "element 1 of Tensor int64[2] on cpu, in row-major order, is 1099511627776, which int32 cannot hold; move the elements as they are, without dtype",
    { given: 1099511627776n, needed: "int32" },
  ],
  [
    () => of(new Int32Array(2)).write(of(BigInt64Array.of(1n, 2n ** 40n))),
    "UnsupportedError",
    "Tensor int64[2] on cpu cannot be written over Tensor int32[2] on cpu: shape and dtype must be the same; convert: true converts",
    { given: "int64", needed: "int32" },
  ],
  [() => of(f32())[EXCHANGE](5), "TypeError", "the request must be an object, not 5"],
  [
    () => of(f32())[EXCHANGE]({ versions: 1 }),
    "TypeError",
    "versions must be a list of major versions, e.g. [1], not 1",
  ],
  [
    () => of(f32())[EXCHANGE]({ device: 1 }),
    "TypeError",
    "device must be a GPUDevice or null, not 1",
  ],
  [
    () => of(f32())[EXCHANGE]({ versions: [2, 3] }),
    "UnsupportedError",
    "only version 1.1 of the exchange protocol is supported",
    { given: [2, 3], needed: [1, 1] },
  ],
  [
    () => of(f32())[EXCHANGE]({ device, copy: false }),
    "CopyError",
    "Tensor float32[6] on cpu is not on that GPUDevice: a copy is needed, which copy: false forbids",
  ],
  [
    () => gpu()[EXCHANGE]({ device: null }),
    "DeviceError",
    "Tensor float32[4] on webgpu:0 cannot be used on the CPU: await its read()",
    { device: "webgpu:0" },
  ],
  [
    () => gpu()[EXCHANGE]({ device: other }),
    "DeviceError",
    "Tensor float32[4] on webgpu:0 cannot be used on that GPUDevice: await its read()",
    { device: "webgpu:0" },
  ],
  [
    () => take([1]),
    "TypeError",
    '[object Array] is not a tensor: it lacks [Symbol.for("dlpack.exchange")]; give a typed array, as new Float32Array(…) makes it',
  ],
  [
    () => take({ [EXCHANGE]: () => saying({}) }, { device }),
    "DeviceError",
    "the producer gave a tensor on another device than it was asked for",
  ],
  [
    () => take({ [EXCHANGE]: () => saying({ flags: 2 }) }, { copy: false }),
    "CopyError",
    "the producer copied, which copy: false forbids",
  ],
  [() => adopt(5), "UnsupportedError", "an exchange must be an object, not 5"],
  [
    () => adopt(saying({ flags: -1 })),
    "UnsupportedError",
    "this exchange's flags is -1; a bit mask is needed",
    { given: -1, needed: "a bit mask" },
  ],
  [
    () => adopt(saying({ dtype: { code: 99, bits: 8, lanes: 1 } })),
    "UnsupportedError",
    "this exchange's dtype is code 99, bits 8, lanes 1; a dtype of DLPack 1.3 is needed",
    { given: "code 99, bits 8, lanes 1", needed: "a dtype of DLPack 1.3" },
  ],
  [
    () => adopt(saying({ shape: 5 })),
    "UnsupportedError",
    "this exchange's shape is 5: a list of at most 64 is needed",
    { given: 5 },
  ],
  [
    () => adopt(saying({ shape: [1.5] })),
    "UnsupportedError",
    "this exchange's shape is 1.5: shape [1.5]: 1.5 is not a non-negative integer",
    { given: [1.5] },
  ],
  [
    () => adopt(saying({ strides: [1] })),
    "UnsupportedError",
    "this exchange's strides is 1: strides [1] must be 2 integers, in elements",
    { given: [1] },
  ],
  [
    () => adopt(saying({ dtype: { code: 0, bits: 4, lanes: 1 }, strides: [4, 1] })),
    "UnsupportedError",
    "this exchange's strides is 4,1; null, row-major: packed int4 has no others is needed",
    { given: [4, 1], needed: "null, row-major: packed int4 has no others" },
  ],
  [
    () => adopt(saying({ byteOffset: -1 })),
    "UnsupportedError",
    "this exchange's byteOffset is -1; a non-negative integer is needed",
    { given: -1, needed: "a non-negative integer" },
  ],
  [
    () => adopt(saying({ capacity: -1 })),
    "UnsupportedError",
    "this exchange's capacity is -1; a non-negative integer is needed",
    { given: -1, needed: "a non-negative integer" },
  ],
  [
    () => adopt(saying({ data: 5 })),
    "UnsupportedError",
    "this exchange's data is 5; an object is needed",
    { given: 5, needed: "an object" },
  ],
  [
    () => adopt(saying({ data: {} })),
    "UnsupportedError",
    "this exchange's data.ptr is undefined; a non-negative integer is needed",
    { needed: "a non-negative integer" },
  ],
  [
    () => adopt(saying({ data: { ptr: 0 } })),
    "UnsupportedError",
    "this exchange's data is [object Object]; a GPUBuffer, a view, or memory is needed",
    { given: { ptr: 0 }, needed: "a GPUBuffer, a view, or memory" },
  ],
  [
    () => adopt(saying({ byteOffset: 4 })),
    "UnsupportedError",
    "this exchange's data is 24 bytes; the bytes 4 to 28 is needed",
    { given: "24 bytes", needed: "the bytes 4 to 28" },
  ],
  [
    () => adopt(saying({ data: { memory, ptr: 65530 } })),
    "UnsupportedError",
    "this exchange's data is 65536 bytes; the bytes 65530 to 65554 is needed",
    { given: "65536 bytes", needed: "the bytes 65530 to 65554" },
  ],
  [
    () => adopt(saying({ device: { type: 15, gpu: null } })),
    "UnsupportedError",
    "this exchange's device.gpu is null; the GPUDevice is needed",
    { given: null, needed: "the GPUDevice" },
  ],
  [
    () => adopt(saying({ device: { type: 2, gpu: null } })),
    "UnsupportedError",
    "this exchange's device.type is 2; 1 (CPU) or 15 (WebGPU) is needed",
    { given: 2, needed: "1 (CPU) or 15 (WebGPU)" },
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
    // What a check found wrong is the cause of the error that names the field.
    const [, inner] = /^this exchange's \w+ is [^;]*?: (.*)$/.exec(message) ?? [];
    if (inner) assert.equal(error.cause.message, inner);
  });
}
