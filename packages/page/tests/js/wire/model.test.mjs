// A wire over a channel that splits, drops, repeats, reorders and breaks, against a model: nothing
// is lost, and two writes never mix. WIRE_RUNS=10000 is what test-all runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../../../js/dist/index.js";
import { fractions } from "../../../../../tests/js/random.mjs";
import { joined, overPort, overSocket, Wire } from "../../../js/dist/wire/index.js";
import { pair } from "./pair.mjs";

const RUNS = Number(process.env.WIRE_RUNS ?? 100);
const [ROWS, PIECE] = [200, 1 << 16];

const tensorOf = (array) => Tensor.fromTypedArray(array, { shape: [ROWS, array.length / ROWS] });

/** One end, the frames on their way to the other, and what that must have. */
class Side {
  out = [];
  remotes = new Map();
  expected = new Map();
  open = new Set();

  constructor(clock, rng) {
    this.clock = clock;
    this.rng = rng;
    this.begin();
  }

  begin() {
    this.wire = new Wire({
      send: (header, payload) => this.out.push(joined(header, payload)),
      ontensor: ({ tensor, version, begin, end }) => {
        const part = tensor.data.subarray(begin / 4, end / 4);
        assert.ok(part.every((value) => value >= version));
      },
      onsession: () => this.sendAll(),
      limit: 1 << 20,
      piece: PIECE,
      window: [0, PIECE, 5 * PIECE][Math.floor(3 * this.rng())],
      timeout: 5,
      now: () => this.clock.now,
    });
  }

  /** The first time, and after what was sent is gone. */
  sendAll() {
    this.remotes.clear();
    for (const [name, array] of this.expected) {
      const tensor = tensorOf(array.slice());
      const remote = this.wire.send(name, tensor);
      tensor.release();
      this.remotes.set(name, remote);
      this.watch(remote.ready);
    }
  }

  watch(write) {
    const one = write.then(
      () => this.open.delete(one),
      () => this.open.delete(one),
    );
    this.open.add(one);
  }

  write() {
    const names = [...this.remotes.keys()];
    const name = names[Math.floor(this.rng() * names.length)];
    const [remote, array] = [this.remotes.get(name), this.expected.get(name)];
    const columns = array.length / ROWS;
    const start = Math.floor(this.rng() * (ROWS + 1));
    const stop = start + Math.floor(this.rng() * (ROWS + 1 - start));
    const part = array.subarray(start * columns, stop * columns).fill(remote._version + 1);
    this.watch(remote.slice([start, stop]).write(part.slice()));
  }
}

function deliver(rng, source, target, careful) {
  if (source.out.length === 0) return;
  const at = careful || rng() < 0.5 ? 0 : Math.floor(rng() * source.out.length);
  const frame = source.out[at];
  const luck = careful ? 1 : rng();
  if (luck < 0.1 || luck >= 0.2) source.out.splice(at, 1);
  if (luck < 0.1) return;
  const split = 8 + new DataView(frame.buffer).getUint32(0, true);
  if (rng() < 0.5) target.wire.receive(frame);
  else target.wire.receive(frame.subarray(0, split), frame.subarray(split));
}

async function run(seed) {
  const rng = fractions(seed);
  const clock = { now: 0 };
  const sides = [new Side(clock, rng), new Side(clock, rng)];
  const [one, other] = sides;
  for (const side of sides) {
    for (const columns of [300, 3, 0]) {
      side.expected.set(`${columns}`, new Float32Array(ROWS * columns).fill(1));
    }
    side.sendAll();
    side.wire.connect();
  }
  const connect = () => {
    for (const side of sides) side.out.length = 0;
    for (const side of sides) side.wire.connect();
  };
  for (let steps = 20 + 100 * rng(); steps > 0; steps--) {
    const [source, target] = rng() < 0.5 ? [one, other] : [other, one];
    const luck = rng();
    clock.now++;
    if (luck < 0.8) deliver(rng, source, target, false);
    else if (luck < 0.9) source.write();
    else if (luck < 0.95) source.wire.tick();
    else if (luck < 0.98) connect();
    else {
      source.wire.close();
      source.begin();
      source.sendAll();
      connect();
    }
  }
  for (let steps = 0; steps < 2000; steps++) {
    clock.now++;
    for (const [source, target] of [sides, [other, one]]) {
      if (source.out.length > 0) deliver(rng, source, target, true);
      else source.wire.tick();
    }
    await undefined;
    await undefined;
    if (one.open.size + other.open.size === 0) break;
  }
  assert.equal(one.open.size + other.open.size, 0, `seed ${seed}: writes are not done`);
  for (const [source, target] of [sides, [other, one]]) {
    for (const [name, array] of source.expected) {
      assert.deepEqual((await target.wire.get(name)).data, array, `seed ${seed}`);
    }
  }
  for (const side of sides) side.wire.close();
}

