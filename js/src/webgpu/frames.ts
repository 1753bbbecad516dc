/**
 * A moving source as tensors: one for each picture that it shows. Frames reuse all resources, and
 * no frame is taken before the GPU is done with the one before the last: slow consumers get fewer
 * frames, and never old ones.
 */
import { UnsupportedError } from "../core/errors.js";
import type { AbortSignal, GPUDevice } from "../core/globals.js";
import type { Tensor } from "../core/tensor.js";
import { checkAlive, useDevice } from "./device.js";
import { checkImageOptions, type FromImageOptions, type Scratch, takeImage } from "./images.js";
import { type FrameSource, type Source, sourceOf } from "./sources.js";
import type { DeviceRecord } from "./state.js";

export type { FrameSource };

/** Options of `webgpu.frames`. */
export interface FramesOptions extends FromImageOptions {
  device: GPUDevice;
  /** Aborts: pending frames reject with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Statistics of `webgpu.frames`. */
export interface FrameStats {
  /** Number of frames returned. */
  frames: number;
  /** Pictures that a video showed but that were skipped, since the one before took too long. */
  skipped: number;
  /** Frames per second, over the last second. */
  fps: number;
  /** Milliseconds from taking a frame until the GPU had done all that was submitted with it. */
  ms: number;
  /** The most frames pending on the GPU when another one was taken; 1 at most. */
  late: number;
  /** Bytes of a frame. */
  bytes: number;
  /** Bytes of tensors that this device uploaded and read back during the last frame. */
  moved: number;
}

/** The loop ends with an error when this many pictures in a row were lost: half a second of them. */
const LOST_PICTURES = 30;

/** The frames of a source, in order; see `webgpu.frames`. */
export interface Frames extends AsyncIterableIterator<Tensor> {
  /** Ends it without an error, also while a frame is pending. */
  stop(): void;
  readonly stats: FrameStats;
  return(): Promise<IteratorResult<Tensor>>;
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
 * @throws TypeError for other sources, RangeError for channels, UnsupportedError for dtypes.
 * Requesting a frame throws the errors of `fromImage`, UnsupportedError for a video that cannot
 * be played, DeviceLostError, and the reason of an aborted signal, and ends it
 */
export function frames(source: FrameSource, options: FramesOptions): Frames {
  const { device, signal, ...image } = Object(options) as FramesOptions;
  const record = useDevice(device);
  const names = { device: 1, signal: 1, dtype: 1, channels: 1 } as const;
  checkImageOptions<FramesOptions>(options, "frames()", names);
  return new FramesOf(record, sourceOf(source), image, signal);
}

class FramesOf implements Frames {
  readonly #record: DeviceRecord;
  readonly #source: Source;
  readonly #image: FromImageOptions;
  readonly #scratch: Scratch = { texture: null };
  /** Wakes a waiting call of next(). */
  #wake: (() => void) | null = null;
  #over = false;
  /** Why it is over, until that was thrown. */
  #error: { error: unknown } | null = null;
  #unlisten = () => {};
  /** The previous call of next(): calls run in order. */
  #before: Promise<unknown> = Promise.resolve();
  #tensor: Tensor | null = null;
  /** Number of pictures lost since the last frame. */
  #lost = 0;
  /** Number of frames pending on the GPU. */
  #pending = 0;
  /** Times of the frames of the last second. */
  readonly #times: number[] = [];
  #movedBefore = 0;
  readonly #stats = { frames: 0, ms: 0, late: 0, bytes: 0, moved: 0 };

  constructor(
    record: DeviceRecord,
    source: Source,
    image: FromImageOptions,
    signal: AbortSignal | undefined,
  ) {
    this.#record = record;
    this.#source = source;
    this.#image = image;
    const abort = () => this.#end({ error: signal?.reason });
    const target = signal as EventTarget | undefined;
    target?.addEventListener("abort", abort);
    // The device's promise keeps what waits for it, as long as the device lives: not all of this.
    const self: { frames: FramesOf | null } = { frames: this };
    this.#unlisten = () => {
      target?.removeEventListener("abort", abort);
      self.frames = null;
    };
    record.device.gpu.lost.then(() => self.frames?.stir());
    if (signal?.aborted) abort();
    else {
      source.start(
        () => this.stir(),
        (error) => this.#end(error === undefined ? null : { error }),
      );
    }
  }

