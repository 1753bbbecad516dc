/** Generated from tools/tables by `make generate`: do not edit. */

export const notRegistered = (id: string | number, devices: string | number): string =>
  `webgpu:${id} is not registered; there are ${devices}`;
export const anyOption = (options: string | number): string =>
  `there are limits by WebGPU's names, such as maxBufferSize, and ${options}`;
export const useOption = (name: string | number): string => `use ${name}`;
export const noOption = (name: string | number, way: string | number): string =>
  `a request of a device has no option ${name}: ${way}`;
export const noLimit = (name: string | number, given: string | number): string =>
  `${name}: ${given} is not a number for a limit of WebGPU`;
export const negativeLimit = (name: string | number, given: string | number): string =>
  `${name}: ${given} is not a number from 0 on`;
export const aboveAdapter = (
  name: string | number,
  given: string | number,
  limit: string | number,
): string => `${name}: ${given} is more than this adapter has (${limit}); Infinity asks for that`;
