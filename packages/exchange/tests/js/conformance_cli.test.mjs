// `dlpack-web-exchange FILE.mjs`, as a process.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../../js/dist/cli.js", import.meta.url));
const PARTS = new URL("./conformance_parts.mjs", import.meta.url).href;
let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "conformance-"));
});
after(() => rm(folder, { recursive: true }));

function run(...args) {
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], { cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

async function runOn(text) {
  await writeFile(join(folder, "mine.mjs"), text);
  return run("mine.mjs");
}

const HEAD = `import { EXCHANGE, fakeDevice, Right } from "${PARTS}";
export const dtypes = ["float32"];
`;

test("a right producer and consumer: a table for each, and 0", async () => {
  const { code, stdout, stderr } = await runOn(`${HEAD}
    export default (wanted) => new Right(wanted);
    export { consume } from "${new URL("./stranger_consumer.mjs", import.meta.url)}";
    export const device = Promise.resolve(fakeDevice());
  `);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^ {2}M1 {3}ok\n/);
  assert.match(stdout, /\n {2}O5 {3}skipped {2}CPU: its exchanges are not exclusive\n/);
  assert.match(stdout, /\nproducer: no rule of EXCHANGE.md is broken\n {2}/);
  assert.match(stdout, /\nconsumer: no rule of EXCHANGE.md is broken\n$/);
});

test("--help: the usage, and 0", async () => {
  for (const args of [["--help"], ["-h"]]) {
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^usage: dlpack-web-exchange FILE.mjs\n/);
  }
});

test("a broken producer: its rule, and 1", async () => {
  const { code, stdout } = await runOn(`${HEAD}
    export default (wanted) => {
      const right = new Right(wanted);
      return { [EXCHANGE]: (request) => ({ ...right[EXCHANGE](request), flags: 16 }) };
    };
  `);
  assert.equal(code, 1);
  assert.match(stdout, /\nproducer: breaks rules of EXCHANGE.md: F9\n$/);
  assert.match(stdout, /\n {2}F9 {3}FAILED {3}CPU: flags are 16/);
});

test("wrong usage: what to do, and 2", async () => {
  for (const args of [[], ["conformance", "mine.mjs"], ["a", "b"]]) {
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /^usage: dlpack-web-exchange FILE.mjs/);
  }
  const missing = await run("nowhere.mjs");
  assert.equal(missing.code, 2);
  assert.match(
    missing.stderr,
    /^nowhere.mjs cannot be imported: .*(Cannot find module|Module not found)/,
  );
  const nothing = await runOn("export const make = 5;");
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /^mine.mjs exports no function, as default or as `consume`/);
});
