// The table of GPU buffers and the errors around devices. The devices are fakes: what a GPU
// does is tested in Chromium (tests/browser), these are the paths where none is asked.
// Looks inside: holds of a handle are counted, which only the table of buffers knows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { releaseSlot, retainSlot, slotOf } from "../../../js/dist/webgpu/buffers/table.js";
import { fakeBuffer, fakeDevice as idleDevice } from "../fake_device.mjs";

function fakeDevice(label = "") {
  const made = idleDevice();
  let lose;
  const lost = new Promise((resolve) => {
    lose = resolve;
  });
  return {
    ...made,
    ...{ label, lost, lose, made: [] },
    limits: {
      ...made.limits,
      maxBufferSize: 1024,
      maxStorageBufferBindingSize: 512,
      maxComputeWorkgroupsPerDimension: 65535,
    },
    createBuffer({ size, usage }) {
      this.made.push(fakeBuffer(size, usage));
      return this.made.at(-1);
    },
    createShaderModule: () => ({}),
    queue: {
      submit() {},
      writeBuffer() {
        throw new Error("the queue says no");
      },
    },
  };
}

const over = (buffer, device, options = {}) =>
  Tensor.fromGPUBuffer(buffer, { device, shape: [4], dtype: "float32", ...options });

test("a borrowed buffer is given back, never destroyed", () => {
  const buffer = fakeBuffer();
  let returned = 0;
  const tensor = over(buffer, fakeDevice(), { release: () => returned++ });
  const handle = tensor._managed.handle;
  retainSlot(handle); // as a C managed tensor would
  tensor.release();
  assert.equal(returned, 0);
  releaseSlot(handle);
  assert.equal(returned, 1);
  assert.equal(buffer.destroyed, 0);
});

const statsOf = (tensor) => webgpu.stats()[tensor.device.id];

test("an owned buffer is used again, also after a failed upload", () => {
  const device = fakeDevice();
  const failing = Tensor.fromTypedArray(new Float32Array(4));
  assert.throws(() => failing.to(device), /the queue says no/);
  assert.throws(() => failing.to(device), /the queue says no/);
  assert.equal(device.made.length, 1);
  assert.equal(device.made[0].destroyed, 0);
  failing.release();
});

test("a buffer that others have seen is left to the garbage collector", () => {
  const device = fakeDevice();
  device.queue.writeBuffer = () => {};
  const array = Tensor.fromTypedArray(new Float32Array(4));
  const [seen, unseen] = [array.to(device), array.to(device)];
  assert.equal(seen.buffer, device.made[0]);
  seen.release();
  unseen.release();
  assert.deepEqual([device.made[0].destroyed, device.made[1].destroyed], [0, 0]);
  const again = array.to(device);
  assert.equal(again.buffer, device.made[1]);
  again.release();
  array.release();
});

test("other usages are not pooled", () => {
  const device = fakeDevice();
  device.queue.writeBuffer = () => {};
  const array = Tensor.fromTypedArray(new Float32Array(4));
  array.to(device, { usage: 128 }).release();
  assert.equal(device.made[0].destroyed, 1);
  array.to(device).release();
  const other = array.to(device, { usage: 128 }); // not the idle one, which has more
  assert.deepEqual([device.made.length, device.made[2].usage], [3, 128 | 8]);
  other.release();
  array.release();
});

test("idle buffers have a budget, and those used longest ago go first", () => {
  const device = fakeDevice();
  device.limits.maxBufferSize = 2 ** 30;
  device.queue.writeBuffer = () => {};
  const bytes = 100 * 2 ** 20;
  const arrays = [0, 16, 32].map((more) => Tensor.fromTypedArray(new Uint8Array(bytes + more)));
  const tensors = arrays.map((array) => array.to(device));
  const [first] = tensors;
  assert.equal(statsOf(first).bytes, 3 * bytes + 48);
  for (const each of [...tensors, ...arrays]) each.release();
  assert.deepEqual(
    device.made.map(({ destroyed }) => destroyed),
    [1, 0, 0],
  );
  const { buffers, idleBytes, created } = statsOf(first);
  assert.deepEqual([buffers, idleBytes, created], [0, 2 * bytes + 48, 3]);
});

test("idle buffers go when nothing was used for a while", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const device = fakeDevice();
  device.queue.writeBuffer = () => {};
  const array = Tensor.fromTypedArray(new Float32Array(4));
  const tensor = array.to(device);
  tensor.release();
  t.mock.timers.tick(9_000);
  array.to(device).release(); // in use again
  t.mock.timers.tick(2_000);
  assert.equal(device.made[0].destroyed, 0);
  assert.deepEqual([statsOf(tensor).created, statsOf(tensor).reused], [1, 1]);
  t.mock.timers.tick(20_000);
  assert.equal(device.made[0].destroyed, 1);
  assert.equal(statsOf(tensor).idleBytes, 0);
  array.release();
});

test("a lost device keeps no idle buffers", async () => {
  const device = fakeDevice();
  device.queue.writeBuffer = () => {};
  const array = Tensor.fromTypedArray(new Float32Array(4));
  const [idle, used] = [array.to(device), array.to(device)];
  idle.release();
  device.lose({ reason: "destroyed", message: "" });
  await device.lost;
  used.release();
  const { lost, idleBytes, buffers } = statsOf(idle);
  assert.deepEqual([lost, idleBytes, buffers], ["destroyed", 0, 0]);
  array.release();
});

