/**
 * The wheel that `connect()` installs. It is fetched and checked before anything gets into Python,
 * and removed again if it fails: the next `connect()` finds Python unchanged.
 */
import { DLPackError, UnsupportedError } from "../core/errors.js";
import type { URL as AnyURL } from "../core/globals.js";
import { ABIS, shippedWheel, VERSION } from "./generated.js";
import { type Pyodide, SERVED } from "./host.js";

const OURS = "dlpack_web";

/**
 * The bytes of the wheel of a Python module at `given`, or else of the one in the npm package; throws
 * DLPackError saying what was found instead, and what to do.
 */
export async function findWheel(
  given: string | AnyURL | undefined,
  name: string = OURS,
): Promise<Uint8Array> {
  const reasons: string[] = [];
  for (const url of given === undefined ? shippedAt(name) : [String(given)]) {
    try {
      const bytes = await load(url);
      const wrong = complaint(bytes, name);
      if (wrong === null) return bytes;
      reasons.push(`${url} is ${wrong}`);
    } catch (cause) {
      reasons.push(`${url} cannot be loaded (${(cause as Error).message})`);
    }
  }
  const found = reasons.join(", and ") || "this bundle does not know its URL";
  throw new DLPackError(
    `no wheel of ${name} ${VERSION} was found: ${found}. ${advice(name, given === undefined)}`,
    { needed: VERSION },
  );
}

const onNpm = (name: string) => name.replaceAll("_", "-");

function advice(name: string, isOnly: boolean): string {
  const copy = `dist/*.whl of the npm package ${onNpm(name)}@${VERSION}`;
  if (name !== OURS) {
    return `Pass the URL of ${copy}: connect(pyodide, { packages: [{ ...its, wheel }] })`;
  }
  if (!isOnly || nodeFiles()) return `Pass the URL of ${copy}: connect(pyodide, { wheel })`;
  return (
    `Bundlers without new URL(file, import.meta.url) leave it out: copy ${copy} to your ` +
    "site, and use connect(pyodide, { wheel: url }). For Vite's development server set " +
    'optimizeDeps: { exclude: ["dlpack-web"] } in its configuration instead'
  );
}

/** Where the wheel of the npm package may be. */
function shippedAt(name: string): string[] {
  if (name !== OURS) return [];
  let url: string;
  try {
    url = shippedWheel().href;
  } catch {
    return []; // a CommonJS bundle has no import.meta.url
  }
  // Development servers move this code to a cache, and have the package where npm put it.
  const [, site, file] = /^(https?:.*)\/dist\/(dlpack_web-[^/]*)$/.exec(url) ?? [];
  if (file === undefined || /\/dlpack-web$/.test(site as string)) return [url];
  return [url, `${site}/node_modules/dlpack-web/dist/${file}`];
}

/**
 * The file system module of Node, Deno or Bun. Bundlers for browsers do not see this form of
 * import.
 */
function nodeFiles() {
  const { process } = globalThis as {
    process?: { getBuiltinModule?(name: string): unknown };
  };
  return process?.getBuiltinModule?.("node:fs/promises") as
    | { readFile(path: string | URL): Promise<Uint8Array> }
    | undefined;
}

async function load(url: string): Promise<Uint8Array> {
  const files = nodeFiles();
  const isFile = /^file:/i.test(url);
  if (files && (isFile || !/^[a-z][a-z\d+.-]+:/i.test(url))) {
    // As a URL: blanks and other characters are taken in it.
    return new Uint8Array(await files.readFile(isFile ? new URL(url) : url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`.trim());
  return new Uint8Array(await response.arrayBuffer());
}

/** What is wrong with a wheel, without unpacking it; null: nothing. */
function complaint(bytes: Uint8Array, name: string): string | null {
  const text = new TextDecoder("latin1").decode(bytes);
  if (!text.startsWith("PK\x03\x04")) {
    if (/^\s*</.test(text)) return "an HTML page, as servers send for missing files";
    return `not a wheel, but ${bytes.length} other bytes`;
  }
  // Names of files are not compressed.
  const [, version] = new RegExp(`${name}-([\\w.+!]+)\\.dist-info/`).exec(text) ?? [];
  if (version === VERSION) return null;
  return version ? `${name} ${version}` : "a wheel of another package";
}

/** Whether Python would find a module of ours; UnsupportedError if that is another version. */
export function isInstalled(pyodide: Pyodide, name: string = OURS): boolean {
  const found = withModule(pyodide, "importlib.util", (util) => {
    const spec = util.find_spec(name);
    spec?.destroy();
    return spec !== undefined;
  });
  if (!found) return false;
  const version = withModule(pyodide, "importlib.metadata", (metadata) => {
    try {
      return metadata.version(name) as string;
    } catch {
      return VERSION; // the sources are there without a version
    }
  });
  if (version === VERSION) return true;
  throw new UnsupportedError(
    `Python has ${name} ${version}, and this JavaScript is ${onNpm(name)} ${VERSION}: the versions ` +
      "must be equal. Load the wheel of that version, or none, into a fresh Pyodide",
    { given: version, needed: VERSION },
  );
}

/** Throws UnsupportedError for a Pyodide whose ABI the wheel is not built for: it could not be loaded. */
export function checkABI(pyodide: Pyodide): void {
  const name = "PYEMSCRIPTEN_ABI_VERSION";
  const abi = withModule(pyodide, "sysconfig", (it) => it.get_config_var(name));
  if (abi === undefined || ABIS.includes(abi)) return;
  throw new UnsupportedError(
    `Pyodide ${pyodide.version} has the ABI ${abi}, and dlpack-web ${VERSION} is built for ` +
      `${ABIS.join(", ")}: it serves ${SERVED}`,
    { given: abi, needed: ABIS },
  );
}

/**
 * Installs a wheel; the returned function uninstalls it, imported modules included. Throws DLPackError
 * if it cannot be unpacked.
 */
export function install(pyodide: Pyodide, wheel: Uint8Array, name: string = OURS): () => void {
  const extractDir = withModule(pyodide, "site", (site) => {
    const folders = site.getsitepackages();
    try {
      return folders.get(0) as string;
    } finally {
      folders.destroy();
    }
  });
  const forget = () => withModule(pyodide, "importlib", (it) => it.invalidate_caches());
  const undo = () => {
    withModule(pyodide, "shutil", (shutil) => {
      for (const folder of [name, `${name}-${VERSION}.dist-info`]) {
        shutil.rmtree(`${extractDir}/${folder}`, true);
      }
    });
    withModule(pyodide, "sys", ({ modules }) => {
      const of = new RegExp(`^${name}\\b`);
      for (const each of [...modules]) if (of.test(each)) modules.delete(each);
    });
    forget();
  };
  try {
    pyodide.unpackArchive(wheel, "whl", { extractDir });
  } catch (cause) {
    undo();
    throw new DLPackError(`the ${name} wheel is damaged: ${lastLine(cause)}`, { cause });
  }
  forget();
  return undo;
}

/** A Python exception's message, without its traceback. */
export function lastLine(error: unknown): string {
  return (error as Error).message.trim().split("\n").at(-1) as string;
}

// biome-ignore lint/suspicious/noExplicitAny: Python modules have any attributes
function withModule<R>(pyodide: Pyodide, name: string, use: (module: any) => R): R {
  const module = pyodide.pyimport(name);
  try {
    return use(module);
  } finally {
    module.destroy();
  }
}
