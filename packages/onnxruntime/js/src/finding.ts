// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/** Finds onnxruntime-web: given, loaded already, or beside the page. */
import type { Ort } from "dlpack-web/internal";

const FOLDER = "libraries/ort/";
const FILE = "ort.webgpu.bundle.min.mjs";
const NAMES = ["onnxruntime-web/webgpu", "onnxruntime-web"];
/**
 * The build without WebGPU. It supports more (ai.onnx.ml, float64, strings) than the other one, and
 * is half as large.
 */
const CPU_FILE = "ort.wasm.bundle.min.mjs";
const CPU_NAME = "onnxruntime-web/wasm";

const isOrt = (x: any): x is Ort => typeof x?.InferenceSession?.create === "function";

/** Loads the module at a URL, which has its WebAssembly beside it. */
async function importFrom(url: string, threads: number): Promise<Ort> {
  const { href } = new URL(url, globalThis.location?.href);
  const module = await import(/* webpackIgnore: true */ /* @vite-ignore */ href);
  const ort: any = isOrt(module) ? module : module.default;
  if (!isOrt(ort)) throw new TypeError(`${url} is not a module of onnxruntime-web`);
  const { env } = ort as any;
  env.wasm.wasmPaths ??= new URL(".", href).href;
  env.wasm.numThreads ??= threads;
  env.logLevel = "error";
  return ort;
}

/** The module that a bundler, or an import map, has under the package's name. */
async function importByName(onCPU: boolean): Promise<Ort | undefined> {
  for (const name of onCPU ? [CPU_NAME, ...NAMES] : NAMES) {
    try {
      return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as Ort;
    } catch {
      // No import map has it.
    }
  }
  return undefined;
}

/** Whether a file exists. */
async function exists(url: string): Promise<boolean> {
  return fetch(url, { method: "HEAD" }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Folders where this project's pages, and JupyterLite beside them, have it. */
function* places(): Generator<string> {
  const { origin, href } = globalThis.location;
  if (!origin.startsWith("http")) return;
  const { pathname } = new URL(href);
  yield `${origin}/${FOLDER}`;
  for (let folder = pathname; folder.length > 1; ) {
    folder = folder.slice(0, folder.lastIndexOf("/", folder.length - 2) + 1);
    if (folder.length > 1) yield `${origin}${folder}${FOLDER}`;
  }
}

/**
 * The module.
 *
 * @param given - the module, or its URL; default: `globalThis.ort`, the package by name, or a file
 * of a folder `libraries/ort` above the page
 * @param threads - of its WebAssembly, if it is loaded here
 * @param onCPU - prefers the build without WebGPU if this module chooses
 */
export async function findOrt(given: unknown, threads: number, onCPU = false): Promise<Ort> {
  if (typeof given === "string") return importFrom(given, threads);
  if (isOrt(given)) return given;
  if (given !== undefined && given !== null) {
    throw new TypeError("this is neither a module of onnxruntime-web nor its URL");
  }
  const { ort } = globalThis as any;
  const there = isOrt(ort) ? ort : await importByName(onCPU);
  if (there) return there;
  for (const folder of places()) {
    for (const file of onCPU ? [CPU_FILE, FILE] : [FILE]) {
      if (await exists(folder + file)) return importFrom(folder + file, threads);
    }
  }
  throw new Error(
    `NO_LIBRARY: onnxruntime-web was not found: neither globalThis.ort, nor an import map's ` +
      `"${NAMES[0]}", nor a folder libraries/ort above this page`,
  );
}
