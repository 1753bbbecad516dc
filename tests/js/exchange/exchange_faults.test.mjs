// Faults and lost devices by the exchange protocol (E1 to E4), on a GPU that is all arrays: what a
// producer's work failed with reaches who reads the elements, from library to library.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { EXCHANGE, EXCHANGE_ASYNC, take, takeAsync } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor, webgpu } from "../../../js/dist/index.js";
import { device } from "../array_device.mjs";
import { described } from "./described.mjs";
import "../nothing_leaks.mjs";

const VALUES = Float32Array.of(1, 2, 3, 4);
const BAD = { filter: "validation", message: "the GPU does not like it" };

/** A tensor over a buffer of the device. */
function uploaded(gpu) {
  const host = Tensor.fromTypedArray(VALUES.slice());
  const tensor = host.to(gpu);
  host.release();
  return tensor;
}

/** The same after work on it that fails, which nobody knows yet. */
function failing(gpu) {
  const [tensor, from] = [uploaded(gpu), uploaded(gpu)];
  gpu.fails = BAD;
  tensor.write(from);
  from.release();
  return tensor;
}

/** A producer of somebody else's: `fields` are what its exchanges say otherwise. */
function foreign(gpu, fields = {}) {
  const data = gpu.createBuffer({ size: 16, usage: 128 | 4 | 8 });
  gpu.queue.writeBuffer(data, 0, VALUES);
  const seen = { released: 0, flushed: 0 };
  const held = { flush: () => void seen.flushed++, release: () => void seen.released++ };
  const place = { device: { type: 15, id: 0, gpu }, data, capacity: 16, shape: [4] };
  seen[EXCHANGE] = () => described({ version: [1, 1], ...place, ...held, ...fields });
  return seen;
}

const readOf = async (tensor) => [...(await tensor.read())];

test("a fault that is known is thrown at the call, and nothing is held", async () => {
  const gpu = device();
  const x = failing(gpu);
  await assert.rejects(x.read(), /does not like it/);
  assert.throws(() => x[EXCHANGE](), { name: "DeviceError", message: /does not like it/ });
  await assert.rejects(x[EXCHANGE_ASYNC](), { name: "DeviceError", message: /does not like it/ });
  assert.throws(() => take({ [EXCHANGE]: (request) => x[EXCHANGE](request) }), /does not like it/);
  x.write(VALUES); // over all of it
  x[EXCHANGE]().release();
  x.release();
});

test("a fault that is no function is refused; version 1.0 had none, whatever is there", async () => {
  const gpu = device();
  for (const fault of [5, "no", {}, new Error("at once"), true]) {
    const x = foreign(gpu, { fault });
    assert.throws(() => take(x), { name: "UnsupportedError", message: /fault is .* a function/ });
    assert.equal(x.released, 1);
    const old = take(foreign(gpu, { fault, version: [1, 0] }));
    assert.deepEqual(await readOf(old), [1, 2, 3, 4]);
    old.release();
  }
});

test("a fault is not lost where the consumer never reads", async (context) => {
  const gpu = device();
  const error = new Error("nobody asked");
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const heard = [];
  const end = webgpu.listenForFaults(gpu, (each) => heard.push(each));
  const taken = take(foreign(gpu, { fault: async () => error }));
  for (let i = 0; i < 10; i++) await null;
  context.mock.timers.tick(1500);
  context.mock.timers.reset(); // Deno does not do it at the end of a test
  assert.deepEqual(heard, [error]);
  end();
  taken.release();
});

/** The faults that nobody read, a while after `use`. */
async function unread(context, gpu, use) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const heard = [];
  const end = webgpu.listenForFaults(gpu, (each) => heard.push(each.message));
  await use();
  for (let i = 0; i < 30; i++) await null;
  context.mock.timers.tick(1500);
  context.mock.timers.reset();
  end();
  return heard;
}

test("an exchanged fault that is never read is reported once", async (context) => {
  const gpu = device();
  const x = failing(gpu);
  let taken;
  const heard = await unread(context, gpu, () => {
    taken = take({ [EXCHANGE]: (request) => ({ ...x[EXCHANGE](request) }) });
  });
  assert.equal(heard.length, 1);
  assert.match(heard[0], /does not like it/);
  for (const each of [x, taken]) each.release();
});

