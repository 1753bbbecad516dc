import { checkTarget, gather, targetBytes } from "../core/copies.js";
import { bytesOf, type DType, dtypeNamed } from "../core/dtype.js";
import { DeviceError, UnsupportedError } from "../core/errors.js";
import type { DeviceRecord } from "../core/realm.js";
import { registerDeviceLayer, type Target, type ToOptions } from "../core/storage.js";
import { isTensor, type Tensor } from "../core/tensor.js";
import { CPU } from "../pyodide/layout.js";
import {
  allocate,
  bufferOf,
  capacityOf,
  checkCopySource,
  checkUsage,
  copyBuffers,
  DEFAULT_USAGE,
  fromBuffer,
  releaseSlot,
  roundUp,
  slotOf,
  slotOn,
  spanOf,
  tensorOfSlot,
  Usage,
} from "./buffers.js";
import { checkAlive, count, nameOf, settled, useDevice, watched } from "./device.js";

/** Implements `Tensor.to`. */
export function upload(tensor: Tensor, device: GPUDevice, options: ToOptions): Tensor {
  const record = useDevice(device);
  checkAlive(record);
  // The name does not tell whether elements are padded.
  const { dtype: name = tensor.dtype } = options;
  const dtype = name === tensor.dtype ? tensor._type : dtypeNamed(name);
  if (tensor.device.type !== CPU) return again(tensor, record, dtype, options.usage ?? 0);

  const usage = (options.usage ?? DEFAULT_USAGE) | Usage.COPY_DST;
  const handle = allocate(record, bytesOf(dtype, tensor.size), usage, false);
  try {
    fill(record, slotOf(handle).buffer, 0, tensor, dtype);
    return tensorOfSlot(handle, 0, dtype, tensor.shape, false);
  } catch (error) {
    releaseSlot(handle);
    throw error;
  }
}

/** Implements `Tensor.write` for a target on a GPU. */
export function write(target: Tensor, source: Tensor, dtype: DType): void {
  const { record, buffer } = slotOf(target._handle);
  checkAlive(record);
  checkUsage(target, "COPY_DST", "writing");
  const { byteOffset, nbytes } = target;
  // Words are written: what shares the last one with the tensor must be padding.
  const padded = roundUp(nbytes, 4) <= Math.max(nbytes, capacityOf(target));
  if (byteOffset % 4 !== 0 || !padded) {
    throw new UnsupportedError(
      `${target} shares words of 4 bytes with its neighbours (byteOffset ${byteOffset}, ` +
        `${nbytes} bytes): WebGPU writes whole words`,
      { device: target.device },
    );
  }
  if (source.device.type !== CPU) {
    slotOn(record, source);
    checkCopySource(source, "copying");
    copyBuffers(record, source, buffer, byteOffset);
  } else {
    // Only integers can fail to fit.
    if (dtype !== source._type && (dtype.packed & 255) < 2) rehearse(source, dtype);
    fill(record, buffer, byteOffset, source, dtype);
  }
}

/**
 * The elements of a CPU tensor, as `dtype`, into a buffer: straight from its memory where they
 * are one after the other, else packed and converted in pieces of at most 8 MiB.
 */
function fill(
  record: DeviceRecord,
  target: GPUBuffer,
  offset: number,
  tensor: Tensor,
  dtype: DType,
): void {
  const { queue } = record.device.gpu;
  const { _storage, _strides, _type } = tensor;
  count(record, "up", bytesOf(dtype, tensor.size));
  const inPieces = dtype !== _type || (_strides !== null && _storage.chunk && dtype.step % 1 === 0);
  if (inPieces && fillPieces(queue, target, offset, tensor, dtype)) return;
  const packed = _strides === null ? tensor : _storage.pack(tensor);
  try {
    if (dtype === _type) writeBytes(queue, target, offset, packed._bytes());
    else fillPieces(queue, target, offset, packed, dtype);
  } finally {
    if (packed !== tensor) packed.release();
  }
}

