// The public names: a change here is a change for users, and goes into the changelog.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const EXPECTED = {
  "./widget": ["widget"],
  "./wire": ["RemoteTensor", "Wire", "joined", "overPort", "overSocket"],
};

test("exported names", async () => {
  const { exports } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url)));
  const { "./package.json": manifest, ...entries } = exports;
  assert.deepEqual(Object.keys(entries), Object.keys(EXPECTED));
  for (const [name, file] of Object.entries(entries)) {
    const entry = await import(new URL(`../../${file}`, import.meta.url));
    assert.deepEqual(Object.keys(entry).sort(), EXPECTED[name], name);
  }
});
