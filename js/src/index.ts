// Whoever imports a Tensor alone must get the device layer too: it registers itself.
import "./webgpu/transfer.js";

export type { Bridge, TensorOptions } from "./bridge.js";
export { type ConnectOptions, connect } from "./connect.js";
export type { DataOf, DTypeArrays, DTypeName, TypedArray } from "./dtype.js";
export type { Element } from "./element.js";
export {
  CopyError,
  DeviceError,
  DeviceLostError,
  DLPackError,
  type ErrorFields,
  ReleasedError,
  UnsupportedError,
} from "./errors.js";
export type { Pyodide, PyProxy } from "./pyodide.js";
export { type Device, liveTensors } from "./shared.js";
export type { FromGPUBufferOptions, Target, ToOptions } from "./storage.js";
export { Tensor } from "./tensor.js";
export * as webgpu from "./webgpu/index.js";
