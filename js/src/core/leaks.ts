import { counts, shared } from "./realm.js";

/** What a forgotten tensor leaves behind. */
export interface Hold {
  readonly storage: { release(handle: number): void };
  readonly handle: number;
  readonly label: string;
}

/** What `connect(pyodide, { debug: true })` puts in place. */
interface Net {
  /** Releases forgotten tensors. */
  registry: FinalizationRegistry<Hold> | null;
  /** Is shown each new `tensor.data` over memory that has more than the tensor. */
  onView?: (view: ArrayBufferView) => void;
}

export const net = shared<Net>("net", () => ({ registry: null }));

let warned = false;

/** From now on, tensors that are forgotten instead of released are released, and complained of. */
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

/** A tensor as it is watched over. */
interface Watched {
  /** What releases this tensor should nobody do it. */
  _watcher: FinalizationRegistry<Hold> | null;
  /** 0 = released: there is nothing left to let go of. */
  readonly _handle: number;
  _watch(registry: FinalizationRegistry<Hold>): void;
}

let quiet: FinalizationRegistry<Hold> | undefined;

/**
 * Lets go of this one tensor when it is garbage-collected: for tensors that somebody makes only to
 * pass them on, of which nobody has a name to release them by.
 */
export function watchOver(tensor: Watched): void {
  if (net.registry !== null || tensor._watcher !== null || tensor._handle === 0) return;
  quiet ??= new FinalizationRegistry(({ storage, handle }) => {
    counts.live--;
    storage.release(handle);
  });
  tensor._watcher = quiet;
  tensor._watch(quiet);
}
