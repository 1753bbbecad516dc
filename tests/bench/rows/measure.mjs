// Timing of rival ways to do the same thing: one page, random order in every round, medians.

import { giveBack } from "./gpu.mjs";

const MB = 2 ** 20;
const SAMPLE_MS = 2; // a sample is a batch at least this long: the clock ticks every 5 µs
const MAX_BATCH = 20_000;
const MAX_SETTLED = 64; // a batch that waits for the GPU
const EVEN = 4;
const WARM_UP_MS = 500; // until the compilers are done with it
const WARM_UP_SHARE = 1 / 4; // of a budget, at most
const LEAST_ROUNDS = 3; // even if the budget is used up
const MOST_ALIVE = 512 * MB; // of a batch: a GPU in software and its process share memory with all
const LARGE = 128 * MB; // left by one run
// Where waiting for the GPU is slow: Deno looks every 10 ms whether it has finished, Firefox every 100.
const SLOW_WAIT_MS = 5;
const LONG = { sampleMs: 5, ticks: 20, waits: 5 };
const SAMPLES = 8; // of each way, in its share of a budget

const now = () => performance.now();

/** Linear interpolation between the sorted samples. */
function quantile(sorted, at) {
  const place = (sorted.length - 1) * at;
  const low = Math.floor(place);
  const high = Math.ceil(place);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}

/** `{median, iqr}` of some samples. */
export function spread(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  return { median: quantile(sorted, 0.5), iqr: quantile(sorted, 0.75) - quantile(sorted, 0.25) };
}

const shuffled = (list) =>
  list
    .map((each) => ({ each, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ each }) => each);

let last; // or compilers would leave out work whose result nobody uses

/** Runs a batch; `{total, blocked}` in ms for each run. */
async function sample(way, { free = () => {}, settle, alive = 0 }) {
  const count = way.batch;
  const start = now();
  if (way.loop) way.loop(count);
  else if (way.isAwaited) for (let i = 0; i < count; i++) free(await way.run());
  else {
    for (let i = 0; i < count; i++) {
      last = way.run();
      free(last);
    }
  }
  const blocked = now() - start;
  if (way.isSettled) await settle();
  const total = now() - start;
  // Not timed: buffers that were destroyed are freed before the next batch makes others.
  if (way.isSettled && alive >= LARGE) await settle();
  return { total: total / count, blocked: blocked / count };
}

/** Runs a way once; throws if its result is wrong. */
async function verify(way, { wipe, check, free }) {
  wipe?.();
  const made = way.run();
  way.isAwaited = typeof made?.then === "function";
  const result = await made;
  if (!(await check(result, way.name))) throw new Error(`wrong result: ${way.name}`);
  free?.(result);
}

/** Warms up, and finds how many runs make a sample long enough to be timed. */
async function findBatch(way, comparison, { sampleMs, warmUpMs }) {
  const end = now() + warmUpMs;
  do {
    const { total } = await sample(way, comparison);
    if (total * way.batch < sampleMs) way.batch = Math.min(way.limit, way.batch * 4);
  } while (now() < end);
}

/** Makes batches that are settled as large as each other's, if none takes more than EVEN times as long. */
function makeEven(ways) {
  const settled = ways.filter(({ isSettled }) => isSettled);
  const largest = Math.max(...settled.map(({ batch }) => batch));
  for (const way of settled) way.batch = Math.min(largest, EVEN * way.batch, way.limit);
}

function waysOf({ ways, settle, alive = 0, maxBatch = settle ? MAX_SETTLED : MAX_BATCH }) {
  return Object.entries(ways).map(([name, given]) => {
    const run = given.run ?? (given.loop ? () => given.loop(1) : given);
    const isSettled = settle !== undefined && given.isSettled !== false;
    const limit = isSettled
      ? Math.max(1, Math.min(maxBatch, Math.floor(MOST_ALIVE / alive)))
      : maxBatch;
    return { name, run, loop: given.loop, isSettled, limit, batch: 1, totals: [], blocked: [] };
  });
}

function figuresOf({ name, totals, blocked, batch, isAwaited }) {
  const { median, iqr } = spread(totals);
  const row = { way: name, median_ms: median, iqr_ms: iqr, n: totals.length, batch };
  return { ...row, verified: true, ...(!isAwaited && { js_ms: spread(blocked).median }) };
}

