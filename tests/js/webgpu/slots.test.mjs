// The table of handles replays the sequences of its model, tests/handles/model.py: tables of 16 slots
// and 8 generations.
// Looks inside: the model is of the table itself, with 16 slots in place of 2 ** 20.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { enter, find, leave } from "../../../js/dist/webgpu/buffers/table.js";

const { sizes, sequences } = JSON.parse(
  readFileSync(new URL("../../handles/vectors.json", import.meta.url), "utf8"),
);

const newTable = () => ({ slots: [], firstFree: 0, lastFree: 0, free: 0 });

for (const [seed, sequence] of sequences.entries()) {
  test(`a table of 16 slots is as its model (seed ${seed})`, () => {
    const table = newTable();
    const live = new Map(); // handle -> buffer
    for (const [operation, result] of sequence) {
      const buffer = {};
      if (operation === -1 && result === 0) {
        assert.throws(() => enter(table, { buffer }, sizes), { name: "DLPackError" });
      } else if (operation === -1) {
        assert.equal(enter(table, { buffer }, sizes), result);
        live.set(result, buffer);
      } else {
        assert.equal(find(table, operation, sizes)?.buffer, live.get(operation));
        if (result) leave(table, operation, sizes);
        live.delete(operation);
      }
      for (const [handle, each] of live) assert.equal(find(table, handle, sizes)?.buffer, each);
    }
  });
}

test("handles never run out, and a stale one is refused for 2^20 others", () => {
  const table = newTable();
  const buffer = {};
  const stale = enter(table, { buffer });
  leave(table, stale);
  const most = 2 ** 20;
  for (let i = 0; i < 2 * most; i++) {
    const handle = enter(table, { buffer });
    if (i < most) assert.notEqual(handle, stale);
    assert.ok(handle > 0 && handle < 2 ** 32);
    leave(table, handle);
  }
  assert.ok(table.slots.length < 300);
});

test("forged handles are refused", () => {
  const table = newTable();
  const handle = enter(table, { buffer: {} });
  for (const each of [0, handle + 1, handle | (1 << 20), 0xffffffff]) {
    assert.equal(find(table, each), undefined);
  }
});
