import { DLPackError, UnsupportedError } from "../core/errors.js";
import type { URL as AnyURL } from "../core/globals.js";
import { checkOptions } from "../core/options.js";
import { watchForLeaks, watchForWholeBuffers } from "../core/watch.js";
import type { Bridge } from "./bridge.js";
import { attach } from "./calls.js";
import { VERSION } from "./generated.js";
import { moduleOf, type Pyodide } from "./host.js";
import type { Script } from "./packages.js";
import { checkABI, findWheel, install, isInstalled, lastLine } from "./wheel.js";

/** Options of `connect`. */
export interface ConnectOptions {
  /** Where the `dlpack_web` wheel is: a URL, in Node also a path; default: the one in this npm package. */
  wheel?: string | AnyURL | undefined;
  /**
   * Release forgotten tensors, with a warning on the console. Costs about a microsecond per tensor.
   */
  debug?: boolean | undefined;
  /**
   * Packages that Python uses beside dlpack-web: installs their wheels unless they are, and hands
   * over their JavaScript, which Python itself would evaluate.
   */
  packages?: readonly Package[] | undefined;
}

/** A package beside dlpack-web, as its entry point `pyodide` exports it. */
export interface Package {
  /** Its module in Python. */
  readonly name: string;
  /** Its version, which must be that of dlpack-web. */
  readonly version: string;
  /** Where its wheel is. */
  readonly wheel: string | AnyURL | undefined;
  /** Its JavaScript, of the names of `dlpack-web/internal`. */
  readonly script: unknown;
}

const connecting = new WeakMap<Pyodide, Promise<Bridge>>();

/** Implements `connect`. */
export async function load(pyodide: Pyodide, options: ConnectOptions): Promise<Bridge> {
  const names = { wheel: 1, debug: 1, packages: 1 } as const;
  checkOptions<ConnectOptions>(options, "connect()", names, "debug: true");
  moduleOf(pyodide); // Throws for a Pyodide that is too old before anything is loaded.
  if (options.debug) {
    watchForLeaks();
    watchForWholeBuffers();
  }
  const packages = options.packages ?? [];
  for (const { name, version } of packages) {
    if (version !== VERSION) {
      throw new UnsupportedError(
        `the package ${name} is ${version}, and dlpack-web is ${VERSION}: the versions must be equal`,
        { given: version, needed: VERSION },
      );
    }
  }
  const wheels = packages.map(async ({ name, wheel }) =>
    isInstalled(pyodide, name) ? undefined : findWheel(wheel, name),
  );
  const found = Promise.all(wheels);
  found.catch(() => {}); // thrown below
  let made = connecting.get(pyodide);
  if (made === undefined) {
    made = join(pyodide, options);
    connecting.set(pyodide, made);
    // After a failure, e.g. of the network, the next call tries again.
    made.catch(() => connecting.delete(pyodide));
  }
  const bridge = await made;
  for (const [i, wheel] of (await found).entries()) {
    const { name, script } = packages[i] as Package;
    if (wheel && !isInstalled(pyodide, name)) install(pyodide, wheel, name);
    await attach(pyodide).packages.add(name, script as Script);
  }
  return bridge;
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
