import { bytesOf, type DType, dtypeNamed } from "../core/dtype.js";
import { DeviceError, quietly, ReleasedError, tagOf, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer } from "../core/globals.js";
import { ManagedTensor, type Place, type Storage, unclonable } from "../core/managed.js";
import { checkOptions, FROM_GPU_BUFFER, type FromGPUBufferOptions } from "../core/options.js";
import { checkShape, checkStrides, checkSubByte, sizeOf, spanOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { count, useDevice } from "./device.js";
import { checkAlive, nameOf, operate } from "./faults.js";
import {
  agree,
  type BufferRecord,
  type Extent,
  forget,
  isSound,
  markSeen,
  newRecord,
  type Origin,
  recordOf,
} from "./record.js";
import { enter, find, leave } from "./slots.js";
import { type DeviceRecord, recording, type Slot, state } from "./state.js";
import { forgetMasks, maskTail } from "./tails.js";

/** `GPUBufferUsage`, which is a global only where WebGPU is. */
export const Usage = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 } as const;

/** The default usage of buffers made here: all uses of tensors. */
export const DEFAULT_USAGE = Usage.STORAGE | Usage.UNIFORM | Usage.COPY_SRC | Usage.COPY_DST;

/** Errors of making a buffer or texture. */
export const MAKING: readonly GPUErrorFilter[] = ["validation", "out-of-memory"];

/** From this size on, error scopes watch making and writing a buffer. */
export const WATCHED: number = 1 << 16;

/** The least multiple of `step` that is not below `n`. Exact beyond 2^32. */
export function roundUp(n: number, step: number): number {
  return Math.ceil(n / step) * step;
}

// --- the table of buffers -----------------------------------------------------------------------

/** Enters a buffer into the table, with one reference; returns its handle. */
export function addSlot(
  record: DeviceRecord,
  facts: BufferRecord,
  more: Partial<Pick<Slot, "release" | "used" | "end">> = {},
): number {
  const { buffer } = facts;
  const { release = null, used = buffer.size, end = buffer.size } = more;
  const slot = { buffer, record, facts, release, refs: 1, used, end, generation: 0, next: 0 };
  const handle = enter(state, slot);
  facts.holds++;
  return handle;
}

/** A slot that holds a buffer. */
export type LiveSlot = Slot & {
  readonly buffer: GPUBuffer;
  readonly record: DeviceRecord;
  readonly facts: BufferRecord;
};

/** The slot of a handle; throws ReleasedError for a stale or forged one. */
export function slotOf(handle: number): LiveSlot {
  const slot = find(state, handle) as LiveSlot | undefined;
  if (slot) {
    agree(slot.facts);
    return slot;
  }
  throw new ReleasedError(`GPU handle 0x${handle.toString(16)} is not (or no longer) in use`, {
    given: handle,
  });
}

/** Adds a reference. */
export function retainSlot(handle: number): LiveSlot {
  const slot = slotOf(handle);
  slot.refs++;
  return slot;
}

/** Drops a reference; the last one releases the buffer. Never throws: C calls it as well. */
export function releaseSlot(handle: number): void {
  quietly(() => {
    const slot = slotOf(handle);
    if (--slot.refs > 0) return;
    const { release, record, facts } = slot;
    leave(state, handle);
    if (--facts.holds === 0) letGo(record, facts);
    release?.();
  });
}

/** Disposes of a buffer without tensors. */
export function letGo(record: DeviceRecord, facts: BufferRecord): void {
  const { buffer, origin, taken } = facts;
  // Its owner keeps using it.
  if (origin === "others") forget(facts);
  else if (origin === "single") buffer.destroy();
  else if (record.lost !== null || taken) return;
  else if (!isSound(facts, record.troubles)) buffer.destroy();
  else {
    forget(facts); // the next tensor overwrites all that it shows
    facts.lent = false;
    record.pool.give(facts);
  }
}

// --- making buffers --------------------------------------------------------------------------------

const ZEROS = new Uint8Array(1 << 12);

/** Options of {@link allocate}. */
export interface AllocateOptions {
  usage?: number;
  /** Whether the buffer must have no other flags. */
  exact?: boolean;
  /** The size is a multiple of this, itself a multiple of 16; default 16. */
  padTo?: number;
  /** Bytes of the elements, where they end within one. */
  used?: number;
  /** Whether the elements must be 0 too, not only the padding. */
  zeros?: boolean;
}

/** The handle of a buffer that {@link obtain} gives. */
export function allocate(
  record: DeviceRecord,
  nbytes: number,
  { usage = DEFAULT_USAGE, padTo, zeros, used = nbytes }: AllocateOptions = {},
): number {
  return addSlot(record, obtain(record, nbytes, usage, padTo, zeros), { used });
}

