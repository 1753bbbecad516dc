// What a kernel asks of the GPU: workgroups, bindings, and which bind groups it keeps. The device is a fake
// that notes calls; what a GPU makes of them is tested in tests/browser.
// Looks inside: what may have been written, and which outcome an extent has, shows in the table alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { emptyOn } from "../../../js/dist/internal.js";
import { addSlot, extentOf, slotOf, table } from "../../../js/dist/webgpu/buffers/table.js";
import { useDevice } from "../../../js/dist/webgpu/device/device.js";
import { notRun, Settling } from "../../../js/dist/webgpu/errors/errors.js";
import { newRecord } from "../../../js/dist/webgpu/errors/record.js";
import { takeImage } from "../../../js/dist/webgpu/images/images.js";
import { loggedDevice } from "../fake_device.mjs";

const STORAGE = 4 | 8 | 128; // COPY_SRC | COPY_DST | STORAGE

const source = (elements, size = 64) => `
  @group(0) @binding(0) var<storage, read_write> x: array<${elements}>;
  @compute @workgroup_size(${size}) fn main() { x[0] = x[1]; }`;

/** float32 in a fresh buffer of our own. */
const fresh = (gpu, count) => Tensor.fromTypedArray(new Float32Array(count)).to(gpu);

test("without workgroups there is an invocation for each element that is written", () => {
  const { gpu, log } = loggedDevice();
  for (const [elements, size, count, expected] of [
    ["f32", 64, 1, 1],
    ["f32", 64, 64, 1],
    ["f32", 64, 65, 2],
    ["f32", 1, 17, 17],
    ["vec4f", 8, 36, 2],
    ["vec3f", 1, 4, 1],
    ["f32", 64, 0, 1],
  ]) {
    new webgpu.Kernel(gpu, source(elements, size)).run([fresh(gpu, count)]);
    assert.deepEqual(log.dispatched.pop(), [expected, 1, 1], `${count} of ${elements}`);
  }
});

const SUM = {
  inputs: "f32 x",
  outputs: "f32 y",
  map: "x",
  reduce: "a + b",
  postMap: "y = a",
  identity: 0,
};

test("workgroups are one to three numbers", () => {
  const { gpu, log } = loggedDevice();
  const kernel = new webgpu.Kernel(gpu, source("f32"));
  for (const [workgroups, expected] of [
    [3, [3, 1, 1]],
    [[100], [100, 1, 1]],
    [
      [2, 3],
      [2, 3, 1],
    ],
    [
      [2, 3, 4],
      [2, 3, 4],
    ],
  ]) {
    kernel.run([fresh(gpu, 4)], { workgroups });
    assert.deepEqual(log.dispatched.pop(), expected);
  }
  const counts = [2];
  const record = () => kernel.run([fresh(gpu, 4)], { workgroups: counts });
  const batch = webgpu.batch(gpu).record(record);
  counts[0] = 3;
  batch.update(0, { workgroups: counts });
  counts[0] = 4;
  batch.update(0, { args: { 0: fresh(gpu, 4) } }); // those that were recorded stay
  batch.run();
  assert.deepEqual(log.dispatched.pop(), [3, 1, 1]);
});

test("arguments and options are read once, before they are checked", () => {
  const { gpu, log } = loggedDevice();
  const copy = { inputs: "f32 x", outputs: "f32 y", operation: "y = x" };
  for (const [kernel, name] of [
    [
      new webgpu.Kernel(gpu, `@group(0) @binding(1) var<storage> y: f32; ${source("f32")}`),
      "workgroups",
    ],
    [new webgpu.ElementwiseKernel(gpu, copy), "size"],
    [new webgpu.ReductionKernel(gpu, SUM), "axis"],
  ]) {
    for (const known of [false, true]) {
      const [x, y] = [fresh(gpu, 1), fresh(gpu, 1).reshape(name === "axis" ? [] : [1])];
      if (known) for (let i = 0; i < 2; i++) kernel.run([x, y]);
      const before = log.dispatched.length;
      let reads = 0;
      const args = Object.defineProperty([x, y], 1, { get: () => [y, reads++][0] });
      const option = () => [reads++, x.release()][1];
      const options = Object.defineProperty({}, name, { get: option, enumerable: true });
      assert.throws(() => kernel.run(args, options), { name: "ReleasedError" });
      assert.deepEqual([reads, log.dispatched.length - before], [2, 0], `${name}, ${known}`);
    }
  }
});

