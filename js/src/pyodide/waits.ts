import type { WasmHost } from "./heap.js";

/** What Python's `run_sync` waits for, by the numbers of the C core's waits (wasm/wait.c). */
export class Waits {
  readonly #host: WasmHost;
  /** What went wrong, until Python has asked for it. */
  readonly #failures = new Map<number, unknown>();

  constructor(host: WasmHost) {
    this.#host = host;
  }

  /** Wakes a wait when a promise is settled. */
  wake(wait: number, promise: Promise<unknown>): void {
    const wake = (ok: 0 | 1) => this.#host.enter((core) => core.wake(wait, ok));
    promise.then(
      () => wake(1),
      (error) => {
        this.#failures.set(wait, error);
        if (wake(0) === 0) this.#failures.delete(wait); // Python was interrupted meanwhile
      },
    );
  }

  /** Throws what a wait ended with. */
  fail(wait: number): never {
    const error = this.#failures.get(wait);
    this.#failures.delete(wait);
    throw error;
  }
}
