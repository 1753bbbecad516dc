// Timing of rival ways to do the same thing: one page, random order in every round, medians.

const SAMPLE_MS = 2; // a sample is a batch at least this long: the clock ticks every 5 µs
const MAX_BATCH = 20_000;
const EVEN = 4;
const WARM_UP_MS = 500; // until the compilers are done with it
const WARM_UP_SHARE = 1 / 4; // of a budget, at most
const LEAST_ROUNDS = 3; // even if the budget is used up
const MOST_ALIVE = 512 << 20; // bytes of a batch: a GPU in software, and its process, share memory with all

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

function shuffled(list) {
  const result = [...list];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

/** Runs a batch of `count`; `{total, blocked}` in ms for each of them. */
async function sample(way, count) {
  const start = now();
  if (way.loop) way.loop(count);
  else
    for (let i = 0; i < count; i++) {
      if (way.each) await way.each();
      else way.run();
    }
  const blocked = now() - start;
  await way.settle?.();
  return { total: (now() - start) / count, blocked: blocked / count };
}

/** How many runs may be a batch, each of so many bytes where that is settled. */
function limitOf({ maxBatch = MAX_BATCH, settle }, bytes = 0) {
  return settle ? Math.max(1, Math.min(maxBatch, Math.floor(MOST_ALIVE / bytes))) : maxBatch;
}

/** Warms up; returns how many runs make a sample long enough to be timed. */
async function batchFor(way, sampleMs, warmUpMs, limit) {
  const end = now() + warmUpMs;
  let count = 1;
  do {
    const { total } = await sample(way, count);
    if (total * count < sampleMs) count = Math.min(limit, count * 4);
  } while (now() < end);
  return count;
}

function even(samples, bytes) {
  const settled = [...samples].filter(([way]) => way.settle);
  const largest = Math.max(...settled.map(([, { batch }]) => batch));
  for (const [way, sample] of settled) {
    sample.batch = Math.min(largest, EVEN * sample.batch, limitOf(way, bytes));
  }
}

/**
 * Times every way against the others. A way is `{name, run | each, settle?, verify, maxBatch?}`:
 * `run` is synchronous and `each` is awaited one by one; `settle` waits for what a batch of
 * `run` has started; `verify` throws when the result is wrong.
 *
 * @param sampleMs - of a batch, at least, where waiting is slow; batches that are settled are then
 * as large as each other's, as far as that takes no more than EVEN times as long
 * @param bytes - that a run of a way that is settled may leave to the GPU until then
 * @param warmUpMs - 0 where the figures mean nothing
 * @param budgetMs - no round begins later than that; the last results are checked after it
 * @param failed - is called with a way whose first or last result is wrong, and its error; such a way
 * is left out. Without it, the error ends the comparison
 */
export async function compare(ways, options) {
  const { rounds, sampleMs = SAMPLE_MS, failed, bytes, budgetMs = Infinity } = options;
  const { warmUpMs = Math.min(WARM_UP_MS, (WARM_UP_SHARE * budgetMs) / ways.length) } = options;
  const isRight = async (way) => {
    try {
      await way.verify();
      return true;
    } catch (error) {
      if (!failed) throw error;
      failed(way, error);
      return false;
    }
  };
  // Once only: V8 shrinks its nursery after a full collection, which slows small things down.
  globalThis.gc?.();
  const end = now() + budgetMs;
  const samples = new Map();
  for (const way of ways) {
    if (!(await isRight(way))) continue;
    const batch = await batchFor(way, sampleMs, warmUpMs, limitOf(way, bytes));
    samples.set(way, { batch, totals: [], blocked: [] });
  }
  if (sampleMs > SAMPLE_MS) even(samples, bytes);
  for (let round = 0; round < rounds; round++) {
    if (round >= LEAST_ROUNDS && now() > end) break;
    for (const way of shuffled([...samples.keys()])) {
      const into = samples.get(way);
      const { total, blocked } = await sample(way, into.batch);
      into.totals.push(total);
      into.blocked.push(blocked);
    }
  }
  for (const way of [...samples.keys()]) if (!(await isRight(way))) samples.delete(way);
  return [...samples].map(([way, { totals, blocked, batch }]) => {
    const { median, iqr } = spread(totals);
    const row = { way: way.name, median_ms: median, iqr_ms: iqr, n: totals.length, batch };
    if (way.settle) row.js_ms = spread(blocked).median;
    return { ...row, verified: true };
  });
}
