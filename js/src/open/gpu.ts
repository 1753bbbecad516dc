/** Uploads elements of a file to a GPUBuffer. */
import { bytesOf, type DType } from "../core/dtype.js";
import type { GPUDevice } from "../core/globals.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { tensorOn } from "../webgpu/buffers/buffers.js";
import { allocate } from "../webgpu/buffers/pool.js";
import { releaseSlot } from "../webgpu/buffers/table.js";
import { eachPart, PIECE, submitWords, writeWords } from "../webgpu/buffers/upload.js";
import { checkAlive, count, workingDevice } from "../webgpu/device/device.js";
import { ask, CREATION_ERRORS, operate } from "../webgpu/errors/errors.js";
import type { Sink } from "./sink.js";

/**
 * Bytes that are written between checks of the GPU process's progress; at most twice that is
 * pending.
 */
const STRETCH = 16 << 20;

/**
 * A sink that makes its buffer first: running out of GPU memory is reported before anything is
 * read.
 */
export async function gpuSink(
  gpu: GPUDevice,
  shape: readonly number[],
  type: DType,
): Promise<Sink> {
  const nbytes = bytesOf(type, sizeOf(shape));
  const device = workingDevice(gpu);
  const slot = allocate(device, sizeOf(shape) * type.step);
  const { handle, buffer } = slot;
  const { queue, lost } = device.gpu;
  let isOurs = true;
  let offset = 0; // where the next word goes
  let block: Uint8Array<ArrayBuffer> | null = null; // made on demand
  let filled = 0;
  let written = 0;
  let before: Promise<unknown> = Promise.resolve(); // the part before the last one has arrived

  /** Takes as much as there is room for; returns how much. */
  const gather = (bytes: Uint8Array): number => {
    block ??= new Uint8Array(Math.min(PIECE, nbytes + 3));
    const part = bytes.subarray(0, PIECE - filled);
    block.set(part, filled);
    filled += part.length;
    return part.length;
  };
  // As of tensors: what is small cannot fail, as only this code has the buffer, which exists.
  const filters = nbytes > PIECE ? CREATION_ERRORS : [];
  const write = ({ buffer: memory, byteOffset, byteLength }: Uint8Array) => {
    const writes = [{ buffer, start: offset, end: offset + byteLength }];
    operate(device, { what: "uploading a file", writes, fresh: true, filters }, () =>
      eachPart(byteLength, (at, size) => {
        writeWords(queue, buffer.gpu, offset + at, memory, byteOffset + at, size);
        submitWords(queue, size);
      }),
    );
    offset += byteLength;
    written += byteLength;
  };
  /** Writes the gathered bytes: whole words. */
  const flush = () => {
    if (filled > 0) write((block as Uint8Array).subarray(0, filled));
    filled = 0;
  };
  /** Waits until at most two parts are pending. */
  const keepUp = async () => {
    written = 0;
    queue.submit([]);
    const earlier = before;
    before = queue.onSubmittedWorkDone().catch(() => {});
    await Promise.race([earlier, lost]);
    checkAlive(device);
  };
  const drop = () => {
    if (isOurs) releaseSlot(handle);
    isOurs = false;
  };

  try {
    await ask(device, [buffer.creation]);
  } catch (error) {
    drop();
    throw error;
  }
  return {
    async put(chunk) {
      let at = 0;
      if (chunk.length >= PIECE) {
        at = gather(chunk.subarray(0, -filled & 3));
        flush();
        const words = (chunk.length - at) & ~3;
        write(chunk.subarray(at, at + words));
        at += words;
      }
      while (at < chunk.length) {
        at += gather(chunk.subarray(at));
        if (filled === PIECE) flush();
      }
      if (written >= STRETCH) await keepUp();
    },
    async finish() {
      // The last word is padded with zeros.
      if (filled % 4 !== 0) gather(new Uint8Array(-filled & 3));
      flush();
      checkAlive(device);
      count(device, "up", nbytes);
      isOurs = false;
      return new Tensor(tensorOn(slot, 0, type, shape));
    },
    drop,
  };
}
