// OpenCV.js 4 and 5 (the real ones): Mats are tensors without a copy, tensors are Mats by one.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fromMat, install, toMat } from "../../../js/dist/adapters/opencv.js";
import { EXCHANGE } from "../../../js/dist/exchange/index.js";
import { connect, Tensor } from "../../../js/dist/index.js";
import "../nothing_leaks.mjs";
import { boot, WHEEL } from "../pyodide/boot.mjs";

const require = createRequire(new URL("../../../build/libraries/package.json", import.meta.url));

/** The module, once its WebAssembly is there. The older one has a `then` that gives itself. */
async function loaded(name) {
  const module = require(name);
  if (module instanceof Promise) return { cv: await module };
  if (!module.Mat) await new Promise((resolve) => (module.onRuntimeInitialized = resolve));
  return { cv: module };
}

const VERSIONS = {
  4: (await loaded("@techstark/opencv-js")).cv,
  5: (await loaded("opencv-5")).cv,
};
const DTYPES_4 = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  int32: 4,
  float32: 5,
  float64: 6,
  float16: 7,
};
/** Bytes of an element, by depth. */
const SIZES = [1, 1, 2, 2, 4, 4, 8, 2, 2, 1, 8, 8, 4];
const DTYPES = { ...DTYPES_4, bfloat16: 8, bool: 9, uint64: 10, int64: 11, uint32: 12 };

/** Counts the Mats that are deleted. */
function countMats(cv, context) {
  const { prototype } = cv.Mat;
  const counts = { deleted: 0 };
  const real = prototype.delete;
  context.mock.method(prototype, "delete", function () {
    counts.deleted++;
    return real.call(this);
  });
  return counts;
}

/** A Mat whose bytes are 1, 2, 3, … */
function filled(cv, rows, cols, type) {
  const mat = new cv.Mat(rows, cols, type);
  mat.data.forEach((_, i, data) => {
    data[i] = i + 1;
  });
  return mat;
}

/** All bytes of a tensor's elements in row-major order. */
async function bytesOf(tensor) {
  const values = await tensor.read();
  return [...new Uint8Array(values.buffer, values.byteOffset, values.byteLength)];
}

const LAYOUTS = {
  "as it is": (t) => t.slice(),
  "some rows and columns": (t) => t.slice([1, 3], [1, null]),
  transposed: (t) => t.permute([1, 0, ...(t.ndim > 2 ? [2] : [])]),
  reversed: (t) => t.slice([null, null, -1], [null, null, -2]),
  "one row": (t) => t.slice([2, 3]),
  "no rows": (t) => t.slice([1, 1]),
  "one axis": (t) => t.slice(1, null, ...(t.ndim > 2 ? [0] : [])),
};

