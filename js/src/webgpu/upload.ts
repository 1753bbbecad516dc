/** Uploads of CPU elements to a GPU: `Tensor.to` and `Tensor.write`. */

import { type DType, dtypeNamed } from "../core/dtype.js";
import { textOf } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import type { ManagedTensor, Storage } from "../core/managed.js";
import type { ToOptions } from "../core/options.js";
import { releasing } from "../core/releasing.js";
import { copyInto, tensorOfSlot } from "./buffers.js";
import {
  checkCopySource,
  checkOwnWords,
  checkSameDType,
  checkUsage,
  refuseRecorded,
  slotOn,
} from "./checks/tensors.js";
import { checkAlive, count, useDevice } from "./device.js";
import { operate } from "./faults.js";
import { type AllocateOptions, obtain, WATCHED } from "./making.js";
import { type BufferRecord, isOpen, isPrivate, markWritten, setOutcome } from "./record.js";
import { addSlot, DEFAULT_USAGE, dispose, slotOf, Usage } from "./references.js";
import type { DeviceRecord } from "./state.js";

/** Implements `Tensor.to`. */
export function upload(
  tensor: ManagedTensor,
  device: GPUDevice,
  options: ToOptions,
): ManagedTensor {
  if (typeof device !== "object") {
    throw new TypeError(
      `to() takes a GPUDevice, not ${textOf(device)}: await webgpu.requestDevice() gives one`,
    );
  }
  const record = useDevice(device);
  checkAlive(record);
  // The name does not say whether elements are padded.
  const { dtype: name = tensor.dtype.name, usage = DEFAULT_USAGE } = options;
  const dtype = name === tensor.dtype.name ? tensor.dtype : dtypeNamed(name);
  if (tensor.isOnGPU) return again(tensor, record, dtype, options.usage ?? 0);
  return uploadNew(tensor, record, dtype, usage | Usage.COPY_DST);
}

/** A tensor in a buffer that has these flags; `padTo` as for {@link AllocateOptions}. */
export function uploadNew(
  tensor: ManagedTensor,
  record: DeviceRecord,
  dtype: DType,
  usage: number,
  padTo?: number,
): ManagedTensor {
  const { size, shape } = tensor;
  const used = size * dtype.step;
  const nbytes = Math.ceil(used);
  const facts = obtain(record, nbytes, usage, padTo);
  try {
    const mayFail = nbytes >= WATCHED || facts.making !== null;
    fill(record, facts, 0, nbytes, tensor, dtype, mayFail);
    return tensorOfSlot(addSlot(record, facts, { used }), 0, dtype, shape, false);
  } catch (error) {
    dispose(record, facts);
    throw error;
  }
}

/** A second hold on a tensor that is on the device already. */
function again(
  tensor: ManagedTensor,
  record: DeviceRecord,
  dtype: DType,
  usage: number,
): ManagedTensor {
  slotOn(record, tensor);
  checkSameDType(tensor, dtype, tensor.dtype);
  for (const flag of Object.keys(Usage) as (keyof typeof Usage)[]) {
    if (usage & Usage[flag]) checkUsage(tensor, flag, "to() with this usage");
  }
  return tensor.share();
}

/** Implements `Tensor.write` for a target on a GPU; shapes and conversion were checked. */
export function write(target: ManagedTensor, source: ManagedTensor): void {
  const slot = slotOf(target.handle);
  checkAlive(slot.record);
  checkUsage(target, "COPY_DST", "writing");
  refuseRecorded(target, true);
  checkOwnWords(target);
  if (source.isOnGPU) {
    writeFromGPU(target, source);
    return;
  }
  // Only integers can fail to fit.
  const { dtype } = target;
  if (dtype.packed !== source.dtype.packed && (dtype.packed & 255) < 2) rehearse(source, dtype);
  const { record, facts } = slot;
  // Our own small buffers are presumed valid, and writing them cannot fail.
  const mayFail = target.nbytes >= WATCHED || !isPrivate(facts) || isOpen(facts.making);
  // A getter of the source's memory may release the target.
  releasing(target.share(), ({ start, nbytes }) =>
    fill(record, facts, start, nbytes, source, dtype, mayFail),
  );
}

function writeFromGPU(target: ManagedTensor, source: ManagedTensor): void {
  const to = slotOf(target.handle);
  const from = slotOn(to.record, source);
  checkSameDType(source, source.dtype, target.dtype);
  checkCopySource(source, "copying");
  // A shader clears what was copied after the elements.
  if (source.nbytes % 4 !== 0) checkUsage(target, "STORAGE", "writing a part of a word");
  if (from.buffer !== to.buffer) {
    copyInto(source, to.facts, target.start);
    return;
  }
  // WebGPU does not copy within a buffer: by way of another one.
  const packed = source.pack();
  try {
    copyInto(packed, to.facts, target.start);
  } finally {
    packed.release();
  }
}

