import type { AbortSignal } from "../core/globals.js";
import { unlessAborted } from "../exchange/produce.js";

/** The result of work, or the reason of a signal that is aborted, even if the work never ends. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const given = signal as globalThis.AbortSignal | undefined;
  if (!given?.aborted) return unlessAborted(work, given);
  work.catch(() => {});
  return Promise.reject(given.reason);
}

/** One signal of several, like `AbortSignal.any` in newer engines. */
export class LinkedSignal {
  readonly #controller = new AbortController();
  readonly #ends: (() => void)[] = [];

  constructor(signals: readonly (AbortSignal | undefined)[]) {
    for (const each of signals) {
      if (each === undefined) continue;
      const abort = () => this.#controller.abort(each.reason);
      if (each.aborted) abort();
      const target = each as unknown as EventTarget;
      target.addEventListener("abort", abort);
      this.#ends.push(() => target.removeEventListener("abort", abort));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Stops listening to the signals. */
  stop(): void {
    for (const end of this.#ends) end();
  }
}
