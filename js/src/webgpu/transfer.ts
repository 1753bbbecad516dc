import { CPU } from "../core/dlpack.js";
import { bytesOf, type DType, dtypeNamed } from "../core/dtype.js";
import { gather, putBytes } from "../core/elements.js";
import { textOf, UnsupportedError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import type { ToOptions } from "../core/options.js";
import { spanOf } from "../core/shape.js";
import {
  bytesOfTarget,
  checkTarget,
  isTensor,
  registerDeviceLayer,
  type Target,
  type Tensor,
} from "../core/tensor.js";
import { needCopy } from "../exchange/fit.js";
import type { Needs } from "../exchange/types.js";
import {
  type AllocateOptions,
  allocate,
  bufferOf,
  capacityOf,
  checkCopySource,
  checkUsage,
  copyInto,
  copyOf,
  DEFAULT_USAGE,
  extentOf,
  fromBuffer,
  isRisky,
  type LiveSlot,
  lend,
  releaseSlot,
  roundUp,
  slotOf,
  slotOn,
  tensorOfSlot,
  Usage,
  wordsOf,
} from "./buffers.js";
import { count, useDevice } from "./device.js";
import { checkAlive, mapAfter, operate, readMapped } from "./faults.js";
import { faultOf, joinFault } from "./handing.js";
import {
  type BufferRecord,
  isOpen,
  isPrivate,
  newRecord,
  type Outcome,
  openOutcomes,
} from "./record.js";
import type { DeviceRecord } from "./state.js";

// --- to the GPU -------------------------------------------------------------------------------------

/** Implements `Tensor.to`. */
export function upload(tensor: Tensor, device: GPUDevice, options: ToOptions): Tensor {
  if (typeof device !== "object") {
    throw new TypeError(
      `to() takes a GPUDevice, not ${textOf(device)}: await webgpu.requestDevice() gives one`,
    );
  }
  const record = useDevice(device);
  checkAlive(record);
  // The name does not tell whether elements are padded.
  const { dtype: name = tensor.dtype, usage } = options;
  const dtype = name === tensor.dtype ? tensor._type : dtypeNamed(name);
  if (tensor.device.type !== CPU) return again(tensor, record, dtype, usage ?? 0);
  return uploadNew(tensor, record, dtype, usage === undefined ? {} : { usage });
}

function uploadNew(
  tensor: Tensor,
  record: DeviceRecord,
  dtype: DType,
  options: AllocateOptions,
): Tensor {
  const { exact, usage: asked = DEFAULT_USAGE } = options;
  const usage = exact ? asked : asked | Usage.COPY_DST;
  const handle = allocate(record, bytesOf(dtype, tensor.size), {
    ...options,
    usage,
    used: tensor.size * dtype.step,
  });
  try {
    fill(slotOf(handle), 0, tensor, dtype);
    return tensorOfSlot(handle, 0, dtype, tensor._shape, false);
  } catch (error) {
    releaseSlot(handle);
    throw error;
  }
}

/** A second hold on a tensor that is on the device already. */
function again(tensor: Tensor, record: DeviceRecord, dtype: DType, usage: number): Tensor {
  slotOn(record, tensor);
  if (dtype !== tensor._type) {
    throw new UnsupportedError(`${tensor.toString()} is on the GPU: only uploads convert`, {
      given: dtype.name,
      needed: tensor.dtype,
    });
  }
  for (const flag of Object.keys(Usage) as (keyof typeof Usage)[]) {
    if (usage & Usage[flag]) checkUsage(tensor, flag, "to() with this usage");
  }
  return tensor._share();
}

/** Implements `Tensor.write` for a target on a GPU; shapes and conversion were checked. */
export function write(target: Tensor, source: Tensor): void {
  const slot = slotOf(target._handle);
  checkAlive(slot.record);
  checkUsage(target, "COPY_DST", "writing");
  // Words are written: what shares the last one with the tensor must be padding.
  if (!wordsOf(target).own) {
    throw new UnsupportedError(
      `${target.toString()} shares words of 4 bytes with its neighbours (byteOffset ${target._start}, ` +
        `${target.nbytes} bytes): WebGPU writes whole words`,
      { device: target.device },
    );
  }
  if (source.device.type !== CPU) {
    writeFromGPU(target, source);
    return;
  }
  // Only integers can fail to fit.
  const { _type: dtype } = target;
  if (dtype !== source._type && (dtype.packed & 255) < 2) rehearse(source, dtype);
  fill(slot, target._start, source, dtype);
}

function writeFromGPU(target: Tensor, source: Tensor): void {
  const to = slotOf(target._handle);
  const from = slotOn(to.record, source);
  if (source._type !== target._type) {
    throw new UnsupportedError(`${source.toString()} is on the GPU: only uploads convert`, {
      given: source.dtype,
      needed: target.dtype,
    });
  }
  checkCopySource(source, "copying");
  if (from.buffer !== to.buffer) {
    copyInto(source, to.facts, target._start);
    return;
  }
  // WebGPU does not copy within a buffer: by way of another one.
  const aside = source._packed();
  try {
    copyInto(aside, to.facts, target._start);
  } finally {
    aside.release();
  }
}

/**
 * The elements of a CPU tensor, as `dtype`, into a buffer: straight from its memory where they
 * are one after the other, else packed and converted in pieces of at most 8 MiB.
 */
function fill(slot: LiveSlot, offset: number, tensor: Tensor, dtype: DType): void {
  const { record, facts } = slot;
  const { queue } = record.device.gpu;
  const nbytes = bytesOf(dtype, tensor.size);
  // What is pooled and small is known to be there, and writing it cannot fail.
  const safe = isPrivate(facts) && !isRisky(nbytes, DEFAULT_USAGE);
  operate(
    record,
    {
      what: safe ? "uploading" : `uploading ${tensor.toString()}`,
      writes: [{ facts, start: offset, end: offset + nbytes }],
      fresh: true,
      filters: safe ? [] : ["validation"],
    },
    () => writeElements(queue, facts.buffer, offset, tensor, dtype),
  );
  count(record, "up", nbytes);
}

function writeElements(
  queue: GPUQueue,
  target: GPUBuffer,
  offset: number,
  tensor: Tensor,
  dtype: DType,
): void {
  const { _storage, _strides, _type } = tensor;
  if (dtype === _type && _strides === null) {
    writeBytes(queue, target, offset, tensor._as(dtype));
  } else if (!_storage.chunk) {
    writeBytes(queue, target, offset, tensor._as(dtype));
  } else if (dtype.step % 1 !== 0 || !writePieces(queue, target, offset, tensor, dtype)) {
    const packed = tensor._packed(); // its pieces would be no whole words
    try {
      writeBytes(queue, target, offset, packed._as(dtype));
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
  tensor: Tensor,
  dtype: DType,
): boolean {
  const slow = isTransposed(tensor);
  for (let first = 0, at = offset; first < tensor.size; ) {
    const { count: done, bytes } = chunkOf(tensor, dtype, first);
    if (done < 0) return false;
    writeBytes(queue, target, at, bytes);
    // The GPU's process takes a piece over while the next one is packed, where that takes its time.
    if (slow) queue.submit([]);
    first += done;
    at += bytes.length;
  }
  return true;
}

/** Whether neighbours in memory are no neighbours in a row: packing then takes more than copying. */
function isTransposed({ _strides: strides }: Tensor): boolean {
  const near = (stride: number | undefined) => Math.abs(stride ?? 1) === 1;
  return strides?.some(near) === true && !near(strides.at(-1));
}

function chunkOf(tensor: Tensor, dtype: DType, first: number) {
  const { _storage } = tensor;
  return (_storage.chunk as NonNullable<typeof _storage.chunk>).call(
    _storage,
    tensor,
    dtype,
    first,
  );
}

/** Throws what converting would throw, before anything is written over. */
function rehearse(tensor: Tensor, dtype: DType): void {
  if (!tensor._storage.chunk) {
    tensor._as(dtype);
    return;
  }
  for (let first = 0; first < tensor.size; ) {
    const { count: done } = chunkOf(tensor, dtype, first);
    if (done < 0) return;
    first += done;
  }
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

// --- for other consumers ----------------------------------------------------------------------------------

/** Implements `fit` for a GPU tensor. */
export function fit(held: Tensor, needs: Needs, copy: boolean | undefined): Tensor {
  const { offset, padTo = 4, exactUsage } = needs;
  const usage = needs.usage ?? exactUsage ?? Usage.STORAGE;
  const { buffer } = slotOf(held._handle);
  const size = Math.max(roundUp(held.nbytes, padTo), padTo);
  const misfit =
    held._strides !== null
      ? `has strides [${held._strides}]`
      : held._start !== (offset ?? roundUp(held._start, 4))
        ? `begins at byte ${held._start} of its GPUBuffer, not at ${offset ?? "a multiple of 4"}`
        : !(capacityOf(held) >= size)
          ? `has ${capacityOf(held)} bytes to itself in its GPUBuffer, not ${size}`
          : (buffer.usage & usage) !== usage
            ? `lacks GPUBufferUsage flags: it has ${buffer.usage}, needed are ${usage}`
            : exactUsage !== undefined && buffer.usage !== exactUsage
              ? `has GPUBufferUsage flags ${buffer.usage}, not exactly ${exactUsage}`
              : null;
  if (misfit === null && !copy) return held._share();
  if (misfit) needCopy(held, copy, misfit);
  const handle = copyOf(held, allocateFor(needs));
  return tensorOfSlot(handle, 0, held._type, held._shape, false);
}

/** Implements `fit` for a CPU tensor that goes to a device. */
export function fitUpload(tensor: Tensor, device: GPUDevice, needs: Needs): Tensor {
  const record = useDevice(device);
  checkAlive(record);
  return uploadNew(tensor, record, tensor._type, allocateFor(needs));
}

/** What a fresh buffer has to be; throws UnsupportedError for needs that none can meet. */
function allocateFor({ offset = 0, padTo = 4, usage = 0, exactUsage }: Needs): AllocateOptions {
  if (offset !== 0 || !Number.isSafeInteger(padTo) || padTo < 1) {
    throw new UnsupportedError(
      `a copy begins its buffer, and is padded to a positive integer: offset ${offset}, ` +
        `padTo ${padTo} cannot be had`,
      { given: offset, needed: 0 },
    );
  }
  let multiple = padTo;
  while (multiple % 16 !== 0) multiple += padTo;
  if (exactUsage === undefined) return { usage: DEFAULT_USAGE | usage, padTo: multiple };
  if (exactUsage & Usage.COPY_DST) return { usage: exactUsage, exact: true, padTo: multiple };
  throw new UnsupportedError(
    `a buffer with exactly the usage ${exactUsage} cannot be copied into: add COPY_DST (8)`,
    { given: exactUsage, needed: exactUsage | Usage.COPY_DST },
  );
}

// --- back to the CPU ------------------------------------------------------------------------------------------

/**
 * One tensor on its way back: `length` bytes of its buffer, from `start` on, at `offset` of the
 * staging buffer, then in `target`. `skip` of them are not the tensor's: copies begin at words.
 */
interface Piece {
  readonly tensor: Tensor;
  readonly target: Target;
  readonly slot: LiveSlot;
  readonly start: number;
  readonly length: number;
  readonly offset: number;
  readonly skip: number;
  /** What was not known of its elements when they were copied. */
  before: readonly Outcome[];
  /** What the GPU says of the copy itself. */
  copied: Outcome | null;
}

/** The pieces that share one staging buffer and one map. */
interface Batch {
  readonly record: DeviceRecord;
  readonly pieces: Piece[];
  bytes: number;
}

/**
 * Reads tensors into `outs`, or into new arrays where there is none: one submit and one map for
 * each device (more only beyond its `maxBufferSize`, and for buffers that others may have
 * destroyed), one copy for each tensor. All work is submitted before this returns to its caller, who
 * may release the sources at once.
 *
 * @throws the fault of the first tensor that has one
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
        // Whoever passed `out`, or the tensor, may release it while the GPU works.
        const held = isTensor(target) ? target._share() : target;
        if (isTensor(held)) holds.push(held);
        const source = tensor._share();
        holds.push(source);
        plan(batches, source, held);
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
  const slot = slotOf(tensor._handle);
  const { record, buffer } = slot;
  checkAlive(record);
  const span = spanOf(tensor._type, tensor._shape, tensor._strides, tensor._start);
  const skip = span.start % 4;
  const start = span.start - skip;
  const length = span.bytes && roundUp(skip + span.bytes, 4);
  if (start + length > buffer.size) {
    throw new UnsupportedError(
      `reading ${tensor.toString()} needs whole words of 4 bytes, ${start + length} bytes in its GPUBuffer, ` +
        `which has ${buffer.size}: pad the buffer to a multiple of 16`,
      { given: buffer.size, needed: start + length, device: tensor.device },
    );
  }
  // Of no elements, too: only the map says whether the device still works.
  const bytes = Math.max(roundUp(length, 16), 16);
  const limit = record.device.gpu.limits.maxBufferSize;
  let batch = batches.find((b) => b.record === record && b.bytes + bytes <= limit);
  if (batch === undefined) {
    batch = { record, pieces: [], bytes: 0 };
    batches.push(batch);
  }
  const offset = batch.bytes;
  const place = { tensor, target, slot, start, length, offset, skip };
  batch.pieces.push({ ...place, before: [], copied: null });
  batch.bytes += bytes;
}

/** Reads a batch; throws the fault of its first piece that has one. */
async function readBatch({ record, pieces, bytes }: Batch): Promise<void> {
  const facts = takeStaging(record, bytes);
  const { buffer: staging, making } = facts;
  let used = false;
  try {
    submitCopies(record, pieces, facts);
    const outcomes = pieces.flatMap(({ before, copied }) => [...before, copied]);
    await mapAfter(record, "reading back", outcomes, staging, bytes, making);
    await readMapped(record, () => {
      for (const piece of pieces) take(record, piece, staging);
      staging.unmap(); // which Deno refuses once the device is lost
    });
    used = true;
  } finally {
    if (used) record.pool.give(facts);
    else staging.destroy();
  }
}

/**
 * One submit for buffers that are ours, which cannot be invalid once they are made; one for each of
 * the others, so that a destroyed one spoils no other tensor's copy.
 */
function submitCopies(record: DeviceRecord, pieces: readonly Piece[], staging: BufferRecord): void {
  const { gpu } = record.device;
  const safe = pieces.filter(({ slot: { facts } }) => isPrivate(facts) && !isOpen(facts.making));
  const groups = [safe, ...pieces.filter((p) => !safe.includes(p)).map((p) => [p])];
  for (const group of groups) {
    if (group.length === 0) continue;
    for (const piece of group) piece.before = openOutcomes(extentOf(piece.tensor));
    const { outcome } = operate(
      record,
      {
        what: `reading ${group.map(({ tensor }) => tensor.toString())}`,
        // That of an invalid buffer fails as a consequence.
        reads: group === safe ? [] : group.map(({ tensor }) => extentOf(tensor)),
        after: [staging.making],
        filters: ["validation"],
      },
      () => {
        const encoder = gpu.createCommandEncoder();
        for (const { slot, start, length, offset } of group) {
          if (length === 0) continue;
          encoder.copyBufferToBuffer(slot.buffer, start, staging.buffer, offset, length);
        }
        gpu.queue.submit([encoder.finish()]);
      },
    );
    for (const piece of group) piece.copied = outcome;
  }
}

function take(record: DeviceRecord, piece: Piece, staging: GPUBuffer): void {
  const { tensor, target, offset, length, skip } = piece;
  if (length === 0) return;
  checkTarget(tensor, target);
  const { _shape, _strides, _type, nbytes } = tensor;
  const bytes = new Uint8Array(staging.getMappedRange(offset, length)).subarray(skip);
  const into = bytesOfTarget(target);
  if (_strides === null) putBytes(into, bytes.subarray(0, nbytes), tensor._exact);
  else gather(into, bytes, _shape, _strides, _type.step);
  count(record, "down", nbytes);
}

// A power of two fits more reads, and nobody sees what is behind the bytes that are read.
function takeStaging(record: DeviceRecord, bytes: number): BufferRecord {
  const { pool, device } = record;
  const { gpu } = device;
  const size = Math.min(2 ** Math.ceil(Math.log2(bytes)), gpu.limits.maxBufferSize);
  const idle = pool.take(size, "staging");
  if (idle) return idle;
  pool.created++;
  const { result: buffer, outcome } = operate(
    record,
    {
      what: `createBuffer for reading ${bytes} bytes`,
      filters: isRisky(size, DEFAULT_USAGE) ? ["validation", "out-of-memory"] : [],
    },
    () => gpu.createBuffer({ size, usage: Usage.MAP_READ | Usage.COPY_DST }),
  );
  return newRecord(buffer, "staging", { making: outcome });
}

registerDeviceLayer({
  ...{ upload, write, read, fromBuffer, bufferOf, lend, capacityOf },
  ...{ faultOf, joinFault, fit, fitUpload },
});
