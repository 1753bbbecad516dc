/** Errors of messages, shapes, and what has to be released. */
import { UnsupportedError } from "dlpack-web/core";

const cut = (text: string, most: number) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

/** The error for what another side sent. */
export function malformed(what: string, why: string, given?: unknown): UnsupportedError {
  const shown = typeof given === "string" ? cut(given, 100) : given;
  const fields = shown === undefined ? {} : { given: shown };
  return new UnsupportedError(cut(`${what}: ${why}`, 2000), fields);
}

/** Does what must not throw, such as releasing memory while another error is pending. */
export function quietly(release: () => void): void {
  try {
    release();
  } catch (error) {
    console.error(error);
  }
}

/** The result of `use`, after which `held` is released, also if that throws. */
export function releasing<H extends { release(): void }, R>(held: H, use: (held: H) => R): R {
  try {
    return use(held);
  } finally {
    held.release();
  }
}

/** Number of elements. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((size, extent) => size * extent, 1);
}

/** Whether the elements are contiguous, in row-major order. */
export function isRowMajor(shape: readonly number[], strides: readonly number[]): boolean {
  if (shape.includes(0)) return true;
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis] as number;
    if (extent !== 1 && strides[axis] !== step) return false;
    step *= extent;
  }
  return true;
}
