// The table of handles against a model: tables of 16 slots and 8 generations, so that both ends are
// reached often.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enter, find, leave, SIZES } from "../../../js/dist/webgpu/slots.js";
import { fractions } from "../random.mjs";

const TINY = { slotBits: 4, generationBits: 3, free: 4 };

const newTable = () => ({ slots: [], firstFree: 0, lastFree: 0, free: 0 });

for (let seed = 1; seed <= 8; seed++) {
  test(`a table of 16 slots is as its model (seed ${seed})`, () => {
    const next = fractions(seed);
    const table = newTable();
    const live = new Map(); // handle -> facts
    const stale = []; // [handle, how many had been entered]
    const most = 2 ** TINY.slotBits - TINY.free;
    let entered = 0;
    for (let round = 0; round < 4000; round++) {
      const busy = [0.3, 0.5, 0.7, 0.95][Math.floor(4 * next())];
      for (let i = 12 * next(); i > 1; i--) {
        if (next() < busy) {
          const facts = {};
          if (live.size === most) {
            assert.throws(() => enter(table, { facts }, TINY), { name: "DLPackError" });
            continue;
          }
          const handle = enter(table, { facts }, TINY);
          assert.ok(handle > 0 && !live.has(handle));
          live.set(handle, facts);
          entered++;
        } else if (live.size > 0) {
          const handle = [...live.keys()][Math.floor(live.size * next())];
          leave(table, handle, TINY);
          live.delete(handle);
          stale.push([handle, entered]);
        }
      }
      while (stale.length && entered - stale[0][1] >= TINY.free * 2 ** TINY.generationBits) {
        stale.shift();
      }
      for (const [handle, facts] of live) assert.equal(find(table, handle, TINY)?.facts, facts);
      for (const [handle] of stale) assert.equal(find(table, handle, TINY), undefined);
    }
    assert.ok(entered > 10 * 16 * 8);
  });
}

test("handles never run out, and a stale one is refused for 2^20 others", () => {
  const table = newTable();
  const facts = {};
  const stale = enter(table, { facts });
  leave(table, stale);
  const most = 2 ** SIZES.slotBits;
  for (let i = 0; i < 2 * most; i++) {
    const handle = enter(table, { facts });
    if (i < most) assert.notEqual(handle, stale);
    assert.ok(handle > 0 && handle < 2 ** 32);
    leave(table, handle);
  }
  assert.ok(table.slots.length < 300);
});

test("forged handles are refused", () => {
  const table = newTable();
  const handle = enter(table, { facts: {} });
  for (const each of [0, handle + 1, handle | (1 << 20), 0xffffffff]) {
    assert.equal(find(table, each), undefined);
  }
});
