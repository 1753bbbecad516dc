// More than 500 lines: one suite, whose tests share their fixtures.
// A module in C without Python (wasm/example), whose tensors go out and come in by the protocol.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, test } from "node:test";
import { EXCHANGE, take } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { load } from "../../../wasm/example/example.mjs";
import { random } from "../random.mjs";
import { described, LIES } from "./described.mjs";

const source = await readFile(new URL("../../../build/example/example.wasm", import.meta.url));
const FLOAT32 = { code: 2, bits: 32, lanes: 1 };

let c;
beforeEach(async () => {
  c = await load(source);
});
afterEach(() => assert.deepEqual([c.liveTensors(), liveTensors()], [0, 0], "tensors alive"));

/** A producer over some memory, which counts what is done with its one exchange. */
function lend(data, given = {}) {
  const told = { released: [], flushed: 0, requests: [] };
  return {
    told,
    [EXCHANGE](request) {
      told.requests.push(request);
      return described({
        shape: [data.length ?? 1],
        data,
        capacity: data.byteLength ?? 4,
        flush() {
          told.flushed++;
        },
        release(wrote) {
          told.released.push(wrote);
        },
        ...given,
      });
    },
  };
}

/** Makes the module's memory grow, which detaches all views of it. */
function grow() {
  const before = c.memory.buffer;
  c.memory.grow(1);
  assert.equal(before.byteLength, 0);
}

/** A float32 tensor of the module's. */
function made(values, shape = [values.length]) {
  const tensor = c.Tensor.empty(FLOAT32, shape);
  new Float32Array(c.memory.buffer, tensor.ptr, values.length).set(values);
  return tensor;
}

// --- a producer -----------------------------------------------------------------------------------

test("a tensor that C made is read where it is, strides and all, also after its memory grew", () => {
  const picture = c.picture(3, 5);
  const { data, release, ...rest } = picture[EXCHANGE]();
  assert.equal(data.memory, c.memory);
  const { flush, ...description } = rest;
  assert.equal(flush(), undefined);
  assert.deepEqual(description, {
    version: [1, 1],
    device: { type: 1, id: 0, gpu: null },
    dtype: { code: 1, bits: 8, lanes: 1 },
    shape: [3, 5],
    strides: [16, 1],
    byteOffset: 0,
    capacity: 2 * 16 + 5,
    flags: 0,
  });
  const tensor = take(picture);
  release();
  picture.release();
  grow();
  assert.deepEqual(
    [...tensor],
    Array.from({ length: 15 }, (_, i) => i),
  );
  assert.equal(c.liveTensors(), 1);
  tensor.release();
});

test("the deleter in C is called once, after the last of its holders let go", () => {
  const tensor = made([1, 2]);
  const exchanges = [tensor[EXCHANGE](), tensor[EXCHANGE](), tensor[EXCHANGE]()];
  tensor.release();
  tensor.release();
  for (const { release } of exchanges) {
    assert.equal(c.liveTensors(), 1);
    release();
    release(); // rule O2: nothing
  }
  assert.equal(c.liveTensors(), 0);
  assert.throws(() => tensor[EXCHANGE]({ device: {} }), { name: "ReleasedError" });
  assert.throws(() => tensor[EXCHANGE]({ copy: 1 }), { name: "TypeError" }); // rule X3
  assert.throws(() => c.sum(tensor), { name: "ReleasedError" });
});

// Other requests are those of the conformance suite, in packages/exchange/tests/js/bridge.test.mjs.
test("requests for another device, and flags that are none, are refused", () => {
  const tensor = made([1, 2]);
  for (const [request, name] of [
    [{ device: {} }, "DeviceError"],
    [{ copy: "yes" }, "TypeError"],
    [{ writes: 1 }, "TypeError"],
  ]) {
    assert.throws(() => tensor[EXCHANGE](request), { name }, JSON.stringify(request));
  }
  tensor.release();
});

test("what was lent without leave to write is handed on read-only, or as a copy", () => {
  const tensor = made([1, 2]);
  const borrowed = c.fromExchange(tensor);
  assert.throws(() => c.scale(borrowed, 2), { name: "UnsupportedError" });
  assert.throws(() => borrowed[EXCHANGE]({ writes: true, copy: false }), {
    name: "UnsupportedError",
  });
  const [shared, copied] = [borrowed[EXCHANGE](), borrowed[EXCHANGE]({ writes: true })];
  assert.deepEqual([shared.flags, copied.flags], [1, 2]);
  assert.deepEqual([shared.data.ptr === tensor.ptr, copied.data.ptr === tensor.ptr], [true, false]);
  for (const each of [tensor, borrowed, shared, copied]) each.release();
});