  /** Wakes a waiting call of next(). */
  stir(): void {
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Tensor>> {
    const next = this.#before.then(() => this.#next());
    this.#before = next.catch(() => {});
    return next;
  }

  async return(): Promise<IteratorResult<Tensor>> {
    this.stop();
    return { done: true, value: undefined };
  }

  stop(): void {
    this.#end(null);
  }

  get stats(): FrameStats {
    const times = this.#times;
    const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
    const fps = span > 0 ? (1000 * (times.length - 1)) / span : 0;
    return { ...this.#stats, fps, skipped: this.#source.skipped };
  }

  async #next(): Promise<IteratorResult<Tensor>> {
    try {
      this.#letGo();
      await this.#until(() => this.#pending <= 1);
      while (!this.#over) {
        await this.#until(() => this.#source.fresh);
        if (this.#over) break;
        checkAlive(this.#record);
        const tensor = await this.#take().catch((error) => this.#ifLost(error));
        if (tensor !== null) return { done: false, value: tensor };
      }
    } catch (error) {
      this.#end({ error });
    }
    const error = this.#error;
    this.#error = null;
    if (error !== null) throw error.error;
    return { done: true, value: undefined };
  }

  /** Waits until the condition holds, or it is over; code that may change it wakes this. */
  async #until(holds: () => boolean): Promise<void> {
    while (!(this.#over || holds())) {
      checkAlive(this.#record);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /**
   * The source's picture; null if it was stopped meanwhile. It does not wait for it alone: Firefox
   * never resolves the bitmap of a video that no longer shows anything.
   */
  async #picture(): Promise<Tensor | null> {
    let found: { tensor: Tensor } | { error: unknown } | undefined;
    const { image } = this.#source;
    takeImage(this.#record, image, this.#image, this.#scratch, "frames").then(
      (tensor) => {
        found = { tensor };
        if (this.#over) {
          tensor.release();
          this.#dropScratch();
        } else this.stir();
      },
      (error) => {
        found = { error };
        this.stir();
      },
    );
    await this.#until(() => found !== undefined);
    const made = found as { tensor: Tensor } | { error: unknown } | undefined;
    if (made && "tensor" in made && !this.#over) return made.tensor;
    if (made && "tensor" in made)
      made.tensor.release(); // stopped meanwhile
    else if (made && !this.#over) throw made.error;
    return null;
  }

  /** The picture that is shown now; null if it was stopped meanwhile. */
  async #take(): Promise<Tensor | null> {
    const source = this.#source;
    const taken = performance.now();
    source.fresh = false;
    source.watch();
    const tensor = await this.#picture();
    if (tensor === null) return null;
    this.#tensor = tensor;
    this.#lost = 0;
    const stats = this.#stats;
    stats.frames++;
    stats.bytes = tensor.nbytes;
    stats.late = Math.max(stats.late, this.#pending);
    const { up, down } = this.#record.moved;
    stats.moved = stats.frames === 1 ? 0 : up + down - this.#movedBefore;
    this.#movedBefore = up + down;
    this.#times.push(taken);
    while (taken - (this.#times[0] as number) > 1000) this.#times.shift();
    return tensor;
  }

  /**
   * null if the error says that a video's picture is gone, as on a busy machine when the next one is
   * not decoded yet, or when the track has just ended: then the next picture is awaited.
   */
  #ifLost(error: unknown): null {
    const { cause } = error as Error;
    const gone = error instanceof UnsupportedError && (cause as Error)?.name === "OperationError";
    if (!(gone && this.#source.mayLose && ++this.#lost < LOST_PICTURES)) throw error;
    return null;
  }

  /** Releases the previous frame; work submitted since it was taken is its work. */
  #letGo(): void {
    if (this.#tensor === null) return;
    this.#tensor.release();
    this.#tensor = null;
    const taken = this.#times.at(-1) as number;
    this.#pending++;
    const done = () => {
      this.#pending--;
      this.#stats.ms = performance.now() - taken;
      this.stir();
    };
    this.#record.device.gpu.queue.onSubmittedWorkDone().then(done, done);
  }

  #end(error: { error: unknown } | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = error;
    this.#source.stop();
    this.#unlisten();
    this.#tensor?.release();
    this.#tensor = null;
    this.#dropScratch();
    this.#wake?.();
  }

  #dropScratch(): void {
    this.#scratch.texture?.destroy();
    this.#scratch.texture = null;
  }
}
