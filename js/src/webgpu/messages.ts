/** Generated from tools/tables by `make generate`: do not edit. */

type Value = string | number;
export const lost = (device: Value, why: Value): string =>
  `${device} is lost (${why}), with its tensors: request a new device and upload again`;
export const noLargerBuffer = (): string => `no device of that has more: use several tensors`;
export const largerBuffer = (size: Value): string =>
  `use a device from requestDevice({ maxBufferSize: ${size} })`;
export const bufferTooLarge = (
  size: Value,
  device: Value,
  limit: Value,
  adapter: Value,
  way: Value,
): string =>
  `${size} bytes are needed, ${device} allows ${limit} (maxBufferSize) in one buffer${adapter}: ${way}`;
export const lacksUsage = (what: Value, flag: Value, view: Value, flags: Value): string =>
  `${what} needs a GPUBuffer with GPUBufferUsage.${flag}; that of ${view} has ${flags}: create it with ${flag} too`;
export const unalignedCopy = (
  what: Value,
  view: Value,
  start: Value,
  needed: Value,
  size: Value,
): string =>
  `${what} ${view} needs a byteOffset that is a multiple of 4 (it is ${start}) and ${needed} bytes in its GPUBuffer (it has ${size}): pad the buffer to a multiple of 16`;
export const unalignedRead = (view: Value, needed: Value, size: Value): string =>
  `reading ${view} needs whole words of 4 bytes, ${needed} bytes in its GPUBuffer (it has ${size}): pad the buffer to a multiple of 16`;
export const notRun = (): string =>
  `the batch that computes these elements has not run: call its run() first`;
export const misread = (
  what: Value,
  dtype: Value,
  value: Value,
  scalar: Value,
  way: Value,
): string => `${what} is ${dtype}, the shader's ${value} is of ${scalar}: ${way}`;
export const otherType = (dtype: Value): string =>
  `give a tensor of ${dtype}, or declare the shader otherwise (narrower types come as words of u32); check: false binds the bytes as they are`;
export const tooLargeToBind = (what: Value, size: Value, most: Value, limit: Value): string =>
  `${what} needs ${size} bytes, of which ${most} can be bound: use a device from requestDevice({ ${limit}: ${size} })`;
export const wrongWorkgroups = (limit: Value, given: Value): string =>
  `workgroups must be 1 to 3 integers from 1 to ${limit} (maxComputeWorkgroupsPerDimension), not ${given}: use a second axis, and num_workgroups`;
export const tooFewBytes = (what: Value, nbytes: Value, value: Value, stride: Value): string =>
  `${what} has ${nbytes} bytes, the shader's ${value} needs ${stride}`;
export const noWholeElements = (
  what: Value,
  row: Value,
  value: Value,
  element: Value,
  extent: Value,
  scalar: Value,
): string =>
  `${what} has ${row} bytes in its last axis, the elements of the shader's ${value} are ${element} bytes apart: pad that axis to ${extent}, or declare array<${scalar}>`;
export const noNumber = (what: Value): string =>
  `${what}: numbers are for var<uniform> of f32, i32 and u32`;
export const wrongNumber = (index: Value, value: Value, scalar: Value): string =>
  `binding ${index}: ${value} is not a valid ${scalar}`;
export const wrongCount = (label: Value, names: Value, count: Value, given: Value): string =>
  `kernel "${label}" takes an argument for each binding (${names}): ${count}, not ${given}`;
export const readOnly = (what: Value): string =>
  `${what} is read-only, the shader's binding is read_write`;
export const sharedWord = (what: Value): string =>
  `${what} shares its last word of 4 bytes with a neighbour, which the shader may write to: give it a buffer of its own (a copy), or a multiple of 4 bytes`;
export const overlap = (first: Value, second: Value): string =>
  `arguments ${first} and ${second} of the kernel overlap, and both are read_write: give one of them a copy`;
export const needsWorkgroups = (label: Value, why: Value): string =>
  `kernel "${label}": ${why}, so workgroups must be given`;
export const unknownBindings = (): string =>
  `its bindings are not buffers numbered from @binding(0) on`;
export const unknownWorkgroup = (): string => `its @workgroup_size is not of numbers`;
export const severalAxes = (size: Value): string => `its @workgroup_size(${size}) has several axes`;
export const writesNothing = (): string => `it writes to no binding`;
export const unknownElements = (index: Value, value: Value): string =>
  `the elements of its binding ${index}, ${value}, are unknown`;
export const ownWorkgroups = (label: Value): string =>
  `the workgroups of kernel "${label}" follow from its shapes: leave them out`;
export const noArgument = (label: Value, count: Value, index: Value): string =>
  `kernel "${label}" has ${count} arguments that can change, not number ${index}: record another batch`;
export const otherShape = (label: Value): string =>
  `kernel "${label}" was recorded for other shapes: record a batch for each`;
export const wrongChannels = (channels: Value): string =>
  `channels must be 4 (with alpha) or 3 (without), not ${channels}`;