test("after an error of the device a reduction has other sizes", () => {
  const { gpu, log } = loggedDevice();
  const sum = new webgpu.ReductionKernel(gpu, SUM);
  const [x, y] = [fresh(gpu, 4), fresh(gpu, 1).reshape([])];
  const groupsAfter = (errors) => {
    useDevice(gpu).errors += errors;
    sum.run([x, y]);
    return log.groups.length;
  };
  assert.deepEqual([0, 0, 1, 0].map(groupsAfter), [1, 1, 2, 2]);
});

test("the bind groups of the last eight arguments are kept, the oldest goes first", () => {
  const { gpu, log } = loggedDevice();
  const kernel = new webgpu.Kernel(gpu, source("f32"));
  const tensors = Array.from({ length: 9 }, () => fresh(gpu, 4));
  const made = (tensor) => {
    const before = log.groups.length;
    kernel.run([tensor]);
    return log.groups.length - before;
  };
  for (const tensor of tensors.slice(0, 8)) assert.equal(made(tensor), 1);
  for (const tensor of tensors.slice(0, 8)) assert.equal(made(tensor), 0);
  assert.equal(made(tensors[8]), 1);
  for (const tensor of tensors.slice(1)) assert.equal(made(tensor), 0);
  assert.equal(made(tensors[0]), 1); // the oldest
  assert.equal(made(tensors[2]), 0);
  assert.equal(made(tensors[1]), 1);
});

test("no bind group keeps a buffer that others have", () => {
  const { gpu, log } = loggedDevice();
  const kernel = new webgpu.Kernel(gpu, source("f32"));
  const theirs = Tensor.fromGPUBuffer(gpu.createBuffer({ size: 64, usage: STORAGE }), {
    device: gpu,
    shape: [4],
    dtype: "float32",
  });
  for (let i = 0; i < 3; i++) kernel.run([theirs]);
  assert.equal(log.groups.length, 3);
});

test("what begins where nothing can be bound is bound as a copy, and copied back", () => {
  const { gpu, log } = loggedDevice();
  const kernel = new webgpu.Kernel(gpu, source("f32"));
  const whole = fresh(gpu, 68);
  kernel.run([whole.slice([64, null])]);
  assert.deepEqual(log.groups.pop(), [[0, 256, 16]]);
  assert.deepEqual(log.copies, []);
  kernel.run([whole.slice([1, 4])]);
  assert.deepEqual(log.groups.pop(), [[0, 0, 12]]);
  assert.deepEqual(log.copies, [
    [4, 0, 12],
    [0, 4, 12],
  ]);
});

test("what a shader may have written is cleared before its buffer is used again, padding too", () => {
  const { gpu } = loggedDevice();
  const tensor = fresh(gpu, 3);
  const { buffer } = slotOf(tensor._managed.handle);
  assert.equal(buffer.dirty, 12);
  new webgpu.Kernel(gpu, source("vec4f")).run([tensor]);
  assert.equal(buffer.dirty, 16);
  const whole = fresh(gpu, 65);
  const view = whole.slice([64, 65]);
  new webgpu.Kernel(gpu, source("vec4f")).run([view]);
  assert.equal(slotOf(whole._managed.handle).buffer.dirty, 256 + 16);
  for (const each of [tensor, whole, view]) each.release();
});