test("what lies behind the elements is zero, also in a buffer that is used again", () => {
  const device = fakeDevice();
  const written = [];
  device.queue.writeBuffer = (_, at, data, from = 0, size = data.length) => {
    written.push([at, [...new Uint8Array(data.buffer ?? data, from, size)]]);
  };
  const [full, short] = [16, 13].map((n) => Tensor.fromTypedArray(new Uint8Array(n).fill(7)));
  full.to(device).release();
  written.length = 0;
  short.to(device).release();
  const bytes = new Uint8Array(16).fill(9);
  for (const [at, data] of written) bytes.set(data, at);
  assert.deepEqual([...bytes], [...new Array(13).fill(7), 0, 0, 0]);
  full.release();
  short.release();
});

test("a stale or forged handle is refused", (t) => {
  t.mock.method(console, "error", () => {});
  const tensor = over(fakeBuffer(), fakeDevice());
  const stale = tensor._managed.handle;
  tensor.release();
  for (const handle of [stale, 0, 1 << 19, 0xffffffff, stale ^ (1 << 20)]) {
    assert.throws(() => slotOf(handle), { name: "ReleasedError", message: /GPU handle 0x/ });
    releaseSlot(handle); // C may call it: must not throw
  }
  const next = over(fakeBuffer(), fakeDevice());
  assert.notEqual(next._managed.handle, stale);
  assert.throws(() => slotOf(stale), { name: "ReleasedError" });
  next.release();
});

test("devices are told apart by identity, and keep their ids", () => {
  const [a, b] = [fakeDevice("first"), fakeDevice("second")];
  const one = over(fakeBuffer(), a);
  const two = over(fakeBuffer(), b);
  const again = over(fakeBuffer(), a);
  assert.equal(one.device.id, again.device.id);
  assert.notEqual(one.device.id, two.device.id);
  assert.throws(() => one.to(b), {
    name: "DeviceError",
    message: /\("first"\).*cannot be used on.*\("second"\).*do not share buffers/,
  });
  for (const tensor of [one, two, again]) tensor.release();
});

test("a tensor that is on the device already is shared", () => {
  const device = fakeDevice();
  const tensor = over(fakeBuffer(), device);
  const second = tensor.to(device);
  assert.equal(second.buffer, tensor.buffer);
  const other = { name: "UnsupportedError", message: /\.VERTEX; .* has COPY_SRC \| .*VERTEX too$/ };
  assert.throws(() => tensor.to(device, { usage: 32 }), other);
  tensor.release();
  assert.equal(second.released, false);
  second.release();
});

test("a kernel checks tensors and workgroups before the GPU is asked", () => {
  const device = fakeDevice();
  const source = `@group(0) @binding(0) var<storage, read_write> x: array<f32>; fn main() {}`;
  const kernel = new webgpu.Kernel(device, source);
  const tensor = over(fakeBuffer(1024), device);
  const odd = over(fakeBuffer(1024, 128), device, { byteOffset: 4 });
  const cpu = Tensor.fromTypedArray(new Float32Array(4));
  const run = (tensors, workgroups = 1) => kernel.run(tensors, { workgroups });
  assert.throws(() => run([]), { name: "RangeError", message: /each binding \(x\): 1, not 0/ });
  assert.throws(() => run([cpu]), { name: "DeviceError", message: /to\(gpuDevice\)/ });
  // Offsets that cannot be bound need a copy, and that its usage.
  assert.throws(() => run([odd]), { name: "UnsupportedError", message: /binding needs.*COPY_SRC/ });
  assert.throws(() => run([1]), { name: "TypeError", message: /binding 0: numbers are for/ });
  for (const workgroups of [0, 1.5, -1, 65536, [1, 1, 1, 1], [], "4"]) {
    assert.throws(() => kernel.run([tensor], { workgroups }), {
      name: "RangeError",
      message: /workgroups must be 1 to 3 integers from 1 to 65535/,
    });
  }
  for (const each of [tensor, odd, cpu]) each.release();
});

test("a lost device fails its tensors with the reason", async () => {
  const device = fakeDevice();
  const tensor = over(fakeBuffer(), device);
  device.lose({ reason: "destroyed", message: "by the test" });
  await device.lost;
  const lost = { name: "DeviceLostError", message: /lost \(destroyed: by the test\)/ };
  const cpu = Tensor.fromTypedArray(new Float32Array(4));
  assert.throws(() => cpu.to(device), lost);
  await assert.rejects(tensor.read(), lost);
  assert.throws(() => new webgpu.Kernel(device, "fn main() {}"), lost);
  assert.throws(() => over(fakeBuffer(), device), lost);
  tensor.release();
  cpu.release();
});

test("fromGPUBuffer has no slot where a getter throws", () => {
  const slots = webgpu.stats().reduce((sum, { buffers }) => sum + buffers, 0);
  for (const name of [
    "device",
    "shape",
    "dtype",
    "byteOffset",
    "capacity",
    "readOnly",
    "release",
  ]) {
    const options = Object.defineProperty({ shape: [4], dtype: "float32" }, name, {
      enumerable: true,
      get() {
        throw new Error(`no ${name}`);
      },
    });
    const given = name === "device" ? options : Object.assign(options, { device: fakeDevice() });
    assert.throws(() => Tensor.fromGPUBuffer(fakeBuffer(16), given), { message: `no ${name}` });
  }
  assert.equal(
    webgpu.stats().reduce((sum, { buffers }) => sum + buffers, 0),
    slots,
  );
});

test("objects of WebGPU are named where they have no tag, as in Deno", () => {
  class GPUTexture {}
  class Mine {}
  for (const [given, name] of [
    [new GPUTexture(), "GPUTexture"],
    [new Mine(), "Object"],
    [Object.create(null), "Object"],
    [{ constructor: null }, "Object"],
    [[], "Array"],
  ]) {
    assert.throws(() => Tensor.fromGPUBuffer(given, {}), {
      name: "TypeError",
      message: `a GPUBuffer is needed, not [object ${name}]`,
    });
  }
});
