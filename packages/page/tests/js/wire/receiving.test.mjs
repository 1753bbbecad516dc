// The receiving half against models: random pieces of random writes, under names that come again,
// in any order. What a peer may make it keep is bounded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { liveTensors } from "../../../../../js/dist/index.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { random } from "../../../../../tests/js/random.mjs";
import { MOST_VERSIONS, Receiving } from "../../../js/dist/wire/receiving.js";
import { Spans } from "../../../js/dist/wire/spans.js";

const RUNS = Number(process.env.WIRE_RUNS ?? 100);

/** Ranges of equal values, but for false. */
function runsOf(values, offset = 0) {
  const found = [];
  values.forEach((value, i) => {
    const at = i + offset;
    const last = found.at(-1);
    if (!value) return;
    if (last && last[1] === at && last[2] === value) last[1] = at + 1;
    else found.push([at, at + 1, value]);
  });
  return found;
}

test("ranges are those of an array of versions", () => {
  for (let seed = 0; seed < RUNS; seed++) {
    const rng = random(seed);
    const spans = new Spans();
    const model = new Array(24).fill(0);
    for (let step = 0; step < 40; step++) {
      const begin = rng(25);
      const [end, version] = [begin + rng(25 - begin), 1 + rng(6)];
      const isBelow = model.slice(begin, end).map((has) => has < version);
      const below = runsOf(isBelow, begin).map(([from, to]) => [from, to]);
      assert.deepEqual(spans.below(begin, end, version), below);
      const lower = model.findIndex((has, at) => at >= begin && has < version);
      assert.equal(spans.reach(begin, version), lower < 0 ? 24 : lower);
      spans.mark(begin, end, version);
      for (let at = begin; at < end; at++) model[at] = Math.max(model[at], version);
      assert.equal(spans.count, runsOf(model).length);
      if (rng(30) === 0) {
        spans.clear();
        model.fill(0);
      }
    }
  }
});

test("ranges of old versions are forgotten as soon as they are many", () => {
  const spans = new Spans();
  for (let at = 0; at < 1000; at += 2) {
    spans.mark(at, at + 1, 1 + (at % 4));
    spans.forget(0);
  }
  assert.equal(spans.count, 500);
  for (let at = 1000; at < 4000; at += 2) {
    spans.mark(at, at + 1, 1);
    spans.forget(1);
    assert.ok(spans.count < 1100, `${spans.count}`);
  }
  assert.deepEqual(spans.below(2, 3, 3), []); // this one is new
});

const uint8 = dtypeNamed("uint8");

/** Bytes first to last of a write of begin to end. */
function piece(id, version, [first, last], [begin, end] = [first, last], more = {}) {
  const { name = "x", size = 64, type = uint8 } = more;
  return { op: "piece", name, type, shape: [size], id, version, begin, end, first, last };
}

const take = (receiving, given) =>
  receiving.take(given, new Uint8Array(given.last - given.first).fill(given.version));

/** What a tensor must have: the highest version of each byte. */
class Model {
  ranges = [undefined];
  done = new Set();
  early = [];

  constructor(id, name, size) {
    Object.assign(this, { id, name, size });
    this.ranges.push([0, size]);
    this.bytes = new Uint8Array(size);
  }

  write(rng) {
    const begin = rng(this.size + 1);
    this.ranges.push([begin, begin + rng(this.size + 1 - begin)]);
  }

  /** A random one of a random write. */
  piece(rng) {
    const version = 1 + rng(this.ranges.length - 1);
    const [begin, end] = this.ranges[version];
    const first = begin === end ? begin : Math.max(begin, begin + rng(end - begin) - 8);
    const last = begin === end ? end : Math.min(end, first + 1 + rng(24));
    return piece(this.id, version, [first, last], [begin, end], this);
  }

  /** Enters it; the versions that get an event now. */
  take({ version, first, last }) {
    for (let at = first; at < last; at++) this.bytes[at] = Math.max(this.bytes[at], version);
    const part = this.bytes.subarray(...this.ranges[version]);
    if (part.every((has) => has >= version) && !this.done.has(version)) {
      this.done.add(version);
      this.early.push(version);
    }
    return this.bytes.includes(0) ? [] : this.early.splice(0);
  }
}