test("no memory: a RangeError, and nothing is held", () => {
  const broad = { shape: [2 ** 30], strides: [0] };
  assert.throws(() => c.Tensor.empty(FLOAT32, [2 ** 25]), RangeError); // more than it may grow to
  assert.throws(() => c.Tensor.empty(FLOAT32, [2 ** 40]), RangeError);
  assert.throws(() => c.picture(2 ** 14, 2 ** 14), RangeError);
  const producer = lend(Float32Array.of(1), broad);
  assert.throws(() => c.fromExchange(producer), RangeError);
  assert.deepEqual(producer.told.released, [false]);
});

// --- a consumer -----------------------------------------------------------------------------------

test("what lies in other memory is copied once, and given back at once", () => {
  const producer = lend(Float32Array.of(1, 2, 3));
  const tensor = c.fromExchange(producer);
  assert.deepEqual(producer.told.released, [false]);
  assert.equal(producer.told.flushed, 1);
  const [{ versions, device, writes }] = producer.told.requests;
  assert.deepEqual([versions, device, writes], [[1], null, false]);
  assert.equal(c.sum(tensor), 6);
  tensor.release();
  assert.throws(() => c.fromExchange(producer, { copy: false }), { name: "CopyError" });
  assert.deepEqual(producer.told.released, [false, false]);
});

test("what lies in the module's own memory is taken without a copy, unless that is asked for", () => {
  const picture = c.picture(4, 7);
  const between = take(picture); // a Tensor of dlpack-web, which hands the same memory on
  const view = between.slice([null, null, -2], [1, 6, 2]);
  const mine = c.fromExchange(view, { copy: false });
  const fresh = c.fromExchange(view, { copy: true });
  const sum = [...view].reduce((a, b) => a + b);
  assert.deepEqual([c.sum(mine), c.sum(fresh)], [sum, sum]);
  assert.deepEqual([mine.ptr, fresh.ptr === mine.ptr], [picture.ptr + 3 * 16 + 1, false]);
  for (const each of [picture, between, view]) each.release();
  grow();
  assert.equal(c.sum(mine), sum);
  assert.equal(c.liveTensors(), 3); // the picture is held by what lies over it
  for (const each of [mine, fresh]) each.release();
});

test("memory that grows while elements are copied within it", () => {
  const size = 60_000;
  const kept = [made(Array.from({ length: size }, (_, i) => i))];
  const { buffer } = c.memory;
  while (c.memory.buffer === buffer) kept.push(c.fromExchange(kept[0], { copy: true }));
  for (const tensor of kept) assert.equal(c.sum(tensor), (size * (size - 1)) / 2);
  for (const tensor of kept) tensor.release();
});

test("every dtype that C knows is summed, at any address; others are not a number", () => {
  const half = new Uint8Array(Uint16Array.of(0x3c00, 0xc200, 0x0001).buffer); // 1, -3, 2 ** -24
  for (const [array, dtype, expected] of [
    [Int8Array.of(-1, 5), "int8", 4],
    [Int16Array.of(-1, 500), "int16", 499],
    [Int32Array.of(-(2 ** 31), 5), "int32", 5 - 2 ** 31],
    [BigInt64Array.of(-1n, 2n ** 40n), "int64", 2 ** 40 - 1],
    [Uint8Array.of(255, 1), "uint8", 256],
    [Uint16Array.of(65535, 1), "uint16", 65536],
    [Uint32Array.of(2 ** 32 - 1, 1), "uint32", 2 ** 32],
    [BigUint64Array.of(2n ** 63n, 1n), "uint64", 2 ** 63],
    [Float32Array.of(0.5, -3), "float32", -2.5],
    [Float64Array.of(0.1, -3), "float64", 0.1 - 3],
    [Uint8Array.of(1, 0, 7), "bool", 2],
    [half, "float16", -2 + 2 ** -24],
    [Uint8Array.of(1, 2), "bfloat16", Number.NaN],
    [Float32Array.of(1, 2), "complex64", Number.NaN],
    [Uint8Array.of(0x21, 0x43), "int4", Number.NaN],
    [Float32Array.of(1, 2, 3, 4), "float32x4", Number.NaN],
  ]) {
    const bytes = new Uint8Array(array.buffer);
    const odd = new Uint8Array(bytes.length + 1);
    odd.set(bytes, 1);
    const tensor = Tensor.fromTypedArray(odd.subarray(1), { dtype });
    const mine = c.fromExchange(tensor);
    assert.equal(c.sum(mine), expected, dtype);
    const back = take(mine);
    assert.deepEqual([back.dtype, back.shape], [dtype, tensor.shape]);
    assert.deepEqual([...back._managed.bytes()], [...bytes], dtype);
    for (const each of [tensor, mine, back]) each.release();
  }
});

