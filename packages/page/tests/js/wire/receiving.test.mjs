// The receiving half: what only JavaScript has, and bounds that take many pieces to reach.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { liveTensors } from "../../../../../js/dist/index.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { Receiving } from "../../../js/dist/wire/receiving.js";
import { Spans } from "../../../js/dist/wire/spans.js";
import { Player } from "../../wire/player.mjs";

const type = dtypeNamed("uint8");

/** Bytes first to last of a write of begin to end. */
function piece(id, version, [first, last], [begin, end] = [first, last], size = 64) {
  const numbers = { id, version, begin, end, first, last };
  return { op: "piece", name: `${id}`, type, shape: [size], ...numbers };
}

const take = (receiving, given) =>
  receiving.take(given, new Uint8Array(given.last - given.first).fill(given.version));

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

test("what is complete keeps nothing about it, and old versions are repeats", () => {
  const [receiver, size] = [new Receiving(2 ** 20), 140_000];
  take(receiver, piece(1, 1, [0, size], undefined, size));
  for (let version = 2; version < 70_000; version++) {
    const at = 2 * version; // one more range, if it was kept
    assert.equal(take(receiver, piece(1, version, [at, at + 1], undefined, size)).length, 1);
    assert.equal(take(receiver, piece(2, version - 1, [0, 32], [0, 64])).length, 0);
    assert.equal(take(receiver, piece(2, version - 1, [32, 64], [0, 64])).length, 1);
  }
  assert.deepEqual(take(receiver, piece(2, 5, [0, 32], [0, 64])), []);
  receiver.clear();
});

test("where the elements cannot be written, nothing is kept", () => {
  const before = liveTensors();
  const receiver = new Receiving(64);
  for (const given of [piece(1, 1, [0, 64]), piece(1, 2, [0, 64])]) {
    const live = liveTensors();
    assert.throws(() => receiver.take(given, new Uint8Array(63)));
    assert.equal(liveTensors(), live);
    assert.equal(take(receiver, given).length, 1); // there is room
  }
  receiver.clear();
  assert.equal(liveTensors(), before);
});

for (const [part, whole, isTaken] of [
  [[4, 8], [4, 8], true],
  [[4, 8], [0, 11], true],
  [[8, 11], [0, 11], true],
  [[4, 7], [4, 8], false],
  [[5, 8], [4, 8], false],
  [[4, 8], [3, 8], false],
  [[4, 8], [4, 9], false],
  [[8, 10], [8, 11], false],
]) {
  test(`a GPU takes whole words, and the end of a tensor: ${part} of ${whole}`, () => {
    const receiver = new Receiving(1000, fakeDevice());
    take(receiver, piece(1, 1, [0, 11], undefined, 11));
    const receive = () => take(receiver, piece(1, 2, part, whole, 11));
    if (isTaken) receive();
    else assert.throws(receive, /whole words/);
    receiver.clear();
  });
}

test("what is known of incomplete writes is bounded, and takes a search each", () => {
  const size = 140_000;
  const receiver = new Receiving(2 ** 30);
  const one = (at, id = 1) => take(receiver, piece(id, 1, [at, at + 1], [0, size], size));
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

test("as many early writes as a peer may send are all reported", async () => {
  const player = new Player();
  await player.play("open");
  await player.play("repeat 1:20001 in piece x 1.{} 0-1 uint8[2]");
  await player.play("fail tensor");
  const found = await player.play("repeat 20001:20002 in piece x 1.{} 1-2 uint8[2]");
  assert.deepEqual(found, ["1 times out ack", "20001 times tensor", "1 times error of"]);
  await player.play("close");
});

test("what the application holds outlives the next tensor", async () => {
  const player = new Player();
  await player.play("open");
  await player.play("in piece y 1.1");
  const shown = await player.end.get("y");
  const [hold, elements] = [shown.slice(), shown.copy()];
  await player.play("in piece y 2.1 uint8[5]");
  assert.ok(shown.released);
  assert.deepEqual((await player.end.get("y")).shape, [5]);
  assert.deepEqual(hold.copy(), elements);
  hold.release();
  await player.play("close");
});
