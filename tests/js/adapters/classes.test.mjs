// Libraries that keep elements in an array of another class than their dtype has: the values are
// the library's own, and so is the dtype.
// Looks inside: dtype.js lists the dtypes: each one is tried.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { WebGPUBackend } from "../../../build/libraries/node_modules/@tensorflow/tfjs-backend-webgpu/dist/tf-backend-webgpu.node.js";
import * as ort from "../../../build/libraries/node_modules/onnxruntime-common/dist/esm/index.js";
import * as THREE from "../../../build/libraries/node_modules/three/build/three.module.js";
import * as GPU_THREE from "../../../build/libraries/node_modules/three/build/three.webgpu.js";
import ThreeBackend from "../../../build/libraries/node_modules/three/src/renderers/webgpu/WebGPUBackend.js";
import ndarray from "../../../build/libraries/site/ndarray.mjs";
import { fromNdarray, toNdarray } from "../../../js/dist/adapters/ndarray.js";
import { fromOrt } from "../../../js/dist/adapters/ort.js";
import { fromTfjs, toTfjs } from "../../../js/dist/adapters/tfjs.js";
import { fromThree, toThree } from "../../../js/dist/adapters/three.js";
import { dtypeNamed, dtypes } from "../../../js/dist/core/dtype.js";
import { Tensor } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";
import "../nothing_leaks.mjs";

// --- TensorFlow.js ------------------------------------------------------------------------------

mock.method(console, "warn", () => {}); // of being in Node
const tf = await import("../../../build/libraries/tfjs.mjs");
await tf.setBackend("cpu");
const CLASSES = { float32: Float32Array, int32: Int32Array, bool: Uint8Array };

/** Results of kernels and casts, of which many keep elements in other classes. */
const RESULTS = {
  "int32 -> float32": ({ i }) => tf.cast(i, "float32"),
  "bool -> float32": ({ b }) => tf.cast(b, "float32"),
  "bool -> int32": ({ b }) => tf.cast(b, "int32"),
  "float32 -> int32": ({ f }) => tf.cast(f, "int32"),
  "float32 -> bool": ({ f }) => tf.cast(f, "bool"),
  "bool -> int32 -> float32": ({ b }) => tf.cast(tf.cast(b, "int32"), "float32"),
  "cast, reshaped": ({ i }) => tf.reshape(tf.cast(i, "float32"), [3, 2]),
  "cast, cloned": ({ i }) => tf.clone(tf.cast(i, "float32")),
  "cast, sliced": ({ i }) => tf.slice(tf.cast(i, "float32"), [0, 1], [2, 2]),
  oneHot: ({ i }) => tf.oneHot(tf.reshape(i, [6]), 9),
  "oneHot of float32": ({ i }) => tf.oneHot(tf.reshape(i, [6]), 9, 2, -1, "float32"),
  "oneHot of bool": ({ i }) => tf.oneHot(tf.reshape(i, [6]), 9, 1, 0, "bool"),
  "abs of int32": ({ i }) => tf.abs(i),
  "square of int32": ({ i }) => tf.square(i),
  "square of large int32": () => tf.square(tf.tensor([46340, -46341, 70000], [3], "int32")),
  "neg of int32": ({ i }) => tf.neg(i),
  "relu of int32": ({ i }) => tf.relu(i),
  "sign of int32": ({ i }) => tf.sign(i),
  "clip of int32": ({ i }) => tf.clipByValue(i, 0, 2),
  "sum of bool": ({ b }) => tf.sum(b),
  equal: ({ i }) => tf.equal(i, i),
  not: ({ b }) => tf.logicalNot(b),
  isNaN: ({ f }) => tf.isNaN(f),
  "where of int32": ({ b, i }) => tf.where(b, i, i),
  "tile of bool": ({ b }) => tf.tile(b, [2, 1]),
  argMax: ({ f }) => tf.argMax(f),
  "resized int32": ({ i }) => tf.image.resizeNearestNeighbor(tf.reshape(i, [2, 3, 1]), [4, 3]),
  pixels: () => tf.browser.fromPixels({ data: new Uint8Array([1, 2, 3, 4]), width: 1, height: 1 }),
  "pixels as float32": () =>
    tf.cast(
      tf.browser.fromPixels({ data: new Uint8Array([9, 8, 7, 6]), width: 1, height: 1 }),
      "float32",
    ),
  "clamped bytes": () => tf.tensor(new Uint8ClampedArray([1, 255])),
  "bools in bytes": () => tf.tensor(new Uint8Array([1, 0]), [2], "bool"),
  "int32 in floats": () => tf.tensor(new Float32Array([1, -2]), [2], "int32"),
  "no elements": () => tf.cast(tf.tensor(new Int32Array(0), [0, 3], "int32"), "float32"),
  "a variable of a cast": ({ i }) => tf.variable(tf.cast(i, "float32")),
};

