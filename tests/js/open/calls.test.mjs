// Python's calls about files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connected, DATA, since } from "../pyodide/stand_in.mjs";

test("Python learns of a file what is in it", () => {
  const { calls } = connected();
  const info = { dtype: "int8", shape: Object.freeze([2, 3]), nbytes: 6 };
  const file = {
    name: "a.npz",
    names: ["x"],
    metadata: { by: "me" },
    info: () => info,
    _why: () => null,
    _shards: 1,
  };
  assert.deepEqual(calls.files.factsOf(file), {
    name: "a.npz",
    shards: 1,
    metadata: { by: "me" },
    infos: [["x", "int8", [2, 3], 6, null]],
  });
});

test("files come into Python's memory, by the options given, and end with release()", async () => {
  const { fake, calls } = connected();
  fake.describe({ shape: [2, 2], handle: 41 });
  const told = [];
  const options = { format: "raw", dtype: "float32", shape: [2, 2] };
  const opening = calls.files.open(new Uint8Array(16).fill(1), -1, options, (...it) =>
    told.push(it),
  );
  const tensor = await opening.promise;
  assert.deepEqual([tensor.shape, tensor._managed.handle], [[2, 2], 41]);
  assert.deepEqual(since(fake), [["empty", 2, 0x00012002, 0]]);
  assert.deepEqual([...fake.scratch().slice(0, 2)], [2n, 2n]);
  assert.deepEqual(told.at(-1), [16, 16]);
  assert.deepEqual([...new Uint8Array(fake.memory.buffer, DATA, 16)], new Array(16).fill(1));
  opening.release();
  opening.release();
  assert.deepEqual(since(fake), [["release", 41]]);
  const left = calls.files.open(new Uint8Array(16), -1, {
    format: null,
    dtype: "uint8",
    shape: null,
  });
  left.release();
  await assert.rejects(left.promise, { name: "AbortError" });
});

test("what is saved is named, and let go when it is written", async () => {
  const { fake, calls } = connected();
  fake.describe({ shape: [2], handle: 51 });
  new Float32Array(fake.memory.buffer, DATA, 2).set([1, 2]);
  const save = async (names, options) => {
    const chunks = [];
    const target = new WritableStream({ write: (chunk) => void chunks.push(...chunk) });
    await calls.files.save(target, names, options, ...names.map(() => 900)).promise;
    return Buffer.from(chunks).toString("latin1");
  };
  const safe = await save(["a", "b"], { format: "safetensors", metadata: { by: "me" } });
  assert.match(safe, /"a":\{.*"b":\{/);
  assert.match(safe, /"by":"me"/);
  assert.match(await save(["one"], { format: "npy" }), /^\x93NUMPY.*\(2,\)/);
  const names = since(fake).map(([name]) => name);
  const ends = names.filter((name) => name === "release");
  const holds = names.filter((name) => /^(borrow|share|view|pack|empty)$/.test(name));
  assert.equal(names.filter((name) => name === "borrow").length, 3);
  assert.equal(ends.length, holds.length);
});
