// A copy of the library in a realm where another version was first. A file of its own: nothing of it may be
// loaded before.
// Looks inside: two copies of realm.js stand for two versions of the library.
import assert from "node:assert/strict";
import { test } from "node:test";

test("another version's state is not touched, and both versions are named", async () => {
  const theirs = { version: 99, parts: new Map() };
  const KEY = Symbol.for("dlpack-web");
  Object.defineProperty(globalThis, KEY, { value: theirs, configurable: true });
  await assert.rejects(import("../../../js/dist/core/realm.js"), {
    name: "DLPackError",
    message: "another version of dlpack-web is loaded (state 99, here 5): load one only",
    given: 99,
    needed: 5,
  });
  assert.deepEqual([globalThis[KEY], theirs.parts.size], [theirs, 0]);
});

test("the first copy makes the state, which no list of the globals shows", async () => {
  const KEY = Symbol.for("dlpack-web");
  delete globalThis[KEY];
  const one = await import("../../../js/dist/core/realm.js?one");
  const two = await import("../../../js/dist/core/realm.js?two");
  assert.equal(one.counts, two.counts);
  assert.deepEqual(one.counts, { live: 0 });
  const made = one.shared("of a test", () => ({ by: "one" }));
  assert.equal(
    two.shared("of a test", () => ({ by: "two" })),
    made,
  );
  assert.deepEqual(made, { by: "one" });
  assert.equal(globalThis[KEY].version, 5);
  assert.equal(Object.getOwnPropertyDescriptor(globalThis, KEY).enumerable, false);
  one.counts.live++;
  assert.equal(two.liveTensors(), 1);
});