for (const [name, make] of Object.entries(RESULTS)) {
  test(`tfjs, cpu: ${name} has its values, in the class of its dtype`, async () => {
    const given = {
      f: tf.tensor([1.5, -2.5, 0, 3, Number.NaN, 2 ** 24], [2, 3]),
      i: tf.tensor([0, 1, -2, 3, 2 ** 24 + 1, -(2 ** 31)], [2, 3], "int32"),
      b: tf.tensor([true, false, true, true, false, false], [2, 3], "bool"),
    };
    const value = make(given);
    const View = CLASSES[value.dtype];
    const expected = View.from(value.dataSync());
    const tensor = fromTfjs(tf, value);
    assert.deepEqual(
      [tensor.dtype, tensor.shape, tensor.readOnly],
      [value.dtype, value.shape, true],
    );
    assert.deepEqual(tensor.data, expected);
    const same = tf.engine().backend.data.get(value.dataId).values instanceof View;
    if (same) fromTfjs(tf, value, { copy: false }).release();
    else {
      assert.throws(() => fromTfjs(tf, value, { copy: false }), {
        name: "CopyError",
        message: /another class of array/,
      });
    }
    const copied = fromTfjs(tf, value, { copy: true });
    assert.deepEqual(copied.data, expected);
    tf.dispose([value, ...Object.values(given)]);
    assert.deepEqual(tensor.data, expected, "after dispose()");
    for (const each of [tensor, copied]) each.release();
  });
}

test("tfjs, cpu: a cast of a tensor that is ours has its own dtype", () => {
  for (const [array, dtype, to] of [
    [Int32Array.of(1, -2, 3), "int32", "float32"],
    [Uint8Array.of(1, 0, 1), "bool", "float32"],
    [Uint8Array.of(1, 0, 1), "bool", "int32"],
  ]) {
    const x = Tensor.fromTypedArray(array, { dtype });
    const t = toTfjs(tf, x);
    const cast = tf.cast(t, to);
    const back = fromTfjs(tf, cast);
    assert.deepEqual([back.dtype, back.data], [to, CLASSES[to].from(array)]);
    const own = fromTfjs(tf, t);
    assert.deepEqual([own.dtype, own.data.buffer], [dtype, array.buffer]);
    tf.dispose([t, cast]);
    for (const each of [x, back, own]) each.release();
  }
});

test("tfjs, webgpu: complex numbers are read whole after toTfjs(), too", async () => {
  const GPUBufferUsage = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 };
  class GPUBuffer {}
  Object.assign(globalThis, { GPUBuffer, GPUBufferUsage, GPUTexture: class {} });
  Object.defineProperty(globalThis, "navigator", { value: { gpu: {} } });
  const gpu = fakeDevice();
  const { createBuffer } = gpu;
  gpu.createBuffer = (it) => Object.setPrototypeOf(createBuffer(it), GPUBuffer.prototype);
  if (tf.findBackendFactory("webgpu")) tf.removeBackend("webgpu"); // of Deno's own GPU
  tf.registerBackend("webgpu", () => new WebGPUBackend(gpu, {}));
  assert.equal(await tf.setBackend("webgpu"), true);
  const x = Tensor.fromTypedArray(Float32Array.of(1, 2));
  const t = toTfjs(tf, x);
  for (let i = 0; i < 2; i++) {
    const z = tf.complex([1, 2, 3], [10, 20, 30]);
    assert.deepEqual([...(i ? z.dataSync() : await z.data())], [1, 10, 2, 20, 3, 30]);
    z.dispose();
  }
  t.dispose();
  x.release();
  await tf.setBackend("cpu");
});

