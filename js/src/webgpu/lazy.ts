/** Asynchronous code, loaded at the first use of any of it. */

export {
  fitting,
  fittingIfAlive,
  requestAll,
  requestDevice,
  requestOnce,
} from "./device/request.js";
export { batchError, explain, runError } from "./errors/compiling.js";
export { FrameLoop } from "./images/frameloop.js";
export { timed } from "./kernels/timing.js";
