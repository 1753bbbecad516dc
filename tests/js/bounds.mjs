// What tests of bounds share: lists without an end, and short messages.
import assert from "node:assert/strict";

/** Objects that say that they are lists of a billion, and lists that are. */
export const ENDLESS = {
  "an object": { length: 1e9 },
  "an object without end": { length: Number.POSITIVE_INFINITY },
  "a negative one": { length: -1 },
  "a fraction": { length: 1.5 },
  "no number": { length: Number.NaN },
  "a sparse array": new Array(2 ** 32 - 1),
  "a typed array": new Uint8Array(1 << 28),
  "an object that goes on": {
    length: 1e9,
    *[Symbol.iterator]() {
      for (;;) yield 1;
    },
  },
};

/** The error of a call: its text and its fields are short. */
export async function isShort(call) {
  await assert.rejects(call, (error) => {
    assert.ok(error.message.length <= 2000, `${error.message.length} characters`);
    const texts = Object.values(error).filter((field) => typeof field === "string");
    assert.ok(texts.every(({ length }) => length <= 2000));
    return true;
  });
}
