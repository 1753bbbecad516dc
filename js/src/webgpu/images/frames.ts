/** A moving source as tensors: one for each picture that it shows. The loop is loaded on demand. */
import type { AbortSignal, GPUDevice } from "../../core/globals.js";
import type { Tensor } from "../../core/tensor.js";
import { useDevice } from "../device/device.js";
import type { FrameLoop } from "./frameloop.js";
import { checkImageOptions, type FromImageOptions } from "./images.js";
import type { FrameSource, FrameStats, Frames } from "./sources.js";

export type { FrameSource, FrameStats, Frames };

/** Options of `webgpu.frames`. */
export interface FramesOptions extends FromImageOptions {
  device: GPUDevice;
  /** Aborts: pending frames reject with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * A tensor for each picture that a video, a camera's track or a canvas shows, taken on the GPU at the
 * display's rate. The CPU sees no pixel.
 *
 * ```js
 * for await (const image of webgpu.frames(video, { device, dtype: "float32" })) {
 *   edges.run([image, out]);
 *   await webgpu.toCanvas(out, canvas);
 * }
 * ```
 *
 * Each tensor has shape [height, width, channels], as of `fromImage`, and is released when you
 * request the next. A video gives each new picture once; a canvas gives one per
 * `requestAnimationFrame`, drawn on or not. Pictures that come while the loop or the GPU is busy
 * are skipped, as are those that a video no longer has when they are taken (an error after 30 in a
 * row). A hidden tab gets no frames until it is visible again. The loop ends with the video or track,
 * and by `break` and `stop()`.
 *
 * @param source - a video, a camera's track or stream, a canvas, or another source of `fromImage`
 * @param options - `device`, `dtype`, `channels`, and a `signal` that aborts it
 * @throws RangeError for channels, UnsupportedError for dtypes. Requesting a frame throws TypeError for
 * other sources, the errors of `fromImage`, UnsupportedError for a stream without video and a video that
 * cannot be played, DeviceLostError, and the reason of an aborted signal, and ends it
 */
export function frames(source: FrameSource, options: FramesOptions): Frames {
  const { device: gpu, signal, ...image } = Object(options) as FramesOptions;
  const device = useDevice(gpu);
  const names = { device: 1, signal: 1, dtype: 1, channels: 1 } as const;
  checkImageOptions<FramesOptions>(options, "frames()", names);
  const { ended = false } = Object(source) as { ended?: boolean };
  return new LazyFrames(device, source, ended, image, signal);
}

/** The frames of a loop that is loaded on demand. */
class LazyFrames implements Frames {
  readonly #loading: Promise<FrameLoop>;
  #loop: FrameLoop | null = null;

  constructor(...given: ConstructorParameters<typeof FrameLoop>) {
    this.#loading = import("../lazy.js").then(({ FrameLoop }) => {
      this.#loop = new FrameLoop(...given);
      return this.#loop;
    });
    this.#loading.catch(() => {}); // next() throws it
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Tensor>> {
    return (await this.#loading).next();
  }

  async return(): Promise<IteratorResult<Tensor>> {
    this.stop();
    return { done: true, value: undefined };
  }

  stop(): void {
    if (this.#loop) this.#loop.stop();
    else this.#loading.then((loop) => loop.stop()).catch(() => {});
  }

  get stats(): FrameStats {
    const none = { frames: 0, skipped: 0, fps: 0, ms: 0, late: 0, bytes: 0, moved: 0 };
    return this.#loop?.stats ?? none;
  }
}
