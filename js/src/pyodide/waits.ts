import { unseen } from "../webgpu/errors/errors.js";
import type { PyodideHost } from "./host.js";
import type { Wait, Work } from "./numbers.js";

/**
 * A module that waits for a promise from C: `w(number)` gets it by the import `a`, suspends in `b`,
 * and returns `c` of the result. Frames of JavaScript cannot be suspended, so C calls WebAssembly.
 * In text form:
 *
 *     (module
 *       (import "a" "a" (func $promise (param i32) (result externref)))
 *       (import "a" "b" (func $await (param externref) (result externref)))
 *       (import "a" "c" (func $outcome (param externref) (result i32)))
 *       (func (export "w") (param i32) (result i32)
 *         (call $outcome (call $await (call $promise (local.get 0))))))
 */
const [I32, EXTERN, FUNC] = [0x7f, 0x6f, 0x60];
const [A, B, C, W] = [..."abcw"].map((letter) => letter.charCodeAt(0)) as [number, ...number[]];
const WAIT = Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 21, 4, FUNC, 1, I32, 1, EXTERN, FUNC, 1, EXTERN, 1, EXTERN],
  ...[FUNC, 1, EXTERN, 1, I32, FUNC, 1, I32, 1, I32],
  ...[2, 19, 3, 1, A, 1, A, 0, 0, 1, A, 1, B as number, 0, 1, 1, A, 1, C as number, 0, 2],
  ...[3, 2, 1, 3],
  ...[7, 5, 1, 1, W as number, 0, 3],
  ...[10, 12, 1, 10, 0, 0x20, 0, 0x10, 0, 0x10, 1, 0x10, 2, 0x0b],
);

/** Not 0, and no handle: slot 0 of the C core is never used. */
const NOTHING = 1 << 20;

/** What a promise resolves to: Pyodide's own errors are not of this class. */
class Outcome {
  constructor(private readonly handle: () => number) {}

  /**
   * The number for C, which takes the hold over in the same step. Exceptions cannot pass through
   * C: a result that cannot be held has no handle, and Python's `_take` raises.
   */
  number(): number {
    try {
      return this.handle();
    } catch {
      return NOTHING;
    }
  }
}

/** What Python waits for. */
export class Waits {
  /** What giving up work does, until it succeeds, or Python has its error. */
  readonly #pending = new Map<Work, (isSeen: boolean) => void>();
  #last = 0;
  #promise: Promise<Outcome> | undefined;

  constructor(private readonly host: PyodideHost) {
    host.onWait((syncify) => {
      const imports = {
        a: (number: number) => this.#take(number),
        b: syncify,
        c: (result: unknown) => (result instanceof Outcome ? result.number() : 0),
      };
      return new WebAssembly.Instance(new WebAssembly.Module(WAIT), { a: imports }).exports.w;
    });
  }

  /**
   * The number with which Python waits for a promise. `handle` returns the hold that Python's
   * `_wait` returns: when Python goes on, and not at all if an interrupt ends its wait.
   */
  add(promise: Promise<unknown>, handle: () => number = () => NOTHING): Wait {
    this.#promise = promise.then(() => new Outcome(handle));
    return ++this.#last;
  }

  /** @internal Work that Python may give up. */
  async until<T>(number: Work, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.#pending.set(number, () => controller.abort());
    try {
      const result = await work(controller.signal);
      this.#pending.delete(number);
      return result;
    } catch (error) {
      // A task can be cancelled after this, and before it has the error.
      if (!controller.signal.aborted) {
        this.#pending.set(number, (isSeen) => {
          if (!isSeen) unseen(error);
        });
      }
      throw error;
    }
  }

  /**
   * Python does not await this work any more: it must not touch what Python gave. Called after each
   * error, too; `isSeen`: Python has that of the work.
   */
  giveUp(work: Work, isSeen: boolean): void {
    const end = this.#pending.get(work);
    this.#pending.delete(work);
    end?.(isSeen);
  }

  /** Keeps interrupts from Python until {@link letInterrupts}. */
  holdInterrupts(): void {
    this.host.holdInterrupts();
  }

  letInterrupts(): void {
    this.host.letInterrupts();
  }

  /**
   * Keeps interrupts from Python's next step, starting to wait. The first microtask after that
   * calls then() of what Python waits for, which is Python, too; the second lets interrupts in.
   */
  holdInterruptsToWait(): void {
    this.host.holdInterrupts();
    queueMicrotask(() => queueMicrotask(() => this.host.letInterrupts()));
  }

  #take(number: Wait): Promise<Outcome> {
    const made = number === this.#last ? this.#promise : undefined;
    if (made) this.#promise = undefined;
    const promise =
      made ?? Promise.reject(new TypeError(`Python waits for ${number}, which is not a promise`));
    promise.catch(() => {}); // if Python cannot wait, this is its only handler
    return promise;
  }
}