test("nothing is lost and writes never mix", async () => {
  const before = liveTensors();
  for (let seed = 0; seed < RUNS; seed++) await run(seed);
  assert.equal(liveTensors(), before);
});

test("hostile frames throw, are refused, and change no complete tensor beyond the limit", () => {
  const rng = fractions(7);
  const { ends, queues, carry } = pair({ limit: 4096 });
  const tensor = Tensor.from(Float32Array.from({ length: 16 }, (_, i) => i));
  ends[0].send("x", tensor);
  const [frame] = queues[0];
  carry();
  const before = liveTensors();
  for (let count = 0; count < 3000; count++) {
    const bytes = frame.slice();
    for (let changes = 1 + 2 * rng(); changes > 0; changes--) {
      const choices = '0123456789"{}[],:\xff';
      const code = choices.charCodeAt(Math.floor(rng() * choices.length));
      bytes[Math.floor(rng() * (bytes.length - 64))] = code;
    }
    try {
      ends[1].receive(bytes);
    } catch (error) {
      assert.match(error.name, /^(UnsupportedError|DLPackError)$/);
    }
  }
  assert.ok(liveTensors() - before <= 2 * 4096);
  for (const end of ends) end.close();
  tensor.release();
});

test("what does not fit is refused and freed", async () => {
  const { ends, carry } = pair({ limit: 100 });
  const large = Tensor.from(new Float32Array(26));
  const small = Tensor.from(new Float32Array(25));
  const remote = ends[0].send("x", large);
  const fits = ends[0].send("y", small);
  carry();
  await assert.rejects(remote.ready, /limit of 100/);
  await fits.ready;
  await assert.rejects(remote.write(large), /limit of 100/);
  fits.free();
  carry();
  const again = ends[0].send("x", small);
  carry();
  await again.ready;
  await assert.rejects(again.write(new Float64Array(25)), /float64|Float64Array/);
  assert.throws(() => again.slice([3, 26]), RangeError);
  const waiting = ends[1].get("z");
  for (const end of ends) end.close();
  await assert.rejects(waiting, /closed/);
  for (const tensor of [large, small]) tensor.release();
});

test("strided tensors go piece by piece, with at most the window on its way", async () => {
  const { ends, queues } = pair({ piece: PIECE, window: 3 * PIECE });
  const array = Float64Array.from({ length: 100_000 }, (_, i) => i);
  const whole = Tensor.fromTypedArray(array, { shape: [100, 10, 100] });
  const turned = whole.permute([2, 0, 1]);
  const remote = ends[0].send("x", turned);
  let most = 0;
  while (queues.some((queue) => queue.length > 0)) {
    most = Math.max(most, queues[0].length);
    if (queues[0].length > 0) ends[1].receive(queues[0].shift());
    else ends[0].receive(queues[1].shift());
  }
  assert.equal(most, 3);
  await remote.ready;
  assert.deepEqual((await ends[1].get("x")).data, turned.copy());
  for (const end of ends) end.close();
  for (const tensor of [whole, turned]) tensor.release();
});

test("ports carry a wire", async () => {
  const { port1, port2 } = new MessageChannel();
  const [one, other] = [overPort(port1), overPort(port2)];
  const tensor = Tensor.from(Float32Array.of(1, 2, 3));
  const remote = one.send("x", tensor);
  assert.deepEqual((await other.get("x")).data, tensor.data);
  await remote.slice([1, 2]).write(Float32Array.of(9));
  assert.deepEqual([...(await other.get("x")).data], [1, 9, 3]);
  port1.close();
  for (const end of [one, other]) end.close();
  tensor.release();
});

test("a socket that is opened again continues", async () => {
  class Socket extends EventTarget {
    readyState = 1;
    send(data) {
      const event = new Event("message");
      event.data = data.slice().buffer;
      queueMicrotask(() => this.other.readyState === 1 && this.other.dispatchEvent(event));
    }
  }
  const sockets = () => {
    const [a, b] = [new Socket(), new Socket()];
    [a.other, b.other] = [b, a];
    return [a, b];
  };
  const [a, b] = sockets();
  const [one, other] = [overSocket(a), overSocket(b)];
  const tensor = Tensor.from(Float32Array.of(1, 2, 3));
  a.readyState = b.readyState = 3;
  const { ready } = one.send("x", tensor);
  const [c, d] = sockets();
  one.reconnect(c);
  other.reconnect(d);
  await ready;
  assert.deepEqual((await other.get("x")).data, tensor.data);
  for (const end of [one, other]) end.close();
  tensor.release();
});
