// The frames of tests/wire/frames.json, which tests/native/wire reads, too; what JavaScript's buffers add.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { open } from "../../../../../js/dist/open/index.js";
import { checkName, decode, encode, joined } from "../../../js/dist/wire/frame.js";

const FILE = new URL("../../wire/frames.json", import.meta.url);
const TABLE = JSON.parse(readFileSync(FILE, "utf8"));
const SESSIONS = { wire: "1", from: "0123456789abcdef", to: "f".repeat(16) };

function textOf(value) {
  const [, text, count] = /^(.) \* (\d+)$/u.exec(value) ?? [];
  return text === undefined ? value : text.repeat(Number(count));
}

/** Metadata and entries. */
function headerOf(op, changes) {
  const { each, entries, header, payload, name = "x", ...rest } = changes;
  const entry = { ...TABLE.entry };
  const metadata = { ...SESSIONS, ...TABLE.metadata[op], ...(op === "piece" ? {} : { op }) };
  for (const [key, value] of Object.entries(rest)) {
    if (key in entry) entry[key] = value;
    else metadata[key] = value === null ? undefined : textOf(value);
  }
  const usual = op === "piece" ? [[textOf(name), entry]] : [];
  return [metadata, entries ? Object.entries(entries) : usual];
}

/** Header and elements of a frame. */
function partsOf(op, changes) {
  const [metadata, entries] = headerOf(op, changes);
  // As text: a key "0" would come first in an object.
  const parts = [["__metadata__", metadata], ...entries].map((part) =>
    part.map((each) => JSON.stringify(each)).join(":"),
  );
  const text = new TextEncoder().encode(`{${parts.join(",")}}`);
  const { header: length = Math.ceil(text.length / 8) * 8 } = changes;
  const header = new Uint8Array(8 + length).fill(32);
  new DataView(header.buffer).setBigUint64(0, BigInt(length), true);
  header.set(text, 8);
  const [first, last] = entries[0]?.[1].data_offsets ?? [0, 0];
  const size = changes.payload ?? Math.max(last - first, 0);
  return [header, Uint8Array.from({ length: size }, (_, i) => i)];
}

/** What a frame means. */
function factsOf(op, changes) {
  const [metadata, entries] = headerOf(op, changes);
  const facts = Object.keys(TABLE.metadata[op]).map((key) => {
    return [key, key === "message" ? metadata[key] : Number(metadata[key])];
  });
  const of = entries.map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [first, last],
      },
    ]) => {
      return { name, dtype: TABLE.dtypes[dtype], shape, first, last };
    },
  );
  return { op, ...Object.fromEntries(facts), ...of[0] };
}

function told({ from, to, payload, type, ...facts }) {
  return type ? { ...facts, dtype: type.name } : facts;
}

function check(op, changes, expected) {
  const [header, payload] = partsOf(op, changes);
  const whole = joined(header, payload);
  if (typeof expected === "string") {
    refused(whole, expected);
    return;
  }
  const found = decode(whole);
  const means = Object.entries(expected === true ? {} : expected);
  const facts = Object.fromEntries(means.map(([key, value]) => [key, textOf(value)]));
  assert.deepEqual(told(found), { ...factsOf(op, changes), ...facts });
  assert.deepEqual(found.payload, payload);
  const { payload: _, ...fields } = found;
  if (expected === true) assert.deepEqual(encode(fields), header);
  assert.deepEqual(decode(header, payload), found);
  refused(joined(whole, Uint8Array.of(0)), "bytes of elements");
  if (payload.length > 0) refused(whole.subarray(0, -1), "bytes of elements");
}

function refused(frame, pattern) {
  assert.throws(
    () => decode(frame),
    ({ name, message }) =>
      name === "UnsupportedError" &&
      new RegExp(pattern, "s").test(message) &&
      [...message].length <= 2000,
    pattern,
  );
}

for (const [op, key, least] of TABLE.least) {
  test(`the bounds of ${key} in ${op}`, () => {
    for (const value of [least, least + 1, Number.MAX_SAFE_INTEGER]) {
      check(op, { [key]: `${value}` }, true);
    }
    for (const wrong of [`${least - 1}`, ...TABLE.no_numbers]) {
      check(op, { [key]: wrong }, `${key} is`);
    }
  });
}

for (const [begin, first, last, end, expected] of TABLE.pieces) {
  test(`a piece of bytes ${first} to ${last} of a write of ${begin} to ${end}`, () => {
    const changes = { begin: `${begin}`, end: `${end}`, data_offsets: [first, last] };
    check("piece", changes, expected);
  });
}

for (const [what, ops, changes, expected] of TABLE.frames) {
  test(`a frame: ${what}`, () => {
    if (ops === "raw") {
      refused(new Uint8Array(Buffer.from(changes, "hex")), expected);
      return;
    }
    const [key, values] = changes.each ?? ["to", [changes.to ?? SESSIONS.to]];
    for (const op of [ops].flat()) {
      for (const value of values) check(op, { ...changes, [key]: value }, expected);
    }
  });
}

test("a part of a frame is refused", () => {
  const [header, payload] = partsOf("piece", {});
  const whole = joined(header, payload);
  for (let cut = 0; cut < whole.length; cut++) refused(whole.subarray(0, cut), "bytes");
  for (const parts of [[whole, payload], [header, payload.subarray(1)], [header]]) {
    assert.throws(() => decode(...parts), { name: "UnsupportedError" });
  }
});

test("names that no frame has", () => {
  checkName("x".repeat(1000));
  for (const name of ["__metadata__", "\ud800", "x".repeat(1001), 5]) {
    assert.throws(() => checkName(name), /a tensor's name is a string|half of a surrogate pair/);
  }
});

test("open() reads a tensor of one piece, from its bytes and from a stream", async () => {
  const [, op, changes] = TABLE.frames[0];
  const [header, payload] = partsOf(op, changes);
  const bytes = joined(header, payload);
  for (const source of [bytes, new Blob([bytes]).stream()]) {
    const file = await open(source);
    const tensor = await file.get("x");
    assert.deepEqual([tensor.dtype, [...tensor.shape]], ["float32", [2, 2]]);
    assert.deepEqual(tensor._managed.bytes(), payload);
    tensor.release();
    file.close();
  }
});
