// Python's calls about adapters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connected } from "../pyodide/stand_in.mjs";

test("no adapter of a name is known by what it is not", async () => {
  const { calls } = connected();
  await assert.rejects(calls.adapters.adapter("toString", {}), {
    name: "TypeError",
    message: /^no adapter "toString"; supported are .*ort/,
  });
});