test("own memory at an odd address is summed where it is", () => {
  const whole = c.Tensor.empty({ code: 1, bits: 8, lanes: 1 }, [9]);
  new Uint8Array(c.memory.buffer, whole.ptr + 1, 8).set(
    new Uint8Array(Float32Array.of(1, 2).buffer),
  );
  const producer = lend({ memory: c.memory, ptr: whole.ptr }, { byteOffset: 1, shape: [2] });
  const mine = c.fromExchange(producer, { writes: true, copy: false });
  c.scale(mine, 3);
  assert.equal(c.sum(mine), 9);
  mine.release();
  assert.deepEqual(producer.told.released, [true]);
  whole.release();
});

test("shapes without elements and without axes", () => {
  for (const [shape, data, expected] of [
    [[0], new Float32Array(0), 0],
    [[3, 0, 2], { memory: c.memory, ptr: 2 ** 40 }, 0],
    [[], Float32Array.of(7), 7],
    [Array(64).fill(1), Float32Array.of(8), 8],
  ]) {
    const tensor = c.fromExchange(lend(data, { shape }));
    assert.equal(c.sum(tensor), expected);
    const exchange = tensor[EXCHANGE]();
    assert.deepEqual([exchange.shape, exchange.strides], [shape, null]);
    assert.equal(exchange.capacity, expected ? 4 : 0);
    for (const each of [tensor, exchange]) each.release();
  }
});

test("what C writes is the producer's at the end, of its elements and nothing else", () => {
  const data = Float32Array.of(1, 2, 3, 4, 5, 6);
  const strided = { shape: [3], strides: [-2], byteOffset: 20 };
  const producer = lend(data, strided);
  const tensor = c.fromExchange(producer, { writes: true });
  assert.equal(producer.told.requests[0].writes, true);
  c.scale(tensor, 10);
  const exchange = tensor[EXCHANGE]();
  tensor.release();
  data[0] = 70; // an element of somebody else's
  grow();
  assert.deepEqual(producer.told.released, []);
  exchange.release();
  assert.deepEqual([...data], [70, 20, 3, 40, 5, 60]);
  assert.deepEqual(producer.told.released, [true]);
});

test("release tells whether elements were changed, those who took it from us among it", () => {
  for (const [act, wrote] of [
    [() => {}, false],
    [(tensor) => c.scale(tensor, 1), true],
    [(tensor) => tensor[EXCHANGE]({ writes: true }).release(), true],
    [(tensor) => tensor[EXCHANGE]({ writes: true }).release(false), false],
    [(tensor) => tensor[EXCHANGE]().release(), false],
    [(tensor) => tensor[EXCHANGE]().release(true), true],
  ]) {
    const data = Float32Array.of(1);
    const producer = lend(data);
    const tensor = c.fromExchange(producer, { writes: true });
    act(tensor);
    data[0] = 2; // its owner's, which stays where nothing was changed
    tensor.release();
    assert.deepEqual(producer.told.released, [wrote], `${act}`);
    assert.equal(data[0], wrote ? 1 : 2);
  }
});

// --- hostile exchanges ----------------------------------------------------------------------------

