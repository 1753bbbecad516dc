import { counts, shared } from "./realm.js";

/** The hold of a forgotten tensor. */
export interface Hold {
  readonly storage: { release(handle: number): void };
  readonly handle: number;
  readonly label: string;
}

/** Set by `connect(pyodide, { debug: true })`. */
interface Net {
  /** Releases forgotten tensors. */
  registry: FinalizationRegistry<Hold> | null;
  /** Gets each new `tensor.data` over memory that is larger than the tensor. */
  onView?: (view: ArrayBufferView) => void;
}

export const net = shared<Net>("net", () => ({ registry: null }));

let warned = false;

/** From now on, forgotten tensors are released when garbage-collected, with a warning. */
export function watchForLeaks(): void {
  net.registry ??= new FinalizationRegistry(({ storage, handle, label }) => {
    counts.live--;
    storage.release(handle);
    if (warned) return;
    warned = true;
    console.warn(
      `dlpack-web: ${label} was garbage-collected without release(). Its memory was freed late; ` +
        "without debug: true it leaks. Further leaks are not reported.",
    );
  });
}

/** A watched tensor. */
interface Watched {
  /** Releases this tensor if you do not. */
  watcher: FinalizationRegistry<Hold> | null;
  /** 0 = released: nothing is held. */
  readonly handle: number;
  watch(registry: FinalizationRegistry<Hold>): void;
}

let quiet: FinalizationRegistry<Hold> | undefined;

/**
 * Releases this tensor when it is garbage-collected: for temporary tensors that are only passed on,
 * which nothing else can release.
 */
export function watchOver(tensor: Watched): void {
  if (net.registry !== null || tensor.watcher !== null || tensor.handle === 0) return;
  quiet ??= new FinalizationRegistry(({ storage, handle }) => {
    counts.live--;
    storage.release(handle);
  });
  tensor.watcher = quiet;
  tensor.watch(quiet);
}
