// The exchange protocol and transfers between threads, of arrays that JS owns: no GPU.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import {
  adopt,
  EXCHANGE,
  EXCHANGE_ASYNC,
  fit,
  take,
  takeAsync,
} from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { fakeDevice } from "../fake_device.mjs";
import { described } from "./described.mjs";
import "../nothing_leaks.mjs";

const VALUES = Float32Array.of(0, 1, 2, 3, 4, 5);
const matrix = () => Tensor.fromTypedArray(VALUES.slice(), { shape: [2, 3] });

test("an exchange describes the tensor in DLPack's words", () => {
  const tensor = matrix();
  const { flush, release, data, ...rest } = tensor[EXCHANGE]();
  assert.deepEqual(rest, {
    version: [1, 1],
    device: { type: 1, id: 0, gpu: null },
    dtype: { code: 2, bits: 32, lanes: 1 },
    shape: [2, 3],
    strides: null,
    byteOffset: 0,
    capacity: 24,
    flags: 0,
    fault: null,
  });
  assert.equal(data.buffer, tensor.data.buffer);
  flush();
  release();
  release();
  tensor.release();
  assert.equal(liveTensors(), 0);
});

test("strided arrays are exchanged as they are", () => {
  const columns = Tensor.fromTypedArray(VALUES, { shape: [3, 2], strides: [-1, 3], offset: 2 });
  assert.deepEqual([columns.at(0, 0), columns.at(2, 1)], [2, 3]);
  const exchange = columns[EXCHANGE]();
  assert.deepEqual(exchange.strides, [-1, 3]);
  assert.deepEqual([exchange.byteOffset, exchange.capacity], [8, 16]);
  const again = adopt(exchange);
  assert.equal(again.at(1, 1), 4);
  assert.equal(again.data.buffer, VALUES.buffer);
  const packed = fit(again);
  assert.deepEqual([...packed.data], [2, 5, 1, 4, 0, 3]);
  assert.throws(() => fit(again, { copy: false }), { name: "CopyError", message: /strides/ });
  for (const tensor of [columns, again, packed]) tensor.release();
  assert.equal(liveTensors(), 0);
});

test("strides and offsets that reach out of the array are refused", () => {
  for (const options of [
    { shape: [3], offset: 4 },
    { shape: [3], strides: [-1] },
    { shape: [3], strides: [3] },
    { shape: [2, 3] },
  ]) {
    assert.throws(() => Tensor.fromTypedArray(VALUES.subarray(1), options), { name: "RangeError" });
  }
  const bytes = new Uint8Array(4);
  const packed = { shape: [2, 2], dtype: "int4", strides: [4, 1] };
  assert.throws(() => Tensor.fromTypedArray(bytes, packed), { name: "RangeError" });
  const bytewise = { ...packed, shape: [2, 1], strides: [3, 1], padded: true };
  const padded = Tensor.fromTypedArray(bytes, bytewise);
  assert.equal(padded.nbytes, 2);
  padded.release();
});

/** A producer of float32 [2, 3] whose exchanges say `fields` otherwise, and that counts their ends. */
function saying(fields) {
  const seen = { released: 0 };
  seen[EXCHANGE] = () => described({ release: () => void seen.released++, ...fields });
  return seen;
}

test("a capacity that ends too early, or behind the data, is refused (S5)", () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const view = { data: VALUES.slice() };
  const moving = { data: { memory, ptr: 65536 - 24 } };
  for (const place of [view, moving]) {
    for (const capacity of [0, 23, 25, 1e9]) {
      const x = saying({ ...place, capacity });
      assert.throws(
        () => take(x),
        { name: "UnsupportedError", message: /capacity/ },
        `${capacity}`,
      );
      assert.equal(x.released, 1);
    }
    take(saying({ ...place, capacity: 24 })).release();
  }
  const strided = { shape: [2], strides: [-4], byteOffset: 16 };
  take(saying({ ...strided, capacity: 8 })).release(); // only element 0 and what is behind it
  assert.throws(() => take(saying({ ...strided, capacity: 9 })), { message: /capacity/ });
  assert.throws(() => take(saying({ ...strided, capacity: 3 })), { message: /capacity/ });
});