test("exchanges that cannot be are refused before a byte is read, and released", () => {
  const data = Float32Array.of(1, 2, 3);
  const { length } = new Uint8Array(c.memory.buffer);
  const ours = [-4, length - 8, 2 ** 32, 0.5].map((ptr) => ({ data: { memory: c.memory, ptr } }));
  // C has the memory's own length in place of a capacity.
  const { capacity: _, "data.ptr": __, ...lies } = LIES;
  for (const wrong of [
    ...Object.values(lies).flat(),
    ...ours,
    { strides: undefined },
    { dtype: { code: 18, bits: 32, lanes: 1 } },
    { data: { memory: c.memory, ptr: 0 }, shape: [2], strides: [-1] },
    { dtype: { code: 1, bits: 4, lanes: 2 }, flags: 4 },
    { dtype: { code: 1, bits: 4, lanes: 1 }, shape: [2], strides: [2] },
    { release: undefined },
    { flush: undefined },
  ]) {
    for (const options of [{}, { writes: true }, { copy: true }]) {
      const producer = lend(data, wrong);
      const name = /^(Unsupported|Device)Error$/;
      assert.throws(() => c.fromExchange(producer, options), { name }, JSON.stringify(wrong));
      const times = "release" in wrong ? 0 : 1;
      assert.deepEqual(producer.told.released, Array(times).fill(false), JSON.stringify(wrong));
      assert.equal(c.liveTensors(), 0, JSON.stringify(wrong));
    }
  }
  for (const version of [[2, 0], null, "1", [1], [1, 0, 0], [1, -1], { 0: 1, 1: 0 }]) {
    const producer = lend(data, { version });
    assert.throws(() => c.fromExchange(producer), { name: "UnsupportedError" });
    assert.deepEqual(producer.told.released, [], "another version is not touched");
  }
  const readOnly = lend(data, { flags: 1 });
  assert.throws(() => c.fromExchange(readOnly, { writes: true }), { name: "UnsupportedError" });
  assert.throws(() => c.fromExchange({}), TypeError);
});

test("flag 4 is of elements of less than a byte, and handed on with those alone", () => {
  const wide = c.fromExchange(lend(Float32Array.of(1, 2, 3), { flags: 4 }));
  assert.equal(c.sum(wide), 6);
  const small = { dtype: { code: 1, bits: 4, lanes: 1 }, shape: [3], flags: 4 };
  const padded = c.fromExchange(lend(Uint8Array.of(1, 2, 3), small));
  const flags = [wide, padded].map((tensor) => {
    const exchange = tensor[EXCHANGE]();
    exchange.release();
    return exchange.flags;
  });
  assert.deepEqual(flags, [0, 4]);
  wide.release();
  padded.release();
});

test("each field is read once, and believed", () => {
  const reads = {};
  const honest = lend(Float32Array.of(1, 2, 3));
  const producer = {
    [EXCHANGE](request) {
      const exchange = honest[EXCHANGE](request);
      for (const [name, value] of Object.entries(exchange)) {
        Object.defineProperty(exchange, name, {
          get() {
            reads[name] = (reads[name] ?? 0) + 1;
            return reads[name] === 1 ? value : { shape: [2 ** 20], byteOffset: 4 }[name];
          },
        });
      }
      return exchange;
    },
  };
  for (const options of [{}, { writes: true }]) {
    for (const name of Object.keys(reads)) delete reads[name];
    const tensor = c.fromExchange(producer, options);
    assert.equal(c.sum(tensor), 6);
    tensor.release();
    assert.ok(
      Object.values(reads).every((count) => count === 1),
      JSON.stringify(reads),
    );
  }
});

test("shared memory is taken as any other", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
  new Float32Array(memory.buffer, 8, 2).set([1, 2]);
  for (const data of [{ memory, ptr: 8 }, new Float32Array(memory.buffer, 8, 2)]) {
    const tensor = c.fromExchange(lend(data, { shape: [2] }), { writes: true });
    c.scale(tensor, 2);
    tensor.release();
  }
  assert.deepEqual([...new Float32Array(memory.buffer, 8, 2)], [4, 8]);
});

test("an error on the way is the one that is told, whatever release() does", (context) => {
  const told = context.mock.method(console, "error", () => {});
  let released = 0;
  const release = () => {
    released++;
    throw new Error("and so did release()");
  };
  const producer = lend(Float32Array.of(1), { shape: [5], release });
  assert.throws(() => c.fromExchange(producer), { name: "UnsupportedError" });
  assert.equal(told.mock.callCount(), 1);
  const fine = lend(Float32Array.of(1), { release });
  assert.throws(() => c.fromExchange(fine), /and so did/);
  assert.equal(released, 2, "once each");
});

