// Options that do not exist are refused by name: they would be ignored.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, Tensor, webgpu } from "../../js/dist/index.js";
import { open, save } from "../../js/dist/open/index.js";

const words = new Float32Array(4);
const tensor = () => Tensor.fromTypedArray(words);
const wgsl = "@compute @workgroup_size(1) fn main() {}";
const memory = { heap: new Uint8Array(16), view: () => new Uint8Array(16) };
const formula = { inputs: "f32 x", outputs: "f32 y" };

/** What each takes: its name in the message, one of its options, and a call with options. */
const CALLS = [
  ["fromTypedArray()", "shape", (options) => Tensor.fromTypedArray(words, options)],
  ["fromMemory()", "readOnly", (options) => Tensor.fromMemory(memory, 0, options)],
  [
    "fromGPUBuffer()",
    "byteOffset",
    (options) => Tensor.fromGPUBuffer({ size: 4, usage: 0 }, options),
  ],
  ["to()", "usage", (options) => tensor().to({}, options)],
  ["write()", "convert", (options) => tensor().write(words, options)],
  ["a kernel", "entry", (options) => new webgpu.Kernel({}, wgsl, options)],
  [
    "an ElementwiseKernel",
    "operation",
    (options) => new webgpu.ElementwiseKernel({}, options),
    formula,
  ],
  [
    "a ReductionKernel",
    "reduceType",
    (options) => new webgpu.ReductionKernel({}, options),
    formula,
  ],
  ["open()", "headers", (options) => open(new Uint8Array(8), options)],
  ["save()", "metadata", (options) => save(tensor(), options)],
  ["connect()", "wheel", (options) => connect({}, options)],
];

for (const [what, known, call, more] of CALLS) {
  for (const name of ["nonsense", known.toUpperCase(), "constructor", "toString", "__proto__"]) {
    test(`${what} has no option ${name}`, async () => {
      const options = Object.fromEntries([...Object.entries(more ?? {}), [name, undefined]]);
      await assert.rejects(
        async () => call(options),
        (error) => {
          assert.equal(error.name, "TypeError");
          assert.ok(
            error.message.startsWith(`${what} has no option "${name}": it has `),
            error.message,
          );
          assert.ok(
            error.message.includes(known) && !error.message.includes("place"),
            error.message,
          );
          return true;
        },
      );
    });
  }
  test(`the options of ${what} are an object`, async () => {
    for (const options of [5, [4], null, "x"]) {
      const message = new RegExp(
        `^the options of ${what.replace(/[()]/g, "\\$&")} must be an object, e.g. \\{`,
      );
      await assert.rejects(async () => call(options), { name: "TypeError", message });
    }
  });
}

test("a name of another's text is cut", () => {
  const long = { ["x".repeat(1e6)]: 1 };
  assert.throws(
    () => Tensor.fromTypedArray(words, long),
    (error) => error.message.length < 300,
  );
});

test("the options of a tensor in a file are its own", async () => {
  const file = await open(await save({ w: tensor() }));
  await assert.rejects(file.load("w", { format: "npy" }), {
    name: "TypeError",
    message: 'load() has no option "format": it has device, dtype, part, signal, progress, whole',
  });
  file.close();
});
