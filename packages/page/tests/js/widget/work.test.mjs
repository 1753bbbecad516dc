// Elements that were cancelled: the operations that wait for them end, and nothing of them stays.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { liveTensors } from "../../../../../js/dist/index.js";
import { emptyOnDevice } from "../../../../../js/dist/webgpu/buffers/buffers.js";
import { listenForFaults, useDevice } from "../../../../../js/dist/webgpu/device/device.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { NamedTensors } from "../../../js/dist/widget/tensors.js";
import { Work } from "../../../js/dist/widget/work.js";

const elements = { shape: [4], dtype: "float32", padded: false };
const view = (id) => ({ id, ...elements, offset: 0, strides: null, readOnly: false });

let device;
let work;
let replies;

beforeEach(() => {
  device = fakeDevice();
  replies = [];
  work = new Work(device, {
    send: async () => {},
    reply: (number, _, error) => replies.push([number, error?.message]),
    draw: async () => {},
    report: () => {},
    tensors: new NamedTensors(),
  });
});

const take = (id, name) => work.add({ op: "take", id, name, ...elements });
const cancel = (name) => work.add({ op: "cancel", name, why: `${name} was freed` });

function arrive(name) {
  const tensor = emptyOnDevice(useDevice(device), [4], dtypeNamed("float32"));
  work.arrive(name, tensor);
  tensor.release();
}

/** Why a tensor cannot be drawn, which is done after all that waits. */
async function drawn(id) {
  work.add({ op: "canvas", what: view(id), reply: id });
  await turn();
  return replies.find(([number]) => number === id);
}

test("what waits for cancelled elements fails, and what follows goes on", async () => {
  const before = liveTensors();
  take(1, "t1"); // it waits, and the others are behind it
  take(2, "t2");
  work.add({ op: "empty", id: 3, shape: [4], dtype: "float32" });
  work.add({ op: "write", to: view(3), name: "w4", site: 1, ...elements });
  await turn();
  for (const name of ["t2", "w4", "t1"]) cancel(name);
  await turn();
  assert.deepEqual(await drawn(1), [1, "t1 was freed"]);
  assert.deepEqual(await drawn(2), [2, "t2 was freed"]);
  assert.deepEqual(await drawn(3), [3, "w4 was freed"]); // a part of it may be missing
  assert.equal(liveTensors(), before);
  for (const name of ["t2", "w4", "t1"]) arrive(name); // too late
  assert.equal(liveTensors(), before);
  work.end();
});

test("of a read of several, one error is the answer, and the others are reported", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const told = [];
  const stop = listenForFaults(device, ({ message }) => told.push(/wrong \d/.exec(message)?.[0]));
  for (const id of [1, 2]) work.add({ op: "empty", id, shape: [4], dtype: "float32" });
  let count = 0;
  device.popErrorScope = async () => ({ message: `wrong ${++count}` });
  work.add({ op: "read", what: [view(1), view(2)], names: ["r", "s"], site: 1, reply: 7 });
  await turn();
  assert.match(replies[0][1], /wrong 1/);
  t.mock.timers.tick(1000);
  assert.deepEqual(told, ["wrong 2"]);
  stop();
  work.end();
});

test("elements that came before they were cancelled are released", async () => {
  const before = liveTensors();
  take(1, "t1");
  take(2, "t2");
  arrive("t2");
  cancel("t2");
  assert.equal(liveTensors(), before);
  cancel("t1");
  await turn();
  assert.deepEqual(await drawn(2), [2, "t2 was freed"]);
  work.end();
});

test("a cancellation of what was done changes nothing, and nothing of it stays", async () => {
  take(1, "t1");
  arrive("t1");
  await turn();
  cancel("t1");
  cancel("t9");
  assert.deepEqual(await drawn(1), [1, undefined]);
  take(2, "t1"); // it would find the error
  arrive("t1");
  await turn();
  assert.deepEqual(await drawn(2), [2, undefined]);
  work.end();
});

test("a write that was given up when it was done leaves an error: its elements may be wrong", async () => {
  const before = liveTensors();
  for (const id of [1, 2]) work.add({ op: "empty", id, shape: [4], dtype: "float32" });
  work.add({ op: "write", to: view(1), name: "w1", site: 1, ...elements });
  arrive("w1");
  await turn();
  for (const to of [1, 9]) work.add({ op: "cancel", name: "w1", why: "w1 was freed", to });
  assert.deepEqual(await drawn(1), [1, "w1 was freed"]);
  assert.deepEqual(await drawn(2), [2, undefined]);
  work.end();
  assert.equal(liveTensors(), before);
});

test("the result of a recorded kernel is an error until its batch runs", async () => {
  for (const id of [1, 2])
    work.add({ op: "empty", id, shape: [4], dtype: "float32", recorded: true });
  const read = async (reply, id = 1) => {
    work.add({ op: "read", what: [view(id)], names: ["r"], site: 1, reply });
    for (let i = 0; i < 9; i++) await turn();
    return replies.find(([number]) => number === reply)[1];
  };
  assert.match(await read(1), /has not run: call its run/);
  work.add({ op: "write", to: view(1), name: "w", site: 1, ...elements });
  arrive("w");
  assert.equal(await read(2), undefined);
  assert.match(await read(3, 2), /has not run/);
  const wgsl = `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(1) fn main() {}`;
  device.popErrorScope = async () => ({ message: "it is invalid" });
  const named = { entry: "main", label: "k", check: true, parts: [], site: 1 };
  work.add({ op: "kernel", id: 7, wgsl, ...named });
  const call = { kernel: 7, args: [view(1)], groups: [1, 1, 1], writes: [1], site: 1 };
  work.add({ op: "run", calls: [call] });
  device.popErrorScope = async () => null;
  work.add({ op: "run", calls: [], first: [1, 2, 9] });
  assert.match(await read(5), /it is invalid/);
  assert.equal(await read(4, 2), undefined);
  work.end();
});
