// The sending half against a model: what is on its way, what is sent again and when, and what ends.
// The other side is a list of frames.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../../../js/dist/index.js";
import { random } from "../../../../../tests/js/random.mjs";
import { Sending } from "../../../js/dist/wire/sending.js";

const RUNS = Number(process.env.WIRE_RUNS ?? 100);
const PIECE = 1 << 16;

/** A sending half, what it has sent, and what it must send. */
class Model {
  remotes = new Map();
  /** By id and version, in order. */
  writes = new Map();
  /** By what identifies it. */
  flights = new Map();
  /** What may be sent again now. */
  again;
  credit;
  now = 100;
  ids = 0;

  constructor(rng) {
    this.rng = rng;
    this.piece = [PIECE, PIECE + 100, 2 * PIECE][rng(3)];
    this.sending = new Sending(
      this.piece,
      (body, payload) => this.post(body, payload),
      () => this.now,
    );
  }

  one(list) {
    return list[this.rng(list.length)];
  }

  post(body, payload = new Uint8Array()) {
    assert.ok(this.credit, "sent to nobody");
    const key = `${body.id}/${body.version}/${body.first ?? 0}`;
    if (this.flights.has(key)) {
      assert.ok(this.again?.delete(key), "sent again too early");
    } else {
      if (body.op === "free") assert.ok(!this.remotes.has(body.id));
      else this.checkNew(body);
      this.flights.set(key, { body, again: 0 });
    }
    Object.assign(this.flights.get(key), { at: this.now, more: 0 });
    if (body.op === "free") {
      assert.equal(payload.length, 0);
      return;
    }
    const write = this.writes.get(`${body.id}/${body.version}`);
    const part = write.bytes.subarray(body.first - body.begin, body.last - body.begin);
    assert.ok(Buffer.compare(payload, part) === 0);
  }

  checkNew(body) {
    const write = this.writes.get(`${body.id}/${body.version}`);
    assert.equal(
      [...this.writes.values()].find(({ isSent }) => !isSent),
      write,
    );
    const { name, begin, end, next, size } = write;
    const facts = [body.name, body.type.name, body.shape, body.begin, body.end, body.first];
    assert.deepEqual(facts, [name, "uint8", [size], begin, end, next]);
    assert.equal(body.last, this.nextEnd(write));
    assert.ok(this.hasRoom(write));
    write.next = body.last;
    write.flying.add(body.first);
    write.isSent = body.last === end;
  }

  nextEnd({ next, end }) {
    const size = Math.floor(Math.min(this.piece, this.credit.piece) / 64) * 64;
    return Math.min(end, (Math.floor(next / size) + 1) * size);
  }

  hasRoom(write) {
    let flying = this.nextEnd(write) - write.next;
    for (const { body } of this.flights.values()) flying += (body.last ?? 0) - (body.first ?? 0);
    return this.flights.size === 0 || flying <= this.credit.window;
  }

  /** Nothing waits that could be sent; promises are settled as the model says. */
  async check() {
    const waiting = [...this.writes.values()].find(({ isSent }) => !isSent);
    if (waiting && this.credit) assert.ok(!this.hasRoom(waiting), "it does not send");
    for (let i = 0; i < 5; i++) await null;
    for (const { result } of this.writes.values()) assert.equal(result.value, undefined);
  }

  // --- what happens ---------------------------------------------------------------------------

