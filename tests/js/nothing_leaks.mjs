// Imported by a file of tests: each of them leaves as many live tensors as it found.
import assert from "node:assert/strict";
import { afterEach, beforeEach } from "node:test";
import { liveTensors } from "../../js/dist/index.js";

let live;
beforeEach(() => {
  live = liveTensors();
});
afterEach(() => assert.equal(liveTensors(), live, "tensors alive"));
