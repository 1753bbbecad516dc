// What Python waits for, with a function of the test's in place of Pyodide's, which suspends.
// Looks inside: who suspends is the test, in the place of Pyodide.
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { Waits } from "../../../js/dist/pyodide/waits.js";

/** A Waits, what C calls, and the promises that it gave to Pyodide. */
function waiting(syncify) {
  const given = [];
  let wait;
  const host = {
    onWait(make) {
      wait = make((promise) => {
        given.push(promise);
        return syncify();
      });
    },
  };
  return { waits: new Waits(host), wait, given };
}

const NO_HANDLE = 1 << 20; // slot 0 of the C core

test("C gets a number if Pyodide returns what the promise resolved to, and else 0", async () => {
  let result;
  const { waits, wait, given } = waiting(() => result);
  const number = waits.add(Promise.resolve("of no interest"));
  assert.equal(wait(number), 0);
  [result] = await Promise.all(given);
  assert.equal(wait(waits.add(Promise.resolve())), NO_HANDLE);
  for (result of [undefined, null, true, 1, new Error("of Pyodide")]) {
    assert.equal(wait(waits.add(Promise.resolve())), 0);
  }
});

test("each number is for one wait, for the promise that was added last", async () => {
  const { waits, wait, given } = waiting(() => undefined);
  const first = waits.add(Promise.resolve());
  const second = waits.add(Promise.reject(new RangeError("of the second")));
  for (const number of [second, second, first, 0]) wait(number);
  assert.notEqual(first, second);
  await assert.rejects(given[0], new RangeError("of the second"));
  for (const [i, number] of [second, first, 0].entries()) {
    const text = `Python waits for ${number}, which is not a promise`;
    await assert.rejects(given[i + 1], new TypeError(text));
  }
});

test("a number that was left for another is refused, and does not cost the other its promise", async () => {
  const { waits, wait, given } = waiting(() => undefined);
  const first = waits.add(Promise.resolve());
  const second = waits.add(Promise.resolve());
  wait(first);
  wait(second);
  await assert.rejects(given[0], TypeError);
  assert.equal((await given[1]).number(), NO_HANDLE);
});

test("C gets the handle when Python goes on, and never if it does not", async () => {
  let result;
  let held = 0;
  const { waits, wait, given } = waiting(() => result);
  const hold = () => {
    held++;
    return 0x80000001;
  };
  wait(waits.add(Promise.resolve(), hold));
  [result] = await Promise.all(given);
  assert.equal(held, 0);
  assert.equal(wait(waits.add(Promise.resolve())) >>> 0, 0x80000001);
  assert.equal(held, 1);
});

test("no exception goes through C: a result that cannot be held has no handle", async () => {
  let result;
  const { waits, wait, given } = waiting(() => result);
  const hold = () => {
    throw new RangeError("out of memory");
  };
  wait(waits.add(Promise.resolve(), hold));
  [result] = await Promise.all(given);
  assert.equal(wait(waits.add(Promise.resolve())), NO_HANDLE);
});

test("where Python cannot wait, a promise that is rejected is no unhandled one", async () => {
  const unhandled = [];
  const listen = (error) => unhandled.push(error);
  process.on("unhandledRejection", listen);
  const { waits, wait } = waiting(() => undefined);
  wait(waits.add(Promise.reject(new Error("of the promise"))));
  wait(0);
  await new Promise((done) => setTimeout(done, 20));
  process.off("unhandledRejection", listen);
  assert.deepEqual(unhandled, []);
});