test("an idle buffer is cleared only where it was written", () => {
  const { gpu } = loggedDevice();
  const cleared = [];
  gpu.queue.writeBuffer = (_, at, __, ___, size) => cleared.push([at, size]);
  const empty = () => emptyOn(gpu, [10], "float32");
  const clearedAfter = (use) => {
    const tensor = empty();
    const { buffer } = slotOf(tensor._managed.handle);
    assert.equal(buffer.dirty, 0);
    use(tensor);
    tensor.release();
    cleared.length = 0;
    const next = empty();
    assert.equal(slotOf(next._managed.handle).buffer, buffer);
    next.release();
    return cleared;
  };
  const write = (tensor, host) => {
    const part = tensor.slice([2, 5]);
    try {
      part.write(host);
    } finally {
      part.release();
    }
  };
  const kernel = new webgpu.Kernel(gpu, source("f32"));
  const host = Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
  const nothing = clearedAfter(() => {});
  assert.deepEqual(nothing, []);
  const written = clearedAfter((tensor) => write(tensor, host));
  assert.deepEqual(written, [[0, 20]]);
  const kernels = clearedAfter((tensor) => kernel.run([tensor]));
  assert.deepEqual(kernels, [[0, 40]]);
  const interrupted = clearedAfter((tensor) => {
    gpu.queue.writeBuffer = () => {
      throw new TypeError("half of it is written");
    };
    assert.throws(() => write(tensor, host), /half/);
    gpu.queue.writeBuffer = (_, at, __, ___, size) => cleared.push([at, size]);
  });
  assert.deepEqual(interrupted, [[0, 20]]);
});

test("bindings have the sizes that WGSL asks for, and the kinds that are declared", () => {
  const { gpu, log } = loggedDevice();
  const run = (declared, args) => {
    const bindings = declared.map((it, i) => `@group(0) @binding(${i}) ${it};`).join("");
    const kernel = new webgpu.Kernel(gpu, `${bindings} @compute @workgroup_size(1) fn main() {}`);
    const before = webgpu.stats().at(-1).buffers;
    kernel.run(args, { workgroups: 1 });
    assert.equal(webgpu.stats().at(-1).buffers, before); // numbers need none for long
    return log.groups.pop();
  };
  const write = "var<storage, read_write> w: array<f32, 1>";
  assert.deepEqual(run([write], [fresh(gpu, 1)]), [[0, 0, 4]]);
  assert.deepEqual(log.types, ["storage"]);
  const [read, number] = ["var<storage, read> r: array<vec4f>", "var<uniform> u: f32"];
  assert.deepEqual(run([read, number], [fresh(gpu, 5), 2]), [
    [0, 0, 32],
    [1, 0, 16],
  ]);
  assert.deepEqual(log.types.slice(1), ["read-only-storage", "uniform"]);
  const tail = "var<storage> t: T; struct T { n: vec2f, x: array<vec4f> }";
  assert.deepEqual(run([tail], [fresh(gpu, 9)]), [[0, 0, 48]]); // 16, and 20 in whole elements
});

test("the last axes of a tensor are whole elements of the shader's array", () => {
  const { gpu } = loggedDevice();
  const structs = `
    struct P { a: u32, b: vec3f }
    struct T { n: u32, points: array<vec3f> }`;
  for (const [type, dtype, taken, refused] of [
    ["array<vec3f>", "float32", [[5, 4], [8], [0, 3], [2, 5, 4, 1]], [[4, 3], [6], [2, 2, 3]]],
    [
      "array<vec4f>",
      "float32",
      [[], [3], [5, 1], [3, 8], [3, 2, 2]],
      [
        [4, 3],
        [4, 2],
        [1, 3],
      ],
    ],
    [
      "array<mat3x3f>",
      "float32",
      [[2, 3, 4], [2, 12], [24]],
      [
        [4, 3, 3],
        [4, 9],
        [4, 4, 3],
      ],
    ],
    ["mat3x3f", "float32", [[3, 4], [12], [16]], [[4, 3]]],
    ["array<vec3f, 2>", "float32", [[2, 4], [8]], [[8, 3], [9]]],
    ["array<P>", "uint8", [[3, 32], [64]], [[8, 20], [8, 16], [20]]],
    [
      "array<P>",
      "float32",
      [
        [3, 8],
        [3, 2, 4],
      ],
      [
        [8, 4],
        [8, 5],
      ],
    ],
    ["array<P>", "float32x4", [[3, 2]], [[8]]],
    ["T", "float32", [[3, 4], [16]], [[4, 3], [13]]],
    ["array<u32>", "uint8", [[5, 7, 3], [3]], []],
    ["array<vec4u>", "uint32", [[5, 4]], [[4, 3]]],
    ["array<vec4u>", "uint8", [[5, 7, 3], [33]], []],
    ["array<vec2f>", "complex64", [[4, 3], [5]], []],
  ]) {
    const wgsl = `${structs} @group(0) @binding(0) var<storage, read> x: ${type};
      @compute @workgroup_size(1) fn main() {}`;
    const run = (shape, check) => {
      const tensor = emptyOn(gpu, shape, dtype);
      new webgpu.Kernel(gpu, wgsl, { check }).run([tensor], { workgroups: 1 });
    };
    for (const shape of taken) run(shape);
    for (const shape of refused) {
      assert.throws(() => run(shape), /bytes apart: pad/, `${dtype}[${shape}] as ${type}`);
      run(shape, false);
    }
  }
});

