// Uploads and readbacks as the queue sees them: what is written from where, and that no error
// leaves anything mapped, held or unreported. The GPU is a fake; Chromium has the real one.
// Looks inside: offsets, padding and rows are asked for, which the public names choose themselves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../js/dist/core/dtype.js";
import { EXCHANGE_ASYNC } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor, webgpu } from "../../../js/dist/index.js";
import * as transfer from "../../../js/dist/webgpu/buffers/transfer.js";
import { writeWords } from "../../../js/dist/webgpu/buffers/upload.js";
import { Random } from "../../fuzz/js/random.mjs";
import "../nothing_leaks.mjs";

/** Reads tensors as Python does. */
const read = (tensors, outs, signal) =>
  transfer.read(
    tensors.map((tensor) => tensor._managed),
    outs.map((out) => out?._managed ?? out),
    signal,
  );

/** A GPU whose buffers are arrays, with `fail` to have things go wrong. */
function fakeGPU() {
  const fail = { map: null, scope: null, after: Infinity, submit: 0 };
  const log = { writes: [], scopes: [], submits: 0, maps: 0, buffers: [] };
  const lost = new Promise(() => {});
  const limits = { maxBufferSize: 1 << 26 };
  function createBuffer({ size, usage }) {
    const bytes = new Uint8Array(size);
    const buffer = {
      size,
      usage,
      bytes,
      state: "unmapped",
      async mapAsync() {
        log.maps++;
        if (fail.map) throw fail.map;
        buffer.state = "mapped";
      },
      getMappedRange(offset, length) {
        assert.deepEqual([offset % 8, length % 4], [0, 0]);
        assert.ok(offset + length <= size);
        return bytes.buffer.slice(offset, offset + length);
      },
      unmap() {
        buffer.state = "unmapped";
      },
      destroy() {
        buffer.state = "destroyed";
      },
    };
    log.buffers.push(buffer);
    return buffer;
  }
  const device = {
    lost,
    limits,
    createBuffer,
    pushErrorScope: (filter) => log.scopes.push(filter),
    async popErrorScope() {
      const error = fail.scope;
      fail.scope = null;
      return error;
    },
    createCommandEncoder: () => ({
      copyBufferToBuffer(from, at, to, offset, size) {
        assert.deepEqual([at % 4, offset % 4, size % 4], [0, 0, 0]);
        assert.ok(at + size <= from.size && offset + size <= to.size);
        to.bytes.set(from.bytes.subarray(at, at + size), offset);
      },
      finish() {},
    }),
    queue: {
      submit() {
        if (++log.submits === fail.submit) throw new RangeError("no more memory");
      },
      writeBuffer(buffer, at, data, offset = 0, size = data.byteLength) {
        const source = data.buffer ?? data;
        assert.ok(!source.resizable, "WebGPU refuses resizable buffers");
        assert.deepEqual([at % 4, size % 4], [0, 0]);
        if (log.writes.length >= fail.after) throw new RangeError("no more memory");
        log.writes.push({ data, offset, size });
        buffer.bytes.set(new Uint8Array(source, (data.byteOffset ?? 0) + offset, size), at);
      },
    },
  };
  return { device, fail, log };
}

const sequence = (count) => Uint8Array.from({ length: count }, (_, i) => i + 1);

/** The numbers 1, 2, … on the GPU. */
function uploaded(device, count) {
  const cpu = Tensor.fromTypedArray(sequence(count));
  const gpu = cpu.to(device);
  cpu.release();
  return gpu;
}

test("whole words are one write straight from the array's own memory", () => {
  const { device, log } = fakeGPU();
  const whole = new Float32Array(8).fill(2);
  const cpu = Tensor.fromTypedArray(whole.subarray(2, 6));
  const gpu = cpu.to(device);
  assert.deepEqual(log.writes, [{ data: whole.buffer, offset: 8, size: 16 }]);
  gpu.release();
  cpu.release();
});

for (const count of [1, 2, 3, 5, 7, 17]) {
  test(`${count} bytes arrive with zeros up to a multiple of 16, and return as ${count}`, async () => {
    const { device, log } = fakeGPU();
    const gpu = uploaded(device, count);
    const { bytes } = log.buffers[0];
    assert.equal(bytes.length, Math.ceil(count / 16) * 16);
    assert.deepEqual([...bytes.subarray(0, count)], [...sequence(count)]);
    assert.ok(bytes.subarray(count).every((byte) => byte === 0));
    assert.deepEqual(await gpu.read(), sequence(count));
    gpu.release();
  });
}

