import { DLPackError } from "../core/errors.js";
import { watchForLeaks } from "../core/leaks.js";
import type { Bridge } from "./bridge.js";
import { moduleOf, type Pyodide } from "./host.js";
import { attach } from "./seam.js";

/** Options of `connect`. */
export interface ConnectOptions {
  /** URL of the `dlpack_web` wheel; default: the one in this npm package. */
  wheel?: string | URL;
  /** Release tensors that were forgotten, and say so on the console. Costs about a microsecond each. */
  debug?: boolean;
}

const connecting = new WeakMap<Pyodide, Promise<Bridge>>();

/** Implements `connect`. */
export async function load(pyodide: Pyodide, options: ConnectOptions): Promise<Bridge> {
  moduleOf(pyodide); // A Pyodide that is too old is refused before anything is loaded.
  if (options.debug) watchForLeaks();
  const known = connecting.get(pyodide);
  if (known) return known;
  const made = join(pyodide, options);
  connecting.set(pyodide, made);
  // After a failure, e.g. of the network, the next call tries again.
  made.catch(() => connecting.delete(pyodide));
  return made;
}

async function join(pyodide: Pyodide, { wheel }: ConnectOptions): Promise<Bridge> {
  if (!isInstalled(pyodide)) {
    const url = named(String(wheel ?? shippedWheel()));
    const messages: string[] = [];
    const note = (message: string) => void messages.push(message);
    await pyodide.loadPackage(url, { messageCallback: note, errorCallback: note });
    if (!isInstalled(pyodide)) {
      throw new DLPackError(
        `loading ${url} did not install dlpack_web: ${messages.join("; ")}; pass the URL of a ` +
          "dlpack_web wheel as connect(pyodide, { wheel })",
      );
    }
  }
  const seam = attachTo(pyodide);
  const browser = pyodide.pyimport("dlpack_web._browser");
  try {
    browser._attach(seam);
  } finally {
    browser.destroy();
  }
  return seam.bridge;
}

/** The seam; where Python cannot import the wheel, its last line says why. */
function attachTo(pyodide: Pyodide) {
  try {
    return attach(pyodide);
  } catch (cause) {
    const { name, message } = cause as Error;
    if (name !== "PythonError") throw cause;
    throw new DLPackError(message.trim().split("\n").at(-1) as string, { cause });
  }
}

function isInstalled(pyodide: Pyodide): boolean {
  const importlib = pyodide.pyimport("importlib.util");
  try {
    const spec = importlib.find_spec("dlpack_web");
    spec?.destroy();
    return spec !== undefined;
  } finally {
    importlib.destroy();
  }
}

/** The wheel that lies beside this code in the npm package; bundlers know what this form means. */
const shippedWheel = () =>
  new URL(
    "../../../dist/dlpack_web-0.1.0-cp312-abi3-pyemscripten_2025_0_wasm32.pyemscripten_2026_0_wasm32.pyemscripten_2026_5_wasm32.whl",
    import.meta.url,
  );

/**
 * The URL of a wheel whose file bundlers renamed: to Pyodide the name says what a wheel is for, and
 * it takes the one behind the last slash, which may be in the fragment.
 */
function named(url: string): string {
  return /_wasm32\.whl$|#/.test(url) ? url : `${url}#/dlpack_web-0-py3-none-any.whl`;
}
