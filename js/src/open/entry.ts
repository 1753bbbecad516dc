import { bytesOf, type DType } from "../core/dtype.js";
import { bounded, cut, textOf, UnsupportedError } from "../core/errors.js";
import { checkShape, sizeOf } from "../core/shape.js";

/** A file's description of one of its tensors. */
export interface Described {
  readonly type: DType;
  readonly shape: readonly number[];
  /** Whether the first index varies fastest, as in Fortran. */
  readonly columns: boolean;
}

/** A tensor in a file, and its position. */
export interface Entry extends Omit<Described, "type"> {
  readonly name: string;
  /** A string: the file's name for a dtype that this library lacks. Such a tensor is not loaded. */
  readonly type: DType | string;
  /**
   * Where its elements begin, in bytes from the start of the file, or of the uncompressed entry.
   */
  readonly start: number;
  /** Bytes of its elements. */
  readonly nbytes: number;
  /** Why it cannot be loaded, of the tensor: "has elements of dtype …". */
  readonly why?: string | undefined;
}

/** A file's shape, checked as foreign data. */
export function shapeOf(given: ArrayLike<number>, what: string): number[] {
  let shape: number[];
  try {
    shape = checkShape(given);
  } catch (error) {
    throw malformed(what, (error as Error).message);
  }
  // As NumPy: an empty array must fit, too, were its axes of length 0 of length 1.
  if (sizeOf(shape.map((extent) => extent || 1)) <= Number.MAX_SAFE_INTEGER / 16) return shape;
  throw malformed(what, `shape [${textOf(shape)}] has too many elements`);
}

/** The text of a header; throws that it is not `kind`. */
export function textIn(header: Uint8Array, what: string, kind: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(header);
  } catch {
    throw malformed(what, `its header is not ${kind}`);
  }
}

/** Bytes of contiguous elements. */
export function nbytesOf({ type, shape }: Pick<Described, "type" | "shape">): number {
  return bytesOf(type, sizeOf(shape));
}

/** Errors about what a file has, and whether that is too little of it. */
const faults = new WeakMap<Error, { ended: boolean }>();

/** The error for a malformed file. */
export function malformed(
  what: string,
  why: string,
  given?: unknown,
  ended = false,
): UnsupportedError {
  const shown = typeof given === "string" ? cut(given) : given;
  const fields = shown === undefined ? {} : { given: shown };
  const error = new UnsupportedError(bounded(`${what}: ${why}`), fields);
  faults.set(error, { ended });
  return error;
}

/** Whether an error is about the bytes of a file, and not about reading them; and that they end. */
export const faultOf = (error: unknown) => faults.get(error as Error);

/** Bytes by which wrong files are detected: web pages, pointers of Git LFS, gzip. */
export const HEAD_BYTES = 64;

const GZIP = [0x1f, 0x8b, 8];
const RAW = 'if these are the elements, give the format "raw"';

/**
 * Describes what is in place of a file of tensors; undefined if it is nothing known. The server's
 * `contentType` is trusted if it is that of a web page.
 */
export function detectWrongFile(
  head: Uint8Array,
  contentType: string | null = null,
): string | undefined {
  if (GZIP.every((byte, i) => head[i] === byte)) {
    return (
      "it is compressed with gzip, and no server says so (Content-Encoding): decompress it first, " +
      `blob.stream().pipeThrough(new DecompressionStream("gzip")); ${RAW}`
    );
  }
  const text = new TextDecoder().decode(head).trimStart().toLowerCase();
  if (text.startsWith("version https://git-lfs")) {
    return "it is a pointer of Git LFS, not the file: run `git lfs pull`, or use the URL of the file itself";
  }
  const page = /^<(!doctype html|html)\b/.test(text);
  if (!page && !/^text\/html\b/i.test(contentType ?? "")) return undefined;
  return (
    (page
      ? "it begins like a web page (HTML)"
      : "the server says that it is a web page (text/html)") +
    `, not like a file of tensors: servers send one to log in, or where they lack the file; ${RAW}`
  );
}
