// The receiving half: what only JavaScript has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { liveTensors } from "../../../../../js/dist/index.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { Receiving } from "../../../js/dist/wire/receiving.js";
import { Player } from "../../wire/player.mjs";

const type = dtypeNamed("uint8");

/** Bytes first to last of a write of begin to end. */
function piece(id, version, [first, last], [begin, end] = [first, last], size = 64) {
  const numbers = { id, version, begin, end, first, last };
  return { op: "piece", name: `${id}`, type, shape: [size], ...numbers };
}

const take = (receiving, given) =>
  receiving.take(given, new Uint8Array(given.last - given.first).fill(given.version));

test("where the elements cannot be written, nothing is kept", () => {
  const before = liveTensors();
  const receiver = new Receiving(64, 64);
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
    const receiver = new Receiving(1000, 1000, fakeDevice());
    take(receiver, piece(1, 1, [0, 11], undefined, 11));
    const receive = () => take(receiver, piece(1, 2, part, whole, 11));
    if (isTaken) receive();
    else assert.throws(receive, /whole words/);
    receiver.clear();
  });
}

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
