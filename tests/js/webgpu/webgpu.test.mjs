// The GPU cases of tests/browser, unchanged, on Dawn in Node (npm's `webgpu`) with a software driver.
// Those of `LONG` run in Chromium, and here with WHOLE=1.
// One file: node --test --test-name-pattern=fault_cases tests/js/webgpu/webgpu.test.mjs
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { openPage } from "../../runtimes/page.mjs";

const CASES = [
  "batch_cases",
  "cache_cases",
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
const LONG = /faults_of_a_stranger|cached_calls_of_python/;

const ROOT = new URL("../../../", import.meta.url);
/** The URLs of the files, those of packages among them. */
const FILES = [
  ...CASES.map((name) => `/tests/browser/cases/js/${name}.mjs`),
  ...ADAPTERS.map((name) => `/tests/browser/libraries/${name}.mjs`),
  ...folder("packages/").flatMap((name) =>
    folder(`packages/${name}/tests/cases/`)
      .filter((file) => file.endsWith("_cases.mjs"))
      .map((file) => `/packages/${name}/tests/cases/${file}`),
  ),
];

function folder(path) {
  const url = new URL(path, ROOT);
  return existsSync(url) ? readdirSync(url) : [];
}

const page = await openPage();
const options = page.missing ? { skip: page.missing } : {};

test("the cases run where they should", options, (t) => {
  t.diagnostic(`GPU cases on ${page.where}`);
  assert.match(page.compiler, page.expected.compiler);
  assert.match(page.where, page.expected.driver);
});

for (const url of FILES) {
  const [, file] = url.match(/(\w+)\.mjs$/);
  if (page.missing) {
    test(file, options, () => {});
    continue;
  }
  for (const name of await page.names(url)) {
    if (LONG.test(name) && !process.env.WHOLE) continue;
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
