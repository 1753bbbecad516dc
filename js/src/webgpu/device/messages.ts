/** Generated from tools/tables by `make generate`: do not edit. */

export const anyOption = (options: unknown): string =>
  `there are limits by WebGPU's names, such as maxBufferSize, and ${options}`;
export const useOption = (name: unknown): string => `use ${name}`;
export const noOption = (name: unknown, way: unknown): string =>
  `a request of a device has no option ${name}: ${way}`;
export const noLimit = (name: unknown, given: unknown): string =>
  `${name}: ${given} is not a number for a limit of WebGPU`;
export const negativeLimit = (name: unknown, given: unknown): string =>
  `${name}: ${given} is not a number from 0 on`;
export const aboveAdapter = (name: unknown, given: unknown, limit: unknown): string =>
  `${name}: ${given} is more than this adapter has (${limit}); Infinity asks for that`;
