import type { HTMLCanvasElement, OffscreenCanvas } from "../core/globals.js";
import type { Tensor } from "../core/tensor.js";
import { calledAt } from "../webgpu/errors/errors.js";
import { type FrameSource, frames } from "../webgpu/images/frames.js";
import {
  type FromImageOptions,
  fromImage,
  type ImageSource,
  toCanvas,
} from "../webgpu/images/images.js";
import type { Address, DeviceId, Site } from "./numbers.js";
import { deviceOf, type Python, resultOf } from "./python.js";

/** Python's calls about images. */
export class Images {
  constructor(private readonly python: Python) {}

  /** An image of the page as a tensor on a device; release() releases it, then or later. */
  fromImage(site: Site, source: ImageSource, deviceId: DeviceId, options: FromImageOptions) {
    return resultOf(() => calledAt(site, () => fromImage(deviceOf(deviceId), source, options)));
  }

  /** The frames of `webgpu.frames`, which release each tensor; release() stops them. */
  frames(source: FrameSource, deviceId: DeviceId, options: FromImageOptions) {
    const made = frames(source, { ...options, device: deviceOf(deviceId) });
    return {
      next: async (): Promise<Tensor | undefined> => (await made.next()).value,
      stats: () => made.stats,
      release: () => made.stop(),
    };
  }

  /** Draws a tensor on a canvas. */
  toCanvas(
    site: Site,
    address: Address,
    canvas: HTMLCanvasElement | OffscreenCanvas,
  ): Promise<void> {
    return this.python.during(address, (tensor) => calledAt(site, () => toCanvas(tensor, canvas)));
  }
}
