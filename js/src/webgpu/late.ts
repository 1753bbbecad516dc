/** All asynchronous code, loaded at the first use of any of it. */
// Bundlers merge modules with the same importers: these join the chunk that is loaded anyway.
import "./transfer.js";

export { batchError, explain, runError } from "./compiling.js";
export {
  fitting,
  fittingIfAlive,
  requestAll,
  requestDevice,
  requestOnce,
} from "./request.js";
export { timed } from "./timing.js";