// --- three.js -----------------------------------------------------------------------------------

const isAttribute = (Class) =>
  Class === THREE.BufferAttribute || Class?.prototype instanceof THREE.BufferAttribute;
const attributes = Object.entries(THREE).filter(([, Class]) => isAttribute(Class));
const GETTERS = ["getX", "getY", "getZ"]; // getComponent() gives the bits of float16
const { Float16Array } = globalThis; // in Node 26 and Bun
const HALVES = [1.5, -0.25, 0, 65504, 2 ** -24, 2];

test("three.js has the attributes that are tested", () => {
  const names = attributes.map(([name]) => name);
  for (const name of ["BufferAttribute", "Float16BufferAttribute", "InstancedBufferAttribute"]) {
    assert.ok(names.includes(name), names.join());
  }
});

for (const [name, Attribute] of attributes) {
  test(`three.js: a ${name} has the values that it shows`, () => {
    const isHalf = name === "Float16BufferAttribute";
    const isPlain = ["BufferAttribute", "InstancedBufferAttribute"].includes(name);
    const given = isHalf ? HALVES.map(THREE.DataUtils.toHalfFloat) : [1, 2, 0, 7, 1, 3];
    for (const itemSize of [1, 2, 3]) {
      const attribute = new Attribute(isPlain ? Float32Array.from(given) : given, itemSize);
      const tensor = fromThree(THREE, attribute);
      assert.equal(tensor.dtype === "float16", isHalf);
      const shown = [];
      for (let i = 0; i < attribute.count; i++) {
        for (let k = 0; k < itemSize; k++) shown.push(attribute[GETTERS[k]](i));
      }
      assert.deepEqual([...tensor], shown);
      assert.equal(tensor.data.buffer, attribute.array.buffer);
      const back = toThree(THREE, tensor);
      assert.equal(back.isFloat16BufferAttribute === true, isHalf && !Float16Array);
      assert.deepEqual([back.count, back.itemSize], [attribute.count, itemSize]);
      assert.equal(
        back.array.constructor.name.replace("Clamped", ""),
        isHalf && Float16Array
          ? "Float16Array"
          : attribute.array.constructor.name.replace("Clamped", ""),
      );
      assert.equal(back.array.buffer, attribute.array.buffer);
      assert.equal(back.getX(0), shown[0]);
      back.setX(0, 3);
      assert.deepEqual([attribute.getX(0), tensor.at(...(itemSize > 1 ? [0, 0] : [0]))], [3, 3]);
      const again = fromThree(THREE, back);
      assert.deepEqual([again.dtype, [...again]], [tensor.dtype, [...tensor]]);
      back.array = undefined; // which releases
      for (const each of [tensor, again]) each.release();
    }
  });
}