/**
 * The elements of a CPU tensor, as `dtype`, into a buffer: directly from its memory if they are
 * contiguous, else packed and converted in pieces of at most 8 MiB.
 */
function fill(
  record: DeviceRecord,
  facts: BufferRecord,
  start: number,
  nbytes: number,
  tensor: ManagedTensor,
  dtype: DType,
  mayFail: boolean,
): void {
  const { queue } = record.device.gpu;
  const extent = { facts, start, end: start + nbytes };
  const write = () => writeElements(queue, facts.buffer, start, nbytes, tensor, dtype);
  if (mayFail) {
    const what = `uploading ${tensor.toString()}`;
    operate(record, { what, writes: [extent], fresh: true, filters: ["validation"] }, write);
  } else {
    markWritten(facts, extent.end);
    write();
    setOutcome(extent, null);
  }
  count(record, "up", nbytes);
}

function writeElements(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  nbytes: number,
  tensor: ManagedTensor,
  dtype: DType,
): void {
  const { storage, strides } = tensor;
  if (dtype === tensor.dtype && strides === null && tensor.exact % 1 === 0) {
    writeMemory(queue, target, offset, storage.bytes(tensor), tensor.start, nbytes);
  } else if (!storage.chunk) {
    writeBytes(queue, target, offset, tensor.as(dtype));
  } else if (
    dtype.flags !== tensor.dtype.flags ||
    dtype.step % 1 !== 0 ||
    !writePieces(queue, target, offset, tensor, dtype)
  ) {
    const packed = tensor.pack(); // its pieces would not be whole words
    try {
      writeBytes(queue, target, offset, packed.as(dtype));
    } finally {
      packed.release();
    }
  }
}

/** Whether it was possible: pieces must be whole words. */
function writePieces(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  tensor: ManagedTensor,
  dtype: DType,
): boolean {
  const slow = isTransposed(tensor);
  let at = offset;
  return convertPieces(tensor, dtype, (bytes) => {
    writeBytes(queue, target, at, bytes);
    // The GPU process takes a piece while the next one is packed, if packing is slow.
    if (slow) queue.submit([]);
    at += bytes.length;
  });
}

/** Packs and converts all elements piece by piece; false if those are not whole words. */
function convertPieces(
  tensor: ManagedTensor,
  dtype: DType,
  use: (bytes: Uint8Array) => void,
): boolean {
  const { storage } = tensor as { storage: Required<Storage> };
  for (let first = 0; first < tensor.size; ) {
    const { count: done, bytes } = storage.chunk(tensor, dtype, first);
    if (done < 0) return false;
    use(bytes);
    first += done;
  }
  return true;
}

/**
 * Whether neighbours in memory are not neighbours in a row: packing is then slower than copying.
 */
function isTransposed({ strides }: ManagedTensor): boolean {
  const near = (stride: number | undefined) => Math.abs(stride ?? 1) === 1;
  return strides?.some(near) === true && !near(strides.at(-1));
}

/** Throws conversion errors before anything is overwritten. */
function rehearse(tensor: ManagedTensor, dtype: DType): void {
  if (tensor.storage.chunk) convertPieces(tensor, dtype, () => {});
  else tensor.as(dtype);
}

function writeBytes(queue: GPUQueue, target: GPUBuffer, offset: number, bytes: Uint8Array): void {
  writeMemory(queue, target, offset, bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Firefox rejects memory of 2 GiB and more, but accepts views of a part of it. */
const MOST = 2 ** 31 - 1;

/** Writes words of 4 bytes, of memory that is not resizable. */
export function writeWords(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  memory: ArrayBufferLike,
  from: number,
  nbytes: number,
): void {
  if (memory.byteLength <= MOST) queue.writeBuffer(target, offset, memory, from, nbytes);
  else queue.writeBuffer(target, offset, new Uint8Array(memory, from, nbytes));
}

/** Writes bytes, the last word padded with zeros. */
function writeMemory(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  memory: ArrayBufferLike,
  from: number,
  nbytes: number,
): void {
  const words = nbytes - (nbytes % 4);
  const { resizable, growable } = memory as { resizable?: boolean; growable?: boolean };
  if (resizable || growable) {
    // writeBuffer rejects views of resizable memory, so they go through a fixed array.
    const fixed = new Uint8Array(Math.min(words, 4 << 20));
    for (let at = 0; at < words; at += fixed.length) {
      const part = new Uint8Array(memory, from + at, Math.min(fixed.length, words - at));
      fixed.set(part);
      queue.writeBuffer(target, offset + at, fixed, 0, part.length);
    }
  } else if (words > 0) writeWords(queue, target, offset, memory, from, words);
  if (words < nbytes) {
    const tail = new Uint8Array(4);
    tail.set(new Uint8Array(memory, from + words, nbytes - words));
    queue.writeBuffer(target, offset + words, tail);
  }
}
