import type { Tensor } from "../core/tensor.js";
import type { FromImageOptions, ImageSource } from "./images.js";
import type { RequestDeviceOptions } from "./request.js";

export { type DeviceStats, stats } from "./device.js";
export { type Argument, Kernel, type RunOptions } from "./kernel.js";
export type { FromImageOptions, ImageSource, RequestDeviceOptions };

/**
 * Asks for a WebGPU device with limits by name and registers it. The device is the caller's: this
 * library never destroys one.
 *
 * @throws DeviceError without WebGPU or an adapter, UnsupportedError if the adapter cannot do what
 * is asked for, TypeError for an unknown limit
 */
export async function requestDevice(options: RequestDeviceOptions = {}): Promise<GPUDevice> {
  // What is needed once, and asynchronous anyway, is loaded when it is needed.
  return (await import("./late.js")).requestDevice(options);
}

/**
 * The time that the GPU takes for one pass, in milliseconds.
 *
 * ```js
 * const ms = await webgpu.timed(device, (timestampWrites) => {
 *   kernel.run([x, y], { workgroups: 16, timestampWrites });
 * });
 * ```
 *
 * @param run - runs one kernel with the `timestampWrites` that it is given
 * @throws UnsupportedError if the device lacks "timestamp-query"
 */
export async function timed(
  device: GPUDevice,
  run: (timestampWrites: GPUComputePassTimestampWrites) => void,
): Promise<number> {
  return (await import("./late.js")).timed(device, run);
}

/**
 * An image of the page as a tensor of shape [height, width, channels], without a trip through the
 * CPU. The pixels are sRGB and not premultiplied by alpha, the first row on top. Opaque canvases
 * and bitmaps, `ImageData`, and an `ImageBitmap` made with `premultiplyAlpha: "none"` (but in Firefox) keep every
 * byte; translucent canvases hold premultiplied colours, which have fewer values.
 *
 * @param source - stays the caller's, who keeps it open until this resolves
 * @returns a tensor on `device`, which the caller releases
 * @throws UnsupportedError for what has no pixels (closed, not loaded, cross-origin), is larger
 * than `maxTextureDimension2D`, or is a `GPUTexture` that shaders cannot read; DeviceLostError;
 * TypeError for other sources; RangeError for other channels. What the GPU finds wrong later, such
 * as another device's texture, is thrown by the next read on this device
 */
export async function fromImage(
  device: GPUDevice,
  source: ImageSource,
  options?: FromImageOptions,
): Promise<Tensor> {
  return (await import("./late.js")).fromImage(device, source, options);
}

/**
 * Draws a tensor on a canvas, without a trip through the CPU. The canvas takes the tensor's size,
 * and its "webgpu" context is configured for the tensor's device.
 *
 * @param tensor - on a GPU, shape [height, width, channels], uint8 (0 to 255) or float32 (0 to 1,
 * clipped); channels: 1 grey, 3 red, green, blue, or 4 with alpha, not premultiplied. It is held
 * until this resolves, and may be released then
 * @throws UnsupportedError for other tensors, and for a canvas that has a context of another kind
 * or was transferred; ReleasedError, DeviceLostError; TypeError for what is no canvas
 */
export async function toCanvas(
  tensor: Tensor,
  canvas: HTMLCanvasElement | OffscreenCanvas,
): Promise<void> {
  return (await import("./late.js")).toCanvas(tensor, canvas);
}

/**
 * A tensor as a texture of its device: rgba8unorm, for binding, rendering and copying. It takes
 * the same tensors as {@link toCanvas}, with the same errors.
 *
 * @returns a new texture, which the caller destroys
 */
export async function toTexture(tensor: Tensor): Promise<GPUTexture> {
  return (await import("./late.js")).toTexture(tensor);
}