test("elements that end within a byte are uploaded without their neighbours", () => {
  const { device, log } = fakeGPU();
  const cpu = Tensor.fromTypedArray(Uint8Array.of(255, 255), { dtype: "uint4", shape: [3] });
  const gpu = cpu.to(device);
  assert.deepEqual([...log.buffers[0].bytes.subarray(0, 4)], [255, 15, 0, 0]);
  gpu.release();
  cpu.release();
});

test("resizable memory is copied through a fixed array", async () => {
  const { device } = fakeGPU();
  const resizable = new Uint8Array(new ArrayBuffer(11, { maxByteLength: 64 }), 1, 10);
  resizable.set(sequence(10));
  const cpu = Tensor.fromTypedArray(resizable);
  const gpu = cpu.to(device);
  assert.deepEqual(await gpu.read(), sequence(10));
  gpu.release();
  cpu.release();
});

test("several tensors are one submit and one map, and staging is used again", async () => {
  const { device, log } = fakeGPU();
  const tensors = [3, 0, 16, 5].map((count) => uploaded(device, count));
  const made = log.buffers.length;
  for (let round = 1; round <= 3; round++) {
    const results = await read(tensors, []);
    assert.deepEqual(results, [3, 0, 16, 5].map(sequence));
    assert.deepEqual([log.submits, log.maps, log.buffers.length], [round, round, made + 1]);
    assert.equal(log.buffers.at(-1).state, "unmapped");
  }
  for (const tensor of tensors) tensor.release();
});

test("a copy of buffers that were copied before has no error scope, unless foreign code has them", async () => {
  const { device, fail, log } = fakeGPU();
  const [x, y, none] = [8, 24, 0].map((count) => uploaded(device, count));
  const scopes = async (...tensors) => {
    log.scopes.length = 0;
    await read(tensors, []);
    return log.scopes.length;
  };
  fail.scope = { message: "that buffer is invalid" };
  await assert.rejects(scopes(x), { name: "DeviceError" });
  assert.equal(await scopes(none), 1);
  assert.equal(await scopes(none, x), 1, "nothing of either was copied");
  assert.equal(await scopes(none, x), 1, "an empty copy proves nothing");
  assert.equal(await scopes(x), 0);
  for (const count of [1, 0]) assert.equal(await scopes(...Array(9).fill(x)), count, "staging");
  assert.equal(await scopes(x, y), 1);
  assert.equal(await scopes(y, x), 0);
  assert.deepEqual(await read([y, x], []), [24, 8].map(sequence));
  y.buffer; // whose owner may destroy it
  assert.equal(await scopes(y), 1);
  assert.equal(await scopes(y, x), 1, "only that one is watched");
  for (const tensor of [x, y, none]) tensor.release();
});

test("readAll reads tensors of several devices and the CPU", async () => {
  const gpus = [fakeGPU(), fakeGPU()];
  const tensors = [...gpus.map(({ device }) => uploaded(device, 8)), Tensor.from(sequence(3))];
  assert.deepEqual(await webgpu.readAll([]), []);
  const reading = webgpu.readAll(tensors);
  for (const tensor of tensors) tensor.release();
  assert.deepEqual(await reading, [8, 8, 3].map(sequence));
  assert.deepEqual(
    gpus.map(({ log }) => [log.submits, log.maps]),
    [0, 1].map(() => [1, 1]),
  );
  await assert.rejects(webgpu.readAll([new Uint8Array(8)]), /a Tensor is needed, not/);
  await assert.rejects(webgpu.readAll([tensors[0]]), { name: "ReleasedError" });
});

test("what does not fit into one buffer is read by two", async () => {
  const { device, log } = fakeGPU();
  device.limits.maxBufferSize = 64;
  const tensors = [48, 32].map((count) => uploaded(device, count));
  assert.deepEqual(await read(tensors, []), [48, 32].map(sequence));
  assert.equal(log.maps, 2);
  for (const tensor of tensors) tensor.release();
});

