// What a runtime without pages can do; Chromium is asked in tests/browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { features } from "../../../js/dist/webgpu/device/features.js";

/** What `call` resolves to where this is the navigator. */
async function withNavigator(value, call) {
  const own = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value, configurable: true });
  try {
    return await call();
  } finally {
    if (own) Object.defineProperty(globalThis, "navigator", own);
    else delete globalThis.navigator;
  }
}

for (const navigator of [undefined, {}]) {
  test(`without a GPU it says so: navigator ${JSON.stringify(navigator)}`, async () => {
    const found = await withNavigator(navigator, features);
    const { webgpu, shaderF16, unsafeEval, worker, isolated } = found;
    assert.equal(webgpu.available, false);
    assert.match(webgpu.reason, /no navigator\.gpu/);
    assert.deepEqual([shaderF16, unsafeEval, worker, isolated], [false, true, false, false]);
  });
}

test("an adapter that is refused is a reason, and no error", async () => {
  const gpu = {
    requestAdapter: async () => {
      throw new Error("blocked by a policy");
    },
  };
  const told = async () => (await withNavigator({ gpu }, features)).webgpu.reason;
  assert.match(await told(), /blocked by a policy/);
  gpu.requestAdapter = async () => null;
  assert.match(await told(), /driver is missing or blocked/);
});
