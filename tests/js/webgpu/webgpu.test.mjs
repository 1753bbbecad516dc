// The GPU cases of tests/browser, unchanged, on Dawn in Node (npm's `webgpu`) with a software driver.
// One file: node --test --test-name-pattern=fault_cases tests/js/webgpu/webgpu.test.mjs
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPage } from "../../runtimes/page.mjs";

const CASES = [
  "batch_cases",
  "cache_cases",
  "conformance_cases",
  "counter_cases",
  "elementwise_cases",
  "exchange_cases",
  "fault_cases",
  "gpu_cases",
  "mishap_cases",
  "record_cases",
  "shader_cases",
];
/** Those of libraries, which take Node's `process` for a reason not to look for WebGPU. */
const ADAPTERS = ["jax_cases", "tfjs_cases"];

const page = await openPage();
const options = page.missing ? { skip: page.missing } : {};

test("the cases run where they should", options, (t) => {
  t.diagnostic(`GPU cases on ${page.where}`);
  assert.match(page.compiler, page.expected.compiler);
  assert.match(page.where, page.expected.driver);
});

for (const file of [...CASES, ...ADAPTERS]) {
  const folder = ADAPTERS.includes(file) ? "libraries" : "cases/js";
  const url = `/tests/browser/${folder}/${file}.mjs`;
  if (page.missing) {
    test(file, options, () => {});
    continue;
  }
  for (const name of await page.names(url)) {
    test(`${file}: ${name}`, async (t) => {
      const run = () => page.run(url, name);
      const { outcome, detail } = await (ADAPTERS.includes(file)
        ? page.withoutProcess(run)
        : run());
      if (outcome === "skipped") t.skip(detail);
      else assert.equal(outcome, "passed", detail);
    });
  }
}