test("elements of memory that moves may lie below ptr, and not below the memory (S1)", () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Float32Array(memory.buffer).set(VALUES, 4);
  const reversed = { shape: [6], strides: [-1], capacity: 4 };
  const x = take(saying({ ...reversed, data: { memory, ptr: 36 } }));
  assert.deepEqual([...x], [5, 4, 3, 2, 1, 0]);
  const again = x[EXCHANGE]();
  assert.deepEqual([again.data.ptr, again.byteOffset, again.capacity], [36, 0, 4]);
  again.release();
  x.release();
  const below = saying({ ...reversed, data: { memory, ptr: 16 } });
  assert.throws(() => take(below), { name: "UnsupportedError", message: /-4 to 20/ });
});

test("what is no producer is refused", () => {
  for (const x of [null, undefined, 1, "x", {}, [1], new Float32Array(1)]) {
    assert.throws(() => take(x), { name: "TypeError", message: /dlpack\.exchange/ });
  }
  const tensor = matrix();
  tensor.release();
  assert.throws(() => tensor[EXCHANGE](), { name: "ReleasedError" });
  assert.throws(() => take(tensor), { name: "ReleasedError" });
});

test("our tensors answer the requests that those of others do", () => {
  const tensor = matrix();
  const device = fakeDevice();
  for (const x of [
    tensor,
    { [EXCHANGE]: (request) => tensor[EXCHANGE](request) },
    { js: tensor },
  ]) {
    const taken = take(x, { device });
    assert.equal(taken.device.gpu, device);
    taken.release();
    assert.throws(() => take(x, { device, copy: false }), { name: "CopyError" });
    assert.throws(() => take(x, { versions: [2] }), { name: "UnsupportedError" });
    assert.throws(() => take(x, { device: 3 }), { name: "TypeError" });
  }
  tensor.release();
});

/** What arrives on the other side of a channel. */
function post(message, transfer) {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(message, transfer);
  const arrived = receiveMessageOnPort(port2).message;
  port1.close();
  return arrived;
}

test("transfer() moves a whole array without a copy", () => {
  const tensor = matrix();
  const { buffer } = tensor.data;
  const message = tensor.transfer();
  assert.equal(tensor.released, true);
  assert.equal(message.buffer, buffer);
  const arrived = Tensor.receive(post(message, [message.buffer]));
  assert.equal(buffer.byteLength, 0, "detached here");
  assert.deepEqual([arrived.shape, arrived.dtype, arrived.at(1, 2)], [[2, 3], "float32", 5]);
  arrived.release();
});

test("transfer() copies what others see as well", () => {
  const part = Tensor.fromTypedArray(VALUES.subarray(2));
  const strided = Tensor.fromTypedArray(VALUES, { shape: [2, 3], strides: [1, 2] });
  const held = matrix();
  const second = take(held);
  const shared = Tensor.fromTypedArray(new Float32Array(new SharedArrayBuffer(8)));
  for (const [tensor, expected] of [
    [part, [2, 3, 4, 5]],
    [strided, [0, 2, 4, 1, 3, 5]],
    [held, [...VALUES]],
    [shared, [0, 0]],
  ]) {
    const message = tensor.transfer();
    const arrived = Tensor.receive(post(message, [message.buffer]));
    assert.deepEqual([...arrived.data], expected);
    arrived.release();
  }
  assert.deepEqual([...second.data], [...VALUES]);
  second.release();
  assert.equal(VALUES.length, 6);
});

test("every element type arrives", () => {
  const cases = [
    [new Uint8Array(3), { dtype: "int4", shape: [5] }],
    [new Uint8Array(5), { dtype: "int4", shape: [5], padded: true }],
    [new Uint8Array(32), { dtype: "float32x4", shape: [2] }],
    [Float64Array.of(1, 2), {}],
    [new Uint8Array(0), { dtype: "bool", shape: [0, 3] }],
  ];
  for (const [array, options] of cases) {
    const tensor = Tensor.fromTypedArray(array, options);
    const { dtype, shape, padded, nbytes } = tensor;
    const arrived = Tensor.receive(post(tensor.transfer()));
    const { dtype: d, shape: s, padded: p, nbytes: n } = arrived;
    assert.deepEqual([d, s, p, n], [dtype, shape, padded, nbytes]);
    arrived.release();
  }
});

