// What Python calls in JavaScript, by a stand-in for Pyodide (stand_in.mjs) and a GPU that notes calls.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { loggedDevice } from "../fake_device.mjs";
import { connected, DATA, since } from "./stand_in.mjs";
import "../nothing_leaks.mjs";

const STORAGE = 4 | 8 | 128; // COPY_SRC | COPY_DST | STORAGE

function fakeGPU() {
  const { gpu, log } = loggedDevice();
  log.waited = 0;
  Object.assign(gpu.limits, {
    maxUniformBufferBindingSize: 1 << 16,
    minUniformBufferOffsetAlignment: 256,
  });
  Object.assign(gpu.queue, {
    writeBuffer: (_, ...rest) => log.written.push(rest),
    onSubmittedWorkDone: async () => log.waited++,
  });
  return { gpu, log };
}

const SOURCE = `
  @group(0) @binding(0) var<storage, read_write> x: array<f32>;
  @group(0) @binding(1) var<uniform> u: f32;
  @compute @workgroup_size(2) fn main() { x[0] = u; }`;

/** float32[5] on the GPU, and the address where C describes it. */
function onGPU(fake, gpu) {
  const buffer = gpu.createBuffer({ size: 64, usage: STORAGE });
  const tensor = Tensor.fromGPUBuffer(buffer, { device: gpu, shape: [5], dtype: "float32" });
  return {
    tensor,
    address: fake.describe({ device: 15, data: tensor._managed.handle, shape: [5] }),
  };
}

test("C runs a kernel by its number, over tensors that it holds", async () => {
  const { fake, calls } = connected();
  const { gpu, log } = fakeGPU();
  const id = calls.devices.use(gpu);
  assert.equal(calls.devices.use(gpu), id);
  assert.equal(calls.devices.device(id), gpu);
  assert.ok(calls.devices.ids().includes(id));
  const kernel = calls.kernels.kernel(7, SOURCE, "main", "mine", true, id, []);
  const number = calls.kernels.numberOf(kernel);
  const host = Tensor.fromTypedArray(new Float32Array(5));
  const tensor = host.to(gpu);
  host.release();
  log.written.length = 0;
  const address = fake.describe({ device: 15, data: tensor._managed.handle, shape: [5] });
  const run = fake.functions[1][0];
  const call = (kernel, workgroups, ...args) => {
    fake.describeCall(7, workgroups, args, [2, 71, 0, ...workgroups]);
    return run(kernel, 0);
  };
  const again = (kernel, key, value = 3.5) => {
    fake.describeCall(7, [1, 1, 1], [[address], value], key);
    return run(kernel, 1);
  };
  assert.equal(call(number, [0, 0, 0], [address], 1.5), 1);
  assert.equal(call(number, [4, 5, 6], [address], 2.5), 1);
  await kernel.ready;
  const second = [2, 71, 0, 4, 5, 6];
  for (const other of [
    [2, 71, 0, 0, 0, 0], // the call with these bytes is another now
    [2, 72, 0, 4, 5, 6],
    [2, 0, 71, 4, 5, 6],
    [2, 71, 0, 4, 5],
    [2, 71, 0, 4, 5, 6, 0],
    [],
  ]) {
    assert.equal(again(number, other), 0);
  }
  assert.equal(again(number, second), 1);
  assert.equal(again(number, second), 1);
  assert.deepEqual(log.dispatched, [
    [3, 1, 1],
    [4, 5, 6],
    [4, 5, 6],
    [4, 5, 6],
  ]);
  const written = log.written.map(([, data]) => data[0]);
  assert.deepEqual(written, [1.5, 2.5, 3.5]);
  const batch = webgpu.batch(gpu);
  batch.record(() => assert.equal(again(number, second), 0));
  assert.equal(again(number + 1, second, -1), 0);
  assert.throws(() => calls.kernels.failure(), /there is no kernel/);
  assert.equal(call(number, [0, 0, 0], [address]), 0);
  assert.throws(() => calls.kernels.failure(), {
    name: "RangeError",
    message: /\(x, u\): 2, not 1/,
  });
  assert.equal(call(number + 1, [0, 0, 0]), 0);
  assert.throws(() => calls.kernels.failure(), {
    name: "TypeError",
    message: `there is no kernel ${number + 1}`,
  });
  tensor.release();
});

test("a kernel that Python gave up to time does not run", async () => {
  const { fake, calls } = connected();
  const { gpu, log } = fakeGPU();
  gpu.features.add("timestamp-query");
  gpu.createQuerySet = () => ({ destroy() {} });
  const id = calls.devices.use(gpu);
  const kernel = calls.kernels.kernel(7, SOURCE, "main", "mine", true, id, []);
  const { tensor, address } = onGPU(fake, gpu);
  fake.describeCall(7, [0, 0, 0], [[address], 1.5]);
  const timing = calls.kernels.time(5, kernel);
  tensor.release(); // what Python has at the address now is something else
  fake.describe({ shape: [0] });
  calls.waits.giveUp(4, false);
  calls.waits.giveUp(5, false);
  await assert.rejects(timing, { name: "AbortError" });
  assert.deepEqual(log.dispatched, []);
  calls.waits.giveUp(5, false); // it is over
});

