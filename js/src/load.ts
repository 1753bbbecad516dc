import type { Bridge } from "./bridge.js";
import { DLPackError } from "./errors.js";
import { watchForLeaks } from "./net.js";
import { moduleOf, type Pyodide } from "./pyodide.js";
import { attach } from "./python.js";

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
    const url = String(wheel ?? (await shippedWheel()));
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
  const seam = attach(pyodide);
  const browser = pyodide.pyimport("dlpack_web._browser");
  try {
    browser._attach(seam);
  } finally {
    browser.destroy();
  }
  return seam.bridge;
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

/** The wheel that lies beside this code in the npm package. */
async function shippedWheel(): Promise<URL> {
  const index = new URL("../../dist/wheel.json", import.meta.url);
  const { file } = JSON.parse(await readText(index)) as { file: string };
  return new URL(file, index);
}

async function readText(url: URL): Promise<string> {
  if (url.protocol === "file:") {
    // Node, whose fetch has no file: URLs. No import, so that bundlers for browsers are not upset.
    const { process } = globalThis as unknown as NodeGlobal;
    return process.getBuiltinModule("node:fs").readFileSync(url, "utf8");
  }
  const response = await fetch(url);
  if (response.ok) return response.text();
  throw new DLPackError(
    `${url} answered ${response.status}: pass the URL of the dlpack_web wheel as ` +
      "connect(pyodide, { wheel })",
  );
}

interface NodeGlobal {
  process: {
    getBuiltinModule(name: string): { readFileSync(url: URL, encoding: string): string };
  };
}