test("a call that throws leaves no error scope behind", () => {
  const { gpu } = loggedDevice();
  let open = 0;
  gpu.pushErrorScope = () => open++;
  gpu.popErrorScope = async () => {
    open--;
    return null;
  };
  new webgpu.Kernel(gpu, source("f32"));
  assert.equal(open, 0);
  gpu.createComputePipeline = () => {
    throw new Error("refused");
  };
  assert.throws(() => new webgpu.Kernel(gpu, source("f32")), /refused/);
  assert.equal(open, 0);
});

test("what others get may be written by them", () => {
  const { gpu } = loggedDevice();
  const tensor = fresh(gpu, 1);
  const { buffer } = slotOf(tensor._managed.handle);
  assert.deepEqual([buffer.exposed, buffer.exported, buffer.dirty], [false, false, 4]);
  const { data, release } = tensor[Symbol.for("dlpack.exchange")]();
  assert.equal(data, buffer.gpu);
  assert.deepEqual([buffer.exposed, buffer.exported, buffer.dirty], [true, true, 16]);
  release();
  tensor.release();
});

test("a copy whose last word is not whole has the rest of it cleared", () => {
  const { gpu, log } = loggedDevice();
  const tensor = Tensor.fromTypedArray(new Uint8Array(262)).to(gpu);
  const { release } = tensor[Symbol.for("dlpack.exchange")]({ copy: true });
  assert.deepEqual(log.copies, [[0, 0, 264]]);
  assert.deepEqual(log.groups, [[[0, 256, 8]]]);
  assert.deepEqual(log.dispatched, [[1]]);
  release();
  tensor.release();
});

test("a full table of GPU tensors is an error, and no handle of another", () => {
  const { gpu } = loggedDevice();
  const record = useDevice(gpu);
  const buffer = newRecord(gpu.createBuffer({ size: 16, usage: STORAGE }), "others");
  const { length } = table.slots;
  const { free } = table;
  const most = 2 ** 20;
  try {
    table.slots.length = most - 1;
    table.free = 256;
    const last = addSlot(record, buffer).handle;
    assert.equal(last & (most - 1), most - 1);
    assert.throws(() => addSlot(record, buffer), {
      name: "DLPackError",
      message: `more than ${most - 257} GPU tensors at once`,
    });
    const make = () => emptyOn(gpu, [4], "float32");
    assert.throws(make, { name: "DLPackError" });
    assert.equal(record.pool.idleBytes, 16, "its buffer is reused");
  } finally {
    table.slots.length = length;
    table.free = free;
  }
});

test("the texture of the last picture is used again for the same size alone", async () => {
  const { gpu, log } = loggedDevice();
  const record = useDevice(gpu);
  const scratch = { texture: null };
  const picture = (width, height) => ({
    [Symbol.toStringTag]: "ImageData",
    width,
    height,
    data: new Uint8ClampedArray(4 * width * height),
    colorSpace: "srgb",
  });
  const take = async (width, height) => {
    const tensor = await takeImage(record, picture(width, height), {}, scratch, "frames");
    assert.deepEqual(tensor.shape, [height, width, 4]);
    tensor.release();
  };
  await take(3, 2);
  await take(3, 2);
  assert.equal(log.textures.length, 1);
  for (const [width, height] of [
    [4, 2],
    [4, 3],
  ]) {
    await take(width, height);
    assert.deepEqual([scratch.texture.width, scratch.texture.height], [width, height]);
  }
  assert.deepEqual(
    log.textures.map(({ destroyed }) => destroyed),
    [1, 1, 0],
  );
});

