/** Asynchronous code, loaded at the first use of any of it. */
export { batchError, explain, runError } from "./compiling.js";
export { FrameLoop } from "./frameloop.js";
export {
  fitting,
  fittingIfAlive,
  requestAll,
  requestDevice,
  requestOnce,
} from "./request.js";
export { timed } from "./timing.js";
