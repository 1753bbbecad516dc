// What Node can do; Chromium is asked in tests/browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { features } from "../../js/dist/webgpu/features.js";

test("Node has no GPU, and says so", async () => {
  const { webgpu, shaderF16, unsafeEval, worker, isolated } = await features();
  assert.equal(webgpu.available, false);
  assert.match(webgpu.reason, /no navigator\.gpu/);
  assert.deepEqual([shaderF16, unsafeEval, worker, isolated], [false, true, false, false]);
});

test("an adapter that is refused is a reason, and no error", async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  const gpu = {
    requestAdapter: async () => {
      throw new Error("blocked by a policy");
    },
  };
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
  try {
    assert.match((await features()).webgpu.reason, /blocked by a policy/);
    gpu.requestAdapter = async () => null;
    assert.match((await features()).webgpu.reason, /driver is missing or blocked/);
  } finally {
    if (own) Object.defineProperty(globalThis, "navigator", own);
    else delete globalThis.navigator;
  }
});
