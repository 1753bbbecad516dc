// The few assertions that the JavaScript cases need.

const shown = (value) =>
  JSON.stringify(value, (_, v) =>
    typeof v === "bigint" ? `${v}n` : ArrayBuffer.isView(v) ? [...v] : v,
  );

export const isFirefox = /Firefox/.test(navigator.userAgent);

/** Thrown to skip a case: what the browser lacks. */
export class Skip extends Error {}

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
    const { copied_bytes, ...counts } = counters.stop();
    const wanted = { copies: 0, gpu_copies: 0, map_async: 0, ...expected };
    if (result !== undefined) equal(counts, wanted, `copies (${copied_bytes} bytes)`);
  }
  return result;
}