/**
 * A buffer for `nbytes`, padded to a multiple of 16 bytes and never empty. Everything after
 * `nbytes` is 0, and with `zeros` all of it. The caller enters it into the table, or releases it.
 */
export function obtain(
  record: DeviceRecord,
  nbytes: number,
  usage: number,
  padTo = 16,
  zeros = false,
): BufferRecord {
  checkAlive(record);
  const { pool, troubles, device } = record;
  const size = Math.max(roundUp(nbytes, padTo), padTo);
  if (size > device.gpu.limits.maxBufferSize) throw tooLarge(record, size);
  const words = nbytes + (-nbytes & 3);
  const origin = usage === DEFAULT_USAGE ? "tensors" : "single";
  const idle = origin === "tensors" ? pool.take(size, origin, troubles) : undefined;
  const facts = idle ?? makeBuffer(record, size, usage, origin);
  if (facts.dirty > (zeros ? 0 : words)) clear(device.gpu, facts, zeros ? 0 : words);
  facts.dirty = words;
  return facts;
}

function tooLarge(record: DeviceRecord, size: number): UnsupportedError {
  const limit = record.device.gpu.limits.maxBufferSize;
  const most = record.adapterLimits?.maxBufferSize;
  const way =
    most !== undefined && size > most
      ? "no device of that has more: use several tensors"
      : `use a device from requestDevice({ maxBufferSize: ${size} })`;
  return new UnsupportedError(
    `${size} bytes are needed, ${nameOf(record)} allows ${limit} (maxBufferSize) in one buffer` +
      `${most === undefined ? "" : ` and its adapter ${most}`}: ${way}`,
    { given: size, needed: limit, device: record.device },
  );
}

/** A fresh buffer, all zeros. WebGPU reports asynchronously when it cannot make one. */
export function makeBuffer(
  record: DeviceRecord,
  size: number,
  usage: number,
  origin: Origin,
  what = `${size} bytes`,
): BufferRecord {
  // Dawn in Node reports an invalid buffer before createBuffer() returns.
  const { troubles } = record;
  const { gpu } = record.device;
  // It can fail other than by losing the device because of unusual flags, or out of memory. The
  // error scopes that would report it cost more than a small upload.
  const filters = origin === "single" || size >= WATCHED ? MAKING : [];
  const { result: buffer, outcome } = operate(
    record,
    { what: `createBuffer for ${what}`, filters },
    () => gpu.createBuffer({ size, usage }),
  );
  record.pool.created++;
  return newRecord(buffer, origin, { making: outcome, troubles });
}

/** Clears what the last tensor left in an idle buffer, from a word on. */
function clear(gpu: GPUDevice, { buffer, dirty }: BufferRecord, from: number): void {
  const end = Math.min(roundUp(dirty, 4), buffer.size);
  try {
    // A clear command costs more than writing a few bytes.
    if (end - from <= 4 * ZEROS.length) {
      for (let at = from; at < end; at += ZEROS.length) {
        gpu.queue.writeBuffer(buffer, at, ZEROS, 0, Math.min(ZEROS.length, end - at));
      }
    } else {
      const encoder = gpu.createCommandEncoder();
      encoder.clearBuffer(buffer, from, end - from);
      gpu.queue.submit([encoder.finish()]);
    }
  } catch (error) {
    buffer.destroy();
    throw error;
  }
}

/**
 * The buffer of a tensor, for foreign code, which may keep it. So it is never reused for another
 * tensor nor destroyed, but left to the garbage collector. A buffer with other usages than the
 * default still ends with its tensor.
 */
export function bufferOf(tensor: ManagedTensor): GPUBuffer {
  const { facts, record } = slotOf(tensor.handle);
  if (!facts.taken && facts.origin === "tensors") {
    facts.taken = true;
    record.taken++;
  }
  return facts.buffer;
}

/** The same for code that only reads it, until the tensor is released. */
export function lentBufferOf(tensor: ManagedTensor): GPUBuffer {
  return slotOf(tensor.handle).buffer;
}

/** The same for code that may write to it, until the tensor is released. */
export function lend(tensor: ManagedTensor): GPUBuffer {
  const { facts } = slotOf(tensor.handle);
  markSeen(facts);
  return facts.buffer;
}

/** The bytes from a tensor's first element to its last. */
export function extentOf(tensor: ManagedTensor): Extent {
  const { facts } = slotOf(tensor.handle);
  if (tensor.strides === null) {
    const first = Math.floor(tensor.start);
    return { facts, start: first, end: first + tensor.nbytes };
  }
  const { start, bytes } = tensor.span;
  return { facts, start, end: start + bytes };
}

/** Implements the `capacity` of an exchange. A view may be followed by another view's elements. */
export function capacityOf(tensor: ManagedTensor): number {
  const { used, end } = slotOf(tensor.handle);
  const { start, bytes } = tensor.span;
  const stop = start + (tensor.strides === null ? tensor.exact : bytes);
  // A byte that the elements end within may be a neighbour's, too.
  return (stop >= used ? end : Math.floor(stop)) - tensor.start;
}

