import type { Python } from "./python.js";

/** A package's JavaScript: of the names of `dlpack-web/internal` makes the class of what Python calls. */
export type Script = (internal: typeof import("../internal.js")) => new (python: Python) => object;

/** What Python calls of packages beside dlpack-web, by the names of their Python modules. */
export class Packages {
  readonly #calls = new Map<string, Promise<object>>();

  constructor(private readonly python: Python) {}

  /** Whether the page, or Python, has given the script of a package. */
  has(name: string): boolean {
    return this.#calls.has(name);
  }

  /** The calls of a package; of its scripts the first one counts. */
  async add(name: string, script: Script): Promise<object> {
    const made = async () => {
      const { internal } = await import("./names.js");
      return new (script(internal))(this.python);
    };
    const calls = this.#calls.get(name) ?? made();
    this.#calls.set(name, calls);
    // After a failure, e.g. of the network, the next call tries again.
    calls.catch(() => this.#calls.delete(name));
    return calls;
  }
}