test("what came from transfer() comes once", () => {
  const twice = matrix().transfer();
  post(twice, [twice.buffer]);
  assert.throws(() => Tensor.receive(twice), { name: "TypeError", message: /detached/ });
});

const protectedTensor = () => {
  const tensor = matrix();
  const held = adopt({ ...tensor[EXCHANGE](), flags: 1 });
  tensor.release();
  assert.equal(held.readOnly, true);
  return held;
};

test("who writes gets memory that may be written, or an error", () => {
  const tensor = protectedTensor();
  const plain = tensor[EXCHANGE]();
  assert.equal(plain.flags, 1);
  plain.release();
  const fresh = tensor[EXCHANGE]({ writes: true });
  assert.equal(fresh.flags, 2);
  fresh.release(true);
  const needs = { name: "UnsupportedError", message: /read-only/ };
  assert.throws(() => tensor[EXCHANGE]({ writes: true, copy: false }), needs);
  for (const from of [take, fit]) {
    const copy = from(tensor, { writes: true });
    assert.equal(copy.readOnly, false);
    assert.notEqual(copy.data.buffer, tensor.data.buffer);
    copy.release();
    assert.throws(() => from(tensor, { writes: true, copy: false }), needs);
  }
  // A producer that does not heed it is copied from.
  let released = 0;
  const deaf = {
    [EXCHANGE]() {
      const { release, ...rest } = tensor[EXCHANGE]();
      const counted = () => {
        released++;
        release();
      };
      return { ...rest, release: counted };
    },
  };
  const copy = take(deaf, { writes: true });
  assert.deepEqual([copy.readOnly, released], [false, 1]);
  copy.release();
  assert.throws(() => take(deaf, { writes: true, copy: false }), needs);
  assert.equal(released, 2);
  tensor.release();
});

test("requests that make no sense are refused", () => {
  const tensor = matrix();
  for (const request of [null, 1, "x", { versions: "1" }, { device: "cpu" }, { device: 1 }]) {
    assert.throws(() => tensor[EXCHANGE](request), { name: "TypeError" });
  }
  tensor[EXCHANGE]({ what: 1, get unknown() { throw new Error("nobody asks"); } }).release(); // biome-ignore format: one line
  tensor.release();
});

test("who can wait asks by the other method, where there is one", async () => {
  const tensor = matrix();
  const exchange = await tensor[EXCHANGE_ASYNC]({ device: null });
  assert.equal(exchange.data.buffer, tensor.data.buffer);
  exchange.release();
  const seen = [];
  const slow = {
    async [EXCHANGE_ASYNC](request) {
      seen.push(request);
      await new Promise((resolve) => setTimeout(resolve, 1));
      return tensor[EXCHANGE](request);
    },
  };
  const taken = await takeAsync(slow, { copy: false });
  assert.deepEqual(seen, [{ versions: [1], copy: false }]);
  taken.release();
  (await takeAsync({ [EXCHANGE]: () => tensor[EXCHANGE]() })).release();
  (await takeAsync(tensor)).release();
  await assert.rejects(takeAsync({}), { name: "TypeError" });
  await assert.rejects(takeAsync(null), { name: "TypeError" });
  await assert.rejects(takeAsync({ [EXCHANGE_ASYNC]: async () => null }), {
    name: "UnsupportedError",
  });

  const reason = new Error("enough");
  await assert.rejects(takeAsync(slow, { signal: AbortSignal.abort(reason) }), reason);
  const control = new AbortController();
  const waiting = takeAsync(slow, { signal: control.signal }); // which does not look at it
  control.abort(reason);
  await assert.rejects(waiting, reason);
  tensor.release();
});
