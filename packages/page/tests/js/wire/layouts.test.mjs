// What is sent of tensors in any layout: the values, and no more views than pieces need.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../../../js/dist/index.js";
import { random } from "../../../../../tests/js/random.mjs";
import { bytesBetween } from "../../../js/dist/wire/source.js";

const PIECE = 1 << 16;

/** The bytes of a tensor, piece by piece. */
function sent(tensor, piece) {
  const bytes = new Uint8Array(tensor.nbytes);
  for (let at = 0; at < bytes.length; at += piece) {
    bytes.set(bytesBetween(tensor, at, Math.min(at + piece, bytes.length)), at);
  }
  return bytes;
}

/** A random tensor, and any view of it. */
function made(rng) {
  const pick = (list) => list[rng(list.length)];
  const shape = Array.from({ length: rng(5) }, () => pick([0, 1, 2, 3, 7, 30, 200]));
  while (shape.reduce((a, b) => a * b, 1) > 60_000) {
    const at = shape.indexOf(Math.max(...shape));
    shape[at] = Math.floor(shape[at] / 4);
  }
  const size = shape.reduce((a, b) => a * b, 1);
  const View = pick([Int8Array, Uint16Array, Float32Array, Float64Array, BigInt64Array]);
  const isBig = View === BigInt64Array;
  const array = View.from({ length: size }, (_, i) => (isBig ? BigInt(i) : i % 120));
  let tensor = Tensor.fromTypedArray(array, { shape });
  for (let count = shape.length > 0 ? rng(4) : 0; count > 0; count--) {
    const axes = tensor.shape.map((_, i) => i).sort(() => rng(3) - 1);
    const ranges = tensor.shape.map((n) =>
      pick([null, null, [null, null, -1], [null, null, 2], [Math.min(1, n), n]]),
    );
    const next = rng(2) ? tensor.permute(axes) : tensor.slice(...ranges);
    tensor.release();
    tensor = next;
  }
  return tensor;
}

test("values arrive whatever the layout", () => {
  const before = liveTensors();
  for (let seed = 0; seed < 150; seed++) {
    const rng = random(seed);
    const tensor = made(rng);
    const bytes = sent(tensor, [PIECE, PIECE + 960, 1 << 20][rng(3)]);
    assert.ok(Buffer.compare(bytes, new Uint8Array(tensor.copy().buffer)) === 0, `seed ${seed}`);
    tensor.release();
    assert.equal(liveTensors(), before);
  }
});

for (const shape of [
  [2, 30_000],
  [30_000, 2],
  [250, 240],
  [10, 6, 10, 100],
  new Array(16).fill(2),
]) {
  test(`columns of shape ${shape} need few views`, () => {
    const array = Float64Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => i);
    const whole = Tensor.fromTypedArray(array, { shape: [...shape].reverse() });
    const columns = whole.permute(shape.map((_, i) => shape.length - 1 - i));
    const { slice } = Tensor.prototype;
    let count = 0;
    Tensor.prototype.slice = function counted(...ranges) {
      count++;
      return slice.apply(this, ranges);
    };
    try {
      sent(columns, PIECE);
    } finally {
      Tensor.prototype.slice = slice;
    }
    const pieces = array.byteLength / PIECE;
    assert.ok(count < (4 * shape.length + 2) * (pieces + 1), `${count} views`);
    for (const tensor of [whole, columns]) tensor.release();
  });
}