// --- random sequences -----------------------------------------------------------------------------

for (const seed of [1, 2, 3, 4]) {
  test(`random sequences against a model, seed ${seed}`, () => {
    const pick = random(seed);
    /** Tensors in C: { values, holds, end(), changed }, `values` shared where memory is. */
    const alive = new Set();
    /** What the test holds of them: { node, thing, isTensor }. */
    const held = [];
    const foreign = [];

    const drop = (node) => {
      if (--node.holds > 0) return;
      alive.delete(node);
      node.end?.(node.changed);
    };
    const enter = (thing, node) => {
      alive.add(Object.assign(node, { holds: 1, changed: false }));
      held.push({ node, thing, isTensor: true });
    };
    const oneOf = (list) => list[pick(list.length)];
    const tensors = () => held.filter(({ isTensor }) => isTensor);
    const operations = {
      make() {
        const values = Array.from({ length: pick(5) }, () => pick(100));
        enter(made(values), { values, writable: true });
      },
      share() {
        const { node, thing } = oneOf(tensors());
        held.push({ node, thing: thing[EXCHANGE](), isTensor: false });
        node.holds++;
      },
      copy() {
        const { node, thing } = oneOf(tensors());
        const copied = { values: [...node.values], holds: 1, changed: false };
        alive.add(copied);
        held.push({ node: copied, thing: thing[EXCHANGE]({ copy: true }), isTensor: false });
      },
      take_own() {
        const { node, thing } = oneOf(tensors());
        const writes = node.writable && pick(2) === 1;
        node.holds++;
        const end = (wrote) => {
          node.changed ||= wrote;
          drop(node);
        };
        const mine = c.fromExchange(thing, { writes, copy: false });
        enter(mine, { values: node.values, writable: writes, end });
      },
      take_foreign() {
        const array = Float32Array.from({ length: 7 }, () => pick(100));
        const [stride, byteOffset] = oneOf([
          [1, 4],
          [2, 0],
          [-2, 24],
        ]);
        const at = (i) => byteOffset / 4 + i * stride;
        const producer = lend(array, { shape: [3], strides: [stride], byteOffset });
        const expected = [...array];
        const record = { producer, array, expected, released: [] };
        foreign.push(record);
        const values = [0, 1, 2].map((i) => array[at(i)]);
        const writes = pick(2) === 1;
        if (!writes) record.released.push(false);
        const end = (wrote) => {
          if (!writes) return;
          record.released.push(wrote);
          if (wrote) for (const [i, value] of values.entries()) expected[at(i)] = value;
        };
        enter(c.fromExchange(producer, { writes }), { values, writable: true, end });
      },
      scale() {
        const { node, thing } = oneOf(tensors());
        if (!node.writable) {
          assert.throws(() => c.scale(thing, 2), { name: "UnsupportedError" });
          return;
        }
        c.scale(thing, 0.5);
        for (const i of node.values.keys()) node.values[i] *= 0.5;
        node.changed = true;
      },
      release() {
        const [{ node, thing, isTensor }] = held.splice(pick(held.length), 1);
        const wrote = !isTensor && node.writable && pick(2) === 1;
        thing.release(...(wrote ? [true] : []));
        node.changed ||= wrote;
        drop(node);
        thing.release(true);
      },
      grow() {
        if (c.memory.buffer.byteLength < 2 ** 25) grow();
      },
    };
    const check = () => {
      assert.equal(c.liveTensors(), alive.size);
      for (const { node, thing, isTensor } of held) {
        const ptr = isTensor ? thing.ptr : thing.data.ptr;
        const { length } = node.values;
        assert.deepEqual([...new Float32Array(c.memory.buffer, ptr, length)], node.values);
        if (isTensor)
          assert.equal(
            c.sum(thing),
            node.values.reduce((a, b) => a + b, 0),
          );
      }
      for (const { producer, array, expected, released } of foreign) {
        assert.deepEqual([[...array], producer.told.released], [expected, released]);
      }
    };
    for (let step = 0; step < 500; step++) {
      const names = held.length > 12 ? ["release"] : Object.keys(operations);
      const name = tensors().length === 0 ? "make" : oneOf(names);
      operations[name]();
      check();
    }
    while (held.length > 0) operations.release();
    check();
  });
}