  begin(id, name, size, start, length) {
    const [stride, factor] = [1 + this.rng(2), 1 + this.rng(250)];
    const memory = new Uint8Array(length * stride);
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) memory[i * stride] = bytes[i] = i * factor;
    const tensor = Tensor.fromTypedArray(memory, { shape: [length], strides: [stride] });
    const known = this.remotes.get(id);
    const version = known ? known._version + 1 : 1;
    const [begin, end] = [start, start + length];
    const write = { id, version, name, size, begin, end, next: begin, bytes, isSent: false };
    Object.assign(write, { flying: new Set(), result: {} });
    this.writes.set(`${id}/${version}`, write);
    if (!known) this.remotes.set(id, undefined);
    const remote = known ?? this.sending.open(name, tensor);
    this.remotes.set(id, remote);
    const promise = known ? remote.slice([begin, end]).write(tensor) : remote.ready;
    promise.then(
      () => Object.assign(write.result, { value: true }),
      ({ message }) => Object.assign(write.result, { value: message }),
    );
    tensor.release();
  }

  open() {
    const size = this.one([0, 1, 40_000, 100_000, 300_000]);
    this.begin(++this.ids, this.one(["a", "b"]), size, 0, size);
  }

  write() {
    const remote = this.one([...this.remotes.values()]);
    if (!remote) return;
    const [size] = remote.shape;
    const start = this.rng(size + 1);
    this.begin(remote._id, remote.name, size, start, this.rng(size + 1 - start));
  }

  async acknowledge() {
    const key = this.one([...this.flights.keys()]);
    if (key === undefined) return;
    const { body } = this.flights.get(key);
    const { id, version, first = 0, last = 0 } = body;
    const right = { op: "ack", id, version, first, last };
    const wrong = this.one(["id", "version", "first", "last", null, null, null, null]);
    if (wrong) {
      this.sending.acknowledge({ ...right, [wrong]: right[wrong] + 1000 });
      return;
    }
    this.flights.delete(key);
    const write = this.writes.get(`${id}/${version}`);
    write?.flying.delete(first);
    const isDone = body.op === "piece" && write.isSent && write.flying.size === 0;
    if (isDone) this.writes.delete(`${id}/${version}`);
    const replaced = [];
    for (const each of isDone && version === 1 ? [...this.remotes.values()] : []) {
      if (each.name === write.name && each._id < id) replaced.push(...this.end(each));
    }
    this.sending.acknowledge(right);
    await this.check();
    if (isDone) assert.equal(write.result.value, true);
    for (const { value } of replaced) assert.match(value, /was sent again/);
  }

  /** A tensor ends: what was to be sent of it is gone. */
  end(remote) {
    const { _id: id } = remote;
    this.remotes.delete(id);
    const results = [];
    for (const [key, write] of this.writes) {
      if (write.id !== id) continue;
      results.push(write.result);
      this.writes.delete(key);
    }
    for (const [key, { body }] of this.flights) if (body.id === id) this.flights.delete(key);
    if (!this.credit) {
      const body = { op: "free", id, version: remote._version + 1 };
      this.flights.set(`${id}/${body.version}/0`, { body, at: 0, more: 0, again: 0 });
    }
    return results;
  }

  async free() {
    const remote = this.one([...this.remotes.values()]);
    if (!remote) return;
    const results = this.end(remote);
    remote.free();
    await this.check();
    for (const { value } of results) assert.match(value, /was freed/);
    await assert.rejects(remote.write(new Uint8Array(1)), /was freed/);
    await assert.rejects(remote.slice([0, 0]).write(new Uint8Array()), /was freed/);
    remote.free(); // again: nothing
  }

  async refuse() {
    const remote = this.one([...this.remotes.values()]);
    if (!remote) return;
    const mine = [...this.writes.values()].filter(({ id }) => id === remote._id);
    const version = this.one([...mine.map((write) => write.version), remote._version + 1, 1]);
    const isOpen = mine.some((write) => write.version === version);
    const results = isOpen ? this.end(remote) : [];
    const refuse = { op: "refuse", id: remote._id, version, message: "no room" };
    this.sending.refused(refuse);
    this.sending.refused({ ...refuse, id: 1e6 });
    await this.check();
    for (const { value } of results) assert.match(value, /other side: no room/);
  }

  resend() {
    const timeout = this.one([1, 5]);
    const due = [...this.flights].filter(([, { at, more }]) => at + more <= this.now - timeout);
    this.again = new Set(this.credit ? due.map(([key]) => key) : []);
    const all = [...this.again];
    this.sending.resend(this.now - timeout);
    assert.equal(this.again.size, 0, "it is not sent again");
    for (const key of all) {
      const flight = this.flights.get(key);
      flight.more = timeout * (2 ** ++flight.again - 1);
    }
    this.again = undefined;
  }

  connect() {
    if (this.rng(10) < 3) {
      this.credit = undefined;
      this.sending.disconnect();
      for (const flight of this.flights.values()) flight.again = 0;
      return;
    }
    const window = this.one([0, 1, PIECE, 3 * PIECE, 2 ** 40]);
    this.credit = { window, piece: this.one([PIECE, 1 << 20]) };
    this.again = new Set(this.flights.keys());
    this.sending.connect(this.credit);
    assert.equal(this.again.size, 0, "it is not sent again");
    this.again = undefined;
  }

  async reset() {
    const results = [...this.writes.values()].map(({ result }) => result);
    const remotes = [...this.remotes.values()];
    for (const part of [this.writes, this.remotes, this.flights]) part.clear();
    this.credit = undefined;
    this.sending.reset(new Error("it is gone"));
    await this.check();
    for (const { value } of results) assert.equal(value, "it is gone");
    for (const remote of remotes) await assert.rejects(remote.write(new Uint8Array()), /is gone/);
  }
}

const HAPPENS = Object.entries({
  open: 15,
  write: 30,
  acknowledge: 100,
  free: 5,
  refuse: 5,
  resend: 20,
  connect: 10,
  reset: 1,
}).flatMap(([kind, count]) => new Array(count).fill(kind));

test("what is sent is what a model sends", async () => {
  const before = liveTensors();
  for (let seed = 0; seed < RUNS; seed++) {
    const model = new Model(random(seed));
    try {
      for (let steps = 0; steps < 120; steps++) {
        model.now += [0, 1, 3][model.rng(3)];
        await model[model.one(HAPPENS)]();
        await model.check();
      }
      await model.reset();
      assert.equal(liveTensors(), before);
    } catch (error) {
      error.message = `seed ${seed}: ${error.message}`;
      throw error;
    }
  }
});

