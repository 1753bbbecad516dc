/** All that is asynchronous, loaded at the first use of any of it. */
// Bundlers make one file of what has the same importers: so one of all that is there already.
import "./transfer.js";

export { explain, runError } from "./compiling.js";
export {
  fitting,
  fittingIfAlive,
  requestAll,
  requestDevice,
  requestOnce,
} from "./request.js";
export { timed } from "./timing.js";
