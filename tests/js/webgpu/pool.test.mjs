// The pool of idle buffers by itself: which it hands out, which it destroys, and when.
// Looks inside: which idle buffer is destroyed when cannot be seen through tensors without a GPU.
import assert from "node:assert/strict";
import { test } from "node:test";
import { IdlePool } from "../../../js/dist/webgpu/buffers/pool.js";
import { newRecord } from "../../../js/dist/webgpu/errors/record.js";
import { fakeBuffer } from "../fake_device.mjs";

const MIB = 1 << 20;

function idle(size, origin = "tensors", options = {}) {
  return newRecord(fakeBuffer(size), origin, options);
}

const destroyed = (records) => records.map(({ gpu }) => gpu.destroyed);

/** Runs `block` with a clock of its own: `pass(ms)` lets time go by. */
function timed(block) {
  const { setTimeout } = globalThis;
  let now = 0;
  const clock = {
    pending: [],
    started: 0,
    unrefs: 0,
    pass(ms) {
      now += ms;
      const due = clock.pending.filter(({ at }) => at <= now);
      clock.pending = clock.pending.filter(({ at }) => at > now);
      for (const { call } of due) call();
    },
  };
  globalThis.setTimeout = (call, ms) => {
    clock.started++;
    clock.pending.push({ call, at: now + ms });
    return { unref: () => clock.unrefs++ };
  };
  try {
    block(clock);
  } finally {
    globalThis.setTimeout = setTimeout;
  }
}

test("a buffer is handed out again for its size and purpose, the last one first", () => {
  timed(() => {
    const pool = new IdlePool();
    const [first, second, staging, other] = [idle(64), idle(64), idle(64, "staging"), idle(80)];
    for (const each of [first, second, staging, other]) pool.give(each, each.errors);
    assert.equal(pool.idleBytes, 64 * 3 + 80);
    assert.equal(pool.take(32, "tensors", 0), undefined);
    assert.equal(pool.take(64, "tensors", 0), second);
    assert.equal(pool.take(64, "tensors", 0), first);
    assert.equal(pool.take(64, "tensors", 0), undefined);
    assert.equal(pool.take(64, "staging", 0), staging);
    assert.equal(pool.take(80, "staging", 0), undefined);
    assert.equal(pool.idleBytes, 80);
    assert.equal(pool.reused, 3);
    assert.deepEqual(destroyed([first, second, staging, other]), [0, 0, 0, 0]);
  });
});

test("a buffer that an error may have made invalid is destroyed, unless others may keep it", () => {
  timed(() => {
    const pool = new IdlePool();
    const [sound, doubtful, kept] = [
      idle(64, "tensors", { errors: 1 }),
      idle(64),
      Object.assign(idle(64), { escaped: true }),
    ];
    for (const each of [sound, doubtful, kept]) pool.give(each, each.errors);
    assert.equal(pool.take(64, "tensors", 1), sound);
    assert.deepEqual(destroyed([sound, doubtful, kept]), [0, 1, 0]);
    assert.equal(pool.idleBytes, 0);
    assert.equal(pool.reused, 1);
  });
});

test("an idle buffer has no pending writes, and no consumer", () => {
  timed(() => {
    const pool = new IdlePool();
    const buffer = idle(64);
    const outcome = { fault: undefined, done: Promise.resolve(null) };
    Object.assign(buffer, { exported: true, writes: [{ start: 0, end: 4, outcome }] });
    pool.give(buffer, 0);
    assert.equal(pool.take(64, "tensors", 0), buffer);
    assert.deepEqual([buffer.exported, buffer.writes], [false, []]);
  });
});

test("beyond the budget, the sizes used longest ago go first, and of a size the oldest", () => {
  timed(() => {
    const pool = new IdlePool();
    const small = [idle(64 * MIB), idle(64 * MIB)];
    const large = [idle(65 * MIB), idle(65 * MIB)];
    for (const each of [...small, ...large]) pool.give(each, each.errors); // 2 MiB too many
    assert.deepEqual(destroyed([...small, ...large]), [1, 0, 0, 0]);
    assert.equal(pool.idleBytes, 194 * MIB);
    pool.give(pool.take(64 * MIB, "tensors", 0), 0); // now 65 MiB are older
    const more = idle(63 * MIB);
    pool.give(more, more.errors);
    assert.deepEqual(destroyed([...small, ...large, more]), [1, 0, 1, 0, 0]);
    pool.give(idle(256 * MIB), 0); // alone, it is all that is allowed
    assert.deepEqual(destroyed([...small, ...large, more]), [1, 1, 1, 1, 1]);
    assert.equal(pool.idleBytes, 256 * MIB);
    assert.equal(pool.take(65 * MIB, "tensors", 0), undefined);
  });
});

test("drop() destroys all of them", () => {
  timed(() => {
    const pool = new IdlePool();
    const all = [idle(64), idle(64), idle(128), idle(32, "staging")];
    for (const each of all) pool.give(each, each.errors);
    pool.drop();
    assert.deepEqual(destroyed(all), [1, 1, 1, 1]);
    assert.equal(pool.idleBytes, 0);
  });
});

test("what nobody uses for ten seconds is destroyed, by one timer that holds up no exit", () => {
  timed((clock) => {
    const pool = new IdlePool();
    const all = [idle(64), idle(128)];
    pool.give(all[0], all[0].errors);
    assert.deepEqual([clock.started, clock.unrefs], [1, 1]);
    clock.pass(5000);
    pool.give(all[1], all[1].errors);
    assert.equal(clock.started, 1);
    clock.pass(5000); // something was given meanwhile
    assert.deepEqual(destroyed(all), [0, 0]);
    assert.equal(clock.started, 2);
    clock.pass(9999);
    assert.deepEqual(destroyed(all), [0, 0]);
    clock.pass(1);
    assert.deepEqual(destroyed(all), [1, 1]);
    assert.equal(clock.pending.length, 0);
    pool.give(idle(64), 0); // starts another timer
    assert.equal(clock.pending.length, 1);
  });
});

test("taking a buffer is a use, too", () => {
  timed((clock) => {
    const pool = new IdlePool();
    const all = [idle(64), idle(128)];
    for (const each of all) pool.give(each, each.errors);
    clock.pass(10_000); // both were given after the timer began
    clock.pass(5000);
    assert.equal(pool.take(64, "tensors", 0), all[0]);
    clock.pass(5000);
    assert.deepEqual(destroyed(all), [0, 0]);
    clock.pass(10_000);
    assert.deepEqual(destroyed(all), [0, 1]);
  });
});
