import { DLPackError } from "./errors.js";

/** Version of the layout of the shared state; another version's must not be touched. */
const VERSION = 5;
const KEY = Symbol.for("dlpack-web");

interface Realm {
  readonly version: number;
  readonly parts: Map<string, unknown>;
}

function realm(): Realm {
  const scope = globalThis as { [KEY]?: Realm };
  let found = scope[KEY];
  if (found === undefined) {
    found = { version: VERSION, parts: new Map() };
    // Not enumerable: the page did not ask for this global.
    Object.defineProperty(globalThis, KEY, { value: found });
  }
  if (found.version === VERSION) return found;
  throw new DLPackError(
    `another version of dlpack-web is loaded (state ${found.version}, here ${VERSION}): load one ` +
      "only",
    { given: found.version, needed: VERSION },
  );
}

/**
 * State that all copies of this library in one page or worker share, made by the first: a notebook may
 * load it twice (from the wheel and from npm), and both must agree on devices and GPU handles.
 */
export function shared<T>(part: string, make: () => T): T {
  const { parts } = realm();
  if (!parts.has(part)) parts.set(part, make());
  return parts.get(part) as T;
}

/** Counts over all copies. */
export const counts = shared("counts", () => ({ live: 0 }));

/** Number of tensors made by this library in this page or worker and not yet released. */
export function liveTensors(): number {
  return counts.live;
}

/** The hold of a forgotten tensor. */
export interface Hold {
  readonly storage: { release(handle: number): void };
  readonly handle: number;
  readonly label: string;
}

/** Set by `connect(pyodide, { debug: true })`; see watch.ts. */
interface Net {
  /** Releases forgotten tensors. */
  registry: FinalizationRegistry<Hold> | null;
  /** Gets each new `tensor.data` over memory that is larger than the tensor. */
  onView?: (view: ArrayBufferView) => void;
}

export const net = shared<Net>("net", () => ({ registry: null }));