test("three.js: attributes on the GPU have their elements where the tensor says", () => {
  globalThis.GPUBufferUsage ??= { COPY_SRC: 4, COPY_DST: 8, VERTEX: 32, STORAGE: 128 };
  const classes = { ...GPU_THREE };
  const renderer = { backend: new ThreeBackend() };
  const { backend } = renderer;
  backend.device = fakeDevice();
  backend.device.createBuffer = (it) => {
    const memory = new ArrayBuffer(it.size);
    return { ...it, memory, getMappedRange: () => memory, unmap() {}, destroy() {} };
  };
  for (const name of ["", "Instanced", "Storage", "StorageInstanced"]) {
    for (const View of [Float32Array, Int32Array, Uint32Array, Int16Array, Uint8Array]) {
      for (const itemSize of [1, 2, 3, 4]) {
        const values = View.from({ length: 12 }, (_, i) => i + 1);
        const attribute = new classes[`${name}BufferAttribute`](values, itemSize);
        const { count } = attribute;
        if (name.startsWith("Storage")) backend.createStorageAttribute(attribute);
        else backend.createAttribute(attribute);
        const tensor = fromThree(GPU_THREE, attribute, { renderer });
        const [rows, items = 1] = tensor.shape;
        assert.equal(rows, count);
        assert.ok(items === itemSize || (items === 4 && name.startsWith("Storage")));
        const memory = new (dtypeNamed(tensor.dtype).View)(tensor.buffer.memory);
        const [step, next = 1] = tensor.strides;
        for (const [i, value] of values.entries()) {
          const [row, item] = [Math.floor(i / itemSize), i % itemSize];
          assert.equal(memory[row * step + item * next], value, `${name} ${View.name} ${itemSize}`);
        }
        tensor.release();
      }
    }
  }
});

test("three.js: interleaved halves are halves where their buffer says so", () => {
  const bits = Uint16Array.from([1.5, 2.5, -3, 4].map(THREE.DataUtils.toHalfFloat));
  const buffer = new THREE.InterleavedBuffer(bits, 2);
  const attribute = new THREE.InterleavedBufferAttribute(buffer, 1, 1);
  const shorts = fromThree(THREE, attribute);
  assert.deepEqual([shorts.dtype, ...shorts], ["uint16", bits[1], bits[3]]);
  buffer.isFloat16BufferAttribute = true; // as its renderers ask
  const halves = fromThree(THREE, attribute);
  assert.deepEqual([halves.dtype, ...halves], ["float16", 2.5, 4]);
  for (const each of [shorts, halves]) each.release();
});

test("three.js: float16 needs a Float16Array, or the class that three.js has for it", () => {
  const tensor = Tensor.fromTypedArray(Uint16Array.of(0x3e00), { dtype: "float16" });
  const give = () => toThree({ BufferAttribute: THREE.BufferAttribute }, tensor);
  if (Float16Array) {
    const made = give();
    assert.deepEqual([made.array.constructor, made.getX(0)], [Float16Array, 1.5]);
    made.array = undefined;
  } else assert.throws(give, { name: "UnsupportedError", message: /Float16BufferAttribute/ });
  const attribute = toThree(THREE, tensor, { copy: true });
  assert.equal(attribute.getX(0), 1.5);
  assert.notEqual(attribute.array.buffer, tensor.data.buffer);
  attribute.array = undefined;
  tensor.release();
});

const constants = { ...THREE };
/** The elements of a texture, with the constants that three.js has for them. */
const PIXELS = [
  [Uint8Array, "UnsignedByteType", "uint8"],
  [Uint8ClampedArray, "UnsignedByteType", "uint8"],
  [Int8Array, "ByteType", "int8"],
  [Int16Array, "ShortType", "int16"],
  [Uint16Array, "UnsignedShortType", "uint16"],
  [Uint16Array, "HalfFloatType", "float16"],
  [Int32Array, "IntType", "int32"],
  [Uint32Array, "UnsignedIntType", "uint32"],
  [Float32Array, "FloatType", "float32"],
];
const FORMATS = [
  ["RedFormat", "RedIntegerFormat", "AlphaFormat"],
  ["RGFormat", "RGIntegerFormat"],
  ["RGBFormat", "RGBIntegerFormat"],
  ["RGBAFormat", "RGBAIntegerFormat"],
];

