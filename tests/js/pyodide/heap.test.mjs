// Pyodide's memory and the calls of the C core, by a stand-in for Pyodide (stand_in.mjs). The real one:
// pyodide.test.mjs.
// Looks inside: the parts are tried without Pyodide, which hides the bytes that they read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { attach } from "../../../js/dist/pyodide/calls.js";
import { moduleOf } from "../../../js/dist/pyodide/host.js";
import { connected, DATA, fakePyodide, since } from "./stand_in.mjs";
import "../nothing_leaks.mjs";

test("what is missing of a Pyodide is named", () => {
  const { pyodide } = fakePyodide({ HEAP32: undefined, _check_gil: undefined });
  assert.throws(() => moduleOf(pyodide), {
    name: "UnsupportedError",
    message:
      "Pyodide 314.0 lacks _module.HEAP32, _module._check_gil: dlpack-web serves Pyodide 0.29 and " +
      "314; load one of these, such as npm's pyodide@^314.0.0",
    given: "314.0",
    needed: "0.29",
  });
  for (const name of ["HEAPU8", "LDSO", "validSuspender", "PyProxy_getPtr", "addFunction"]) {
    const without = fakePyodide({ [name]: undefined }).pyodide;
    assert.throws(() => moduleOf(without), { message: new RegExp(`lacks _module\\.${name}:`) });
  }
});

test("a core of another version is named, and one that is not there", () => {
  const fake = fakePyodide();
  const libraries = fake.module.LDSO.loadedLibsByName;
  delete libraries["/site-packages/dlpack_web/_core.abi3.so"].exports.dlw_bridge_chunk;
  assert.throws(() => attach(fake.pyodide), {
    message:
      "the installed dlpack_web wheel lacks chunk in its C core: it and this JavaScript must be of " +
      "the same version",
  });
  fake.module.LDSO.loadedLibsByName = {};
  assert.throws(() => attach(fake.pyodide), {
    message: "the C core of dlpack_web is not among the libraries of Pyodide 314.0",
  });
});

test("one Pyodide is connected once, and C learns what it may call", () => {
  const fake = fakePyodide();
  const calls = attach(fake.pyodide);
  assert.equal(attach(fake.pyodide), calls);
  assert.deepEqual(
    fake.calls.map(([name, index]) => [name, fake.functions[index]?.[1]]),
    [
      ["on_drop", "vi"],
      ["on_run", "iii"],
      ["on_wait", "ii"],
    ],
  );
});

test("a Python array is read where it is, and held until its release", () => {
  const { fake, bridge } = connected();
  new Float32Array(fake.memory.buffer, DATA, 8).set([0, 1, 2, 3, 4, 5, 6, 7]);
  fake.describe({ shape: [2, 3], offset: 8 });
  const before = liveTensors();
  const tensor = bridge.tensor({ address: 3000 });
  assert.deepEqual(since(fake), [["borrow", 3000, 0]]);
  assert.equal(fake.suspended, false);
  assert.equal(fake.module.validSuspender.value, true);
  assert.deepEqual(
    [tensor.shape, tensor.strides, tensor.dtype, tensor.readOnly, tensor.device.type],
    [[2, 3], [3, 1], "float32", false, 1],
  );
  assert.deepEqual([...tensor.data], [2, 3, 4, 5, 6, 7]);
  assert.equal(liveTensors(), before + 1);
  tensor.release();
  tensor.release();
  assert.deepEqual(since(fake), [["release", 77]]);
  assert.equal(fake.suspended, false);
  assert.equal(fake.module.validSuspender.value, true);
  assert.equal(liveTensors(), before);
});

for (const [what, facts, expected] of [
  ["read-only", { flags: 1, shape: [1] }, { readOnly: true, shape: [1] }],
  ["vectors", { code: 1, bits: 8, lanes: 4, shape: [2] }, { dtype: "uint8x4" }],
  [
    "padded",
    { code: 0, bits: 4, flags: 4, shape: [3] },
    { dtype: "int4", padded: true, nbytes: 3 },
  ],
  ["packed", { code: 0, bits: 4, shape: [3] }, { dtype: "int4", padded: false, nbytes: 2 }],
  ["pinned memory", { device: 3, shape: [2] }, { shape: [2] }],
  ["strided", { shape: [2, 2], strides: [1, 2] }, { strides: [1, 2] }],
  ["reversed", { shape: [3], strides: [-1], data: DATA + 8 }, { strides: [-1] }],
  ["long axes", { shape: [2 ** 33, 0] }, { shape: [2 ** 33, 0] }],
  ["row-major by its strides", { shape: [2, 1, 3], strides: [3, 99, 1] }, { strides: [3, 3, 1] }],
  ["no elements", { shape: [0, 3], strides: [7, 9] }, { strides: [3, 1] }],
  ["no axes", { shape: [] }, { shape: [], size: 1 }],
]) {
  test(`what C describes is what the tensor says: ${what}`, () => {
    const { fake, bridge } = connected();
    fake.describe(facts);
    const tensor = bridge.tensor({ address: 1 });
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(tensor[name], value, name);
    }
    tensor.release();
  });
}

