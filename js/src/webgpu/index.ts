import type { GPUDevice, TimestampWrites } from "../core/globals.js";
import type { RequestDeviceOptions } from "./device/request.js";

export { type DeviceStats, stats } from "./buffers/stats.js";
export { type CopiesOf, readAll } from "./buffers/transfer.js";
export { type FaultListener, listenForFaults } from "./device/device.js";
export { pageDevice } from "./device/page.js";
export {
  ElementwiseKernel,
  type ElementwiseOptions,
  type ElementwiseRunOptions,
} from "./formulas/elementwise.js";
export {
  ReductionKernel,
  type ReductionOptions,
  type ReductionRunOptions,
} from "./formulas/reduction.js";
export {
  type FrameSource,
  type FrameStats,
  type Frames,
  type FramesOptions,
  frames,
} from "./images/frames.js";
export {
  type FromImageOptions,
  fromImage,
  type ImageSource,
  toCanvas,
  toTexture,
} from "./images/images.js";
export { type Batch, type BatchChanges, batch } from "./kernels/batch.js";
export type { Argument, RunOptions } from "./kernels/checks.js";
export { Kernel, type KernelOptions } from "./kernels/kernels.js";
export type { RequestDeviceOptions, TimestampWrites };

/**
 * Asks for a WebGPU device with limits by name and registers it. The device is the caller's: this
 * library never destroys one.
 *
 * @param options - limits by WebGPU's names, in bytes or counts, `features`, `powerPreference`, `label`
 * @throws DeviceError without WebGPU or an adapter, UnsupportedError if the adapter cannot meet the
 * options, TypeError for an unknown limit
 */
export async function requestDevice(options: RequestDeviceOptions = {}): Promise<GPUDevice> {
  // Code that is needed once, and is asynchronous anyway, is loaded on demand.
  return (await import("./lazy.js")).requestDevice(options);
}

/** Return types of functions that are not async. */
type Synchronous =
  // biome-ignore lint/suspicious/noConfusingVoidType: what functions without a result return
  void | string | number | bigint | boolean | symbol | null | (object & { then?: never });

/**
 * The time that the GPU takes for one pass, in milliseconds.
 *
 * ```js
 * const ms = await webgpu.timed(device, (timestampWrites) => {
 *   kernel.run([x, y], { workgroups: 16, timestampWrites });
 * });
 * ```
 *
 * @param device - the kernel's
 * @param run - runs one kernel with the `timestampWrites` that it is given, before it returns
 * @throws UnsupportedError if the device lacks "timestamp-query"; TypeError for an async
 * function, or one whose pass does not get the `timestampWrites`
 */
export async function timed(
  device: GPUDevice,
  run: (timestampWrites: TimestampWrites) => Synchronous,
): Promise<number> {
  return (await import("./lazy.js")).timed(device, run);
}
