import type { Python } from "./python.js";

// What stands on the bridge, by Python's names: to delete one, delete its line and its folder.
export { Adapters as adapters } from "../adapters/calls.js";
export { Files as files } from "../open/calls.js";

/** What Python calls of each. */
export type Entry = new (python: Python) => object;
