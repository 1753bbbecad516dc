// Which calls of a kernel are checked and have error scopes, and which are cached. The device is a fake
// that counts scopes and answers them when a test says so. On real devices cache_cases.mjs (in
// tests/browser/cases/js) compares cached calls with checked ones.
// Looks inside: whether a call was checked shows in counts and states of buffers alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { emptyOn } from "../../../js/dist/internal.js";
import { useDevice } from "../../../js/dist/webgpu/device/device.js";
import { keyOf } from "../../../js/dist/webgpu/kernels/cache.js";
import "../../../js/dist/webgpu/lazy.js"; // errors are explained within a turn
import { slotOf } from "../../../js/dist/webgpu/buffers/table.js";
import { markExposed, setOutcome } from "../../../js/dist/webgpu/errors/record.js";
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

const recordOf = (tensor) => slotOf(tensor._managed.handle).buffer;

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
  const { buffer } = slotOf(x._managed.handle);
  x.release();
  same.release();
  const pooled = upload(device.gpu, [0, 0, 0, 0]);
  assert.equal(recordOf(pooled), buffer);
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
  kernel.run([pooled, 3]);
  assert.throws(() => kernel.run([pooled, 3], { workgroups: [undefined] }), RangeError);
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
  const again = [x, x.reshape([2, 2])]; // the same call, and another over the same bytes
  for (const second of again) {
    const { buffer } = slotOf(x._managed.handle);
    const fresh = new webgpu.Kernel(device.gpu, ADD);
    await device.answer();
    assert.equal(
      device.scopes(() => fresh.run([x, 1])),
      1,
    );
    const host = Tensor.fromTypedArray(new Float32Array(4));
    x.write(host);
    host.release();
    assert.equal(buffer.writes.length, 0);
    assert.equal(
      device.scopes(() => fresh.run([second, 1])),
      0,
    );
    await device.answer({ message: "refused" });
    assert.match(buffer.writes[0].outcome.fault.error.message, /refused/);
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
  const x = emptyOn(device.gpu, [20_000], "float32");
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

test("a call has the key of the same tensors, options and kinds of arguments alone", () => {
  const { gpu } = watching();
  const [x, y] = [upload(gpu), upload(gpu)];
  const calls = [
    [
      [x, y, 2],
      [1, 2],
    ],
    [
      [x, y, x],
      [1, 2],
    ],
    [
      [y, x, 2],
      [1, 2],
    ],
    [
      [x, 2, y],
      [1, 2],
    ],
    [[x, y, 2], [1]],
    [[x, y, 2], []],
    [
      [x, y, 2],
      [1, 3],
    ],
    [
      [x, y, 2],
      ["1", 2],
    ],
    [
      [x, y],
      [0, 1, 2],
    ],
    [[x, y, 2, 1], [2]],
    [
      [x.reshape([4]), y, 2],
      [1, 2],
    ],
    [
      [x.reshape([2, 2]), y, 2],
      [1, 2],
    ],
  ];
  const keys = calls.map((call) => JSON.stringify(keyOf(...call)));
  assert.equal(new Set(keys).size, calls.length);
  assert.equal(keys[0], JSON.stringify(keyOf([x._managed, y, -0.5], [1, 2])));
  assert.equal(JSON.parse(keys[0])[0], JSON.parse(keys[0]).length);
  x.release();
  for (const none of [x, "x", undefined, 2n, {}]) {
    assert.ok(keyOf([none], []).some(Number.isNaN), "is like no other call");
  }
});

test("errors are asked of the elements of this call", async () => {
  const device = watching();
  const { gpu } = device;
  const wide = ADD.replace("array<f32>", "array<vec4f>").replace("+= k", "+= vec4f(k)");
  const kernel = new webgpu.Kernel(gpu, wide);
  await device.answer();
  const run = (tensor) => device.scopes(() => kernel.run([tensor, 1]));
  const first = upload(gpu, [7]);
  assert.equal(run(first), 1);
  await device.answer();
  const { buffer } = slotOf(first._managed.handle);
  first.release();
  const second = upload(gpu);
  assert.equal(recordOf(second), buffer);
  assert.equal(run(second) + run(second), 0);
  assert.deepEqual(buffer.writes, []);
  const fault = { error: new Error("spoilt"), reported: true };
  setOutcome({ buffer, start: 8, end: 16 }, { fault, done: Promise.resolve(fault) });
  assert.equal(run(second), 0);
  assert.deepEqual(
    buffer.writes.map(({ start, end, outcome }) => [start, end, outcome.fault]),
    [[0, 16, fault]],
  );
});

test("a formula's cached call has the same options, and numbers that fit", async () => {
  const device = watching();
  const { gpu } = device;
  gpu.features.add("shader-f16");
  const shaped = (shape, dtype = "float32") => emptyOn(gpu, shape, dtype);
  const [x, y] = [shaped([2, 3]), shaped([3])];
  const z = y.reshape([1, 3]);
  const sum = new webgpu.ReductionKernel(gpu, {
    inputs: "f32 x",
    outputs: "f32 y",
    map: "x",
    reduce: "a + b",
    postMap: "y = a",
    identity: 0,
  });
  const refused = (output, options) =>
    assert.throws(() => sum.run([x, output], options), { name: "RangeError" });
  for (let i = 0; i < 3; i++) {
    assert.equal(sum.run([x, z], { axis: 0, keepdims: true }), z);
    for (const axis of [1, undefined, [0, 1], [], [0, 0]]) refused(z, { axis, keepdims: true });
    refused(z, { axis: 0 });
    assert.equal(sum.run([x, y], { axis: -2 }), y);
    for (const axis of [-1, null, [], 2]) refused(y, { axis });
    refused(y, { axis: 0, keepdims: true });
    await device.answer();
  }
  const add = new webgpu.ElementwiseKernel(gpu, {
    inputs: "f16 x, f16 k",
    outputs: "f16 y",
    operation: "y = x + k",
  });
  const half = shaped([3], "float16");
  for (let i = 0; i < 2; i++) {
    add.run([half, 1, half]);
    assert.throws(() => add.run([half, 70_000, half]), /k: 70000 is not a valid f16/);
    assert.throws(() => add.run([half, 1, half], { size: 3 }), RangeError);
  }
  const [one, two] = [x, x].map(({ shape }) => shaped(shape));
  const scale = new webgpu.ElementwiseKernel(gpu, {
    inputs: "f32 x, i32 k",
    outputs: "f32 y",
    operation: "y = x * f32(k)",
  });
  for (let i = 0; i < 2; i++) {
    assert.equal(scale.run([one, 2, two]), two);
    assert.throws(() => scale.run([one, 2.5, two]), { message: "k: 2.5 is not a valid i32" });
    const made = scale.run([one, 2]);
    assert.ok(made !== two && made !== one);
    assert.equal(scale.run([one, 2, one]), one);
  }
});

test("a cached call is recorded while a batch records, and fails with its device", async () => {
  const device = watching();
  const kernel = await compiled(device);
  const x = upload(device.gpu);
  kernel.run([x, 1]);
  await device.answer();
  const batch = webgpu.batch(device.gpu).record(() => kernel.run([x, 1]));
  assert.equal(batch.length, 1);
  useDevice(device.gpu).lost = "unplugged";
  assert.throws(() => kernel.run([x, 1]), { name: "DeviceLostError" });
});

test("what a cached call keeps alive is none of its arguments", async () => {
  const device = watching();
  const { gpu } = device;
  const scale = new webgpu.ElementwiseKernel(gpu, {
    inputs: "f32 x, f32 k",
    outputs: "f32 y",
    operation: "y = k * x",
  });
  const buffer = gpu.createBuffer({ size: 16, usage: 128 | 8 | 4 });
  const released = new WeakRef(function release() {});
  await (async () => {
    const over = { device: gpu, dtype: "float32", shape: [4], release: released.deref() };
    const [x, y] = [Tensor.fromGPUBuffer(buffer, over), upload(gpu)];
    scale.run([x, 2, y]);
    scale.run([x, 3, y]);
    await device.answer();
    x.release();
    y.release();
  })();
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for (let i = 0; i < 10 && released.deref(); i++) {
    await turn();
    collect();
  }
  assert.equal(released.deref(), undefined);
  scale.run([upload(gpu), 1, upload(gpu)]); // it lives
});
