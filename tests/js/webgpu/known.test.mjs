// Which calls of a kernel are checked and have error scopes, and which are known. The device is a fake
// that counts scopes and answers them when a test says so. On real devices known_cases.mjs (in
// tests/browser/cases/js) compares known calls with checked ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../js/dist/core/dtype.js";
import { ManagedTensor } from "../../../js/dist/core/managed.js";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { emptyOnDevice } from "../../../js/dist/webgpu/buffers.js";
import { useDevice } from "../../../js/dist/webgpu/device.js";
import { Marks } from "../../../js/dist/webgpu/known.js";
import "../../../js/dist/webgpu/lazy.js"; // errors are explained within a turn
import { markExposed } from "../../../js/dist/webgpu/record.js";
import { releaseSlot, retainSlot, slotOf } from "../../../js/dist/webgpu/references.js";
import { fakeDevice } from "../fake_device.mjs";

const ADD = `
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> k: f32;
@compute @workgroup_size(4) fn main() { x[0] += k; }`;
const turn = () => new Promise((done) => setTimeout(done));

/** A device whose scopes are answered by `answer(error)`, in the order in which they ended. */
function watching() {
  const waiting = [];
  let pushed = 0;
  const gpu = {
    ...fakeDevice(),
    pushErrorScope: () => pushed++,
    popErrorScope: () => new Promise((done) => waiting.push(done)),
  };
  gpu.limits = {
    ...gpu.limits,
    maxUniformBufferBindingSize: 1 << 16,
    minUniformBufferOffsetAlignment: 256,
  };
  return {
    gpu,
    /** How many scopes `block` has. */
    scopes(block) {
      const before = pushed;
      block();
      return pushed - before;
    },
    async answer(error = null) {
      for (const done of waiting.splice(0)) done(error);
      await turn();
    },
  };
}

function upload(gpu, values = [1, 2, 3, 4], usage) {
  const host = Tensor.fromTypedArray(Float32Array.from(values));
  const tensor = host.to(gpu, usage === undefined ? {} : { usage });
  host.release();
  return tensor;
}

const recordOf = (tensor) => slotOf(tensor._managed.handle).facts;

async function compiled(device, options) {
  const kernel = new webgpu.Kernel(device.gpu, ADD, options);
  await device.answer();
  return kernel;
}

test("a call that the GPU accepted has no scope, with other numbers and other tensors there too", async () => {
  const device = watching();
  const kernel = await compiled(device);
  const x = upload(device.gpu);
  const run = (...args) => device.scopes(() => kernel.run(args));
  assert.equal(run(x, 1), 1);
  await device.answer();
  assert.equal(run(x, 1) + run(x, 2), 0);
  assert.equal(
    device.scopes(() => kernel.run([x, 1], { workgroups: 2 })),
    0,
  );
  const same = x.reshape([2, 2]);
  assert.equal(run(same, 3), 0);
  const { facts } = slotOf(x._managed.handle);
  x.release();
  same.release();
  const pooled = upload(device.gpu, [0, 0, 0, 0]);
  assert.equal(recordOf(pooled), facts);
  assert.equal(run(pooled, 3), 0);
  assert.equal(run(upload(device.gpu), 3), 1);
  const timestampWrites = {};
  assert.equal(
    device.scopes(() => kernel.run([pooled, 3], { timestampWrites })),
    1,
  );
  const parts = upload(device.gpu, new Array(128).fill(0));
  for (const range of [
    [0, 64],
    [64, 128],
    [0, 60],
  ]) {
    assert.equal(run(parts.slice(range), 1), 1);
    await device.answer();
    assert.equal(run(parts.slice(range), 1), 0);
  }
  assert.throws(() => run(pooled, "3"), TypeError);
  assert.throws(() => run(x, 3), { name: "ReleasedError" });
  assert.throws(() => kernel.run([pooled, 3], { workgroup: 2 }), TypeError);
  assert.throws(() => kernel.run([pooled, 3], { workgroups: 1000 }), RangeError);
});

test("a call may follow one that is pending, if it can only fail as that does", async () => {
  const device = watching();
  const { gpu } = device;
  const kernel = new webgpu.Kernel(gpu, ADD);
  const [x, y] = [upload(gpu), upload(gpu)];
  const run = (tensor) => device.scopes(() => kernel.run([tensor, 1]));
  assert.deepEqual([run(x), run(x)], [1, 1], "it may not compile");
  await device.answer();
  assert.deepEqual([run(y), run(y), run(y)], [1, 0, 0]);
  await device.answer();
  const unchecked = await compiled(device, { check: false });
  const again = () => device.scopes(() => unchecked.run([x, 1]));
  assert.deepEqual([again(), again()], [1, 1], "the GPU may know more");
  await device.answer();
  assert.equal(again(), 0);
  // What it inherits is not of this call: the elements may be overwritten before the next one.
  const other = await compiled(device);
  const z = upload(gpu);
  unchecked.run([z, 1]);
  const next = () => device.scopes(() => other.run([z, 1]));
  assert.deepEqual([next(), next()], [1, 1]);
  await device.answer();
  assert.equal(next(), 0);
});