test("a fault that another library asked for is told by that alone", async (context) => {
  const gpu = device();
  const x = failing(gpu);
  const heard = await unread(context, gpu, async () => {
    const exchange = x[EXCHANGE]();
    assert.match((await exchange.fault()).message, /does not like it/);
    exchange.release();
  });
  assert.deepEqual(heard, []);
  x.release();
});

test("what a producer reports ends with its next report, what we know does not", async () => {
  const gpu = device();
  const error = new Error("its shader");
  let report = async () => error;
  const x = foreign(gpu, { fault: () => report() });
  const first = take(x);
  await assert.rejects(first.read(), error);
  report = () => null; // it has written its elements again
  const second = take(x);
  assert.deepEqual(await readOf(second), [...VALUES]);
  const from = uploaded(gpu);
  gpu.fails = BAD;
  second.write(from);
  report = async () => null;
  const well = take(x);
  await assert.rejects(well.read(), /does not like it/);
  well.release();
  report = async () => error;
  const third = take(x);
  report = () => null;
  const fourth = take(x);
  await assert.rejects(fourth.read(), /does not like it/);
  for (const each of [first, second, third, fourth, from]) each.release();
  assert.equal(x.released, 5);
});

test("requests of a lost device's tensors are DeviceLostError, and held exchanges end", async () => {
  const gpu = device();
  const x = uploaded(gpu);
  const held = x[EXCHANGE]();
  const theirs = foreign(gpu);
  const taken = take(theirs);
  gpu.lose({ reason: "unknown", message: "gone" });
  await new Promise((resolve) => setTimeout(resolve, 0));
  const lost = { name: "DeviceLostError" };
  assert.throws(() => x[EXCHANGE](), lost);
  await assert.rejects(x[EXCHANGE_ASYNC]({ device: null }), lost);
  assert.throws(() => take(theirs), lost);
  assert.equal(theirs.released, 1);
  await assert.rejects(takeAsync(theirs), lost);
  await assert.rejects(taken.read(), lost);
  held.flush();
  assert.equal((await held.fault()).name, "DeviceLostError");
  held.release();
  taken.release();
  x.release();
  assert.equal(theirs.released, 3);
});

test("a tensor without elements lies nowhere in its buffer (S9)", async () => {
  const gpu = device();
  for (const [byteOffset, capacity] of [
    [0, 0],
    [4096, 0],
    [8, 8],
  ]) {
    const taken = take(foreign(gpu, { shape: [0, 3], byteOffset, capacity }));
    assert.deepEqual([taken.shape, await readOf(taken)], [[0, 3], []]);
    const again = taken[EXCHANGE]();
    assert.equal(again.capacity, capacity);
    again.release();
    taken.release();
  }
  for (const beyond of [
    { byteOffset: 8, capacity: 9 },
    { byteOffset: 17, capacity: 1 },
  ]) {
    const x = foreign(gpu, { shape: [0, 3], ...beyond });
    assert.throws(() => take(x), { name: "UnsupportedError", message: /capacity/ });
    assert.equal(x.released, 1);
  }
});

test("an abort ends a request at once, and who waits for it ends with the request", async () => {
  for (const aborts of [true, false]) {
    const gpu = device();
    const x = uploaded(gpu);
    let arrive;
    const { createBuffer } = gpu;
    gpu.createBuffer = (descriptor) => {
      const mapAsync = () =>
        new Promise((resolve) => {
          arrive = resolve;
        });
      return Object.assign(createBuffer(descriptor), { mapAsync });
    };
    const listeners = new Set();
    const signal = {
      aborted: false,
      reason: new Error("enough"),
      throwIfAborted() {},
      addEventListener: (_, call) => listeners.add(call),
      removeEventListener: (_, call) => listeners.delete(call),
    };
    const before = liveTensors();
    const request = x[EXCHANGE_ASYNC]({ device: null, signal });
    assert.ok(listeners.size > 0);
    if (aborts) {
      for (const call of listeners) call();
      await assert.rejects(request, { message: "enough" });
      arrive();
      await setImmediate(); // the read ends, and its hold
    } else {
      arrive();
      (await request).release();
    }
    assert.equal(listeners.size, 0);
    assert.equal(liveTensors(), before);
    x.release();
  }
});
