export type { Device } from "./device.js";
export type {
  AnyTypedArray,
  CopyOf,
  DataOf,
  DTypeArrays,
  DTypeName,
  DTypeOf,
  TypedArray,
} from "./dtype.js";
export type { Element } from "./elements.js";
export {
  CopyError,
  DeviceError,
  DeviceLostError,
  DLPackError,
  type ErrorFields,
  KernelError,
  ReleasedError,
  UnsupportedError,
} from "./errors.js";
export type {
  FromGPUBufferOptions,
  FromMemoryOptions,
  FromTypedArrayOptions,
  TensorMessage,
  ToOptions,
} from "./options.js";
export { liveTensors } from "./realm.js";
export { type Target, Tensor } from "./tensor.js";
export type { Range } from "./views.js";