test("a call fails with the one that it follows, also where its elements are new", async () => {
  const device = watching();
  const kernel = await compiled(device);
  const x = upload(device.gpu);
  const again = [x, x.reshape([2, 2])]; // known by its arguments, and by its bytes
  for (const second of again) {
    const { facts } = slotOf(x._managed.handle);
    const fresh = new webgpu.Kernel(device.gpu, ADD);
    await device.answer();
    assert.equal(
      device.scopes(() => fresh.run([x, 1])),
      1,
    );
    const host = Tensor.fromTypedArray(new Float32Array(4));
    x.write(host);
    host.release();
    assert.equal(facts.work.length, 0);
    assert.equal(
      device.scopes(() => fresh.run([second, 1])),
      0,
    );
    await device.answer({ message: "refused" });
    assert.match(facts.work[0].outcome.fault.error.message, /refused/);
    x.write(Tensor.fromTypedArray(new Float32Array(4)));
  }
  assert.equal(
    device.scopes(() => kernel.run([x, 1])),
    1,
  );
});

test("after an error of the device a number is written where the bind group has it", async () => {
  const device = watching();
  const bound = [];
  const written = [];
  let used;
  Object.assign(device.gpu, {
    createBindGroup: ({ entries }) => entries,
    createCommandEncoder: () => ({
      beginComputePass: () => ({
        setPipeline() {},
        setBindGroup: (_, entries) => bound.push(entries[1].resource.buffer),
        dispatchWorkgroups() {},
        end() {},
      }),
      finish() {},
    }),
  });
  const { queue } = device.gpu;
  device.gpu.queue = { ...queue, writeBuffer: (buffer) => written.push(buffer) };
  const kernel = await compiled(device);
  const x = upload(device.gpu);
  for (let i = 0; i < 4; i++) {
    kernel.run([x, i]);
    assert.equal(bound.at(-1), written.at(-1));
    assert.equal(bound.at(-1) === used, i === 1 || i === 3);
    used = bound.at(-1);
    await device.answer();
    if (i === 1) useDevice(device.gpu).errors++;
  }
});

test("buffers that are being made are watched until they are there", async () => {
  const device = watching();
  const kernel = await compiled(device);
  const x = emptyOnDevice(useDevice(device.gpu), [20_000], dtypeNamed("float32"));
  const run = () => device.scopes(() => kernel.run([x, 1], { workgroups: 1 }));
  assert.deepEqual([run(), run()], [1, 1]);
  await device.answer();
  assert.equal(run(), 0);
});

test("a call that failed is watched until the GPU accepts it", async () => {
  const device = watching();
  const kernel = new webgpu.Kernel(
    device.gpu,
    ADD.replace(/@group.*k: f32;/, "").replace("+= k", "+= 1"),
  );
  await device.answer();
  const x = upload(device.gpu);
  const run = () => device.scopes(() => kernel.run([x]));
  assert.equal(run(), 1);
  await device.answer({ message: "refused" });
  await kernel.ready;
  assert.equal(run(), 1);
  await device.answer();
  assert.equal(run(), 1, "what it reads is of the call that failed");
  await device.answer();
  x.write(Tensor.fromTypedArray(new Float32Array(4)));
  assert.equal(run(), 1);
  await device.answer();
  assert.equal(run(), 0);
});

for (const [name, usage, take] of [
  ["had", undefined, (x) => markExposed(recordOf(x))],
  [
    "had, and gave back",
    undefined,
    (x) => {
      markExposed(recordOf(x));
      recordOf(x).exported = false;
    },
  ],
  ["took", undefined, (x) => x.buffer],
  ["may have, for other uses", 256 | 128 | 64 | 8 | 4, () => {}],
]) {
  test(`a buffer that others ${name} is watched`, async () => {
    const device = watching();
    const kernel = await compiled(device);
    const x = upload(device.gpu, [1, 2, 3, 4], usage);
    await device.answer();
    const run = () => device.scopes(() => kernel.run([x, 1]));
    run();
    await device.answer();
    take(x);
    assert.equal(run(), 1);
    await device.answer();
    assert.equal(run(), 1);
  });
}

test("a call is known by all that its checks depend on", () => {
  const { gpu } = watching();
  const x = upload(gpu);
  const marks = new Marks([x, 2], [1, 2]);
  const fits = (tensor, number = 5, workgroups = [1, 2]) => marks.fit([tensor, number], workgroups);
  const like = (changes) => {
    const { storage, handle, start, dtype, shape, strides, device, readOnly } = {
      ...x._managed,
      ...changes,
    };
    retainSlot(handle);
    return new ManagedTensor(storage, handle, start, dtype, shape, strides, device, readOnly);
  };
  assert.ok(fits(x));
  assert.ok(fits(like({ shape: [4] })));
  for (const changes of [
    { start: 4 },
    { shape: [2, 2] },
    { shape: [3] },
    { dtype: dtypeNamed("int32") },
    { readOnly: true },
    { strides: [2] },
    { storage: {} }, // the same number may be a handle of memory
  ]) {
    assert.ok(!fits(like(changes)), JSON.stringify(changes));
  }
  assert.ok(!fits(x, x));
  assert.ok(!fits(2));
  assert.ok(!marks.fit([x], [1, 2]));
  assert.ok(!marks.fit([x, 2, 3], [1, 2]));
  for (const workgroups of [undefined, 1, [1], [1, 3], [1, 2, 1]]) {
    assert.ok(!marks.fit([x, 2], workgroups));
  }
  const other = upload(gpu);
  assert.ok(!fits(other));
  const stale = like({});
  while (slotOf(x._managed.handle).refs > 1) releaseSlot(x._managed.handle);
  x.release();
  assert.ok(!fits(stale));
});
