/**
 * What explains errors of shaders and runs. Most pages see none: each entry says how the code is
 * loaded, or that it is there.
 */
import type * as Compiling from "./compiling.js";

type Explanations = Pick<typeof Compiling, "batchError" | "explain" | "runError">;

let load: () => Promise<Explanations>;

/** Sets how explanations are loaded; without it errors have WebGPU's words alone. */
export function loadExplanations(by: typeof load): void {
  load = by;
}

export const explanations = (): Promise<Explanations> => load();
