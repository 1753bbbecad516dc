/** Uploads of CPU elements to a GPU: `Tensor.to` and `Tensor.write`. */

import { convertElements } from "../../core/convert.js";
import { type DType, dtypeNamed } from "../../core/dtype.js";
import { gather } from "../../core/elements.js";
import type { GPUDevice } from "../../core/globals.js";
import type { Chunk, ManagedTensor } from "../../core/managed.js";
import type { ToOptions } from "../../core/options.js";
import { releasing } from "../../core/releasing.js";
import { checkAlive, type DeviceRecord, workingDevice } from "../device/device.js";
import { CREATION_ERRORS, operate } from "../errors/errors.js";
import { isOpen, isPrivate, markWritten, type Outcome, setOutcome } from "../errors/record.js";
import { tensorOn } from "./buffers.js";
import {
  checkCopySource,
  checkOwnWords,
  checkSameDType,
  checkUsage,
  refuseRecorded,
} from "./checks.js";
import { copyInto } from "./copies.js";
import { type AllocateOptions, allocate } from "./pool.js";
import { DEFAULT_USAGE, type LiveSlot, Usage } from "./slot.js";
import { filled, slotOf, slotOn } from "./table.js";

/** Implements `Tensor.to`. */
export function upload(tensor: ManagedTensor, gpu: GPUDevice, options: ToOptions): ManagedTensor {
  const device = workingDevice(gpu);
  // The name does not say whether elements are padded.
  const { dtype: name = tensor.dtype.name, usage = DEFAULT_USAGE } = options;
  const dtype = name === tensor.dtype.name ? tensor.dtype : dtypeNamed(name);
  if (tensor.isOnGPU) return again(tensor, device, dtype, options.usage ?? 0);
  return uploadNew(tensor, device, dtype, { usage: usage | Usage.COPY_DST });
}

/** A CPU tensor in a fresh buffer. */
export function uploadNew(
  tensor: ManagedTensor,
  device: DeviceRecord,
  dtype: DType,
  options: AllocateOptions,
): ManagedTensor {
  const { size, shape } = tensor;
  const used = size * dtype.step;
  const slot = allocate(device, used, options);
  filled(slot, () => fill(slot, 0, Math.ceil(used), tensor, dtype));
  return tensorOn(slot, 0, dtype, shape);
}

/** A second reference to a tensor that is on the device already. */
function again(
  tensor: ManagedTensor,
  device: DeviceRecord,
  dtype: DType,
  usage: number,
): ManagedTensor {
  const slot = slotOn(device, tensor);
  checkSameDType(tensor, dtype, tensor.dtype);
  for (const flag of Object.keys(Usage) as (keyof typeof Usage)[]) {
    if (usage & Usage[flag]) checkUsage(slot, tensor, flag, "to() with this usage");
  }
  return tensor.share();
}

/** Implements `Tensor.write` for a target on a GPU; shapes and conversion were checked. */
export function write(target: ManagedTensor, source: ManagedTensor): void {
  const slot = slotOf(target.handle);
  checkAlive(slot.device);
  checkUsage(slot, target, "COPY_DST", "writing");
  refuseRecorded(slot, target, true);
  checkOwnWords(slot, target);
  if (source.isOnGPU) {
    writeFromGPU(slot, target, source);
    return;
  }
  // Only integers can fail to fit: nothing is overwritten then.
  const { dtype } = target;
  const rehearses = dtype.packed !== source.dtype.packed && (dtype.packed & 255) < 2;
  if (rehearses) eachPiece(source, dtype, () => {});
  // A getter of the source's memory may release the target.
  releasing(target.share(), ({ start, nbytes }) => fill(slot, start, nbytes, source, dtype));
}

function writeFromGPU(to: LiveSlot, target: ManagedTensor, source: ManagedTensor): void {
  const from = slotOn(to.device, source);
  checkSameDType(source, source.dtype, target.dtype);
  checkCopySource(from, source, "copying");
  // A shader clears what was copied after the elements.
  if (source.nbytes % 4 !== 0) checkUsage(to, target, "STORAGE", "writing a part of a word");
  if (from.buffer !== to.buffer) {
    copyInto(source, from, to.buffer, target.start);
    return;
  }
  // WebGPU does not copy within a buffer: by way of another one.
  releasing(source.pack(), (packed) =>
    copyInto(packed, slotOf(packed.handle), to.buffer, target.start),
  );
}

/** The elements of a CPU tensor, as `dtype`, into a buffer. */
function fill(
  { device, buffer }: LiveSlot,
  start: number,
  nbytes: number,
  tensor: ManagedTensor,
  dtype: DType,
): void {
  const { queue } = device.gpu;
  const extent = { buffer, start, end: start + nbytes };
  const write = () => {
    let at = start;
    try {
      eachPiece(tensor, dtype, (memory, from, size) => {
        const words = size - (size % 4);
        if (words > 0) writeWords(queue, buffer.gpu, at, memory, from, words);
        at += words;
        submitWords(queue, words);
        if (words === size) return;
        const tail = new Uint8Array(4); // padded with zeros
        tail.set(new Uint8Array(memory, from + words, size - words));
        queue.writeBuffer(buffer.gpu, at, tail);
      });
    } catch (error) {
      if (at > start) setOutcome(extent, failed(error as Error)); // a part was overwritten
      throw error;
    }
  };
  // Writing a little into a buffer of our own, which was made, cannot fail.
  if (nbytes > PIECE || !isPrivate(buffer) || isOpen(buffer.creation)) {
    const what = `uploading ${tensor.toString()}`;
    const filters = nbytes > PIECE ? CREATION_ERRORS : (["validation"] as const);
    operate(device, { what, writes: [extent], fresh: true, filters }, write);
  } else {
    markWritten(buffer, extent.end);
    write();
    if (buffer.writes.length > 0) setOutcome(extent, null);
  }
  device.moved.up += nbytes;
  device.moved.copies++;
}

