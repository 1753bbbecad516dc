// What only JavaScript's sending half has: promises that reject, rows as parts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../../../js/dist/index.js";
import { Sending } from "../../../js/dist/wire/sending.js";

const PIECE = 1 << 16;

/** A sending half that is connected, and what it posts. */
function connected(fail = () => {}) {
  const posts = [];
  const post = (body) => {
    posts.push(body.op);
    fail();
  };
  const sending = new Sending(PIECE, post, () => 0);
  sending.connect({ window: 2 ** 20, piece: PIECE });
  return { sending, posts };
}

const one = Tensor.from(new Uint8Array(1));

for (const frames of [0, 1, 3]) {
  test(`a channel that fails with frame ${frames} ends the tensor`, async () => {
    const before = liveTensors();
    let count = 0;
    const { sending, posts } = connected(() => {
      if (count++ === frames) throw new Error("the channel is closed");
    });
    const tensor = Tensor.from(new Float64Array(PIECE));
    const remote = sending.open("x", tensor);
    tensor.release();
    await assert.rejects(remote.ready, /the channel is closed/);
    await assert.rejects(remote.write(one), /the channel is closed/);
    assert.equal(posts.at(-1), "free");
    assert.equal(liveTensors(), before);
    posts.length = 0;
    sending.connect({ window: 2 ** 20, piece: PIECE });
    assert.deepEqual(posts, ["free"]);
  });
}

for (const [dtype, padded, shape] of [
  ["int4", false, [32]],
  ["int4", true, [16]],
  ["float4_e2m1fn", true, [16]],
  ["float32x4", false, [1]],
]) {
  test(`${dtype}${padded ? ", padded," : ""} cannot be sent, and leaves nothing`, async () => {
    const before = liveTensors();
    const { sending } = connected();
    const given = Tensor.fromTypedArray(new Uint8Array(16), { dtype, padded, shape });
    assert.throws(() => sending.open("x", given), /safetensors has no/);
    const bytes = sending.open("bytes", one);
    bytes.ready.catch(() => {}); // it ends below
    await assert.rejects(bytes.write(given), /dtype and number of elements/);
    given.release();
    sending.reset(new Error("the end"));
    assert.equal(liveTensors(), before);
  });
}

test("typed arrays of another type or length, and rows that are none, are refused", async () => {
  const { sending } = connected();
  const remote = sending.open("x", Tensor.from(new Float64Array(12)));
  remote.ready.catch(() => {});
  await assert.rejects(remote.write(new Float32Array(12)), /float64|Float64Array/);
  await assert.rejects(remote.write(new Float64Array(11)), RangeError);
  const scalar = sending.open("y", one.slice(0));
  scalar.ready.catch(() => {});
  assert.throws(() => scalar.slice([0, 0]), RangeError);
  for (const rows of [
    [3, 1],
    [-1, 2],
    [0, 13],
    [0.5, 2],
    [0, 2.5],
  ]) {
    assert.throws(() => remote.slice(rows), RangeError);
  }
  sending.reset(new Error("the end"));
});
