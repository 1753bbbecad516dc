// Frames at the bounds of what WIRE.md allows: the last value that is taken, and the first that
// is not. tests/wire/vectors.json has frames that both languages share.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { checkName, decode, encode, joined } from "../../../js/dist/wire/frame.js";
import { Wire } from "../../../js/dist/wire/index.js";

const [FROM, TO, LEAST] = ["0123456789abcdef", "f".repeat(16), 1 << 16];
const MOST = Number.MAX_SAFE_INTEGER;

/** A frame of any header. */
function frame(metadata, entries = {}, payload = new Uint8Array(), blanks = 0) {
  const text = JSON.stringify({ __metadata__: metadata, ...entries }) + " ".repeat(blanks);
  const json = new TextEncoder().encode(text);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setUint32(0, json.length, true);
  return joined(joined(length, json), payload);
}

const of = (more) => ({ wire: "1", from: FROM, to: TO, ...more });
const entry = (first = 0, last = 8, more = {}) => {
  const { shape = [4], dtype = "F16", name = "x" } = more;
  return { [name]: { dtype, shape, data_offsets: [first, last] } };
};
const piece = (begin = 0, end = 8) =>
  of({ id: "1", version: "1", begin: `${begin}`, end: `${end}` });
const bytes = (length) => new Uint8Array(length);

function isTaken(...given) {
  try {
    decode(frame(...given));
    return true;
  } catch (error) {
    assert.equal(error.name, "UnsupportedError");
    assert.ok(error.message.length < 2000);
    return false;
  }
}

for (const [key, op, least] of [
  ["window", "hello", 0],
  ["piece", "hello", LEAST],
  ["id", "ack", 0],
  ["version", "ack", 1],
  ["first", "ack", 0],
  ["last", "ack", 0],
  ["id", "refuse", 0],
  ["version", "refuse", 1],
  ["id", "free", 0],
  ["version", "free", 1],
  ["id", "piece", 0],
  ["version", "piece", 1],
]) {
  test(`the bounds of ${key} in ${op}`, () => {
    const usual = of({ id: "1", version: "1", first: "0", last: "0" });
    const right = { hello: of({ window: "0", piece: `${LEAST}` }), piece: piece() }[op] ?? usual;
    const rest = op === "piece" ? [entry(), bytes(8)] : [];
    const given = (value) => [{ ...right, op, [key]: value }, ...rest];
    for (const value of [least, least + 1, MOST]) {
      assert.equal(decode(frame(...given(`${value}`)))[key], value);
    }
    const wrong = [`${least - 1}`, `${2 ** 53}`, "9".repeat(17), "", " 1", "+1", "01", "1.0"];
    for (const value of [...wrong, "1e3", "-0", "٣", "x".repeat(10_000), undefined]) {
      assert.ok(!isTaken(...given(value)), value);
    }
  });
}

for (const [begin, first, last, end, right] of [
  [0, 0, 8, 8, true],
  [2, 2, 6, 8, true],
  [2, 4, 6, 8, true],
  [2, 4, 8, 8, true],
  [8, 8, 8, 8, true],
  [4, 4, 4, 4, true],
  [0, 0, 0, 0, true],
  [2, 0, 8, 8, false], // before the write
  [0, 0, 8, 6, false], // after it
  [0, 6, 4, 8, false],
  [0, 4, 4, 8, false], // nothing of something
  [0, 0, 8, 10, false], // beyond the tensor
  [10, 10, 10, 10, false],
  [8, 8, 10, 10, false],
  [1, 2, 4, 8, false], // not whole elements
  [0, 1, 4, 8, false],
  [0, 0, 3, 8, false],
  [0, 0, 4, 7, false],
]) {
  test(`a piece of bytes ${first} to ${last} of a write of ${begin} to ${end}`, () => {
    const length = Math.max(last - first, 0);
    const given = [piece(begin, end), entry(first, last)];
    assert.equal(isTaken(...given, bytes(length)), right);
    if (right) assert.ok(!isTaken(...given, bytes(length + 1)));
    if (right && length > 0) assert.ok(!isTaken(...given, bytes(length - 1)));
  });
}

test("sessions are 16 hexadecimal digits", () => {
  const ack = { op: "ack", id: "1", version: "1", first: "0", last: "0" };
  assert.ok(isTaken(of(ack)));
  assert.ok(isTaken(of({ ...ack, to: "" })));
  const wrong = [
    "0".repeat(15),
    "0".repeat(17),
    "G".repeat(16),
    "A".repeat(16),
    ` ${"0".repeat(15)}`,
  ];
  for (const session of ["", ...wrong]) assert.ok(!isTaken(of({ ...ack, from: session })));
  for (const session of wrong) assert.ok(!isTaken(of({ ...ack, to: session })));
});