/** The outcome of an upload that threw within it. */
function failed(error: Error): Outcome {
  const fault = { error, reported: true };
  return { fault, done: Promise.resolve(fault) };
}

/**
 * Bytes of a piece. Implementations take fresh staging memory for a large write, and reuse that of
 * pieces that were submitted: its page faults cost more than the copy.
 */
export const PIECE: number = 4 << 20;

/**
 * Calls `use` with the elements of a CPU tensor, as `dtype`, in order: where they are if they are
 * contiguous, else packed and converted piece by piece. All pieces but the last are whole words.
 */
function eachPiece(
  tensor: ManagedTensor,
  dtype: DType,
  use: (memory: ArrayBufferLike, from: number, nbytes: number) => void,
): void {
  const { dtype: own, storage, size, strides } = tensor;
  const asIs = dtype === own && strides === null;
  if (asIs || dtype.flags !== own.flags || dtype.step % 1 !== 0) {
    const { buffer, byteOffset, byteLength } = tensor.as(dtype);
    eachPart(byteLength, (at, nbytes) => use(buffer, byteOffset + at, nbytes));
    return;
  }
  for (let first = 0; first < size; ) {
    const { count, bytes } = storage.chunk?.(tensor, dtype, first) ?? chunkOf(tensor, dtype, first);
    use(bytes.buffer, bytes.byteOffset, bytes.length);
    first += count;
  }
}

/** Calls `use` for pieces of so many bytes, or all of few. */
export function eachPart(nbytes: number, use: (at: number, nbytes: number) => void): void {
  const step = nbytes > 2 * PIECE ? PIECE : nbytes;
  for (let at = 0; at < nbytes; at += step) use(at, Math.min(step, nbytes - at));
}

/** Memory for pieces, which all uploads reuse. */
let scratch = new ArrayBuffer(0);

function scratchOf(nbytes: number): ArrayBuffer {
  if (scratch.byteLength < nbytes) scratch = new ArrayBuffer(nbytes);
  return scratch;
}

/** Implements `Storage.chunk` for arrays. */
function chunkOf(tensor: ManagedTensor, dtype: DType, first: number): Chunk {
  const { dtype: own, storage, strides, shape, start } = tensor;
  const width = Math.max(own.step, dtype.step);
  const count = Math.min(tensor.size - first, Math.floor(PIECE / width) & ~3);
  const memory = storage.bytes(tensor);
  const { packed, View, step } = own;
  const at = start + first * step;
  const isAligned = at % Math.min((packed & 0xff00) >> 11, 8) === 0;
  const into = scratchOf(count * width);
  const values =
    strides === null && isAligned
      ? new View(memory, at, count * own.components)
      : // Narrower elements end where the wider ones will, so none is overwritten.
        new View(into, Math.max(0, dtype.step - step) * count, count * own.components);
  if (values.buffer === into) {
    const bytes = new Uint8Array(into, values.byteOffset, values.byteLength);
    const { span } = tensor;
    const source = new Uint8Array(memory, span.start, span.bytes);
    if (strides === null) bytes.set(source.subarray(at - start, at - start + bytes.length));
    else gather(bytes, source, shape, strides, step, first);
  }
  if (dtype !== own) convertElements(values, own, dtype, count, tensor.toString(), first, into);
  return { count, bytes: new Uint8Array(into, 0, count * dtype.step) };
}

/** Firefox rejects memory of 2 GiB and more, but accepts views of a part of it. */
const MOST = 2 ** 31 - 1;

/** Writes words of 4 bytes. */
export function writeWords(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  memory: ArrayBufferLike,
  from: number,
  nbytes: number,
): void {
  const { resizable, growable } = memory as { resizable?: boolean; growable?: boolean };
  if (resizable || growable) {
    // writeBuffer rejects views of resizable memory.
    const fixed = scratchOf(nbytes);
    new Uint8Array(fixed).set(new Uint8Array(memory, from, nbytes));
    queue.writeBuffer(target, offset, fixed, 0, nbytes);
  } else if (memory.byteLength <= MOST) queue.writeBuffer(target, offset, memory, from, nbytes);
  else queue.writeBuffer(target, offset, new Uint8Array(memory, from, nbytes));
}

/** Submits so many bytes, if they are many: their staging memory can be reused. */
export function submitWords(queue: GPUQueue, nbytes: number): void {
  if (nbytes >= PIECE / 2) queue.submit([]);
}
