import type { Device } from "../core/device.js";
import type { DTypeName } from "../core/dtype.js";
import type { AbortSignal, GPUDevice } from "../core/globals.js";
import type { Place } from "./sink.js";
import type { FetchOptions } from "./source.js";

/** The formats that `open` reads. */
export type Format = "npy" | "npz" | "safetensors" | "raw";

/** How one tensor is loaded. */
export interface LoadOptions<D extends DTypeName = DTypeName> {
  /** A `GPUDevice`, or another tensor's `device`; default: the CPU, an array of JavaScript's. */
  device?: GPUDevice | Device | undefined;
  /**
   * What the elements are converted to on the way, as `tensor.to` does it: float64 to float32, int64
   * to int32, … Of raw elements: what they are.
   */
  dtype?: D | undefined;
  /** Ends it: whoever waits gets the signal's reason as an error, and nothing is left behind. */
  signal?: AbortSignal | undefined;
  /**
   * Is told how many bytes of a tensor's elements have come, and of how many (undefined where nobody
   * says). What it throws ends the loading.
   */
  progress?: ((loaded: number, total: number | undefined) => void) | undefined;
}

/** Options of `open`. */
export interface OpenOptions<D extends DTypeName = DTypeName> extends LoadOptions<D>, FetchOptions {
  /**
   * Default: what the first bytes say. What they do not tell is raw where `dtype` is given, and the
   * name has no suffix of another format.
   */
  format?: Format | undefined;
  /** Of raw elements; default: one axis. */
  shape?: ArrayLike<number> | undefined;
  /** @internal Where elements go that stay on the CPU. */
  place?: Place | undefined;
}
