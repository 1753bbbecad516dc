// The net under forgotten tensors, which connect(pyodide, { debug: true }) spreads.
// Looks inside: watch.js is what that option turns on, here without Pyodide.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { watchForLeaks } from "../../../js/dist/core/watch.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { fakeBuffer, fakeDevice } from "../fake_device.mjs";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

const device = fakeDevice();

test("forgotten tensors are released, and told of once", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  watchForLeaks();
  watchForLeaks(); // connecting twice is one net
  const before = liveTensors();
  let released = 0;
  const release = () => released++;
  const lend = () =>
    Tensor.fromGPUBuffer(fakeBuffer(), { device, shape: [2, 3], dtype: "float32", release });
  (() => {
    for (let i = 0; i < 100; i++) lend();
    lend().release(); // by hand: not a second time by the net
  })();
  for (let i = 0; i < 1000 && liveTensors() > before; i++) {
    collectGarbage();
    await setTimeout(10);
  }
  assert.equal(liveTensors(), before);
  assert.equal(released, 101);
  assert.equal(warned.mock.callCount(), 1);
  assert.match(warned.mock.calls[0].arguments[0], /float32\[2,3\] on webgpu:0.*release\(\)/);
});
