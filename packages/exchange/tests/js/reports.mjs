// What tests of dlpack-web-exchange assert of its reports, and a consumer. Only Node runs them.
import assert from "node:assert/strict";
import { take } from "../../../../js/dist/exchange/index.js";

/** A consumer for the suite: this library's take(). */
export async function consumeByTake(x, options) {
  const tensor = take(x, options);
  try {
    return await tensor.read();
  } finally {
    tensor.release();
  }
}

/** Asserts that a report names no rule as broken. */
export function breaksNothing({ rules }) {
  assert.deepEqual(
    rules.filter((rule) => !rule.ok),
    [],
  );
}