for (const [version, cv] of Object.entries(VERSIONS)) {
  const dtypes = version === "4" ? DTYPES_4 : DTYPES;
  const unit = version === "4" ? 8 : 32;

  test(`OpenCV ${version}: a Mat of every dtype and number of channels is a tensor without a copy`, async () => {
    for (const [dtype, depth] of Object.entries(dtypes)) {
      for (const channels of [1, 2, 3, 4, 7]) {
        const mat = filled(cv, 3, 4, depth + (channels - 1) * unit);
        const tensor = fromMat(cv, mat, { copy: false });
        const shape = channels === 1 ? [3, 4] : [3, 4, channels];
        assert.deepEqual([tensor.dtype, tensor.shape, tensor.readOnly], [dtype, shape, false]);
        assert.equal(tensor.data.byteOffset, mat.data.byteOffset);
        assert.deepEqual(await bytesOf(tensor), [...mat.data]);
        tensor.data.fill(tensor.data.constructor.name.startsWith("Big") ? 1n : 1);
        assert.deepEqual(await bytesOf(tensor), [...mat.data]);
        mat.delete();
        tensor.release();
      }
    }
  });

  test(`OpenCV ${version}: a tensor of every dtype and layout is a Mat by one copy, and back`, async (context) => {
    const counts = countMats(cv, context);
    let made = 0;
    for (const dtype of Object.keys(dtypes)) {
      for (const shape of [
        [4, 5],
        [4, 5, 3],
      ]) {
        const size = shape.reduce((a, b) => a * b);
        const itemsize = SIZES[dtypes[dtype]];
        const bytes = Uint8Array.from({ length: size * itemsize }, (_, i) => i);
        const whole = Tensor.fromTypedArray(bytes, { dtype, shape });
        for (const [name, layout] of Object.entries(LAYOUTS)) {
          const tensor = layout(whole);
          const mat = toMat(cv, tensor);
          made++;
          const [rows, cols = 1, channels = 1] = tensor.shape;
          assert.deepEqual([mat.rows, mat.cols, mat.channels()], [rows, cols, channels], name);
          assert.equal(mat.depth(), dtypes[dtype]);
          const expected = await bytesOf(tensor);
          assert.deepEqual([...mat.data], expected, `${dtype} ${name}`);
          assert.throws(() => toMat(cv, tensor, { copy: false }), { name: "CopyError" });
          const back = fromMat(cv, mat);
          made++;
          mat.delete();
          assert.deepEqual([back.dtype, await bytesOf(back)], [dtype, expected]);
          for (const each of [back, tensor]) each.release();
        }
        whole.release();
      }
    }
    assert.equal(counts.deleted, made, "deleted exactly once");
  });

  test(`OpenCV ${version}: parts of Mats are strided, and writes are seen on both sides`, () => {
    const mat = filled(cv, 5, 6, cv.CV_16SC2);
    const roi = mat.roi(new cv.Rect(1, 2, 3, 2));
    const column = mat.col(4);
    const [t, c] = [fromMat(cv, roi, { copy: false }), fromMat(cv, column, { copy: false })];
    assert.deepEqual(
      [t.shape, t.strides],
      [
        [2, 3, 2],
        [12, 2, 1],
      ],
    );
    assert.deepEqual(
      [c.shape, c.strides],
      [
        [5, 1, 2],
        [12, 2, 1],
      ],
    );
    roi.shortPtr(1, 2)[1] = -77;
    assert.equal(t.at(1, 2, 1), -77);
    t.data[t.dataOffset + 12] = 88;
    assert.deepEqual([roi.shortAt(1, 0), mat.shortPtr(3, 1)[0]], [88, 88]);
    cv.bitwise_not(mat, mat);
    assert.deepEqual([t.at(1, 0, 0), t.at(1, 2, 1)], [~88, 76]);
    for (const each of [mat, roi, column]) each.delete();
    assert.equal(t.at(1, 0, 0), ~88);
    for (const each of [t, c]) each.release();
  });

  test(`OpenCV ${version}: Mat to tensor to Mat shares, rows and columns of it as well`, () => {
    const mat = filled(cv, 5, 6, cv.CV_8UC3);
    const tensor = fromMat(cv, mat);
    const at = (it) => it.data.byteOffset - mat.data.byteOffset;
    /** Elements that lie one after the other, with another shape. */
    const flat = (range, shape) => {
      const line = tensor.reshape([90]);
      const some = line.slice(range);
      const view = some.reshape(shape);
      for (const each of [line, some]) each.release();
      return view;
    };
    for (const [view, shape, offset] of [
      [tensor.slice(), [5, 6, 3], 0],
      [tensor.slice([1, 4], [2, null]), [3, 4, 3], 18 + 6],
      [tensor.slice([4, 5], [5, 6]), [1, 1, 3], 4 * 18 + 15],
    ]) {
      const part = toMat(cv, view, { copy: false });
      assert.deepEqual([part.rows, part.cols, part.channels(), at(part)], [...shape, offset]);
      const fresh = toMat(cv, view, { copy: true });
      const [a, b] = [fromMat(cv, part), fromMat(cv, fresh)];
      assert.deepEqual([...a], [...b]);
      assert.notEqual(a.data.byteOffset, b.data.byteOffset);
      for (const each of [part, fresh]) each.delete();
      for (const each of [view, a, b]) each.release();
    }
    for (const view of [
      tensor.slice([null, null, 2]),
      tensor.slice([null, null, -1]),
      tensor.slice(null, [null, null, 2]),
      tensor.permute([1, 0, 2]),
      tensor.slice(null, null, [0, 2]),
      tensor.slice(null, null, 1),
      tensor.slice(null, 1),
      flat([1, 16], [1, 5, 3]), // begins within an element
      flat([9, 27], [1, 6, 3]), // goes on in the next row
      flat([0, 21], [1, 7, 3]),
    ]) {
      assert.throws(() => toMat(cv, view, { copy: false }), { name: "CopyError" });
      const copied = toMat(cv, view);
      assert.deepEqual([...copied.data], [...view]);
      copied.delete();
      view.release();
    }
    mat.delete();
    tensor.release();
  });

  test(`OpenCV ${version}: a tensor keeps its elements, whatever becomes of the Mat`, (context) => {
    const mat = filled(cv, 2, 3, cv.CV_8UC1);
    const counts = countMats(cv, context);
    const tensor = fromMat(cv, mat);
    mat.create(20, 30, cv.CV_32FC1); // the Mat has other elements by now
    mat.data.fill(9);
    assert.deepEqual([...tensor], [1, 2, 3, 4, 5, 6]);
    const second = tensor.slice(1);
    tensor.release();
    tensor.release();
    assert.equal(counts.deleted, 0);
    assert.deepEqual([...second], [4, 5, 6]);
    second.release();
    assert.equal(counts.deleted, 1);
    mat.delete();
    assert.throws(() => fromMat(cv, mat), { name: "ReleasedError", message: /was deleted/ });
  });

  test(`OpenCV ${version}: memory that grows moves tensors along`, () => {
    const mat = filled(cv, 4, 5, cv.CV_32SC1);
    const tensor = fromMat(cv, mat);
    const { data } = tensor;
    const before = [...data];
    const large = [];
    while (data.length > 0) large.push(new cv.Mat(4000, 4000, cv.CV_8UC1));
    assert.deepEqual([...tensor.data], before);
    // A tensor in the very memory that grows while its copy is made.
    tensor.data[0] = 5;
    assert.equal(mat.data32S[0], 5);
    const transposed = tensor.permute([1, 0]);
    const copied = toMat(cv, transposed);
    assert.deepEqual([...copied.data32S], [...transposed]);
    for (const each of [mat, copied, ...large]) each.delete();
    assert.equal(tensor.at(0, 0), 5);
    for (const each of [tensor, transposed]) each.release();
  });

  test(`OpenCV ${version}: Mats without elements`, () => {
    for (const [mat, shape] of [
      [new cv.Mat(), [0, 0]],
      [new cv.Mat(0, 5, cv.CV_32FC1), [0, 5]],
      [new cv.Mat(4, 0, cv.CV_8UC3), [4, 0, 3]],
    ]) {
      const tensor = fromMat(cv, mat);
      assert.deepEqual([tensor.shape, tensor.size, [...tensor]], [shape, 0, []]);
      const back = toMat(cv, tensor);
      assert.deepEqual([back.rows, back.cols, back.channels()], [...shape, 1].slice(0, 3));
      for (const each of [mat, back]) each.delete();
      tensor.release();
    }
  });

  test(`OpenCV ${version}: Mats of more axes are tensors; what no Mat can be says what to do`, () => {
    const image = filled(cv, 4, 4, cv.CV_8UC3);
    if (cv.blobFromImage) {
      const blob = cv.blobFromImage(image);
      const tensor = fromMat(cv, blob, { copy: false });
      assert.deepEqual([tensor.dtype, tensor.shape], ["float32", [1, 3, 4, 4]]);
      assert.equal(tensor.at(0, 1, 2, 3), image.ucharPtr(2, 3)[1]);
      assert.throws(() => toMat(cv, tensor), { name: "UnsupportedError", message: /reshape\(\)/ });
      blob.delete();
      tensor.release();
    }
    image.delete();
    for (const [array, options, message] of [
      [Uint8Array.of(1), { dtype: "float8_e5m2" }, /no float8_e5m2 there: it takes uint8/],
      [Float32Array.of(1, 2), { dtype: "complex64" }, /no complex64/],
      [Uint8Array.of(1), { dtype: "int4", shape: [2] }, /no int4/],
      [new Uint8Array(1024), { shape: [1, 1, 1024] }, /1 to \d+ channels/],
      [new Uint8Array(0), { shape: [2, 3, 0] }, /1 to \d+ channels/],
      [new Uint8Array(1), { shape: [1, 1, 1, 1] }, /reshape\(\) or slice\(\)/],
      ...(version === "4" ? [[BigInt64Array.of(1n), {}, /no int64.*astype/]] : []),
    ]) {
      const tensor = Tensor.fromTypedArray(array, options);
      assert.throws(() => toMat(cv, tensor), { name: "UnsupportedError", message });
      tensor.release();
    }
  });

  test(`OpenCV ${version}: no memory for a Mat: OpenCV's words, and nothing is held`, () => {
    const broad = Tensor.fromTypedArray(Float64Array.of(1), {
      shape: [20000, 20000],
      strides: [0, 0],
    });
    assert.throws(() => toMat(cv, broad), {
      name: "UnsupportedError",
      message: /make a Mat.*memory.*\S$/s,
    });
    broad.release();
  });

  test(`OpenCV ${version}: elements that are gone make no Mat, and leave none behind`, (context) => {
    const counts = countMats(cv, context);
    const array = Float32Array.of(1, 2);
    const tensor = Tensor.fromTypedArray(array);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    assert.throws(() => toMat(cv, tensor), { name: "UnsupportedError", message: /detached/ });
    assert.equal(counts.deleted, 1);
    tensor.release();
    assert.throws(() => toMat(cv, tensor), { name: "ReleasedError" });
  });

  test(`OpenCV ${version}: thousands of Mats leave its heap as it was`, () => {
    const mat = filled(cv, 100, 100, cv.CV_8UC4);
    const bytes = () => mat.data.buffer.byteLength;
    const before = bytes();
    for (let i = 0; i < 10_000; i++) {
      const tensor = fromMat(cv, mat);
      const copied = toMat(cv, tensor, { copy: true });
      tensor.release();
      copied.delete();
    }
    assert.equal(bytes(), before);
    mat.delete();
  });

  test(`OpenCV ${version}: a Mat is a producer once the adapter is installed`, () => {
    const mat = filled(cv, 2, 3, cv.CV_8UC1);
    assert.throws(() => Tensor.from(mat), {
      name: "TypeError",
      message: /"dlpack-web\/opencv" makes/,
    });
    install(cv);
    const tensor = Tensor.from(mat);
    assert.equal(tensor.data.byteOffset, mat.data.byteOffset);
    const { data, flags, release } = mat[EXCHANGE]({ copy: true });
    assert.deepEqual([[...data], flags], [[1, 2, 3, 4, 5, 6], 2]);
    release();
    mat.delete();
    assert.deepEqual([...tensor], [1, 2, 3, 4, 5, 6]);
    tensor.release();
    delete cv.Mat.prototype[EXCHANGE];
  });
}

