// A Tensor where JavaScript or a library wants an array, a number or a string: its elements, or an error
// that says what to do instead.
// Looks inside: watch.js is what connect() turns on with debug, here without Pyodide.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { format, inspect } from "node:util";
import { fromTypedArray } from "../../../js/dist/core/arrays.js";
import { watchForWholeBuffers } from "../../../js/dist/core/watch.js";
import { Tensor } from "../../../js/dist/index.js";
import { fakeBuffer, fakeDevice } from "../fake_device.mjs";
import "../nothing_leaks.mjs";

const four = () => Float32Array.of(1, 2, 3, 4);
const cpu = () => Tensor.fromTypedArray(four(), { shape: [2, 2] });
const device = fakeDevice();
const gpu = () => Tensor.fromGPUBuffer(fakeBuffer(), { device, shape: [4], dtype: "float32" });

const array = /is not an array and has no (length|byteLength|\d+)\. Use/;
const number = /is not a number\. Use/;
const string = /is not a string; \.toString\(\) describes it\. Use/;

/** What libraries do with what they take for an array, a number or a string. */
const USES = [
  [(t) => new Float32Array(4).set(t), array],
  [(t) => Math.max.apply(null, t), array],
  [(t) => String.fromCharCode.apply(null, t), array],
  [(t) => Reflect.construct(Float32Array, t), array],
  [(t) => Array.prototype.map.call(t, (x) => x), array],
  [(t) => Array.prototype.slice.call(t), array],
  [(t) => t.length, array],
  [(t) => t[0], array],
  [(t) => t[12], array],
  [(t) => t.byteLength, array],
  [(t) => [...Array(t.length).keys()], array],
  [
    (t) => {
      t[0] = 1;
    },
    array,
  ],
  [
    (t) => {
      t.length = 0;
    },
    array,
  ],
  [(t) => t + 1, number],
  [(t) => t * 2, number],
  [(t) => -t, number],
  [(t) => t < 3, number],
  // biome-ignore lint/suspicious/noDoubleEquals: it is what is tested
  [(t) => t == 1, number],
  [(t) => Math.max(t), number],
  [(t) => Number(t), number],
  [(t) => Number.isNaN(+t), number],
  [(t) => Float32Array.of(t), number],
  [(t) => new Float32Array([t]), number],
  [(t) => "x".repeat(t), number],
  [(t) => new Uint8Array(2).fill(t), number],
  [(t) => `${t}`, string],
  [(t) => String(t), string],
  [(t) => new Blob([t]), string],
  // Deno takes what can be iterated for a body, and throws when it is read.
  ...("Deno" in globalThis ? [] : [[(t) => new Response(t), string]]),
  [(t) => ({ [t]: 1 }), string],
  [(t) => [t].join(), string],
  [(t) => Number.parseFloat(t), string],
];

for (const [place, make, way] of [
  ["cpu", cpu, /Tensor float32\[2,2\] on cpu .* Use \.data.*\.copy\(\)/],
  ["GPU", gpu, /Tensor float32\[4\] on webgpu:0 .* Use .*await \.read\(\).*\.buffer/],
]) {
  describe(`A ${place} tensor`, () => {
    for (const [use, what] of USES) {
      test(`in ${use.toString().replaceAll(/\s+/g, " ")} throws what to do`, () => {
        const tensor = make();
        for (const message of [what, way]) {
          assert.throws(() => use(tensor), { name: "TypeError", message });
        }
        tensor.release();
        assert.throws(() => use(tensor), { name: "TypeError" }, "released");
      });
    }

    test("is printed, compared, awaited and asked for what it lacks as ever", async () => {
      const [tensor, same] = [make(), make()];
      const name = tensor.toString();
      assert.equal(inspect(tensor).startsWith(name), true);
      assert.match(inspect([tensor]), /Tensor float32/);
      assert.match(inspect(tensor, { customInspect: false, showHidden: true }), /Tensor/);
      inspect(tensor, { customInspect: false, getters: true, showHidden: true, showProxy: true });
      assert.match(format("%o %O", tensor, tensor), /Tensor/);
      assert.equal(JSON.parse(JSON.stringify(tensor)).dtype, "float32");
      assert.deepEqual(tensor, tensor);
      assert.deepStrictEqual([same].includes(same), true);
      assert.equal(await tensor, tensor);
      assert.equal(tensor.then, undefined);
      assert.equal(tensor["1.5"], undefined);
      assert.equal(tensor["01"], undefined);
      assert.ok(tensor instanceof Tensor && tensor instanceof Object);
      // What looks for arrays by their properties finds none.
      for (const name of ["length", "byteLength", "0"]) {
        assert.equal(name in tensor, false);
        for (let x = tensor; x; x = Object.getPrototypeOf(x)) {
          assert.equal(Object.hasOwn(x, name), false, name);
        }
        assert.equal(Tensor.prototype[name], undefined);
      }
      for (const key in tensor) assert.notEqual(key, "length");
      tensor.mine = 3;
      assert.equal(tensor.mine, 3);
      tensor.release();
      same.release();
    });
  });
}

