// The few assertions that the JavaScript cases need.

const shown = (value) =>
  JSON.stringify(value, (_, v) =>
    typeof v === "bigint" ? `${v}n` : ArrayBuffer.isView(v) ? [...v] : v,
  );

export const isFirefox = /Firefox/.test(globalThis.navigator?.userAgent);

/** Of the conformance suite's rules: a software GPU may have much to do. */
export const PATIENCE = { timeoutMs: 120_000 };

/** Thrown to skip a case: what the browser lacks. */
export class Skip extends Error {}

// What only pages have: other runtimes run the same cases (tests/runtimes).
const OF_PAGES =
  /^(document|Image|ImageData|indexedDB|OffscreenCanvas|VideoFrame|createImageBitmap)\b/;

/** The skip that an error stands for: a case itself asks for what only pages have. null: none. */
export function needsPage(error) {
  if (error instanceof Skip) return error;
  if (!(error instanceof ReferenceError) || !OF_PAGES.test(error.message)) return null;
  const place = error.stack.split("\n").find((line) => /\.m?js:\d/.test(line));
  if (!/\/tests\//.test(place)) return null; // the library's
  const [name] = OF_PAGES.exec(error.message);
  return new Skip(`only pages have ${name}`);
}

/** The 2d context of a canvas, or an end to the case. */
export function context2d(canvas) {
  const context = canvas.getContext("2d");
  if (context === null) throw new Skip("canvases have no 2d context here");
  return context;
}

export function ok(condition, what) {
  if (!condition) throw new Error(`expected: ${what}`);
}

/** Deep equality of plain values and arrays. */
export function equal(actual, expected, what = "value") {
  if (shown(actual) !== shown(expected)) {
    throw new Error(`${what}: got ${shown(actual)}, expected ${shown(expected)}`);
  }
}

/** Runs `call`, which must throw (or reject with) an error of this name and message. */
export async function throws(call, name, pattern) {
  try {
    await call();
  } catch (error) {
    if (error.name === name && pattern.test(error.message)) return error;
    if (needsPage(error)) throw error;
    throw new Error(`expected ${name} ${pattern}, got ${error.name}: ${error.message}`);
  }
  throw new Error(`expected ${name} ${pattern}, but nothing was thrown`);
}

/** Whether two typed arrays are views of the same bytes. */
export function same(a, b) {
  return a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.length === b.length;
}

/** Runs `call`, which must move what `expected` says, e.g. `{ gpu_copies: 1 }`, and nothing else. */
export function counted({ counters }, call, expected) {
  counters.start();
  let result;
  try {
    result = call();
  } finally {
    const { copied_bytes, gpu_bytes, ...counts } = counters.stop();
    const wanted = { copies: 0, gpu_copies: 0, map_async: 0, ...expected };
    if (result !== undefined) equal(counts, wanted, `copies (${copied_bytes} bytes)`);
  }
  return result;
}
