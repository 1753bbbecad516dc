import { DLPackError } from "../core/errors.js";
import type { URL as AnyURL } from "../core/globals.js";
import { watchForLeaks, watchForWholeBuffers } from "../core/watch.js";
import type { Bridge } from "./bridge.js";
import { attach } from "./calls.js";
import { moduleOf, type Pyodide } from "./host.js";
import { checkABI, findWheel, install, isInstalled, lastLine } from "./wheel.js";

/** Options of `connect`. */
export interface ConnectOptions {
  /** Where the `dlpack_web` wheel is: a URL, in Node also a path; default: the one in this npm package. */
  wheel?: string | AnyURL | undefined;
  /**
   * Release forgotten tensors, with a warning on the console. Costs about a microsecond per tensor.
   */
  debug?: boolean | undefined;
}

const connecting = new WeakMap<Pyodide, Promise<Bridge>>();

/** Implements `connect`. */
export async function load(pyodide: Pyodide, options: ConnectOptions): Promise<Bridge> {
  moduleOf(pyodide); // Throws for a Pyodide that is too old before anything is loaded.
  if (options.debug) {
    watchForLeaks();
    watchForWholeBuffers();
  }
  const known = connecting.get(pyodide);
  if (known) return known;
  const made = join(pyodide, options);
  connecting.set(pyodide, made);
  // After a failure, e.g. of the network, the next call tries again.
  made.catch(() => connecting.delete(pyodide));
  return made;
}

async function join(pyodide: Pyodide, { wheel }: ConnectOptions): Promise<Bridge> {
  let undo: (() => void) | undefined;
  if (!isInstalled(pyodide)) {
    checkABI(pyodide);
    undo = install(pyodide, await findWheel(wheel));
  }
  try {
    return attachTo(pyodide);
  } catch (error) {
    undo?.();
    throw error;
  }
}

/** Connects JavaScript and Python. */
function attachTo(pyodide: Pyodide): Bridge {
  let calls: ReturnType<typeof attach>;
  try {
    calls = attach(pyodide);
  } catch (cause) {
    const { name } = cause as Error;
    if (name !== "PythonError") throw cause;
    throw new DLPackError(lastLine(cause), { cause }); // throws why the wheel cannot be imported
  }
  const python = pyodide.pyimport("dlpack_web._backends.browser.javascript");
  try {
    python._attach(calls);
  } finally {
    python.destroy();
  }
  return calls.bridge;
}
