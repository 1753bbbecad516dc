import type { Python } from "dlpack-web/internal";
import { findOrt } from "./finding.js";
import { Library } from "./sessions.js";

/** Python's calls about sessions of onnxruntime-web. */
export class Sessions {
  constructor(private readonly python: Python) {}

  /** A copy of the library, with the arguments of `findOrt`. */
  async library(given: unknown, threads: number, onCPU: boolean): Promise<Library> {
    return new Library(await findOrt(given, threads, onCPU), this.python);
  }
}