/** The tensor's bytes rounded up to words, if those are its own; else its own bytes. */
export function wordsOf(tensor: ManagedTensor): { bytes: number; own: boolean } {
  const bytes = roundUp(tensor.nbytes, 4);
  return { bytes, own: tensor.start % 4 === 0 && bytes <= capacityOf(tensor) };
}

// --- tensors --------------------------------------------------------------------------------------------

/** A tensor over a slot, whose reference it takes over. */
export function tensorOfSlot(
  handle: number,
  byteOffset: number,
  dtype: DType,
  shape: readonly number[],
  readOnly: boolean,
  strides: readonly number[] | null = null,
): ManagedTensor {
  const { device } = slotOf(handle).record;
  return new ManagedTensor(gpuStorage, handle, byteOffset, dtype, shape, strides, device, readOnly);
}

/** {@link tensorOfSlot} with a reference of its own. */
export const adoptSlot: typeof tensorOfSlot = (handle, ...rest) => {
  retainSlot(handle);
  return tensorOfSlot(handle, ...rest);
};

/** A fresh tensor on the device, filled with zeros. */
export function emptyOnDevice(
  record: DeviceRecord,
  shape: readonly number[],
  dtype: DType,
): Tensor {
  const used = sizeOf(shape) * dtype.step;
  const handle = allocate(record, bytesOf(dtype, sizeOf(shape)), { zeros: true, used });
  return new Tensor(tensorOfSlot(handle, 0, dtype, shape, false));
}

/** Implements `Tensor.fromGPUBuffer`. */
export function fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): ManagedTensor {
  if (typeof buffer?.size !== "number" || typeof buffer.usage !== "number") {
    throw new TypeError(`a GPUBuffer is needed, not ${tagOf(buffer)}`);
  }
  const example = 'device, shape: [2, 3], dtype: "float32"';
  checkOptions<FromGPUBufferOptions>(options, "fromGPUBuffer()", FROM_GPU_BUFFER, example);
  const record = useDevice(options.device);
  checkAlive(record);
  const shape = checkShape(options.shape);
  const dtype = dtypeNamed(options.dtype, options.padded);
  const byteOffset = checkCount("byteOffset", options.byteOffset ?? 0);
  const strides = checkStrides(shape, options.strides);
  checkSubByte(dtype, strides, `dtype ${dtype.name}`);
  const { start, bytes } = spanOf(dtype, shape, strides, byteOffset);
  if (start < 0 || start + bytes > buffer.size) {
    throw new RangeError(
      `shape [${shape}] of ${dtype.name} from byte ${byteOffset} reaches from byte ${start} to ` +
        `${start + bytes}; the GPUBuffer has ${buffer.size}`,
    );
  }
  const rest = buffer.size - byteOffset;
  const padding = buffer.size - start - bytes < 16 ? rest : 0;
  const capacity = checkCount("capacity", options.capacity ?? padding);
  const used = strides === null ? start + sizeOf(shape) * dtype.step : start + bytes;
  const end = Math.max(start + bytes, byteOffset + Math.min(capacity, rest));
  const facts = recordOf(buffer);
  const handle = addSlot(record, facts, { release: options.release ?? null, used, end });
  return tensorOfSlot(handle, byteOffset, dtype, shape, options.readOnly === true, strides);
}

