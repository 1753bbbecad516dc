// Views of tensors: against plain nested arrays, and against what they are views of.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { random as randomFrom } from "../random.mjs";

const count = (shape) => shape.reduce((a, b) => a * b, 1);

/** A model: a shape, and the elements in row-major order. */
function elementsOf({ shape, at }) {
  const found = [];
  const walk = (index) => {
    if (index.length === shape.length) found.push(at(index));
    else for (let i = 0; i < shape[index.length]; i++) walk([...index, i]);
  };
  walk([]);
  return found;
}

function randomStep(model, random) {
  const { shape } = model;
  const kind = random(3);
  if (kind === 0) {
    const axes = shape.map((_, i) => i);
    for (let i = axes.length - 1; i > 0; i--) {
      const j = random(i + 1);
      [axes[i], axes[j]] = [axes[j], axes[i]];
    }
    const given = axes.map((axis) => (random(4) === 0 ? axis - shape.length : axis));
    return {
      does: (tensor) => tensor.permute(given),
      model: {
        shape: axes.map((axis) => shape[axis]),
        at: (index) => {
          const old = [];
          for (const [i, axis] of axes.entries()) old[axis] = index[i];
          return model.at(old);
        },
      },
    };
  }
  if (kind === 1) {
    const total = count(shape);
    const divisors = Array.from({ length: total }, (_, i) => i + 1).filter((d) => total % d === 0);
    const first = total === 0 ? 0 : divisors[random(divisors.length)];
    const wanted = total === 0 ? [0, 3] : [first, total / first];
    const all = elementsOf(model);
    const given = total > 0 && random(2) ? [first, -1] : wanted;
    return {
      does: (tensor) => tensor.reshape(given),
      model: { shape: wanted, at: ([i, j]) => all[i * wanted[1] + j] },
      mayNeedACopy: true,
    };
  }
  const ranges = shape.map((extent) => {
    const pick = random(5);
    if (pick === 0 && extent > 0) return random(extent) - (random(2) ? extent : 0);
    if (pick === 1) return null;
    const step = [1, 2, 3, -1, -2][random(5)];
    const place = () => [null, random(extent + 3) - 1, -random(extent + 2) - 1][random(3)];
    return [place(), place(), step];
  });
  /** Positions that Python's slice has. */
  const positions = ranges.map((range, axis) => {
    const extent = shape[axis];
    if (typeof range === "number") return range < 0 ? range + extent : range;
    const [start = null, stop = null, step = 1] = range ?? [];
    const clamp = (n, low, high) => Math.min(Math.max(n, low), high);
    const bound = (n, usual) => {
      if (n === null) return usual;
      const from = n < 0 ? n + extent : n;
      return step > 0 ? clamp(from, 0, extent) : clamp(from, -1, extent - 1);
    };
    const begin = bound(start, step > 0 ? 0 : extent - 1);
    const end = bound(stop, step > 0 ? extent : -1);
    const list = [];
    for (let i = begin; step > 0 ? i < end : i > end; i += step) list.push(i);
    return list;
  });
  return {
    does: (tensor) => tensor.slice(...ranges),
    model: {
      shape: positions.filter(Array.isArray).map((list) => list.length),
      at: (index) => {
        let axis = 0;
        return model.at(positions.map((p) => (Array.isArray(p) ? p[index[axis++]] : p)));
      },
    },
  };
}

for (let seed = 0; seed < 40; seed++) {
  test(`random views of views are what they are of plain arrays, seed ${seed}`, async () => {
    const before = liveTensors();
    const random = randomFrom(seed);
    const shape = Array.from({ length: random(5) }, () => random(5));
    const values = Float64Array.from({ length: count(shape) }, (_, i) => i);
    let tensor = Tensor.fromTypedArray(values, { shape });
    const strides = shape.map((_, i) => count(shape.slice(i + 1)));
    let model = { shape, at: (index) => index.reduce((sum, n, i) => sum + n * strides[i], 0) };
    for (let step = 0; step < 6; step++) {
      const next = randomStep(model, random);
      let view;
      try {
        view = next.does(tensor);
      } catch (error) {
        assert.ok(next.mayNeedACopy && /do not allow a view/.test(error.message), `${error}`);
        const copy = tensor.contiguous();
        view = next.does(copy);
        if (copy !== tensor) copy.release();
      }
      tensor.release();
      [tensor, model] = [view, next.model];
      assert.deepEqual([...tensor.shape], model.shape);
      const expected = elementsOf(model);
      assert.deepEqual([...tensor], expected);
      assert.deepEqual([...(await tensor.read())], expected);
    }
    tensor.release();
    assert.equal(liveTensors(), before);
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
