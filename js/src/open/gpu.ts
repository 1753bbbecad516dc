/** Uploads elements of a file to a GPUBuffer; loaded on demand. */
import { bytesOf, type DType } from "../core/dtype.js";
import type { GPUDevice } from "../core/globals.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { tensorOfSlot } from "../webgpu/buffers.js";
import { checkAlive, count, useDevice } from "../webgpu/device.js";
import { ask } from "../webgpu/faults.js";
import { allocate } from "../webgpu/making.js";
import { type LiveSlot, releaseSlot, slotOf } from "../webgpu/references.js";
import { writeWords } from "../webgpu/upload.js";
import type { Sink } from "./sink.js";
// What loads tensors onto a GPU also reads them.
import "../webgpu/transfer.js";

/** Smaller chunks are gathered: each write costs as much as copying megabytes. */
const LARGE = 4 << 20;
/**
 * Bytes that are written between checks of the GPU process's progress; at most twice that is
 * pending.
 */
const STRETCH = 16 << 20;

export class GpuSink implements Sink {
  readonly #slot: LiveSlot;
  readonly #shape: readonly number[];
  readonly #type: DType;
  readonly #nbytes: number;
  #handle: number;
  /** Where the next word goes. */
  #offset = 0;
  /** Made on demand. */
  #block: Uint8Array<ArrayBuffer> | null = null;
  #filled = 0;
  #written = 0;
  /** Resolves when the part before the last one has arrived. */
  #before: Promise<unknown> = Promise.resolve();

  private constructor(handle: number, shape: readonly number[], type: DType) {
    this.#handle = handle;
    this.#slot = slotOf(handle);
    this.#shape = shape;
    this.#type = type;
    this.#nbytes = bytesOf(type, sizeOf(shape));
  }

  /**
   * A sink that makes its buffer first: running out of GPU memory is reported before anything is
   * read.
   */
  static async make(gpu: GPUDevice, shape: readonly number[], type: DType): Promise<GpuSink> {
    const record = useDevice(gpu);
    const size = sizeOf(shape);
    const handle = allocate(record, size * type.step);
    const sink = new GpuSink(handle, shape, type);
    try {
      await ask(record, [sink.#slot.facts.making]);
      return sink;
    } catch (error) {
      sink.drop();
      throw error;
    }
  }

  async put(chunk: Uint8Array): Promise<void> {
    let at = 0;
    if (chunk.length >= LARGE) {
      at = this.#gather(chunk.subarray(0, -this.#filled & 3));
      this.#flush();
      const words = (chunk.length - at) & ~3;
      this.#write(chunk.subarray(at, at + words));
      at += words;
    }
    while (at < chunk.length) {
      at += this.#gather(chunk.subarray(at));
      if (this.#filled === LARGE) this.#flush();
    }
    if (this.#written >= STRETCH) await this.#keepUp();
  }

  /** Takes as much as there is room for; returns how much. */
  #gather(bytes: Uint8Array): number {
    this.#block ??= new Uint8Array(Math.min(LARGE, this.#nbytes + 3));
    const part = bytes.subarray(0, LARGE - this.#filled);
    this.#block.set(part, this.#filled);
    this.#filled += part.length;
    return part.length;
  }

  /** Writes the gathered bytes: whole words. */
  #flush(): void {
    if (this.#filled > 0) this.#write((this.#block as Uint8Array).subarray(0, this.#filled));
    this.#filled = 0;
  }

  // Only this code has the buffer, which exists: writing fails only if the device is lost.
  #write(words: Uint8Array): void {
    const { record, buffer } = this.#slot;
    const { buffer: memory, byteOffset, byteLength } = words;
    writeWords(record.device.gpu.queue, buffer, this.#offset, memory, byteOffset, byteLength);
    this.#offset += byteLength;
    this.#written += byteLength;
  }

  /** Waits until at most two parts are pending. */
  async #keepUp(): Promise<void> {
    const { record } = this.#slot;
    const { queue, lost } = record.device.gpu;
    this.#written = 0;
    queue.submit([]);
    const before = this.#before;
    this.#before = queue.onSubmittedWorkDone().catch(() => {});
    await Promise.race([before, lost]);
    checkAlive(record);
  }

  async finish(): Promise<Tensor> {
    const { record } = this.#slot;
    // The last word is padded with zeros.
    if (this.#filled % 4 !== 0) this.#gather(new Uint8Array(-this.#filled & 3));
    this.#flush();
    checkAlive(record);
    count(record, "up", this.#nbytes);
    const tensor = new Tensor(tensorOfSlot(this.#handle, 0, this.#type, this.#shape, false));
    this.#handle = 0;
    return tensor;
  }

  drop(): void {
    if (this.#handle !== 0) releaseSlot(this.#handle);
    this.#handle = 0;
  }
}