/** A sending half that is connected, and what it posts. */
function connected(window, fail = () => {}) {
  const posts = [];
  const post = (body, payload) => {
    posts.push(body);
    fail(body, payload);
  };
  const time = { now: 0 };
  const sending = new Sending(PIECE, post, () => time.now);
  sending.connect({ window, piece: PIECE });
  return { sending, posts, time };
}

const one = Tensor.from(new Uint8Array(1));

test("at most 1024 frames are on their way, and no version 1024 after an incomplete one", () => {
  const { sending, posts } = connected(2 ** 40);
  for (let i = 0; i < 1025; i++) sending.open(`${i}`, one);
  assert.equal(posts.length, 1024);
  sending.acknowledge({ op: "ack", id: 1, version: 1, first: 0, last: 1 });
  assert.equal(posts.length, 1025);

  const other = connected(2 ** 40);
  const remote = other.sending.open("x", one);
  const ignored = [];
  for (let version = 2; version <= 1200; version++) {
    ignored.push(remote.write(one).catch(() => {}));
    const ack = { op: "ack", id: 1, version, first: 0, last: 1 };
    if (other.posts.length === version) other.sending.acknowledge(ack);
  }
  assert.equal(other.posts.length, 1024);
  other.sending.acknowledge({ op: "ack", id: 1, version: 1, first: 0, last: 1 });
  assert.ok(other.posts.length > 1024);
  for (const { sending } of [other]) sending.reset(new Error("the end"));
});

test("each time it is sent again it waits twice as long", () => {
  const { sending, posts, time } = connected(2 ** 20);
  sending.open("x", one).ready.catch(() => {});
  const times = [0];
  for (time.now = 1; time.now < 6000; time.now++) {
    const count = posts.length;
    sending.resend(time.now - 2);
    if (posts.length > count) times.push(time.now);
  }
  const waits = times.slice(1).map((at, i) => at - times[i]);
  assert.deepEqual(
    waits.slice(0, 11),
    Array.from({ length: 11 }, (_, n) => 2 * 2 ** n),
  );
  sending.disconnect();
  sending.connect({ window: 2 ** 20, piece: PIECE }); // another channel: it begins again
  const count = posts.length;
  time.now += 2;
  sending.resend(time.now - 2);
  time.now += 4;
  sending.resend(time.now - 2);
  assert.equal(posts.length, count + 2);
  sending.reset(new Error("the end"));
});

for (const frames of [0, 1, 3]) {
  test(`a channel that fails with frame ${frames} ends the tensor`, async () => {
    const before = liveTensors();
    let count = 0;
    const { sending, posts } = connected(2 ** 20, () => {
      if (count++ === frames) throw new Error("the channel is closed");
    });
    const tensor = Tensor.from(new Float64Array(PIECE));
    const remote = sending.open("x", tensor);
    tensor.release();
    await assert.rejects(remote.ready, /the channel is closed/);
    await assert.rejects(remote.write(one), /the channel is closed/);
    assert.equal(posts.at(-1).op, "free");
    assert.equal(liveTensors(), before);
    posts.length = 0;
    sending.connect({ window: 2 ** 20, piece: PIECE });
    assert.deepEqual(
      posts.map(({ op }) => op),
      ["free"],
    );
  });
}

test("what cannot be sent leaves nothing", async () => {
  const before = liveTensors();
  const { sending, posts } = connected(2 ** 20);
  for (const [dtype, padded] of [
    ["int4", false],
    ["int4", true],
    ["float4_e2m1fn", true],
    ["float32x4", false],
  ]) {
    const given = Tensor.fromTypedArray(new Uint8Array(16), {
      dtype,
      padded,
      shape: [dtype === "float32x4" ? 1 : padded ? 16 : 32],
    });
    assert.throws(() => sending.open("x", given), /safetensors has no/);
    const bytes = sending.open("bytes", one);
    bytes.ready.catch(() => {}); // it ends below
    await assert.rejects(bytes.write(given), /dtype and number of elements/);
    given.release();
  }
  for (const name of ["__metadata__", "\ud800", "x".repeat(1001), 5]) {
    assert.throws(() => sending.open(name, one));
  }
  const remote = sending.open("x".repeat(1000), Tensor.from(new Float64Array(12)));
  remote.ready.catch(() => {});
  await assert.rejects(remote.write(new Float32Array(12)), /float64|Float64Array/);
  await assert.rejects(remote.write(new Float64Array(11)), RangeError);
  for (const rows of [
    [3, 1],
    [-1, 2],
    [0, 13],
    [0.5, 2],
  ]) {
    assert.throws(() => remote.slice(rows), RangeError);
  }
  assert.ok(posts.length > 0);
  sending.reset(new Error("the end"));
  assert.equal(liveTensors(), before + 1); // of this test
});
