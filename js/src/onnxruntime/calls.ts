import type { Python } from "../internal.js";
import type { Library } from "./sessions.js";

/** Python's calls about sessions of onnxruntime-web. */
export class Sessions {
  constructor(private readonly python: Python) {}

  /** A copy of the library, with the arguments of `findOrt`. */
  async library(given: unknown, threads: number, onCPU: boolean): Promise<Library> {
    const { findOrt, Library } = await import("./library.js");
    return new Library(await findOrt(given, threads, onCPU), this.python);
  }
}
