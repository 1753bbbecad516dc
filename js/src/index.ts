// Whoever imports a Tensor alone must get the device layer too: it registers itself.
import "./webgpu/transfer.js";

export type { DataOf, DTypeArrays, DTypeName, TypedArray } from "./core/dtype.js";
export type { Element } from "./core/elements.js";
export {
  CopyError,
  DeviceError,
  DeviceLostError,
  DLPackError,
  type ErrorFields,
  ReleasedError,
  UnsupportedError,
} from "./core/errors.js";
export { type Device, liveTensors } from "./core/realm.js";
export type { FromGPUBufferOptions, Target, ToOptions } from "./core/storage.js";
export { Tensor } from "./core/tensor.js";
export type { Bridge, TensorOptions } from "./pyodide/bridge.js";
export { type ConnectOptions, connect } from "./pyodide/connect.js";
export type { Pyodide, PyProxy } from "./pyodide/host.js";
export * as webgpu from "./webgpu/index.js";
