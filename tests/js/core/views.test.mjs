// Views of tensors: against NumPy's (tests/files/views.py), and against what they are views of.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Tensor } from "../../../js/dist/index.js";
import "../nothing_leaks.mjs";

const { views: CHAINS } = JSON.parse(
  readFileSync(new URL("../../../build/vectors.json", import.meta.url), "utf8"),
);

for (const [i, { shape, steps }] of CHAINS.entries()) {
  test(`random views of views are NumPy's, chain ${i}`, async () => {
    const count = shape.reduce((a, b) => a * b, 1);
    const values = Float64Array.from({ length: count }, (_, at) => at);
    let tensor = Tensor.fromTypedArray(values, { shape });
    for (const { does, given, copies, ...expected } of steps) {
      const viewOf = (it) => (does === "slice" ? it.slice(...given) : it[does](given));
      if (copies) {
        assert.throws(() => viewOf(tensor), /do not allow a view/);
        const copy = tensor.contiguous();
        tensor.release();
        tensor = copy;
      }
      const view = viewOf(tensor);
      tensor.release();
      tensor = view;
      assert.deepEqual([...tensor.shape], expected.shape);
      assert.deepEqual([...tensor], expected.values);
      assert.deepEqual([...(await tensor.read())], expected.values);
    }
    tensor.release();
  });
}

test("views share the memory, and hold it", async () => {
  const array = Float32Array.of(0, 1, 2, 3, 4, 5);
  const tensor = Tensor.fromTypedArray(array, { shape: [2, 3] });
  const [column, flipped] = [tensor.slice(null, 1), tensor.slice(1, [null, null, -1])];
  const flat = tensor.reshape([-1]);
  const turned = tensor.permute([1, 0]);
  tensor.release();
  array[4] = 40;
  assert.deepEqual([...column], [1, 40]);
  assert.deepEqual([...flipped], [5, 40, 3]);
  assert.deepEqual([...flat], [0, 1, 2, 3, 40, 5]);
  assert.deepEqual([...(await turned.read())], [0, 3, 1, 40, 2, 5]);
  assert.equal(flat.data.buffer, array.buffer);
  for (const view of [column, flipped, flat, turned]) view.release();
});

test("packed elements are not stepped over, nor begun within a byte", () => {
  const tensor = Tensor.fromTypedArray(Uint8Array.of(0x21, 0x43), { dtype: "uint4" });
  const half = tensor.slice([2, null]);
  assert.deepEqual([...half.data], [0x43]);
  half.release();
  assert.throws(() => tensor.slice([1, null]), { name: "UnsupportedError", message: /byte/ });
  assert.throws(() => tensor.slice([null, null, 2]), {
    name: "UnsupportedError",
    message: /row-major/,
  });
  tensor.release();
});

test("Tensor.from takes arrays, tensors and exchanges", () => {
  const array = Int32Array.of(1, 2);
  const tensor = Tensor.from(array);
  const second = Tensor.from(tensor);
  assert.ok(second !== tensor && second.data.buffer === array.buffer);
  for (const each of [tensor, second]) each.release();
  for (const x of [[1, 2], 7, null, new DataView(new ArrayBuffer(4)), {}]) {
    assert.throws(() => Tensor.from(x), { name: "TypeError" });
  }
});

test("elements are iterated, as at() gives them", () => {
  const tensor = Tensor.fromTypedArray(BigInt64Array.of(1n, 2n, 3n, 4n), { shape: [2, 2] });
  assert.deepEqual(Array.from(tensor), [1n, 2n, 3n, 4n]);
  const scalar = Tensor.fromTypedArray(Float32Array.of(7), { shape: [] });
  assert.deepEqual([...scalar], [7]);
  const none = Tensor.fromTypedArray(new Float32Array(0), { shape: [3, 0] });
  assert.deepEqual([...none], []);
  for (const each of [tensor, scalar, none]) each.release();
  assert.throws(() => [...tensor], { name: "ReleasedError" });
});

test("is() goes by the name, and JSON says what a tensor is", () => {
  const tensor = Tensor.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  assert.ok(tensor.is("float32") && !tensor.is("float64"));
  assert.equal(JSON.stringify(tensor), '{"dtype":"float32","shape":[2,3],"device":"cpu"}');
  assert.equal(JSON.stringify({ ...tensor.device }), '{"type":1,"id":0,"gpu":null}');
  tensor.release();
});

test("nobody changes the shape of a tensor", () => {
  const given = [2, 3];
  const tensor = Tensor.fromTypedArray(new Float32Array(6), { shape: given, strides: [1, 2] });
  for (const list of [tensor.shape, tensor.strides]) {
    assert.throws(() => {
      list[0] = 9;
    }, TypeError);
  }
  given[0] = 9;
  assert.deepEqual([...tensor.shape], [2, 3]);
  tensor.release();
});
