// Tensors over arrays that JS owns: no Pyodide, no GPU.
// Looks inside: dtype.js lists the dtypes: each one is tried.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { dtypeNamed, dtypes } from "../../../js/dist/core/dtype.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";
import "../nothing_leaks.mjs";

const EXCHANGE = Symbol.for("dlpack.exchange");
const matrix = () => Tensor.fromTypedArray(Float32Array.of(0, 1, 2, 3, 4, 5), { shape: [2, 3] });

test("a tensor describes its array", () => {
  const tensor = matrix();
  assert.deepEqual(tensor.shape, [2, 3]);
  assert.deepEqual(tensor.strides, [3, 1]);
  const { ndim, size, nbytes, itemsize, byteOffset, readOnly, dtype, dataOffset } = tensor;
  assert.deepEqual(
    { ndim, size, nbytes, itemsize, byteOffset, readOnly, dtype, dataOffset },
    {
      ndim: 2,
      size: 6,
      nbytes: 24,
      itemsize: 4,
      byteOffset: 0,
      readOnly: false,
      dtype: "float32",
      dataOffset: 0,
    },
  );
  assert.equal(`${tensor.device}`, "cpu");
  assert.equal(tensor.toString(), "Tensor float32[2,3] on cpu");
  tensor.release();
});

test("the console of Node shows a tensor with its elements", () => {
  const tensor = Tensor.fromTypedArray(new Float32Array([1, 2.5, 0.1, NaN]), { shape: [2, 2] });
  const said = "Tensor float32[2,2] on cpu [[1, 2.5],";
  assert.equal(inspect(tensor), `${said}\n                            [0.1, NaN]]`);
  assert.ok(inspect({ tensor }).includes(said));
  tensor.release();
  assert.equal(inspect(tensor), "Tensor float32[2,2] on cpu (released)");
  for (const [array, options, shown] of [
    [new Float64Array([0.1 + 0.2]), {}, "float64[1] on cpu [0.30000000000000004]"],
    [new Int32Array([2147483647]), {}, "int32[1] on cpu [2147483647]"],
    [new BigInt64Array([2n ** 60n]), {}, `int64[1] on cpu [${2n ** 60n}]`],
    [new Uint8Array([1, 0]), { dtype: "bool" }, "bool[2] on cpu [true, false]"],
    [new Float32Array([1, -2.5]), { dtype: "complex64", shape: [] }, "complex64[] on cpu 1-2.5i"],
    [new Uint8Array([0x80, 0x3f]), { dtype: "bfloat16" }, "bfloat16[1] on cpu [1]"],
    [new Uint16Array([0x2e66]), { dtype: "float16" }, "float16[1] on cpu [0.099976]"],
    [new Int8Array(0), { shape: [0, 3] }, "int8[0,3] on cpu []"],
    [new Int8Array(0), { shape: [5, 0] }, "int8[5,0] on cpu []"],
    [
      new Int8Array(6).map((_, i) => i),
      { shape: [3], strides: [-2], offset: 5 },
      "int8[3] on cpu [5, 3, 1]",
    ],
    [new Uint8Array([7]), { dtype: "float8_e5m2" }, "float8_e5m2[1] on cpu Uint8Array(1) [ 7 ]"],
    [
      new Uint8Array(9).subarray(1, 5),
      { dtype: "float32" },
      "float32[1] on cpu Float32Array(1) [ 0 ]",
    ],
  ]) {
    const one = Tensor.fromTypedArray(array, options);
    assert.equal(inspect(one), `Tensor ${shown}`);
    one.release();
  }
});

