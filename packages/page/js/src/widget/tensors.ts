/** The tensors that Python shows to the script of a widget, by name. */
import type { Tensor } from "dlpack-web/core";
import { tagOf, textOf } from "dlpack-web/internal";
import { quietly } from "../common.js";

/**
 * What {@link Tensors.watch} calls. Without a tensor, Python shows none under this name, or its
 * device is lost.
 */
export type TensorListener = (tensor: Tensor | undefined) => unknown;

/** What a script sees of `page.tensors` in Python. */
export interface Tensors {
  /**
   * The tensor that Python shows under a name now. It is on the page's device,
   * `tensor.device.gpu`, and `tensor.buffer` is its GPUBuffer, without a copy.
   *
   * It belongs to the page, which releases it when Python shows another tensor under the name, or
   * none, and when the device is lost: do not release it, and ask for it again each time. For a
   * longer hold make a view, such as `tensor.slice()`, and release that.
   *
   * @param name - the key in Python
   * @returns undefined if there is none
   */
  get(name: string): Tensor | undefined;

  /**
   * Calls a function with the tensor of a name: now, whenever Python shows another one or none, and
   * with the same tensor after an operation of Python has written to it. After a function was
   * called with another tensor or `undefined`, the one before is released.
   *
   * Its errors, also those of a promise that it returns, are logged, and Python warns of them.
   *
   * @param name - the key in Python
   * @param listener - the function
   * @returns a function that ends this
   */
  watch(name: string, listener: TensorListener): () => void;
}

interface Watching {
  readonly name: string;
  readonly listener: TensorListener;
}

/** The page's side of them, for all sessions of a widget. */
export class NamedTensors {
  readonly #found = new Map<string, Tensor>();
  readonly #watching = new Set<Watching>();
  readonly #report: (error: Error) => void;

  /** report: gets to know the errors of listeners, which are logged. */
  constructor(report: (error: Error) => void = () => {}) {
    this.#report = report;
  }

  /** What scripts get. */
  readonly shown: Tensors = Object.freeze({
    get: (name: string) => this.#found.get(name),
    watch: (name: string, listener: TensorListener) => this.#watch(name, listener),
  });

  /** Shows a tensor, which belongs to this from now on, or none. */
  set(name: string, tensor: Tensor | undefined): void {
    const before = this.#found.get(name);
    if (tensor) this.#found.set(name, tensor);
    else this.#found.delete(name);
    this.changed(name);
    before?.release();
  }

  /** Its elements are others. */
  changed(name: string): void {
    for (const each of [...this.#watching]) {
      if (each.name === name && this.#watching.has(each)) this.#call(each);
    }
  }

  #watch(name: string, listener: TensorListener): () => void {
    if (typeof listener !== "function") {
      throw new TypeError(`watch() takes a name and a function, not ${tagOf(listener)}`);
    }
    const watching = { name, listener };
    this.#watching.add(watching);
    this.#call(watching);
    return () => void this.#watching.delete(watching);
  }

  #call({ name, listener }: Watching): void {
    const failed = (error: unknown) => {
      console.error(error);
      const told = new Error(`the page's script failed with tensor "${name}": ${textOf(error)}`);
      quietly(() => this.#report(told)); // the channel may fail, and others listen, too
    };
    try {
      Promise.resolve(listener(this.#found.get(name))).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}
