/**
 * The loop behind `webgpu.frames`. Frames reuse all resources, and no frame is taken before the GPU is
 * done with the one before the last: slow consumers get fewer frames, and never old ones.
 */
import { UnsupportedError } from "../../core/errors.js";
import type { AbortSignal } from "../../core/globals.js";
import type { Tensor } from "../../core/tensor.js";
import { checkAlive, type DeviceRecord } from "../device/device.js";
import { type FromImageOptions, type Scratch, takeImage } from "./images.js";
import { type FrameSource, type FrameStats, type Source, sourceOf } from "./sources.js";

/** The loop ends with an error when this many pictures in a row were lost: half a second of them. */
const LOST_PICTURES = 30;

/** The frames of a source. */
export class FrameLoop {
  readonly #source: Source;
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
    private readonly device: DeviceRecord,
    source: FrameSource,
    wasOver: boolean,
    private readonly image: FromImageOptions,
    signal: AbortSignal | undefined,
  ) {
    this.#source = sourceOf(source, wasOver, {
      wake: () => this.stir(),
      end: (error) => this.#end(error === undefined ? null : { error }),
    });
    const abort = () => this.#end({ error: signal?.reason });
    signal?.addEventListener("abort", abort);
    // The device's promise keeps what waits for it, as long as the device lives: not all of this.
    const self: { frames: FrameLoop | null } = { frames: this };
    this.#unlisten = () => {
      signal?.removeEventListener("abort", abort);
      self.frames = null;
    };
    device.gpu.lost.then(() => self.frames?.stir());
    if (signal?.aborted) abort();
    else this.#source.start();
  }

  /** Wakes a waiting call of next(). */
  stir(): void {
    this.#wake?.();
  }

  next(): Promise<IteratorResult<Tensor>> {
    const next = this.#before.then(() => this.#next());
    this.#before = next.catch(() => {});
    return next;
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
      this.#releaseFrame();
      await this.#until(() => this.#pending <= 1);
      while (!this.#over) {
        await this.#until(() => this.#source.fresh);
        if (this.#over) break;
        checkAlive(this.device);
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
      checkAlive(this.device);
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
    const { image } = this.#source;
    const taking = takeImage(this.device, image, this.image, this.#scratch, "frames");
    let isTaken = false;
    const taken = () => {
      isTaken = true;
      this.stir();
    };
    taking.then(taken, taken);
    await this.#until(() => isTaken);
    if (!this.#over) return taking;
    const drop = (tensor: Tensor) => {
      tensor.release();
      this.#dropScratch();
    };
    taking.then(drop, () => {});
    return null;
  }

  /** The picture that is shown now; null if it was stopped meanwhile. */
  async #take(): Promise<Tensor | null> {
    const source = this.#source;
    const start = performance.now();
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
    const { up, down } = this.device.moved;
    stats.moved = stats.frames === 1 ? 0 : up + down - this.#movedBefore;
    this.#movedBefore = up + down;
    this.#times.push(start);
    while (start - (this.#times[0] as number) > 1000) this.#times.shift();
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
  #releaseFrame(): void {
    if (this.#tensor === null) return;
    this.#tensor.release();
    this.#tensor = null;
    const start = this.#times.at(-1) as number;
    this.#pending++;
    const done = () => {
      this.#pending--;
      this.#stats.ms = performance.now() - start;
      this.stir();
    };
    this.device.gpu.queue.onSubmittedWorkDone().then(done, done);
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
