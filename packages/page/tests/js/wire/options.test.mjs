// Options that do not exist are refused by name: they would be ignored.
import assert from "node:assert/strict";
import { test } from "node:test";
import { overPort, overSocket, Wire } from "../../../js/dist/wire/index.js";

const port = { postMessage() {}, addEventListener() {} };
const CALLS = [
  ["a Wire", "ontensor", (options) => new Wire({ send() {}, ...options })],
  ["overPort()", "onerror", (options) => overPort(port, options)],
  ["overSocket()", "limit", (options) => overSocket({ ...port, send() {} }, options)],
];

for (const [what, known, call] of CALLS) {
  for (const name of ["nonsense", known.toUpperCase(), "constructor", "toString"]) {
    test(`${what} has no option ${name}`, () => {
      assert.throws(
        () => call({ [name]: undefined }),
        ({ name: kind, message }) =>
          kind === "TypeError" &&
          message.startsWith(`${what} has no option "${name}": it has `) &&
          message.includes(known),
      );
    });
  }
}

test("options are an object", () => {
  for (const [what, , call] of CALLS.slice(1))
    for (const options of [5, [4], null, "x"])
      assert.throws(
        () => call(options),
        { name: "TypeError", message: /must be an object, e\.g\. / },
        what,
      );
});
