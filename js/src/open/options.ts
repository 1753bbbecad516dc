import type { Device } from "../core/device.js";
import type { DTypeName } from "../core/dtype.js";
import type { AbortSignal, GPUDevice } from "../core/globals.js";
import type { Names } from "../core/options.js";
import type { Range } from "../core/views.js";
import type { Place } from "./sink.js";
import type { FetchOptions } from "./source.js";

/** The formats that `open` reads. */
export type Format = "npy" | "npz" | "safetensors" | "raw";

/** How one tensor is loaded. */
export interface LoadOptions<D extends DTypeName = DTypeName> {
  /** A `GPUDevice`, or another tensor's `device`; default: the CPU, a JavaScript array. */
  device?: GPUDevice | Device | undefined;
  /**
   * Converts the elements, as `tensor.to` does: float64 to float32, int64 to int32, … For raw
   * elements, and for those that NumPy wrote without their dtype ("<V2" of bfloat16, "<f1"): their
   * dtype.
   */
  dtype?: D | undefined;
  /** Aborts: pending promises reject with the signal's reason, and nothing is left behind. */
  signal?: AbortSignal | undefined;
  /**
   * Called with the number of bytes of a tensor's elements that have arrived, and the total
   * (undefined if unknown). An error that it throws ends the loading.
   */
  progress?: ((loaded: number, total: number | undefined) => void) | undefined;
  /**
   * A part of the tensor: for each axis a position, [start, stop, step], or null for all, as for
   * `tensor.slice`. Only its bytes are read, and short gaps between them.
   */
  part?: readonly Range[] | undefined;
  /**
   * Reads more from a server than the part where that is needed: the whole file if the server lacks
   * ranges, a compressed array from its start, or the gaps between scattered elements. By default
   * these are errors. Local files need no `whole`.
   */
  whole?: boolean | undefined;
}

/** Options of `open`. */
export interface OpenOptions<D extends DTypeName = DTypeName> extends LoadOptions<D>, FetchOptions {
  /**
   * Default: detected from the first bytes; otherwise raw if `dtype` is given and the name has no
   * suffix of another format.
   */
  format?: Format | undefined;
  /** For raw elements; default: one axis. */
  shape?: ArrayLike<number> | undefined;
  /** @internal Where CPU elements go. */
  place?: Place | undefined;
}

const LOADING = {
  device: 1,
  dtype: 1,
  part: 1,
  signal: 1,
  progress: 1,
  whole: 1,
  place: 0,
} as const;
/** @internal The names of options of `TensorFile.get`. */
export const LOAD_NAMES: Names<LoadOptions & Pick<OpenOptions, "place">> = LOADING;
/** The names of options of `open`. */
export const OPEN_NAMES: Names<OpenOptions> = {
  ...LOADING,
  format: 1,
  shape: 1,
  headers: 1,
  retries: 1,
};