test("updates of formulas take what their parameters are given in a call", () => {
  const { gpu } = loggedDevice();
  gpu.features.add("shader-f16");
  const definition = { inputs: "f16 x, f16 k, f32 l", outputs: "f16 y", operation: "y = x * k" };
  const times = new webgpu.ElementwiseKernel(gpu, definition);
  const host = Tensor.fromTypedArray(new Uint16Array(5), { dtype: "float16" });
  const [x, y] = [host.to(gpu), host.to(gpu)];
  const batch = webgpu.batch(gpu).record(() => times.run([x, 2, 1, y]));
  const update = (args) => batch.update(0, { args });
  const refused = { name: "RangeError", message: "k: 65505 is not a valid f16" };
  assert.throws(() => update({ 1: 65505 }), refused);
  // The number of elements, which a call is not given.
  assert.throws(() => update({ 4: 2 }), /has 4 arguments that can change, not number 4:/);
  const bytes = Tensor.fromTypedArray(new Uint8Array(5)).to(gpu);
  for (const [at, value, message] of [
    [0, bytes, /^x is uint8, the parameter is "f16 x": give a tensor of float16/],
    [3, bytes, /^y is uint8/],
    [3, 1, /^y is an output and takes a tensor/],
    [0, host, /on cpu/],
  ]) {
    assert.throws(() => update({ [at]: value }), { message });
  }
  bytes.release();
  update({ 1: 65504, 2: 65505 });
  update({ 1: -Infinity });
  const [many, sum] = [fresh(gpu, 9000), new webgpu.ReductionKernel(gpu, SUM)];
  const passes = webgpu.batch(gpu).record(() => sum.run([many]).release());
  for (const [call, partial] of [0, 1].map((i) => [i, 1 - i])) {
    const replace = () => passes.update(call, { args: { [partial]: many } });
    assert.throws(replace, { message: /has 1 arguments that can change, not/ });
  }
  // An input that is an output is bound once.
  const minus = new webgpu.ElementwiseKernel(gpu, {
    inputs: "f32 x, f32 y, f32 k",
    outputs: "f32 z",
    operation: "z = x - y * k",
  });
  const [a, b, c] = [fresh(gpu, 4), fresh(gpu, 4), fresh(gpu, 4)];
  const inPlace = webgpu.batch(gpu).record(() => minus.run([a, b, 1, a]));
  for (const at of [0, 3]) {
    const message = new RegExp(`has 2 arguments that can change, not number ${at}:`);
    assert.throws(() => inPlace.update(0, { args: { [at]: c } }), { message });
  }
  inPlace.update(0, { args: { 1: c, 2: 10 } });
  const uses = (tensor) => inPlace._uses(extentOf(tensor._managed), true);
  assert.deepEqual([a, b, c].map(uses), [true, false, true]);
  for (const one of [batch, host, x, y, passes, many, inPlace, a, b, c]) one.release();
});

test("an error is reported beside that of a batch that has not run, which may end", async () => {
  const other = { fault: { error: new Error("other"), reported: false } };
  for (const [parent, reported] of [
    [notRun({}), false],
    [other, true],
  ]) {
    const own = { error: new Error("own"), reported: false };
    const found = await new Settling(Promise.resolve(own), [parent]).done;
    assert.deepEqual([found, own.reported], [parent.fault, reported]);
  }
});

test("a run ends the errors of the results that it computes, and of no others", async () => {
  const { gpu } = loggedDevice();
  const definition = { inputs: "f32 x, f32 k", outputs: "f32 y", operation: "y = x + k" };
  const plus = new webgpu.ElementwiseKernel(gpu, definition);
  const [x, other, sum] = [fresh(gpu, 4), fresh(gpu, 4), fresh(gpu, 4)];
  const results = [];
  const batch = webgpu.batch(gpu).record(() => {
    results.push(plus.run([x, 1]), plus.run([x, 2]));
    results.push(plus.run([results[0], 1]), plus.run([results[1], 1]));
    results.push(plus.run([x, 1, sum]));
  });
  plus.run([results[1], 1, sum]); // of zeros, which the batch may add to
  await assert.rejects(sum.read(), /has not run/);
  batch.update(0, { args: { 2: other } });
  batch.run();
  const found = await Promise.allSettled(results.map((one) => one.read()));
  assert.deepEqual(
    found.map(({ status }) => status),
    ["rejected", "fulfilled", "rejected", "fulfilled", "rejected"],
  );
  for (const one of [batch, x, other, ...results]) one.release();
});