test("an error that a cancelled task of Python does not get is reported", async () => {
  const { calls } = connected();
  const { gpu } = fakeGPU();
  gpu.popErrorScope = async () => ({ message: "wrong" });
  const told = [];
  webgpu.listenForFaults(gpu, (error) => told.push(error.label));
  const kernels = ["seen", "unseen"].map((label) => new webgpu.Kernel(gpu, SOURCE, { label }));
  for (const [work, kernel] of kernels.entries()) {
    const buffer = gpu.createBuffer({ size: 64, usage: STORAGE });
    const tensor = Tensor.fromGPUBuffer(buffer, { device: gpu, shape: [5], dtype: "float32" });
    kernel.run([tensor, 1], { workgroups: 1 });
    await assert.rejects(
      calls.waits.until(work, () => tensor.read()),
      /wrong/,
    );
    calls.waits.giveUp(work, work === 0);
    tensor.release();
  }
  await setTimeout(1100); // a second after the errors
  assert.deepEqual(told, ["unseen"]);
});

test("strided elements are uploaded in the pieces that C packs or converts", () => {
  const { fake, bridge } = connected();
  let log;
  fake.describe({ shape: [2, 2], strides: [1, 2], handle: 61 });
  const tensor = bridge.tensor({ address: 1 });
  const upload = (count, options) => {
    const device = fakeGPU(); // no buffer is used again
    log = device.log;
    since(fake);
    fake.count = count;
    fake.scratch()[0] = BigInt(DATA);
    tensor.to(device.gpu, options).release();
    return since(fake);
  };
  const { buffer } = fake.memory;
  const float32 = 0x00012002;
  assert.deepEqual(upload(2), [
    ["chunk", 61, float32, 0],
    ["chunk", 61, float32, 2],
  ]);
  assert.deepEqual(log.written, [
    [0, buffer, DATA, 8],
    [8, buffer, DATA, 8],
  ]);
  assert.deepEqual(upload(4, { dtype: "float16" }), [["chunk", 61, 0x00011002, 0]]);
  assert.deepEqual(log.written, [[0, buffer, DATA, 8]]);
  assert.throws(() => upload(0), { name: "UnsupportedError", message: "words of Python" });
  tensor.release();
});

test("a tensor on the GPU is wrapped with what C needs to know", () => {
  const { fake, calls } = connected();
  const { gpu } = fakeGPU();
  const id = calls.devices.use(gpu);
  let ended = 0;
  const make = (offset, ...rest) =>
    calls.tensors.fromGPUBuffer(
      gpu.createBuffer({ size: 64, usage: STORAGE }),
      [2, 3],
      "int16",
      id,
      offset,
      ...rest,
    );
  fake.describe({ handle: 31 });
  assert.equal(
    make(8, () => ended++),
    31,
  );
  const [[name, slot, ...facts]] = since(fake);
  assert.deepEqual([name, ...facts], ["wrap", id, 2, 0x00011000, 0, 0]);
  assert.deepEqual([...fake.scratch().slice(0, 2), fake.scratch()[128]], [2n, 3n, 8n]);
  make(0);
  const [, other] = since(fake)[0];
  assert.equal(ended, 0);
  for (const each of [slot, other]) fake.functions[0][0](each); // as C drops it
  assert.equal(ended, 1);
});

test("C learns whether a tensor is read-only or strided", () => {
  const { fake, bridge } = connected();
  const { gpu } = fakeGPU();
  fake.describe({ handle: 3 });
  const of = (options) =>
    Tensor.fromGPUBuffer(gpu.createBuffer({ size: 64, usage: STORAGE }), {
      device: gpu,
      shape: [2, 2],
      dtype: "float32",
      ...options,
    });
  const tensors = [of({ readOnly: true }), of({ strides: [1, 2] })];
  for (const tensor of tensors) bridge.toPython(tensor);
  const [one, two] = since(fake);
  assert.deepEqual(one.slice(3), [2, 0x00012002, 1, 0]);
  assert.deepEqual(two.slice(3), [2, 0x00012002, 0, 1]);
  assert.deepEqual([...fake.scratch().slice(64, 66)], [1n, 2n]);
  for (const tensor of tensors) tensor.release();
  for (const [, slot] of [one, two]) fake.functions[0][0](slot);
});

test("a tensor that was made for Python alone is released when it is collected", () => {
  const { fake, calls } = connected();
  fake.describe({ shape: [2], handle: 21 });
  const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2));
  assert.equal(calls.tensors.fromJs(tensor), 21);
  assert.ok(tensor._managed.watcher instanceof FinalizationRegistry);
  tensor.release();
});

test("pictures have a promise, and are released when they come", async () => {
  const { calls } = connected();
  const { gpu } = fakeGPU();
  const id = calls.devices.use(gpu);
  const found = calls.images.fromImage(3, { [Symbol.toStringTag]: "Blob" }, id, {});
  found.release();
  await assert.rejects(found.promise, { name: "TypeError", message: /not Blob/ });
});

test("Python waits for what was submitted, and no longer than the device lives", async () => {
  const { calls } = connected();
  const { gpu, log } = fakeGPU();
  const id = calls.devices.use(gpu);
  await calls.devices.settle(id);
  assert.equal(log.waited, 1);
  let lose;
  gpu.lost = new Promise((resolve) => {
    lose = resolve;
  });
  gpu.queue.onSubmittedWorkDone = () => new Promise(() => {});
  const waiting = calls.devices.settle(id);
  lose({ reason: "unknown" });
  await waiting.catch(() => {});
  const told = [];
  calls.devices.onFault((message, site) => told.push([message, site]));
  assert.deepEqual(told, []);
  assert.equal(calls.devices.siteOf(new Error("of nobody")), 0);
  assert.equal(calls.devices.stats()[id].device, `webgpu:${id}`);
});
