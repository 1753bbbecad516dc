const hinted = (text: string) => text.replace(/Promise]$/, "$& (await it)");

/** What a value is, for messages: "[object GPUBuffer]"; of a Promise also what to do. */
export function tagOf(value: unknown): string {
  const tag = Object.prototype.toString.call(value);
  if (tag !== "[object Object]" && tag !== "[object EventTarget]") return hinted(tag);
  const { name } = Object((value as object).constructor) as { name?: unknown };
  // Deno's classes of WebGPU have no tags.
  return /^GPU|Canvas$/.test(String(name)) ? `[object ${name}]` : tag;
}

/** Characters of a message with foreign text, at most. */
const MOST = 2000;

/** Text of foreign origin, cut for messages. */
export function cut(text: string, most = 100): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A message with foreign text, cut. */
export const bounded = (message: string) => cut(message, MOST);

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

/** Does what must not throw, such as releasing memory while another error is pending. */
export function quietly(release: () => void): void {
  try {
    release();
  } catch (error) {
    console.error(error);
  }
}

/** Fields of an error besides its message, where known. */
export interface ErrorFields {
  /** The value that the caller passed: a dtype, a size in bytes, a list of flags, … */
  given?: unknown;
  /** The supported values, in the same units. */
  needed?: unknown;
  /** The device it happened on; the error has its name, "cpu" or "webgpu:0". */
  device?: { toString(): string };
  /** The error underneath: a `PythonError`, a `GPUError`, a `DOMException`. */
  cause?: unknown;
}

/**
 * Every error of this library that is not about the type or range of an argument (those are
 * `TypeError` and `RangeError`). `name` is the class's name; it also identifies errors from another
 * copy of the library, where `instanceof` fails.
 */
export class DLPackError extends Error {
  override readonly name: string = "DLPackError";
  declare readonly given?: unknown;
  declare readonly needed?: unknown;
  declare readonly device?: string;

  constructor(message: string, { cause, device, ...fields }: ErrorFields = {}) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, fields, device && { device: `${device}` });
  }
}

/** The tensor, or the hold behind it, was released before this use. */
export class ReleasedError extends DLPackError {
  override readonly name = "ReleasedError";
}

/** A WebGPU device is missing, is the wrong one, or reported an error. */
export class DeviceError extends DLPackError {
  override readonly name: string = "DeviceError";
}

/** The tensor's `GPUDevice` is lost; CPU tensors are not affected. */
export class DeviceLostError extends DeviceError {
  override readonly name = "DeviceLostError";
}

/** Further fields of a {@link KernelError}. */
export interface KernelErrorFields extends ErrorFields {
  label: string;
  line?: number | undefined;
}

/** A kernel that does not compile, or that the GPU refused to run. */
export class KernelError extends DeviceError {
  override readonly name = "KernelError";
  /** The kernel's label. */
  readonly label: string;
  /** The line of its WGSL, from 1 on, if known. */
  readonly line?: number;

  constructor(message: string, { label, line, ...fields }: KernelErrorFields) {
    super(message, fields);
    this.label = label;
    if (line !== undefined) this.line = line;
  }
}

/** The data cannot be described or moved as requested. */
export class UnsupportedError extends DLPackError {
  override readonly name = "UnsupportedError";
}

/** `copy: false` was asked for, and a copy is needed. */
export class CopyError extends DLPackError {
  override readonly name = "CopyError";
}
