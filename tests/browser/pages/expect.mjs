// The few assertions that the JavaScript cases need.

const shown = (value) =>
  JSON.stringify(value, (_, v) =>
    typeof v === "bigint" ? `${v}n` : ArrayBuffer.isView(v) ? [...v] : v,
  );

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