test("packed elements with strides do not come, and are let go", () => {
  const { fake, bridge } = connected();
  fake.describe({ code: 0, bits: 4, shape: [2, 2], strides: [1, 2], handle: 5 });
  assert.throws(() => bridge.tensor({ address: 1 }), {
    name: "UnsupportedError",
    message:
      "a strided int4 cannot come to JS: packed sub-byte elements must be row-major; copy it first",
  });
  assert.deepEqual(since(fake), [
    ["borrow", 1, 0],
    ["release", 5],
  ]);
});

test("writable memory is asked for, unless it is copied anyway", () => {
  const { fake, bridge } = connected();
  fake.describe({ shape: [2] });
  bridge.tensor({ address: 1 }, { writable: true }).release();
  assert.deepEqual(since(fake)[0], ["borrow", 1, 1]);
  bridge.tensor({ address: 1 }, { writable: true, copy: true }).release();
  assert.deepEqual(
    since(fake).map(([name]) => name),
    ["borrow", "pack", "release", "release"],
  );
});

for (const [kind, name] of [
  [0, "DLPackError"],
  [1, "DLPackError"],
  [2, "UnsupportedError"],
  [3, "ReleasedError"],
  [4, "CopyError"],
  [5, "DeviceLostError"],
  [6, "DLPackError"],
  [99, "DLPackError"],
]) {
  test(`an error of C is a ${name} with Python's words and its exception: ${kind}`, () => {
    const { fake, bridge } = connected();
    Object.assign(fake, { next: 0, kind });
    const error = (() => {
      try {
        return bridge.tensor({ address: 1 });
      } catch (thrown) {
        return thrown;
      }
    })();
    assert.deepEqual([error.name, error.message], [name, "words of Python"]);
    assert.equal(error.cause.message, "the Python exception");
    assert.equal(fake.module.validSuspender.value, true);
    fake.text = "";
    assert.throws(() => bridge.tensor({ address: 1 }), {
      message: "Python is out of memory: release unused tensors",
    });
  });
}

test("views, copies and fresh memory are C's, with their shapes in the scratch", () => {
  const { fake, bridge } = connected();
  const at = fake.describe({ shape: [4, 6] });
  const whole = bridge.tensor({ address: 1 });
  fake.next = fake.describe({ at: at + 256, handle: 78, data: DATA + 100, shape: [2, 2] });
  since(fake);
  const view = whole.slice([1, 3], [2, 6, 2]);
  assert.deepEqual(since(fake), [["view", 77, 2, 8]]);
  assert.deepEqual([...fake.scratch().slice(0, 2)], [2n, 2n]);
  assert.deepEqual([...fake.scratch().slice(64, 66)], [6n, 2n]);
  assert.deepEqual([view.shape, view.strides, view._managed.start], [[2, 2], [6, 2], DATA + 100]);
  const packed = view.contiguous();
  assert.deepEqual(since(fake), [["pack", 78]]);
  const made = bridge.empty([2, 2], "int16");
  assert.deepEqual(since(fake), [["empty", 2, 0x00011000, 0]]);
  assert.deepEqual([...fake.scratch().slice(0, 2)], [2n, 2n]);
  for (const each of [whole, view, packed, made]) each.release();
  assert.deepEqual(since(fake), [
    ["release", 77],
    ["release", 78],
    ["release", 78],
    ["release", 78],
  ]);
});

test("data follows memory that grows", () => {
  const { fake, bridge } = connected();
  fake.describe({ shape: [2] });
  const tensor = bridge.tensor({ address: 1 });
  new Float32Array(fake.memory.buffer, DATA, 2).set([4, 5]);
  const before = tensor.data;
  fake.memory.grow(1);
  assert.equal(before.length, 0);
  assert.deepEqual([...tensor.data], [4, 5]);
  tensor.release();
});