test("a map that fails is told with its cause, and its buffer is given up", async () => {
  const { device, fail, log } = fakeGPU();
  const gpu = uploaded(device, 8);
  fail.map = new Error("aborted");
  await assert.rejects(gpu.read(), { name: "DeviceError", cause: fail.map });
  assert.equal(log.buffers.at(-1).state, "destroyed");
  fail.map = null;
  assert.deepEqual(await gpu.read(), sequence(8));
  gpu.release();
});

test("an error that the GPU reports of a read is thrown by that read, and told to nobody else", async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  const { device, fail, log } = fakeGPU();
  const gpu = uploaded(device, 8);
  fail.scope = { message: "that buffer is invalid" };
  const out = new Uint8Array(8);
  await assert.rejects(gpu.read(out), { name: "DeviceError", message: /that buffer is invalid/ });
  assert.deepEqual(out, new Uint8Array(8));
  assert.equal(log.buffers.at(-1).state, "destroyed");
  assert.equal(logged.mock.callCount(), 0);
  assert.deepEqual(await gpu.read(), sequence(8));
  gpu.release();
});

test("an error of a read that nobody sees is reported later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const gpus = [0, 1].map(() => fakeGPU());
  const told = [];
  const stops = gpus.map(({ device }, i) =>
    webgpu.listenForFaults(device, ({ message }) => told.push([i, /wrong \d/.exec(message)[0]])),
  );
  const tensors = gpus.map(({ device }) => uploaded(device, 8));
  const [one, other] = tensors;
  const failing = (...numbers) => {
    for (const [i, number] of numbers.entries())
      gpus[i].fail.scope = { message: `wrong ${number}` };
  };
  failing(1, 2); // of two devices, one is thrown
  await assert.rejects(read([one, other], []), /wrong 1/);
  t.mock.timers.tick(1000);
  assert.deepEqual(told.splice(0), [[1, "wrong 2"]]);
  failing(3); // of an aborted read, none is seen
  const controller = new AbortController();
  const reading = read([one], [], controller.signal);
  controller.abort();
  await assert.rejects(reading);
  t.mock.timers.tick(1000);
  assert.deepEqual(told.splice(0), [[0, "wrong 3"]]);
  failing(4);
  const ended = new AbortController();
  const request = { device: null, signal: ended.signal };
  const exchange = one[EXCHANGE_ASYNC](request);
  ended.abort();
  await assert.rejects(exchange, { name: "AbortError" });
  for (let i = 0; i < 20; i++) await null; // the read goes on
  t.mock.timers.tick(1000);
  assert.deepEqual(told.splice(0), [[0, "wrong 4"]]);
  failing(5, 6);
  await assert.rejects(one.read(), /wrong 5/);
  await assert.rejects(other.read(), /wrong 6/);
  t.mock.timers.tick(1000);
  assert.deepEqual(told, []);
  for (const each of tensors) each.release();
  for (const stop of stops) stop();
});

test("targets are checked before the GPU is asked", async () => {
  const { device, log } = fakeGPU();
  const gpu = uploaded(device, 8);
  await assert.rejects(gpu.read(new Uint8Array(9)), { name: "RangeError", message: /9 bytes/ });
  await assert.rejects(gpu.read(gpu), { name: "UnsupportedError", message: /CPU tensor/ });
  const released = Tensor.fromTypedArray(sequence(8));
  released.release();
  await assert.rejects(gpu.read(released), { name: "ReleasedError" });
  assert.equal(log.submits, 0);
  gpu.release();
});

test("source and target may be released while the GPU works", async () => {
  const { device } = fakeGPU();
  const gpu = uploaded(device, 8);
  const array = new Uint8Array(8);
  const out = Tensor.fromTypedArray(array);
  const reading = gpu.read(out);
  gpu.release();
  out.release();
  await reading;
  assert.deepEqual(array, sequence(8));
});

test("a target that is detached meanwhile is an error, not a write elsewhere", async () => {
  const { device, log } = fakeGPU();
  const gpu = uploaded(device, 8);
  const out = new Uint8Array(8);
  const reading = gpu.read(out);
  structuredClone(out.buffer, { transfer: [out.buffer] });
  await assert.rejects(reading, { name: "RangeError", message: /detached/ });
  assert.equal(log.buffers.at(-1).state, "destroyed");
  gpu.release();
});