test("bytes and events are those of a model", () => {
  const before = liveTensors();
  for (let seed = 0; seed < RUNS; seed++) {
    const rng = random(seed);
    const receiver = new Receiving(2 ** 20);
    const [models, freed, seen] = [[], new Set(), new Set()];
    const latest = new Map();
    for (let steps = 20 + rng(130); steps > 0; steps--) {
      const luck = rng(100);
      const model = models[rng(models.length)];
      if (luck < 10 || !model) {
        models.push(new Model(models.length + 1, "ab"[rng(2)], [0, 1, 40, 100][rng(4)]));
      } else if (luck < 25) model.write(rng);
      else if (luck < 28) {
        const isKnown = seen.has(model.id) && !freed.has(model.id);
        assert.equal(receiver.free(model.id), isKnown ? model.name : undefined);
        freed.add(model.id);
        if (latest.get(model.name) === model.id) latest.delete(model.name);
      } else {
        const given = model.piece(rng);
        const isGone = freed.has(model.id) || model.id < (latest.get(model.name) ?? 0);
        const found = take(receiver, given);
        if (!isGone) seen.add(model.id);
        const expected = isGone ? [] : model.take(given);
        const message = `seed ${seed}`;
        assert.deepEqual(
          found.map(({ version }) => version),
          expected,
          message,
        );
        for (const { name, id, version, begin, end, tensor } of found) {
          assert.deepEqual(
            [name, id, begin, end],
            [model.name, model.id, ...model.ranges[version]],
          );
          assert.deepEqual(tensor.data, model.bytes, message);
        }
        if (found.length > 0) {
          latest.set(model.name, model.id); // earlier ones of its name are gone
          for (const { id, name } of models) {
            if (name === model.name && id < model.id && seen.has(id)) freed.add(id);
          }
        }
      }
      const kept = models.filter(({ id }) => seen.has(id) && !freed.has(id)).length;
      assert.equal(liveTensors(), before + 2 * kept);
    }
    receiver.clear();
    assert.equal(liveTensors(), before);
    assert.ok(take(receiver, piece(1, 1, [0, 4], [0, 4], { size: 4 })).length > 0); // as new
    receiver.clear();
  }
});

test("what is complete keeps nothing about it, and old versions are repeats", () => {
  const receiver = new Receiving(2 ** 20);
  for (let version = 1; version < 70_000; version += 1) {
    assert.equal(take(receiver, piece(1, version, [0, 32], [0, 64])).length, 0);
    assert.equal(take(receiver, piece(1, version, [32, 64], [0, 64])).length, 1);
  }
  assert.deepEqual(take(receiver, piece(1, 5, [0, 32], [0, 64])), []);
  const size = 140_000;
  take(receiver, piece(2, 1, [0, size], undefined, { name: "y", size }));
  for (let version = 2; version < 70_000; version++) {
    const at = 2 * version; // one more range, if it was kept
    const given = piece(2, version, [at, at + 1], undefined, { name: "y", size });
    assert.equal(take(receiver, given).length, 1);
  }
  receiver.clear();
});

test("where the elements cannot be written, nothing is kept", () => {
  const before = liveTensors();
  const receiver = new Receiving(64);
  const given = piece(1, 1, [0, 64]);
  assert.throws(() => receiver.take(given, new Uint8Array(63)));
  assert.equal(liveTensors(), before);
  assert.equal(take(receiver, given).length, 1); // there is room
  const next = piece(1, 2, [0, 64]);
  assert.throws(() => receiver.take(next, new Uint8Array(63)));
  assert.equal(take(receiver, next).length, 1);
  receiver.clear();
  assert.equal(liveTensors(), before);
});

test("a GPU takes parts of whole words, and the end of a tensor", () => {
  const receiver = new Receiving(1000, fakeDevice());
  const size = 11;
  take(receiver, piece(1, 1, [0, 11], undefined, { size }));
  for (const [part, whole, right] of [
    [[4, 8], [4, 8], true],
    [[4, 8], [0, 11], true],
    [[8, 11], [0, 11], true],
    [[4, 7], [4, 8], false],
    [[5, 8], [4, 8], false],
    [[4, 8], [3, 8], false],
    [[4, 8], [4, 9], false],
    [[8, 10], [8, 11], false],
  ]) {
    const receive = () => take(receiver, piece(1, 2, part, whole, { size }));
    if (right) receive();
    else assert.throws(receive, /whole words/);
    receiver.clear();
    take(receiver, piece(1, 1, [0, 11], undefined, { size }));
  }
  receiver.clear();
});