test("names of other libraries' tensors are absent", () => {
  const tensor = cpu();
  for (const name of ["dispose", "sum", "then", "destroy", "map", "has"]) {
    assert.deepEqual([name in tensor, tensor[name]], [false, undefined]);
  }
  tensor.release();
});

test("Tensor.from takes the options of fromTypedArray", () => {
  const rows = Tensor.from(four(), { shape: [2, 2] });
  assert.deepEqual([rows.shape, rows.at(1, 0)], [[2, 2], 3]);
  const bytes = Tensor.from(new Uint8Array(4), { dtype: "bool", shape: [4] });
  assert.deepEqual([bytes.dtype, bytes.shape], ["bool", [4]]);
  assert.throws(() => Tensor.from(rows, {}), { name: "TypeError" });
  rows.release();
  bytes.release();
});

test("elements are what iteration gives", () => {
  const tensor = cpu();
  const turned = tensor.permute([1, 0]);
  assert.deepEqual(new Float32Array(turned), Float32Array.of(1, 3, 2, 4));
  assert.deepEqual(Array.from(turned), [1, 3, 2, 4]);
  assert.deepEqual(Float64Array.from(turned), Float64Array.of(1, 3, 2, 4));
  assert.equal(Math.max(...turned), 4);
  tensor.release();
  turned.release();
  assert.throws(() => new Float32Array(tensor), { name: "ReleasedError" });
  const there = gpu();
  assert.throws(() => new Float32Array(there), { name: "UnsupportedError", message: /read\(\)/ });
  there.release();
});

test("clones are refused, and the message says what can be posted", () => {
  const message = /cannot be cloned or posted: post the result of transfer\(\) or read\(\)/;
  for (const tensor of [cpu(), gpu()]) {
    const error = { name: "UnsupportedError", message };
    assert.throws(() => structuredClone(tensor), error);
    assert.throws(() => new MessageChannel().port1.postMessage([tensor]), error);
    tensor.release();
  }
});

test("a Tensor as an option or argument is named by the error of the call", () => {
  const tensor = cpu();
  const lines = [
    [() => Tensor.fromTypedArray(four(), [tensor]), /^the options of fromTypedArray\(\)/],
    [() => tensor.to(tensor), /^a GPUDevice is needed, not Tensor float32\[2,2\] on cpu/],
    [() => tensor[Symbol.for("dlpack.exchange")]({ versions: tensor }), /not Tensor float32/],
    [() => tensor.reshape(tensor), array],
  ];
  for (const [line, message] of lines) assert.throws(line, { name: "TypeError", message });
  tensor.release();
});

test("no message of ours converts a Tensor to a string", async () => {
  const source = new URL("../../../js/src/", import.meta.url);
  const found = [];
  for (const name of await readdir(source, { recursive: true })) {
    if (!name.endsWith(".ts")) continue;
    const text = await readFile(new URL(name, source), "utf8");
    const spans = text.match(/\$\{(this|tensor|held|taken|arg|out|target|source)\}/g);
    if (spans) found.push(`${name}: ${spans.join(" ")}; write .toString()`);
  }
  assert.deepEqual(found, []);
});