test("a read that is aborted writes nothing, and keeps neither tensors nor its buffer", async () => {
  const { device, log } = fakeGPU();
  const before = liveTensors();
  for (let turns = 0; turns < 6; turns++) {
    const gpu = uploaded(device, 8);
    const array = new Uint8Array(8).fill(7);
    const out = Tensor.fromTypedArray(array);
    const controller = new AbortController();
    const reading = read([gpu, gpu], [out, undefined], controller.signal);
    reading.catch(() => {});
    for (let turn = 0; turn < turns; turn++) await null;
    const done = array[0] !== 7;
    controller.abort();
    gpu.release();
    out.release();
    if (!done) assert.equal(liveTensors(), before);
    await (done ? reading : assert.rejects(reading, { name: "ReleasedError" }));
    assert.deepEqual(array, done ? sequence(8) : new Uint8Array(8).fill(7));
    assert.equal(log.buffers.at(-1).state, done ? "unmapped" : "destroyed");
  }
  assert.equal(liveTensors(), before);
});

test("of several targets all are written or none", async () => {
  const { device } = fakeGPU();
  const gpu = uploaded(device, 8);
  const outs = [new Uint8Array(8), new Uint8Array(8)];
  const reading = read([gpu, gpu], outs);
  structuredClone(outs[1].buffer, { transfer: [outs[1].buffer] });
  await assert.rejects(reading, { name: "RangeError", message: /detached/ });
  assert.deepEqual(outs[0], new Uint8Array(8));
  gpu.release();
});

test("memory of 2 GiB is written by a view of the part, which Firefox takes", () => {
  const writes = [];
  const queue = { writeBuffer: (...args) => writes.push(args) };
  const [small, large] = [new ArrayBuffer(64), new ArrayBuffer(2 ** 31)];
  writeWords(queue, "target", 4, small, 8, 16);
  writeWords(queue, "target", 4, large, 2 ** 31 - 16, 16);
  assert.deepEqual(writes[0], ["target", 4, small, 8, 16]);
  const [target, offset, view, ...rest] = writes[1];
  assert.deepEqual([target, offset, rest], ["target", 4, []]);
  assert.deepEqual([view.buffer === large, view.byteOffset, view.length], [true, 2 ** 31 - 16, 16]);
});

const MIB = 1 << 20;

for (const [mib, sizes, submits] of [
  [1, [1], 0],
  [7, [7], 1],
  [9.5, [4, 4, 1.5], 2],
]) {
  test(`${mib} MiB are ${sizes.length} writes, and ${submits} submits let memory be used again`, async () => {
    const { device, log } = fakeGPU();
    const cpu = Tensor.fromTypedArray(new Uint8Array(mib * MIB + 5));
    const gpu = cpu.to(device);
    const sent = log.writes.map(({ size }) => size);
    sizes[sizes.length - 1] += 4 / MIB;
    assert.deepEqual(sent, [...sizes.map((size) => size * MIB), 4]); // the last word is padded
    assert.equal(log.submits, submits);
    await gpu.read();
    log.scopes.length = 0;
    gpu.write(cpu); // memory for what is large may run out, and the buffer is known to exist
    assert.deepEqual(log.scopes, mib > 4 ? ["validation", "out-of-memory"] : []);
    gpu.release();
    cpu.release();
  });
}

const BECOMES = {
  float64: "float32",
  complex128: "complex64",
  float32: "bfloat16",
  float16: "float32",
  bfloat16: "float32",
  bfloat16x3: "float32x3",
  uint64: "uint32",
  int64x2: "int32x2",
  uint8: "uint8",
  uint8x3: "uint8x3",
};
const LAYOUTS = {
  contiguous: (size) => ({ shape: [size] }),
  "misaligned or resizable": (size) => ({ shape: [size] }),
  "in odd columns": (size) => ({ shape: [3, size / 3 - 1], strides: [-1, 3], offset: 2 }),
};