/**
 * Times ways against each other. A comparison has
 * - `ways`: functions by name, ours first. Instead of one, `{run}` or `{loop}`: `loop(n)` does the work n
 *   times; `isSettled: false`: batches of it do not wait for the GPU
 * - `check(result, name)`: whether what a way returned, or resolved to, is right; or it throws
 * - `wipe()`: removes what the way before has written, before each check
 * - `free(result)`: is part of the work
 * - `settle()`: waits for the work that a batch has started
 * - `alive`: bytes that each run leaves to the GPU until then
 * - `maxBatch`, and `sampleMs`, which a batch takes at least
 *
 * @param warmUpMs - 0 where the figures mean nothing
 * @param budgetMs - no round begins later than that; the last results are checked after it
 * @returns `{rows, failed}`: `{way, median_ms, iqr_ms, n, batch, verified, js_ms?, relative?}` of each way
 * (js_ms: blocked; relative: to the first), and `{way, reason}` of those whose first or last result is wrong
 */
async function compare(comparison, options) {
  const { rounds, budgetMs = Infinity } = options;
  const { sampleMs = SAMPLE_MS } = comparison;
  const [ours] = Object.keys(comparison.ways);
  const ways = waysOf(comparison);
  const { warmUpMs = Math.min(WARM_UP_MS, (WARM_UP_SHARE * budgetMs) / ways.length) } = options;
  const failed = [];
  const isRight = async (way) => {
    try {
      await verify(way, comparison);
      return true;
    } catch ({ message }) {
      failed.push({ way: way.name, reason: message });
      return false;
    }
  };
  // Once only: V8 shrinks its nursery after a full collection, which slows small things down.
  globalThis.gc?.();
  const end = now() + budgetMs;
  const right = [];
  for (const way of ways) {
    if (!(await isRight(way))) continue;
    await findBatch(way, comparison, { sampleMs, warmUpMs });
    right.push(way);
  }
  if (sampleMs > SAMPLE_MS) makeEven(right);
  for (let round = 0; round < rounds; round++) {
    if (round >= LEAST_ROUNDS && now() > end) break;
    for (const way of shuffled(right)) {
      const { total, blocked } = await sample(way, comparison);
      way.totals.push(total);
      way.blocked.push(blocked);
    }
  }
  const rows = [];
  for (const way of right) if (await isRight(way)) rows.push(figuresOf(way));
  const ms = rows.find(({ way }) => way === ours)?.median_ms;
  return { rows: rows.map((row) => ({ ...row, relative: ms && row.median_ms / ms })), failed };
}

/** What a comparison gets where the clock or waiting for the GPU is slow: batches of several of either. */
function longBatches({ ways, settle }, { tick_ms, wait_ms }, budgetMs = Infinity) {
  const sampleMs = Math.max(LONG.sampleMs, LONG.ticks * tick_ms);
  if (wait_ms <= SLOW_WAIT_MS) return { sampleMs };
  const waits = Math.min(LONG.waits * wait_ms, budgetMs / Object.keys(ways).length / SAMPLES);
  return { sampleMs: Math.max(sampleMs, waits), ...(settle && { maxBatch: MAX_BATCH }) };
}

/**
 * Measures one size of a row, `{path, sizes, layouts?, make}`: `make(context, bytes, layout)` gives, or
 * resolves to, a comparison. What it passes to `context.keep` is given back at the end. `options` are those
 * of {@link compare}; `isLong`: batches are as long as the context's clock and its waits ask for.
 */
export async function measureRow({ path, make }, context, { bytes, layout, isLong, ...options }) {
  const kept = [];
  const keep = (made) => {
    kept.push(made);
    return made;
  };
  try {
    const comparison = await make({ ...context, keep }, bytes, layout);
    const long = isLong && longBatches(comparison, context, options.budgetMs);
    const { rows, failed } = await compare({ ...comparison, ...long }, options);
    return { rows: rows.map((row) => ({ path, layout, bytes, ...row })), failed };
  } finally {
    kept.reverse().forEach(giveBack);
    context.pool.drop();
  }
}

/** Each `{row, layout, bytes}` of some rows. `most`: no size is larger. */
export function sizesOf(rows, most = Infinity) {
  return rows.flatMap((row) =>
    (row.layouts ?? ["contiguous"]).flatMap((layout) => {
      const sizes = row.sizesOf?.[layout] ?? row.sizes;
      return [...new Set(sizes.map((bytes) => Math.min(bytes, most)))].map((bytes) => ({
        row,
        layout,
        bytes,
      }));
    }),
  );
}