test("a part that arrives first is no event before all is there", () => {
  const receiver = new Receiving(2 ** 20);
  assert.deepEqual(take(receiver, piece(1, 2, [8, 16])), []);
  assert.deepEqual(take(receiver, piece(1, 1, [0, 32], [0, 64])), []);
  const found = take(receiver, piece(1, 1, [32, 64], [0, 64]));
  assert.deepEqual(
    found.map(({ version }) => version),
    [2, 1],
  );
  receiver.clear();
});

const REFUSED = {
  "another name": piece(1, 2, [0, 8], undefined, { name: `a${"😀".repeat(100)}` }),
  "another shape": piece(1, 2, [0, 8], undefined, { size: 63 }),
  "another dtype": piece(1, 2, [0, 8], undefined, { type: dtypeNamed("int8") }),
  "another end": piece(1, 3, [0, 8], [0, 9]),
  "another begin": piece(1, 3, [8, 16], [8, 64]),
  "a version too late": piece(1, 2 + MOST_VERSIONS, [0, 8]),
  "too large": piece(2, 1, [0, 8], undefined, { size: 1000 }),
};
for (const [what, given] of Object.entries(REFUSED)) {
  test(`${what} is refused, and changes nothing`, () => {
    const before = liveTensors();
    const receiver = new Receiving(1000);
    const [{ tensor }] = take(receiver, piece(1, 1, [0, 64]));
    take(receiver, piece(1, 3, [0, 8], [0, 64]));
    const bytes = tensor.copy();
    assert.throws(
      () => take(receiver, given),
      ({ name, message }) => {
        assert.match(message, /refused/);
        return name === "UnsupportedError" && message.isWellFormed(); // else no frame can have it
      },
    );
    assert.deepEqual(tensor.data, bytes);
    assert.equal(liveTensors(), before + 2);
    assert.equal(take(receiver, piece(1, 1 + MOST_VERSIONS, [0, 8])).length, 1); // the last one
    take(receiver, piece(2, 1, [0, 8], undefined, { size: 1000 - 64 })); // all of the limit
    receiver.clear();
    assert.equal(liveTensors(), before);
  });
}

test("tensors and gaps among those that were freed are bounded", () => {
  const receiver = new Receiving(2 ** 20);
  const empty = (id) => piece(id, 1, [0, 0], undefined, { name: `${id}`, size: 0 });
  for (let id = 0; id < 8192; id++) take(receiver, empty(id));
  assert.throws(() => take(receiver, empty(8192)), /there are 8192 already/);
  receiver.free(0);
  take(receiver, empty(8192));
  for (let id = 10_000; id < 10_000 + 2 * 16_383; id += 2) receiver.free(id);
  assert.throws(() => receiver.free(100_000), /freed out of order/);
  receiver.free(1);
  receiver.free(10_000);
  receiver.free(10_001); // which joins two
  receiver.free(9_999);
  receiver.free(100_000);
  assert.throws(() => receiver.free(100_002), /freed out of order/);
  assert.throws(() => take(receiver, empty(9000)), /already/);
  receiver.clear();
  take(receiver, empty(0));
  receiver.clear();
});

test("what is known of incomplete writes is bounded, and takes a search each", () => {
  const size = 140_000;
  const receiver = new Receiving(2 ** 30);
  const one = (at, id = 1) => take(receiver, piece(id, 1, [at, at + 1], [0, size], { size }));
  let at = 0;
  for (; at < 2 * 65_535; at += 2) one(at); // and one entry for the write
  assert.throws(() => one(at), /incomplete/);
  assert.throws(() => one(0, 2), /incomplete/);
  receiver.free(1);
  assert.deepEqual(one(0, 2), []);
  receiver.clear();
});

for (const order of ["every second", "backwards"]) {
  test(`with many gaps each call takes a search: ${order}`, () => {
    const [spans, size] = [new Spans(), 40_000];
    let looked = 0;
    const counted = (value) => ({
      valueOf() {
        looked++;
        return value;
      },
    });
    const places = Array.from({ length: size }, (_, i) => i);
    const halves = [...places.filter((i) => i % 2), ...places.filter((i) => !(i % 2))];
    for (const at of order === "backwards" ? places.reverse() : halves) {
      assert.equal(spans.below(at, counted(at + 1), 1).length, 1);
      spans.mark(at, at + 1, 1);
      assert.ok(spans.reach(counted(at), counted(1)) > at);
    }
    assert.equal(spans.reach(0, 1), size);
    assert.ok(looked < 60 * size, `${looked}`);
  });
}
