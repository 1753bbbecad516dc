import {
  CopyError,
  DeviceLostError,
  DLPackError,
  ReleasedError,
  tagOf,
  UnsupportedError,
} from "../core/errors.js";
import { Memory, type MemorySource } from "./layout.js";

/** A Python object as Pyodide hands it to JS. */
export interface PyProxy {
  destroy(): void;
  // biome-ignore lint/suspicious/noExplicitAny: attributes are Python's
  [attribute: string]: any;
}

/** The public part of the result of `loadPyodide()` that is used here. */
export interface Pyodide {
  readonly version: string;
  // biome-ignore lint/suspicious/noExplicitAny: Python modules have any attributes
  pyimport(name: string): any;
  unpackArchive(buffer: Uint8Array, format: string, options?: { extractDir?: string }): void;
  readonly ffi: { readonly PyProxy: { [Symbol.hasInstance](x: unknown): boolean } };
}

/** The private part: the Emscripten module. Only this file uses it. */
interface PyodideModule extends MemorySource {
  readonly LDSO: {
    loadedLibsByName: Record<string, { exports: Record<string, unknown> } | undefined>;
  };
  readonly validSuspender: { value: unknown };
  _check_gil(): void;
  PyProxy_getPtr(proxy: unknown): number;
  addFunction(fn: unknown, signature: string): number;
  _JsvPromise_Syncify(promise: unknown): unknown;
  /** Address of the flag that Python checks its interrupt buffer, if it ever does. */
  readonly _Py_EMSCRIPTEN_SIGNAL_HANDLING?: number;
}

/** The versions of Pyodide on which the private parts below were tested. */
export const SERVED = "Pyodide 0.29 and 314";
/** The oldest of them. */
const OLDEST = "0.29";

const NEEDED: Record<Exclude<keyof PyodideModule, `_Py_${string}`>, "function" | "object"> = {
  ...({ HEAPU8: "object", HEAP32: "object", LDSO: "object", validSuspender: "object" } as const),
  ...({ _check_gil: "function", PyProxy_getPtr: "function" } as const),
  ...({ addFunction: "function", _JsvPromise_Syncify: "function" } as const),
};

/** The functions `dlw_bridge_…` of wasm/bridge.c, and their parameters. 0 for an address is an error. */
const CORE_FUNCTIONS = {
  scratch: [],
  call: [],
  borrow: ["object", "asked"],
  empty: ["ndim", "dtype", "flags"],
  wrap: ["gpu", "deviceId", "ndim", "dtype", "flags", "strided"],
  share: ["handle"],
  view: ["handle", "ndim", "offset"],
  pack: ["handle"],
  chunk: ["handle", "dtype", "first"],
  release: ["handle"],
  error_kind: [],
  error_text: [],
  on_drop: ["function"],
  on_run: ["function"],
  on_wait: ["function"],
} as const;

type Numbers<Names extends readonly string[]> = { [I in keyof Names]: number };
export type CoreExports = {
  [F in keyof typeof CORE_FUNCTIONS]: (...given: Numbers<(typeof CORE_FUNCTIONS)[F]>) => number;
};

/**
 * The Emscripten module of a Pyodide; throws UnsupportedError for a version that is too old, or lacks
 * what is needed, TypeError for what is no Pyodide.
 */
export function moduleOf(pyodide: Pyodide): PyodideModule {
  const version = pyodide?.version;
  if (typeof version !== "string" || typeof pyodide.pyimport !== "function") {
    throw new TypeError(
      `connect() needs a loaded Pyodide, connect(await loadPyodide()), not ${tagOf(pyodide)}`,
    );
  }
  const module = (pyodide as { _module?: Record<string, unknown> })._module ?? {};
  const missing = Object.entries(NEEDED).flatMap(([name, type]) =>
    typeof module[name] === type ? [] : [`_module.${name}`],
  );
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? [];
  const isOld = Number(major) === 0 && Number(minor) < 29;
  if (!isOld && missing.length === 0) return module as unknown as PyodideModule;
  const why = isOld ? "is too old" : `lacks ${missing.join(", ")}`;
  throw new UnsupportedError(
    `Pyodide ${version} ${why}: dlpack-web serves ${SERVED}; load one of these, such as ` +
      "npm's pyodide@^314.0.0",
    { given: version, needed: OLDEST },
  );
}

/** One Pyodide with the C core loaded. Everything that a borrow needs is looked up once, here. */
export class PyodideHost {
  readonly memory: Memory;
  readonly core: CoreExports;
  /** Whether Python code may suspend the JS frames below it. */
  readonly #suspender: { value: unknown };
  readonly #checkGil: () => void;
  /** Address of the Python object behind a proxy; throws for anything but a PyProxy. */
  readonly addressOf: (proxy: unknown) => number;
  readonly #module: PyodideModule;
  readonly #python: PyProxy;
  /** Pending calls of holdInterrupts(), and whether CPython checked interrupts before them. */
  #holds = 0;
  #looked = false;

