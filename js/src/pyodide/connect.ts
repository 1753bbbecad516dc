import type { Bridge } from "./bridge.js";
import type { Pyodide } from "./host.js";
import type { ConnectOptions, Package } from "./load.js";

export type { ConnectOptions, Package };

/**
 * Connects JS with a Pyodide: loads the `dlpack_web` wheel unless it is installed, and connects the
 * two. Calling it again returns the same bridge. Needs no `unsafe-eval`.
 *
 * @param pyodide - the result of `loadPyodide()`, in this page or worker: Pyodide 0.29 or 314
 * @param options - `wheel`: where the wheel is; `debug`: release and report forgotten tensors;
 * `packages`: those that Python uses beside dlpack-web
 * @returns the bridge, the same for each call
 * @throws UnsupportedError for another version of Pyodide, DLPackError if the wheel does not load,
 * TypeError for an object that is no Pyodide
 */
export async function connect(pyodide: Pyodide, options: ConnectOptions = {}): Promise<Bridge> {
  // All code for Pyodide is loaded here: tensors of JS arrays and GPUBuffers do not need it.
  return (await import("./load.js")).load(pyodide, options);
}