test("headers and names have their limits", () => {
  const { length } = JSON.stringify({ __metadata__: piece(), ...entry() });
  assert.ok(isTaken(piece(), entry(), bytes(8), 65536 - length));
  assert.ok(!isTaken(piece(), entry(), bytes(8), 65537 - length));
  for (const [count, right] of [
    [1000, true],
    [1001, false],
    [0, true],
  ]) {
    const name = "x".repeat(count);
    assert.equal(isTaken(piece(), entry(0, 8, { name }), bytes(8)), right);
    if (right) checkName(name);
    else assert.throws(() => checkName(name), { name: "TypeError" });
  }
  for (const wrong of ["__metadata__", "\ud800", 5]) assert.throws(() => checkName(wrong));
  const whole = frame(piece(), entry(), bytes(8));
  for (let cut = 0; cut < whole.length; cut++) assert.throws(() => decode(whole.subarray(0, cut)));
  for (const [low, high] of [
    [0, 0],
    [1, 0],
    [2, 0],
    [2 ** 31, 0],
    [whole.length - 16, 1],
    [2 ** 32 - 1, 2 ** 32 - 1],
  ]) {
    const copy = whole.slice();
    new DataView(copy.buffer).setUint32(0, low, true);
    new DataView(copy.buffer).setUint32(4, high, true);
    assert.throws(() => decode(copy), { name: "UnsupportedError" });
  }
});

for (const op of ["hello", "ack", "refuse", "free", "piece", "x".repeat(5000)]) {
  test(`whether ${op.slice(0, 9)} has an entry and bytes`, () => {
    const numbers = { id: "1", version: "1", first: "1", last: "1", window: "1" };
    const given = of({ op, piece: `${LEAST}`, begin: "0", end: "8", ...numbers });
    assert.equal(isTaken(given, entry(), bytes(8)), op === "piece");
    assert.equal(isTaken(given), op !== "piece" && op.length < 9);
    assert.ok(!isTaken(given, {}, bytes(1)));
    assert.ok(!isTaken({ ...given, end: "0" }, entry(0, 0, { shape: [0] })) || op === "piece");
    assert.ok(!isTaken(given, { ...entry(), ...entry(0, 8, { name: "y" }) }, bytes(8)));
  });
}

for (const wire of ["2", "0", "1.0", "", undefined, "x".repeat(10_000)]) {
  test(`version ${String(wire).slice(0, 9)} of the wire`, () => {
    const given = frame({ ...piece(), wire }, entry(), bytes(8));
    assert.throws(() => decode(given), /speaks 1: update the older side/);
  });
}

test("elements come in the frame or beside it", () => {
  const payload = Uint8Array.from({ length: 8 }, (_, i) => i);
  const whole = frame(piece(), entry(), payload);
  const header = whole.subarray(0, -8);
  for (const given of [[whole], [header, payload]]) {
    assert.deepEqual(decode(...given).payload, payload);
  }
  for (const given of [[whole, payload], [header, payload.subarray(1)], [header]]) {
    assert.throws(() => decode(...given), { name: "UnsupportedError" });
  }
});

test("what is written is read", () => {
  const type = dtypeNamed("complex64");
  const numbers = { id: 7, version: 9, begin: 0, end: 192, first: 64, last: 128 };
  for (const body of [
    { op: "piece", name: "é".repeat(500), type, shape: [2, 3, 4], ...numbers },
    { op: "hello", window: MOST, piece: 4 << 20 },
    { op: "ack", id: 0, version: 1, first: 5, last: MOST },
    { op: "refuse", id: 3, version: 4, message: 'why "so"\n' },
    { op: "free", id: MOST, version: MOST },
  ]) {
    for (const to of ["", TO]) {
      const payload = bytes(body.op === "piece" ? 64 : 0);
      const header = encode({ ...body, from: FROM, to });
      assert.deepEqual(decode(header, payload), { ...body, from: FROM, to, payload });
    }
  }
  const refuse = { op: "refuse", id: "1", version: "1" };
  assert.equal(decode(frame(of({ ...refuse, message: "x".repeat(5000) }))).message.length, 1000);
  assert.equal(decode(frame(of(refuse))).message, "");
});

for (const [options, right] of [
  [{ piece: LEAST }, true],
  [{ piece: 4 << 20 }, true],
  [{ piece: LEAST - 1 }, false],
  [{ piece: LEAST + 0.5 }, false],
  [{ piece: (4 << 20) + 1 }, false],
  [{ window: 0, limit: 0 }, true],
  [{ window: -1 }, false],
  [{ limit: -1 }, false],
  [{ limit: 0.5 }, false],
  [{ window: MOST }, true],
  [{ window: MOST + 1 }, false],
]) {
  test(`a wire with ${JSON.stringify(options)}`, () => {
    const sent = [];
    const make = () => new Wire({ send: (header) => sent.push(decode(header)), ...options });
    if (!right) {
      assert.throws(make, RangeError);
      return;
    }
    make().connect();
    const [{ piece: size, window }] = sent;
    assert.deepEqual(
      [size, window],
      [options.piece ?? 1 << 20, options.window ?? 2 * (options.piece ?? 1 << 20)],
    );
  });
}