  /**
   * @param onDrop - called by C with each GPU slot of which it drops its reference
   * @param onRun - called by C with the number of a kernel, and whether to run only a cached call; see
   * wasm/bridge.c
   */
  constructor(
    pyodide: Pyodide,
    onDrop: (slot: number) => void,
    onRun: (kernel: number, again: number) => number,
  ) {
    const module = moduleOf(pyodide);
    this.#module = module;
    this.memory = new Memory(module);
    this.#suspender = module.validSuspender;
    this.#checkGil = module._check_gil;
    this.addressOf = module.PyProxy_getPtr;
    // Importing the module loads the side module into LDSO.
    this.#python = pyodide.pyimport("dlpack_web._core");
    this.core = coreExports(module, pyodide.version);
    this.core.on_drop(module.addFunction(onDrop, "vi"));
    this.core.on_run(module.addFunction(onRun, "iii"));
  }

  /** Calls C as Pyodide calls Python: with the GIL, and with suspension ruled out meanwhile. */
  enter<R>(call: (core: CoreExports) => R): R {
    const saved = this.begin();
    try {
      return call(this.core);
    } finally {
      this.end(saved);
    }
  }

  /** Begins a call of C, which `end` ends with the result. */
  begin(): unknown {
    this.#checkGil();
    const { value } = this.#suspender;
    // Python code run inside must not suspend: there are JS frames below it that cannot.
    this.#suspender.value = false;
    return value;
  }

  end(saved: unknown): void {
    this.#suspender.value = saved;
  }

  /**
   * Lets C wait for promises: `make` returns the WebAssembly function that C calls with the number of a
   * promise, and `syncify` is Pyodide's, which suspends its caller until a promise is settled.
   */
  onWait(make: (syncify: (promise: unknown) => unknown) => unknown): void {
    const { addFunction, _JsvPromise_Syncify } = this.#module;
    this.core.on_wait(addFunction(make(_JsvPromise_Syncify), "ii"));
  }

  /** Keeps CPython from checking interrupts until {@link letInterrupts} is called as often. */
  holdInterrupts(): void {
    if (this.#holds++ > 0) return;
    const { HEAPU8: bytes, _Py_EMSCRIPTEN_SIGNAL_HANDLING: looks = 0 } = this.#module;
    this.#looked = looks !== 0 && bytes[looks] !== 0;
    if (this.#looked) bytes[looks] = 0;
  }

  letInterrupts(): void {
    if (--this.#holds > 0 || !this.#looked) return;
    const { HEAPU8: bytes, _Py_EMSCRIPTEN_SIGNAL_HANDLING: looks = 0 } = this.#module;
    bytes[looks] = 1;
  }

  /** A `dlpack_web.Tensor` that takes over a hold. */
  take(handle: number): PyProxy {
    return this.#python._take(handle);
  }

  /** Throws the stored Python exception as one of our errors, with the PythonError as cause. */
  fail(): never {
    const kind = this.enter((core) => core.error_kind());
    const text = this.#text(this.enter((core) => core.error_text()) >>> 0);
    let cause: unknown;
    try {
      this.#python._raise();
    } catch (error) {
      cause = error;
    }
    // The numbers are those of wasm/bridge.c.
    const classes = [DLPackError, DLPackError, UnsupportedError, ReleasedError, CopyError];
    const Class = [...classes, DeviceLostError, DLPackError][kind] ?? DLPackError;
    const { type } = Object(cause) as { type?: string };
    const name = kind === 6 ? "" : type; // of an exception without text, or whose text is not UTF-8
    throw new Class(text || name || "Python is out of memory: release unused tensors", { cause });
  }

  /** A NUL-terminated string; copied, since TextDecoder refuses views of resizable memory. */
  #text(address: number): string {
    const { HEAPU8 } = this.#module;
    return new TextDecoder().decode(HEAPU8.slice(address, HEAPU8.indexOf(0, address)));
  }
}

function coreExports(module: PyodideModule, version: string): CoreExports {
  const { loadedLibsByName } = module.LDSO;
  const path = Object.keys(loadedLibsByName).find((name) => /\bdlpack_web\/_core\b/.test(name));
  const found = (path && loadedLibsByName[path]?.exports) || {};
  const exported = (name: string) => found[`dlw_bridge_${name}`];
  const names = Object.keys(CORE_FUNCTIONS);
  const missing = names.filter((name) => !exported(name));
  if (missing.length > 0) {
    throw new UnsupportedError(
      path
        ? `the installed dlpack_web wheel lacks ${missing} in its C core: it and this JavaScript ` +
            "must be of the same version"
        : `the C core of dlpack_web is not among the libraries of Pyodide ${version}`,
    );
  }
  // A plain object: the exports themselves are slower to look up.
  return Object.fromEntries(names.map((name) => [name, exported(name)])) as never;
}
