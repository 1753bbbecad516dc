/** Generated from tools/tables by `make generate`: do not edit. */

type Value = string | number;
export const notRegistered = (id: Value, devices: Value): string =>
  `webgpu:${id} is not registered; there are ${devices}`;
export const anyOption = (options: Value): string =>
  `there are limits by WebGPU's names, such as maxBufferSize, and ${options}`;
export const useOption = (name: Value): string => `use ${name}`;
export const noOption = (name: Value, way: Value): string =>
  `a request of a device has no option ${name}: ${way}`;
export const noLimit = (name: Value, given: Value): string =>
  `${name}: ${given} is not a number for a limit of WebGPU`;
export const negativeLimit = (name: Value, given: Value): string =>
  `${name}: ${given} is not a number from 0 on`;
export const aboveAdapter = (name: Value, given: Value, limit: Value): string =>
  `${name}: ${given} is more than this adapter has (${limit}); Infinity asks for that`;