function checkCount(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${name} ${value} is not a non-negative integer`);
}

/** The slot of a tensor that must be on this device; else DeviceError naming both. */
export function slotOn(record: DeviceRecord, tensor: ManagedTensor): LiveSlot {
  tensor.check();
  const slot = tensor.isOnGPU ? slotOf(tensor.handle) : null;
  if (slot?.record === record) return slot;
  throw new DeviceError(
    `${tensor.dtype.name}[${tensor.shape}] on ${slot ? nameOf(slot.record) : "cpu"} cannot be used on ` +
      `${nameOf(record)}: ${slot ? "devices do not share buffers; await read() it, then " : ""}` +
      "upload it with to(gpuDevice)",
    { device: record.device },
  );
}

/** Throws UnsupportedError naming the usage flag that the tensor's buffer lacks. */
export function checkUsage(tensor: ManagedTensor, flag: keyof typeof Usage, what: string): void {
  const { buffer, record } = slotOf(tensor.handle);
  const { usage } = buffer;
  if (usage & Usage[flag]) return;
  const has = Object.entries(Usage).flatMap(([name, bit]) => (usage & bit ? [name] : []));
  throw new UnsupportedError(
    `${what} needs a GPUBuffer with GPUBufferUsage.${flag}; that of ${tensor.toString()} has ` +
      `${has.join(" | ") || "none of the flags needed here"}: create it with ${flag} too`,
    { given: usage, needed: Usage[flag], device: record.device },
  );
}

/** Throws for a strided tensor, whose elements a kernel or copy would misread. */
export function checkRowMajor(tensor: ManagedTensor): void {
  if (tensor.strides === null) return;
  throw new UnsupportedError(
    `${tensor.toString()} has strides [${tensor.strides}]: on WebGPU it can be read, and nothing else; ` +
      "upload what read() gives",
    { device: slotOf(tensor.handle).record.device },
  );
}

/** Storage in GPU buffers. `handle` of its tensors is a slot's handle. */
export const gpuStorage: Storage = {
  guard: unclonable,
  mayBeReplaced: false,
  bytes(tensor) {
    throw new UnsupportedError(
      `${tensor.toString()} has no data that JS can see: use await tensor.read(), or tensor.buffer`,
      { device: slotOf(tensor.handle).record.device },
    );
  },
  share(tensor) {
    retainSlot(tensor.handle);
    return tensor.handle;
  },
  pack(tensor): Place {
    return { storage: gpuStorage, handle: copyOf(tensor, {}), start: 0 };
  },
  release: releaseSlot,
};

/** Throws if a tensor is read or written now that a kernel is to use later, as the batch runs. */
export function refuseRecorded(tensor: ManagedTensor, writing: boolean): void {
  if (!recording.batch?._uses(extentOf(tensor), writing)) return;
  throw new UnsupportedError(
    `${tensor.toString()} cannot be ${writing ? "written" : "read"} here: a kernel that the batch has ` +
      `recorded ${writing ? "uses" : "writes to"} it, and runs only with run(): do this before the ` +
      "batch is recorded, or after run()",
  );
}

// --- copies from buffer to buffer ------------------------------------------------------------------------

/** WebGPU copies whole groups of 4 bytes at offsets that are multiples of 4. */
export function checkCopySource(tensor: ManagedTensor, what: string): void {
  checkRowMajor(tensor);
  checkUsage(tensor, "COPY_SRC", what);
  const end = tensor.start + roundUp(tensor.nbytes, 4);
  const { buffer, record } = slotOf(tensor.handle);
  if (tensor.start % 4 === 0 && end <= buffer.size) return;
  throw new UnsupportedError(
    `${what} ${tensor.toString()} needs a byteOffset that is a multiple of 4 (it is ${tensor.start}) and ` +
      `${end} bytes in its GPUBuffer (it has ${buffer.size}): pad the buffer to a multiple of 16`,
    { given: buffer.size, needed: end, device: record.device },
  );
}

/** A fresh buffer with a tensor's elements, and zeros after them. */
export function copyOf(tensor: ManagedTensor, options: AllocateOptions): number {
  checkCopySource(tensor, "copying");
  refuseRecorded(tensor, false);
  const source = slotOf(tensor.handle);
  const { record } = source;
  const { exact, usage: asked = DEFAULT_USAGE } = options;
  const usage = exact ? asked : asked | Usage.COPY_DST | Usage.STORAGE; // for its tail
  if (tensor.nbytes % 4 !== 0 && !(usage & Usage.STORAGE)) {
    throw new UnsupportedError(
      `a copy of ${tensor.nbytes} bytes needs a buffer with STORAGE (128), not exactly ${usage}`,
      { given: usage, needed: usage | Usage.STORAGE },
    );
  }
  const handle = allocate(record, tensor.nbytes, { ...options, usage, used: tensor.exact });
  try {
    copyInto(tensor, slotOf(handle).facts, 0);
    return handle;
  } catch (error) {
    releaseSlot(handle);
    throw error;
  }
}

/**
 * Copies a tensor's elements into a buffer of the same device, whose last word of them is padding
 * after them. Other bytes in the source's last word are copied too, and cleared.
 */
export function copyInto(tensor: ManagedTensor, target: BufferRecord, offset: number): void {
  const { nbytes, start } = tensor;
  if (nbytes === 0) return;
  const { record, buffer: source } = slotOf(tensor.handle);
  const { gpu } = record.device;
  const { buffer } = target;
  count(record, "copied", nbytes);
  const { outcome } = operate(
    record,
    {
      what: `copying ${tensor.toString()}`,
      reads: [extentOf(tensor)],
      writes: [{ facts: target, start: offset, end: offset + nbytes }],
      fresh: true,
      filters: ["validation"],
    },
    () => {
      const encoder = gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(source, start, buffer, offset, roundUp(nbytes, 4));
      if (nbytes % 4 !== 0) maskTail(gpu, encoder, buffer, offset, nbytes);
      gpu.queue.submit([encoder.finish()]);
    },
  );
  if (nbytes % 4 !== 0) outcome?.done.then((fault) => fault && forgetMasks(gpu));
}