test("Python gets a hold of its own; arrays of JavaScript are copied once", () => {
  const { fake, bridge } = connected();
  fake.describe({ shape: [2], handle: 9 });
  const ours = bridge.tensor({ address: 1 });
  since(fake);
  assert.deepEqual(bridge.toPython(ours), { handle: 9 });
  assert.deepEqual(since(fake), [["share", 9]]);
  const theirs = Tensor.fromTypedArray(Float32Array.of(7, 8));
  assert.throws(() => bridge.toPython(theirs, { copy: false }), {
    name: "CopyError",
    message:
      "Python cannot see the memory of Tensor float32[2] on cpu: a copy is needed, which copy: " +
      "false forbids; fill a tensor from bridge.empty() instead",
  });
  assert.deepEqual(since(fake), []);
  for (const given of [theirs, Float32Array.of(7, 8)]) {
    assert.deepEqual(bridge.toPython(given), { handle: 9 });
    assert.deepEqual(since(fake), [["empty", 1, 0x00012002, 0]]);
  }
  const copied = bridge.toPython(Float32Array.of(7, 8), { copy: true });
  assert.deepEqual([copied, since(fake)], [{ handle: 9 }, [["empty", 1, 0x00012002, 0]]]);
  assert.throws(() => bridge.toPython(Float32Array.of(7), { copy: false }), { name: "CopyError" });
  assert.throws(() => bridge.toPython(new Uint8Array(fake.memory.buffer, DATA, 8)), {
    name: "UnsupportedError",
    message: /views Pyodide's memory/,
  });
  assert.throws(() => bridge.toPython([1, 2]), { message: /as new Float32Array\(…\) makes it/ });
  assert.deepEqual([...new Float32Array(fake.memory.buffer, DATA, 2)], [7, 8]);
  assert.deepEqual(fake.taken, [9, 9, 9, 9]);
  ours.release();
  theirs.release();
});

test("a hold that Python does not take is let go", () => {
  const { fake, bridge } = connected();
  fake.describe({ shape: [2], handle: 9 });
  const ours = bridge.tensor({ address: 1 });
  const { push } = fake.taken;
  fake.taken.push = () => {
    throw new Error("no memory");
  };
  since(fake);
  assert.throws(() => bridge.toPython(ours), { message: "no memory" });
  assert.deepEqual(since(fake), [
    ["share", 9],
    ["release", 9],
  ]);
  fake.taken.push = push;
  ours.release();
});

test("what bridge.tensor() does not take names what does", () => {
  const { fake, bridge } = connected();
  const refused = (x) => {
    try {
      bridge.tensor(x);
    } catch (error) {
      return [error.name, error.message];
    }
    return null;
  };
  const words =
    "bridge.tensor() takes a PyProxy of an array, a Tensor, a typed array or an object with " +
    '[Symbol.for("dlpack.exchange")], not ';
  assert.deepEqual(refused(5), [
    "TypeError",
    `${words}[object Number]: for a library's tensor import its adapter, such as "dlpack-web/ort"`,
  ]);
  assert.deepEqual(refused({ [Symbol.toStringTag]: "GPUBuffer" }), [
    "TypeError",
    "a GPUBuffer does not describe its elements: use Tensor.fromGPUBuffer(buffer, { device, shape, " +
      "dtype }), in Python from_gpu_buffer()",
  ]);
  assert.deepEqual(refused(new fake.PyProxy()), ["ReleasedError", "this PyProxy was destroyed"]);
  assert.equal(refused(new Uint8Array(fake.memory.buffer, 0, 4))[0], "UnsupportedError");
});

test("interrupts are held until they were let as often, and come back only where they were", () => {
  const { fake, calls } = connected();
  const flag = () => fake.module.HEAPU8[12];
  for (const looks of [1, 0]) {
    fake.module.HEAPU8[12] = looks;
    calls.waits.holdInterrupts();
    calls.waits.holdInterrupts();
    assert.equal(flag(), 0);
    calls.waits.letInterrupts();
    assert.equal(flag(), 0);
    calls.waits.letInterrupts();
    assert.equal(flag(), looks);
  }
});

test("a Pyodide without that flag has its byte 0 left alone", () => {
  const { fake, calls } = connected({ _Py_EMSCRIPTEN_SIGNAL_HANDLING: undefined });
  fake.module.HEAPU8[0] = 1;
  calls.waits.holdInterrupts();
  assert.equal(fake.module.HEAPU8[0], 1);
  calls.waits.letInterrupts();
  assert.equal(fake.module.HEAPU8[0], 1);
});