test("a Mat of another copy of the library is taken, and copied to become one of ours", () => {
  const [four, five] = Object.values(VERSIONS);
  const mat = filled(five, 2, 2, five.CV_8UC2);
  const tensor = fromMat(four, mat);
  assert.throws(() => toMat(four, tensor, { copy: false }), { name: "CopyError" });
  const copied = toMat(four, tensor);
  assert.ok(copied instanceof four.Mat);
  assert.deepEqual([...copied.data], [...mat.data]);
  for (const each of [mat, copied]) each.delete();
  tensor.release();
});

test("Python's arrays become Mats of OpenCV.js, and those tensors", async () => {
  const cv = VERSIONS[5];
  const pyodide = await boot("pyodide");
  await connect(pyodide, { wheel: WHEEL });
  pyodide.globals.set("cv", cv);
  const result = await pyodide.runPythonAsync(`
import numpy as np, dlpack_web as dlw
pixels = np.arange(24, dtype="u1").reshape(2, 4, 3)[:, ::-1]
tensors = await dlw.adapter("opencv", cv)
mat = tensors.to_js(pixels)
cv.bitwise_not(mat, mat)
with tensors.from_js(mat) as t, dlw.from_js(mat) as same:
    mat.delete()
    equal = np.array_equal(t, ~pixels) and np.array_equal(same, ~pixels)
    told = f"{t.shape} {t.dtype} {equal}"
told`);
  assert.equal(result, "(2, 4, 3) uint8 True");
  delete cv.Mat.prototype[Symbol.for("dlpack.exchange")];
});