/** Whether it was possible: pieces must be whole words. */
function fillPieces(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  tensor: Tensor,
  dtype: DType,
): boolean {
  for (let first = 0, at = offset; first < tensor.size; ) {
    const { count, bytes } = chunkOf(tensor, dtype, first);
    if (count < 0) return false;
    writeBytes(queue, target, at, bytes);
    first += count;
    at += bytes.length;
  }
  return true;
}

function chunkOf(tensor: Tensor, dtype: DType, first: number) {
  if (tensor._storage.chunk) return tensor._storage.chunk(tensor, dtype, first);
  throw new UnsupportedError(`${tensor} is JavaScript's own memory: convert the array itself`, {
    given: dtype.name,
    needed: tensor.dtype,
  });
}

/** Throws what converting would throw, before anything is written over. */
function rehearse(tensor: Tensor, dtype: DType): void {
  for (let first = 0; first < tensor.size; ) {
    const { count } = chunkOf(tensor, dtype, first);
    if (count < 0) return;
    first += count;
  }
}

/** A second hold on a tensor that is on the device already. */
function again(tensor: Tensor, record: DeviceRecord, dtype: DType, usage: number): Tensor {
  slotOn(record, tensor);
  if (dtype !== tensor._type) {
    throw new UnsupportedError(`${tensor} is on the GPU: only uploads convert`, {
      given: dtype.name,
      needed: tensor.dtype,
    });
  }
  for (const flag of Object.keys(Usage) as (keyof typeof Usage)[]) {
    if (usage & Usage[flag]) checkUsage(tensor, flag, "to() with this usage");
  }
  return tensor._storage.share(tensor);
}

/** Writes bytes and, where they are no multiple of 4, a last word padded with zeros. */
function writeBytes(queue: GPUQueue, target: GPUBuffer, offset: number, bytes: Uint8Array): void {
  const words = bytes.byteLength - (bytes.byteLength % 4);
  if (isResizable(bytes.buffer)) {
    // writeBuffer refuses views of resizable memory, so they go through a fixed array.
    const fixed = new Uint8Array(Math.min(words, 4 << 20));
    for (let at = 0; at < words; at += fixed.length) {
      const part = bytes.subarray(at, Math.min(at + fixed.length, words));
      fixed.set(part);
      queue.writeBuffer(target, offset + at, fixed, 0, part.length);
    }
  } else if (words > 0) {
    queue.writeBuffer(target, offset, bytes.buffer, bytes.byteOffset, words);
  }
  if (words < bytes.byteLength) {
    const tail = new Uint8Array(4);
    tail.set(bytes.subarray(words));
    queue.writeBuffer(target, offset + words, tail);
  }
}

function isResizable(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  return (resizable || growable) === true;
}

/**
 * One tensor on its way back: `length` bytes of its buffer, from `start` on, at `offset` of the
 * staging buffer, then in `target`. `skip` of them are not the tensor's: copies begin at words.
 */
interface Piece {
  readonly tensor: Tensor;
  readonly target: Target;
  readonly start: number;
  readonly length: number;
  readonly offset: number;
  readonly skip: number;
}

/** The pieces that share one staging buffer, one submit and one map. */
interface Batch {
  readonly record: DeviceRecord;
  readonly pieces: Piece[];
  bytes: number;
}

/**
 * Reads tensors into `outs`, or into new arrays where there is none: one submit and one map for
 * each device (more only beyond its `maxBufferSize`), one copy for each tensor. All work is
 * submitted before this returns to its caller, who may release the sources at once.
 */
export async function read(
  tensors: readonly Tensor[],
  outs: readonly (Target | undefined)[],
): Promise<Target[]> {
  const batches: Batch[] = [];
  const holds: Tensor[] = [];
  const jobs: Promise<unknown>[] = [];
  try {
    const targets = tensors.map((tensor, i) => {
      tensor._check();
      const target = outs[i] ?? tensor._newArray();
      if (tensor.device.type !== CPU) {
        checkTarget(tensor, target);
        checkUsage(tensor, "COPY_SRC", "reading");
        // Whoever passed `out` may release it while the GPU works.
        const held = isTensor(target) ? target._storage.share(target) : target;
        if (isTensor(held)) holds.push(held);
        plan(batches, tensor, held);
      }
      return target;
    });
    tensors.forEach((tensor, i) => {
      if (tensor.device.type === CPU) jobs.push(tensor.read(targets[i] as Target));
    });
    jobs.push(...batches.map(readBatch));
    for (const job of await Promise.allSettled(jobs)) {
      if (job.status === "rejected") throw job.reason;
    }
    return targets;
  } finally {
    for (const hold of holds) hold.release();
  }
}