for (const [View, type, dtype] of PIXELS) {
  test(`three.js: textures of ${View.name}, ${type}`, () => {
    for (const [i, names] of FORMATS.entries()) {
      const channels = i + 1;
      const data = View.from({ length: 6 * channels }, (_, k) => 2 * k);
      for (const format of names) {
        const texture = new THREE.DataTexture(data, 2, 3, constants[format], constants[type]);
        const tensor = fromThree(THREE, texture);
        assert.deepEqual([tensor.dtype, tensor.shape], [dtype, [3, 2, channels]], format);
        assert.equal(tensor.data.buffer, data.buffer);
        const volume = Object.assign(new THREE.Data3DTexture(data, 1, 2, 3), {
          format: constants[format],
          type: constants[type],
        });
        const layers = fromThree(THREE, volume, { copy: true });
        assert.deepEqual([layers.shape, layers.data], [[3, 2, 1, channels], tensor.data]);
        assert.notEqual(layers.data.buffer, data.buffer);
        if (["uint8", "float16", "float32"].includes(dtype)) {
          const back = toThree(THREE, layers, { kind: "DataArrayTexture" });
          assert.equal(back.image.data.buffer, layers.data.buffer);
          assert.deepEqual([back.type, back.format], [constants[type], constants[names[0]]]);
          const { width, height, depth } = back.image;
          assert.deepEqual([width, height, depth, back.version], [1, 2, 3, 1]);
          back.image.data = null; // which releases
        }
        for (const each of [tensor, layers]) each.release();
      }
    }
  });
}

// --- ndarray ------------------------------------------------------------------------------------

for (const { name, components } of [...dtypes, dtypeNamed("float32x2"), dtypeNamed("int4", true)]) {
  const shares = components === 1;
  test(`ndarray: ${name} ${shares ? "is shared" : "has other strides than arrays"}`, () => {
    const tensor = Tensor.fromTypedArray(new Uint8Array(48).fill(1), {
      dtype: name,
      padded: shares,
    });
    if (!shares) {
      for (const library of [ndarray, null]) {
        assert.throws(() => toNdarray(library, tensor), {
          name: "UnsupportedError",
          message: new RegExp(`no ${name}: an element is .* entries`),
        });
      }
    } else {
      const reversed = tensor.slice([null, null, -1]);
      const array = toNdarray(ndarray, reversed);
      assert.equal(Number(array.get(1)), Number(tensor.data.at(-2)));
      const back = fromNdarray(ndarray, array);
      assert.deepEqual([back.dtype, back.copy()], [name, reversed.copy()]);
      array.data = undefined;
      for (const each of [reversed, back]) each.release();
    }
    tensor.release();
  });
}

test("ndarray: a dtype that is asked for is that of the result, also for an array of ours", () => {
  const tensor = Tensor.fromTypedArray(Uint8Array.of(1, 0));
  const array = toNdarray(ndarray, tensor);
  const bools = fromNdarray(ndarray, array, { dtype: "bool" });
  assert.deepEqual([bools.dtype, ...bools], ["bool", true, false]);
  array.data = undefined;
  for (const each of [tensor, bools]) each.release();
});

test("ndarray: clamped bytes are bytes", () => {
  const array = ndarray(Uint8ClampedArray.of(1, 255), [2]);
  const tensor = fromNdarray(ndarray, array);
  assert.deepEqual([array.dtype, tensor.dtype, ...tensor], ["uint8_clamped", "uint8", 1, 255]);
  tensor.release();
});

// --- onnxruntime --------------------------------------------------------------------------------

test("ort: what it keeps in a class of its own choice has its dtype", () => {
  for (const [type, data, values] of [
    ["float16", Uint16Array.of(0x3e00, 0xbc00), [1.5, -1]],
    ["bool", Uint8Array.of(1, 0), [true, false]],
    ["uint8", Uint8ClampedArray.of(1, 255), [1, 255]],
    ["int64", BigInt64Array.of(-1n, 2n), [-1n, 2n]],
  ]) {
    const tensor = fromOrt(ort, new ort.Tensor(type, data, [2]));
    assert.deepEqual([tensor.dtype, ...tensor], [type, ...values]);
    tensor.release();
  }
});
