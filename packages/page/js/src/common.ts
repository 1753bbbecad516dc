/** Text of messages, shapes, and what has to be released. */
import { UnsupportedError } from "dlpack-web/core";

const hinted = (text: string) => text.replace(/Promise]$/, "$& (await it)");

/** What a value is, for messages: "[object GPUBuffer]"; of a Promise also what to do. */
export function tagOf(value: unknown): string {
  const tag = Object.prototype.toString.call(value);
  if (tag !== "[object Object]" && tag !== "[object EventTarget]") return hinted(tag);
  const { name } = Object((value as object).constructor) as { name?: unknown };
  // Deno's classes of WebGPU have no tags.
  return /^GPU|Canvas$/.test(String(name)) ? `[object ${name}]` : tag;
}

const cut = (text: string, most: number) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

/**
 * A value as text for messages, cut before it is made where it is a list; its own conversion may
 * throw, as a tensor's does.
 */
export function textOf(value: unknown): string {
  try {
    if (typeof value !== "object" || value === null) return cut(String(value), 200);
    if (Array.isArray(value) || ArrayBuffer.isView(value)) {
      const { length = 0 } = value as unknown[];
      if (length > 64) return `${tagOf(value)} of ${length}`;
    }
    return cut(hinted(value.toString()), 200);
  } catch {
    return tagOf(value);
  }
}

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
