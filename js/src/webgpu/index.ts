export { type RequestDeviceOptions, requestDevice } from "./device.js";
export { Kernel, type RunOptions } from "./kernel.js";