describe("copy()", () => {
  test("is a packed array of its own memory, of the class that data has", () => {
    const memory = new WebAssembly.Memory({ initial: 1 });
    new Float32Array(memory.buffer, 64, 4).set(four());
    const tensor = Tensor.fromMemory(memory, 64, { shape: [2, 2], dtype: "float32" });
    const copy = tensor.copy();
    assert.deepEqual(copy, four());
    assert.equal(copy.buffer.byteLength, 16);
    assert.equal(copy.byteOffset, 0);
    assert.notEqual(tensor.copy(), copy);
    copy[0] = 9;
    assert.equal(tensor.at(0, 0), 1);
    tensor.data[1] = 8;
    assert.equal(copy[1], 2);
    memory.grow(1);
    assert.deepEqual(copy, Float32Array.of(9, 2, 3, 4));
    const turned = tensor.permute([1, 0]);
    assert.deepEqual(turned.copy(), Float32Array.of(1, 3, 8, 4));
    const corner = tensor.slice(1, [1, 2]);
    assert.deepEqual(corner.copy(), Float32Array.of(4));
    const reversed = tensor.slice([null, null, -1]);
    assert.deepEqual(reversed.copy(), Float32Array.of(3, 4, 1, 8));
    const none = tensor.slice([0, 0]);
    assert.deepEqual(none.copy(), new Float32Array(0));
    for (const each of [tensor, turned, corner, reversed, none]) each.release();
  });

  test("of other dtypes, at odd addresses, over JS's own array", () => {
    const bytes = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8);
    const odd = Tensor.fromTypedArray(bytes.subarray(1), { dtype: "int32" });
    assert.deepEqual(odd.copy(), Int32Array.of(0x04030201, 0x08070605));
    const nibbles = Tensor.fromTypedArray(Uint8Array.of(0x21, 0xf3), {
      dtype: "uint4",
      shape: [3],
    });
    assert.deepEqual(
      nibbles.copy(),
      Uint8Array.of(0x21, 0x03),
      "a neighbour's bits stay where they are",
    );
    const sevens = Tensor.fromTypedArray(new Uint8Array(29), { dtype: "int1x7", shape: [33] });
    const view = sevens.slice();
    assert.equal(view.data.length, 29);
    const own = four();
    const whole = Tensor.fromTypedArray(own);
    assert.notEqual(whole.copy().buffer, own.buffer);
    const long = Tensor.fromTypedArray(BigInt64Array.of(-1n));
    assert.deepEqual(long.copy(), BigInt64Array.of(-1n));
    const complex = Tensor.fromTypedArray(four(), { dtype: "complex64", shape: [2] });
    assert.deepEqual(complex.copy(), four());
    for (const each of [odd, nibbles, sevens, view, whole, long, complex]) each.release();
  });

  test("throws where there is nothing to copy", () => {
    const tensor = cpu();
    tensor.release();
    assert.throws(() => tensor.copy(), { name: "ReleasedError" });
    const there = gpu();
    assert.throws(() => there.copy(), {
      name: "UnsupportedError",
      message: /await tensor\.read\(\)/,
    });
    there.release();
  });
});

test("in debug mode, who takes .buffer of a view for its elements is warned, once", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const many = new Float32Array(100);
  const before = Tensor.fromTypedArray(many);
  const early = before.slice([0, 4]);
  const part = many.subarray(0, 4);
  const lent = new Tensor(fromTypedArray(part, {}, undefined, { release() {}, readOnly: true }));
  assert.notEqual(lent.data, part, "a view that is watched, not the library's array");
  const unwatched = early.data;
  watchForWholeBuffers();
  watchForWholeBuffers();
  const views = [0, 1, 2, 3].map((i) => before.slice([i * 4, i * 4 + 4]));
  const [a, b, c, d] = views.map((view) => view.data);
  const asGifencDoes = (view) => new Uint32Array(view.buffer);

  // What is right is not warned of: who reads both, in either order, or neither.
  new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
  const { byteOffset, buffer } = b;
  assert.deepEqual([byteOffset, buffer], [16, many.buffer]);
  structuredClone(c);
  const over = Tensor.from(c);
  for (let i = 0; i < 2; i++) over.copy(await null);
  new Float32Array(4).set(c);
  asGifencDoes(unwatched);
  asGifencDoes(before.data);
  const square = before.reshape([10, 10]);
  const turned = square.permute([1, 0]);
  const packed = turned.contiguous();
  asGifencDoes(packed.data); // all of its buffer is its own
  const moving = Tensor.fromMemory(new WebAssembly.Memory({ initial: 1 }), 0, {
    shape: [2],
    dtype: "float32",
  });
  assert.equal(moving.data, moving.data); // which compares buffers
  await null;
  assert.equal(warned.mock.callCount(), 0);
  assert.deepEqual(Object.keys(d), ["0", "1", "2", "3"]);
  assert.equal(views[3].data, d, "the same view as ever");

  asGifencDoes(a); // of which both were read before
  await null;
  assert.equal(warned.mock.callCount(), 1);
  asGifencDoes(d);
  asGifencDoes(views[0].data);
  await null;
  assert.equal(warned.mock.callCount(), 1);
  const [message] = warned.mock.calls[0].arguments;
  assert.match(message, /400 bytes, of which 16 .*tensor\.copy\(\)[\s\S]*asGifencDoes/);
  for (const each of [before, early, lent, over, square, turned, packed, moving, ...views])
    each.release();
});