test("the console of Node shows the ends of large tensors", () => {
  const array = Int32Array.from({ length: 10_000 }, (_, i) => i);
  for (const [shape, shown] of [
    [[10_000], "[0, 1, 2, ..., 9997, 9998, 9999]"],
    [[5000, 2], "[[0, 1],[2, 3],[4, 5],...,[9994, 9995],[9996, 9997],[9998, 9999]]"],
    [[10, 10, 10, 10], /^\[\[\[\[0, 1, \.\.\., 8, 9\],\[10, 11/],
    [[10, 10, 10, 10, 1], "(see its copy())"],
  ]) {
    const tensor = Tensor.fromTypedArray(array, { shape });
    const facts = tensor.toString();
    const said = inspect(tensor)
      .slice(facts.length + 1)
      .replaceAll(/\n */g, "");
    if (typeof shown === "string") assert.equal(said, shown);
    else assert.match(said, shown);
    assert.ok(said.length < 2000);
    tensor.release();
  }
});

test("data is the array itself", () => {
  const array = Int16Array.of(1, 2, 3);
  const tensor = Tensor.fromTypedArray(array);
  assert.equal(tensor.data, array);
  assert.deepEqual(tensor.shape, [3]);
  tensor.release();
});

test("at() indexes as NumPy does", () => {
  const tensor = matrix();
  assert.equal(tensor.at(1, 2), 5);
  assert.equal(tensor.at(-1, -3), 3);
  assert.throws(() => tensor.at(2, 0), { name: "RangeError", message: /axis 0 with size 2/ });
  assert.throws(() => tensor.at(0, -4), { name: "RangeError", message: /axis 1 with size 3/ });
  assert.throws(() => tensor.at(0), { name: "TypeError", message: /needs 2 indices, not 1/ });
  assert.throws(() => tensor.at(0.5, 0), { name: "TypeError" });
  tensor.release();
});

test("contiguous() is the tensor itself where nothing has to be packed", () => {
  const tensor = matrix();
  assert.equal(tensor.contiguous(), tensor);
  tensor.release();
});

test("bytes at an odd place need contiguous()", () => {
  const bytes = new Uint8Array(9).subarray(1);
  const tensor = Tensor.fromTypedArray(bytes, { dtype: "float32" });
  assert.throws(() => tensor.data, { name: "UnsupportedError", message: /contiguous\(\)/ });
  const packed = tensor.contiguous();
  assert.equal(packed.data.length, 2);
  tensor.release();
  packed.release();
});

test("read() copies once, into a new array or a given one", async () => {
  const tensor = matrix();
  const fresh = await tensor.read();
  assert.deepEqual(fresh, tensor.data);
  assert.notEqual(fresh.buffer, tensor.data.buffer);
  const out = new Float32Array(6);
  assert.equal(await tensor.read(out), out);
  assert.deepEqual(out, tensor.data);
  await assert.rejects(tensor.read(new Float32Array(5)), { name: "RangeError", message: /20.*24/ });
  tensor.release();
});

test("read() takes the arrays and tensors that write() takes", async () => {
  const words = [8, 16, 32].flatMap((bits) => [`Int${bits}`, `Uint${bits}`]);
  const names = [
    ...words,
    "Uint8Clamped",
    "Float16",
    "Float32",
    "Float64",
    "BigInt64",
    "BigUint64",
  ];
  const classes = names.flatMap((name) => globalThis[`${name}Array`] ?? []);
  const whole = dtypes.filter(({ step }) => 16 % step === 0);
  const kinds = [...whole.map(({ name }) => name), "float32x4", "float16x2", "uint8x4"];
  const gpu = fakeDevice();
  for (const dtype of kinds) {
    const tensor = Tensor.fromTypedArray(new Uint8Array(16), { dtype });
    const there = tensor.to(gpu);
    const outs = classes.map((Class) => new Class(16 / Class.BYTES_PER_ELEMENT));
    const others = kinds.map((name) => Tensor.fromTypedArray(new Uint8Array(16), { dtype: name }));
    for (const out of [...outs, ...others]) {
      let refused;
      try {
        tensor.write(out);
      } catch ({ name }) {
        refused = name;
      }
      const { View, step } = dtypeNamed(dtype);
      const { name } = out.constructor;
      const what = `${dtype} into ${name} ${out.dtype ?? ""}`;
      const bits = [
        View.name,
        "Uint8Array",
        "Uint8ClampedArray",
        ...(step === 2 ? ["Uint16Array"] : []),
      ];
      assert.equal(refused === undefined, out.dtype === dtype || bits.includes(name), what);
      for (const source of [tensor, there]) {
        if (refused) await assert.rejects(source.read(out), { name: refused }, what);
        else assert.equal(await source.read(out), out);
      }
    }
    for (const each of [tensor, there, ...others]) each.release();
  }
});

test("released tensors refuse whatever touches memory", async () => {
  const before = liveTensors();
  const tensor = matrix();
  assert.equal(liveTensors(), before + 1);
  tensor.release();
  tensor.release();
  tensor[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  assert.equal(liveTensors(), before);
  assert.equal(tensor.released, true);
  assert.deepEqual(tensor.shape, [2, 3]);
  const released = { name: "ReleasedError", message: /was released/ };
  assert.throws(() => tensor.data, released);
  assert.throws(() => tensor.buffer, released);
  assert.throws(() => tensor.at(0, 0), released);
  assert.throws(() => tensor.contiguous(), released);
  assert.throws(() => tensor.reshape([6]), released);
  assert.throws(() => tensor.transfer(), released);
  assert.throws(() => tensor.to({}), released);
  await assert.rejects(tensor.read(), released);
});

test("a tensor that an option's getter, a source or a memory releases is not used", () => {
  const values = Float32Array.of(1, 2, 3, 4);
  const source = Tensor.from(values);
  let get = () => values.buffer;
  const memory = Object.defineProperty({}, "buffer", { get: () => get() });
  const inMemory = Tensor.fromMemory(memory, 0, { shape: [4], dtype: "float32" });
  for (const use of [
    (tensor, free) => tensor.to(fakeDevice(), Object.defineProperty({}, "usage", { get: free })),
    (tensor, free) => tensor.write(values, Object.defineProperty({}, "convert", { get: free })),
    (tensor, free) => {
      tensor.write({ [EXCHANGE]: (request) => free() ?? source[EXCHANGE](request) });
    },
    (tensor, free) => {
      get = () => free() ?? values.buffer;
      tensor.write(inMemory);
    },
  ]) {
    const tensor = Tensor.from(new Float32Array(4));
    const { data } = tensor;
    assert.throws(() => use(tensor, () => tensor.release()), { name: "ReleasedError" });
    assert.deepEqual([...data], [0, 0, 0, 0], "nothing was written");
  }
  for (const each of [source, inMemory]) each.release();
});

function caught(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("a detached array is noticed", () => {
  const array = new Float32Array(4);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  // The engine's own error tells why.
  const error = caught(() => Tensor.fromTypedArray(array));
  assert.equal(error.name, "UnsupportedError");
  assert.ok(error.cause instanceof TypeError);
});

test("clamped bytes are uint8", () => {
  const tensor = Tensor.fromTypedArray(Uint8ClampedArray.of(300, 2));
  assert.deepEqual([tensor.dtype, [...tensor]], ["uint8", [255, 2]]);
  tensor.release();
});

test("from an offset on, a tensor has the rest of the array", () => {
  const array = Float32Array.of(0, 1, 2, 3);
  for (const [options, expected] of [
    [{ offset: 1 }, [1, 2, 3]],
    [{ offset: 4 }, []],
    [{ offset: 0 }, [0, 1, 2, 3]],
    [{ offset: 1, shape: [2] }, [1, 2]],
    [{ offset: 3, strides: [-1] }, [3, 2, 1, 0]],
    [{ offset: 1, dtype: "complex64", array: Float32Array.of(0, 1, 2, 3) }, [[2, 3]]],
    [{ offset: 2, dtype: "int16", array: new Uint8Array([0, 0, 0, 0, 7, 0]) }, [7]],
  ]) {
    const { array: given = array, ...rest } = options;
    const tensor = Tensor.fromTypedArray(given, rest);
    assert.deepEqual([...tensor], expected, JSON.stringify(options));
    tensor.release();
  }
});

/** Arrays that have lost their memory, and look like empty ones. */
function goneArrays() {
  const posted = new Float32Array(3);
  structuredClone(posted.buffer, { transfer: [posted.buffer] });
  const memory = new WebAssembly.Memory({ initial: 1 });
  const grown = new Float32Array(memory.buffer, 0, 3);
  memory.grow(1);
  const shrinking = new ArrayBuffer(16, { maxByteLength: 16 });
  const shrunk = new Float32Array(shrinking, 0, 3);
  shrinking.resize(4);
  const behind = new Float32Array(shrinking, 4); // of all that is behind
  shrinking.resize(0);
  return { posted, grown, shrunk, behind };
}

test("an array without its memory is no empty tensor", () => {
  for (const [how, array] of Object.entries(goneArrays())) {
    for (const make of [
      () => Tensor.fromTypedArray(array),
      () => Tensor.fromTypedArray(array, { shape: [0] }),
      () => Tensor.fromTypedArray(array, { shape: [3] }),
      () => Tensor.fromTypedArray(array, { offset: 1 }),
      () => Tensor.from(array),
    ]) {
      const message = /Float32Array .*(detached|shrank).*new array/;
      assert.throws(make, { name: "UnsupportedError", message }, `${how}: ${make}`);
      // The engine's own words are the cause.
      assert.throws(make, ({ cause }) => cause instanceof TypeError);
    }
  }
  for (const array of [new Float32Array(0), new Uint8Array(new SharedArrayBuffer(0))]) {
    const tensor = Tensor.fromTypedArray(array);
    assert.deepEqual(tensor.shape, [0]);
    tensor.release();
  }
});

test("an empty tensor is not overwritten by an array without its memory", () => {
  const tensor = Tensor.fromTypedArray(new Float32Array(0));
  for (const array of Object.values(goneArrays())) {
    assert.throws(() => tensor.write(array), { name: "UnsupportedError" });
  }
  tensor.release();
});
