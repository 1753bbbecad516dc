import { bytesOf, type DType } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
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
}

/** A file's shape, checked as foreign data. */
export function shapeOf(given: readonly number[], what: string): number[] {
  try {
    // As NumPy: an empty array must fit, too, were its axes of length 0 of length 1.
    checkShape(given.map((extent) => extent || 1));
    return checkShape(given);
  } catch (error) {
    throw malformed(what, (error as Error).message, given);
  }
}

/** Bytes of contiguous elements. */
export function nbytesOf({ type, shape }: Pick<Described, "type" | "shape">): number {
  return bytesOf(type, sizeOf(shape));
}

/** The error for a malformed file. */
export function malformed(what: string, why: string, given?: unknown): UnsupportedError {
  return new UnsupportedError(`${what}: ${why}`, given === undefined ? {} : { given });
}