function plan(batches: Batch[], tensor: Tensor, target: Target): void {
  const { record, buffer } = slotOf(tensor._handle);
  checkAlive(record);
  const span = spanOf(tensor._type, tensor.shape, tensor._strides, tensor.byteOffset);
  const skip = span.start % 4;
  const start = span.start - skip;
  const length = roundUp(skip + span.bytes, 4);
  if (start + length > buffer.size) {
    throw new UnsupportedError(
      `reading ${tensor} needs whole words of 4 bytes, ${start + length} bytes in its GPUBuffer, ` +
        `which has ${buffer.size}: pad the buffer to a multiple of 16`,
      { given: buffer.size, needed: start + length, device: tensor.device },
    );
  }
  const bytes = roundUp(length, 16);
  const limit = record.device.gpu.limits.maxBufferSize;
  let batch = batches.find((b) => b.record === record && b.bytes + bytes <= limit);
  if (batch === undefined) {
    batch = { record, pieces: [], bytes: 0 };
    batches.push(batch);
  }
  batch.pieces.push({ tensor, target, start, length, skip, offset: batch.bytes });
  batch.bytes += bytes;
}

async function readBatch({ record, pieces, bytes }: Batch): Promise<void> {
  // Tensors without elements need no GPU, but earlier errors are due here all the same.
  if (bytes === 0) return settled(record);
  const { gpu } = record.device;
  const staging = takeStaging(record, bytes);
  let used = false;
  try {
    watched(record, `reading ${pieces.map((piece) => piece.tensor)}`, () => {
      const encoder = gpu.createCommandEncoder();
      for (const { tensor, start, length, offset } of pieces) {
        const { buffer } = slotOf(tensor._handle);
        if (length > 0) encoder.copyBufferToBuffer(buffer, start, staging, offset, length);
      }
      gpu.queue.submit([encoder.finish()]);
    });
    // Kept as a value: what the error scopes say is the better message.
    const failure = await staging.mapAsync(Usage.MAP_READ, 0, bytes).catch((cause) => ({ cause }));
    if (failure) await Promise.race([gpu.lost, new Promise((done) => setTimeout(done))]);
    await settled(record);
    if (failure) throw new DeviceError(`reading back from ${nameOf(record)} failed`, failure);
    const mapped = staging.getMappedRange(0, bytes);
    for (const { tensor, target, offset, length, skip } of pieces) {
      checkTarget(tensor, target);
      const { _strides, _type, nbytes } = tensor;
      const bytes = new Uint8Array(mapped, offset + skip, length - skip);
      if (_strides === null) targetBytes(target).set(bytes.subarray(0, nbytes));
      else gather(targetBytes(target), bytes, tensor, _strides, _type.step);
      count(record, "down", nbytes);
    }
    staging.unmap();
    used = true;
  } finally {
    if (used) record.pool.give(staging);
    else staging.destroy();
  }
}

// A power of two fits more reads, and nobody sees what is behind the bytes that are read.
function takeStaging(record: DeviceRecord, bytes: number): GPUBuffer {
  const { gpu } = record.device;
  const size = Math.min(2 ** Math.ceil(Math.log2(bytes)), gpu.limits.maxBufferSize);
  const usage = Usage.MAP_READ | Usage.COPY_DST;
  return (
    record.pool.take(size, usage) ??
    watched(record, `createBuffer for reading ${bytes} bytes`, () =>
      gpu.createBuffer({ size, usage }),
    )
  );
}

registerDeviceLayer({ upload, write, read, fromBuffer, bufferOf, capacityOf });