for (const [from, to] of Object.entries(BECOMES)) {
  for (const [layout, optionsOf] of Object.entries(LAYOUTS)) {
    test(`${from} as ${to}, ${layout}: the pieces are what the whole is`, () => {
      const { device, log } = fakeGPU();
      const { View, step } = dtypeNamed(from);
      const size = 3 * Math.ceil((9 * MIB) / step / 3 / 2);
      const skip = layout.startsWith("mis") ? 8 + (View.BYTES_PER_ELEMENT % 8) : 0;
      const memory = skip
        ? new ArrayBuffer(skip + size * step, { maxByteLength: 16 * MIB })
        : new ArrayBuffer(size * step);
      const bits = new Uint32Array(memory, 0, memory.byteLength >> 2);
      for (let i = 0; i < bits.length; i++) bits[i] = Math.imul(i, 0x9e3779b1);
      if (/int64/.test(from)) for (let i = 0; i < bits.length; i++) bits[i] = i % 2 ? 0 : i;
      const bytes = new Uint8Array(memory, skip && (/int64/.test(from) ? skip : 2));
      const array = bytes.subarray(0, size * step);
      const cpu = Tensor.fromTypedArray(array, { dtype: from, ...optionsOf(size) });
      const expected = cpu._managed.as(dtypeNamed(to));
      const gpu = cpu.to(device, { dtype: to });
      const found = log.buffers[0].bytes.subarray(0, expected.length);
      assert.equal(Buffer.compare(found, expected), 0);
      gpu.write(cpu, { convert: true });
      assert.equal(Buffer.compare(found, expected), 0);
      assert.ok(log.writes.every((each) => each.size <= 8 * MIB));
      gpu.release();
      cpu.release();
    });
  }
}

test("an upload that fails in a later piece is an error of its tensor, until it is written again", async () => {
  const { device, fail, log } = fakeGPU();
  const before = liveTensors();
  const cpu = Tensor.fromTypedArray(new Float64Array(1.5 * MIB).fill(2));
  const gpu = cpu.to(device);
  const pieces = log.writes.length;
  assert.equal(pieces, 3);
  fail.after = pieces + 1;
  assert.throws(() => cpu.to(device), { name: "RangeError" });
  assert.equal(log.buffers.at(-1).state, "destroyed");
  fail.after = log.writes.length + 1;
  assert.throws(() => gpu.write(cpu), { name: "RangeError" });
  fail.after = Infinity;
  await assert.rejects(gpu.read(), { name: "RangeError", message: "no more memory" });
  gpu.write(cpu);
  assert.deepEqual(await gpu.read(), cpu.data);
  fail.submit = log.submits + 1; // after the first piece
  assert.throws(() => gpu.write(cpu), { name: "RangeError" });
  await assert.rejects(gpu.read(), { name: "RangeError", message: "no more memory" });
  // A conversion that fails is found before anything is written.
  const wide = Tensor.fromTypedArray(new BigInt64Array(2 * MIB).fill(3n));
  const narrow = wide.to(device, { dtype: "int32" });
  wide.data[2 * MIB - 1] = 2n ** 31n;
  assert.throws(() => narrow.write(wide, { convert: true }), /element 2097151 of .* 2147483648/);
  assert.equal((await narrow.read()).at(-1), 3);
  for (const tensor of [cpu, gpu, wide, narrow]) tensor.release();
  assert.equal(liveTensors(), before);
});

const noise = (random, count) => Uint8Array.from({ length: count }, () => random.below(256));

/** A CPU tensor with any elements. */
function anything(random, dtype, padded, shape) {
  const { View, step } = dtypeNamed(dtype, padded);
  const size = shape.reduce((product, extent) => product * extent, 1);
  const bytes = noise(random, Math.ceil(size * step));
  if (dtype === "int64") bytes.fill(255); // which int32 has, too
  return Tensor.fromTypedArray(new View(bytes.buffer), { dtype, padded, shape });
}

const KINDS = [
  "uint8",
  "int16",
  "float32",
  "int64",
  "bfloat16",
  "uint8x3",
  "int4",
  "float6_e2m3fn",
];

/** A view of both tensors by the same steps; what has no view stays as it is. */
function someView(random, pair) {
  const [{ shape }] = pair;
  const axes = shape.map((_, axis) => axis);
  random.shuffle(axes);
  const ranges = shape.map((extent) => {
    if (random.oneIn(3)) return null;
    const [start, stop] = [random.below(extent + 1), random.below(extent + 1)];
    const step = random.of([1, 1, 1, 2, -1]);
    return step < 0 ? [null, null, step] : [Math.min(start, stop), Math.max(start, stop), step];
  });
  const steps = [
    (tensor) => tensor.slice(...ranges),
    (tensor) => tensor.permute(axes),
    (tensor) => tensor.reshape([-1]),
  ];
  const step = random.of(steps);
  try {
    return pair.map(step);
  } catch {
    return pair.map((tensor) => tensor.slice());
  }
}

test("any views are read as the CPU reads them, into arrays and between neighbours", async () => {
  const random = new Random(3);
  for (let round = 0; round < 150; round++) {
    const { device } = fakeGPU();
    const [pairs, outs, held] = [[], [], []];
    for (let i = 0; i <= random.below(4); i++) {
      const [dtype, padded] = [random.of(KINDS), random.oneIn(2)];
      const shape = Array.from({ length: 1 + random.below(3) }, () => 1 + random.below(6));
      if (random.oneIn(4)) shape[shape.length - 1] *= 1501; // rows that are copied one by one
      const host = anything(random, dtype, padded && dtype !== "uint8x3", shape);
      let pair = [host, host.to(device)];
      held.push(...pair);
      for (let depth = random.below(4); depth > 0; depth--) {
        pair = someView(random, pair);
        held.push(...pair);
      }
      pairs.push(pair);
      // A target in the middle of other memory, or a new one.
      const [view] = pair;
      if (random.oneIn(2)) outs.push(undefined);
      else {
        const memory = noise(random, view.nbytes + 6);
        const place = Tensor.fromTypedArray(memory.subarray(3, 3 + view.nbytes), {
          dtype,
          padded,
          shape: view.shape,
        });
        held.push(place);
        outs.push(Object.assign(place, { memory, start: memory.slice() }));
      }
    }
    const found = await read(
      pairs.map(([, gpu]) => gpu),
      outs,
    );
    for (const [i, [host, gpu]] of pairs.entries()) {
      const wanted = await host.read();
      const expected = new Uint8Array(wanted.buffer, wanted.byteOffset, wanted.byteLength);
      const out = outs[i];
      if (out === undefined) {
        assert.equal(found[i].constructor, wanted.constructor);
        assert.deepEqual(found[i], wanted, gpu.toString());
        continue;
      }
      const after = out.start.slice();
      after.set(expected, 3);
      const rest = (host.size * host._managed.dtype.step) % 1;
      if (rest > 0) {
        const last = 2 + host.nbytes;
        after[last] |= out.start[last] & ~(2 ** (8 * rest) - 1); // a neighbour's
      }
      assert.equal(found[i], out._managed ?? out);
      assert.deepEqual(out.memory, after, gpu.toString());
    }
    for (const each of held) each.release();
  }
});

test("parts are written as on the CPU, converted and not, or refused", async () => {
  const random = new Random(4);
  const CONVERT = [
    ["float64", "float32"],
    ["float32", "float16"],
    ["float32", "bfloat16"],
    ["bfloat16", "float32"],
    ["int64", "int32"],
    ["int4", "int4"],
    ["uint1", "uint1"],
    ["float6_e3m2fn", "float6_e3m2fn"],
    ["uint16", "uint16"],
  ];
  const refused = { yes: 0, no: 0 };
  for (let round = 0; round < 400; round++) {
    const { device } = fakeGPU();
    const [from, to] = random.of(CONVERT);
    const padded = random.oneIn(2);
    const count = random.below(40);
    const host = anything(random, to, padded, [count]);
    const gpu = host.to(device);
    const first = random.of([0, 4, 8, 16, 32, random.below(count + 1)]);
    const range = [Math.min(first, count), random.oneIn(2) ? count : random.below(count + 1)];
    const parts = [];
    try {
      for (const each of [host, gpu]) parts.push(each.slice(range));
    } catch (error) {
      assert.match(error.message, /within a byte/);
      for (const each of [host, gpu, ...parts]) each.release();
      continue;
    }
    const source = anything(random, from, random.oneIn(2), [parts[0].size]);
    try {
      parts[1].write(source, { convert: true });
      parts[0].write(source, { convert: true });
      refused.no++;
    } catch (error) {
      assert.match(error.message, /shares words of 4 bytes/);
      refused.yes++;
    }
    assert.deepEqual(
      await gpu.read(),
      await host.read(),
      `${source.toString()} over ${parts[1].toString()}`,
    );
    for (const each of [host, gpu, source, ...parts]) each.release();
  }
  assert.ok(refused.yes > 20 && refused.no > 100, JSON.stringify(refused));
});
