import { bytesOf, type DType, dtypeNamed } from "../core/dtype.js";
import { DeviceError, DLPackError, ReleasedError, UnsupportedError } from "../core/errors.js";
import { type DeviceRecord, type Slot, shared } from "../core/realm.js";
import { checkShape, checkStrides, extentOf, sizeOf } from "../core/shape.js";
import type { FromGPUBufferOptions, Storage } from "../core/storage.js";
import { Tensor } from "../core/tensor.js";
import { CPU } from "../pyodide/layout.js";
import { checkAlive, count, nameOf, useDevice, watched } from "./device.js";

/** `GPUBufferUsage`, which is a global only where WebGPU is. */
export const Usage = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 } as const;

/** What buffers made here can do unless told otherwise: all that tensors are used for. */
export const DEFAULT_USAGE = Usage.STORAGE | Usage.UNIFORM | Usage.COPY_SRC | Usage.COPY_DST;

/**
 * Whether making a buffer can fail other than by losing the device: by the flags, or for want of
 * memory. The error scopes that would tell cost more than a small upload does.
 */
export function isRisky(nbytes: number, usage: number): boolean {
  return usage !== DEFAULT_USAGE || nbytes >= 1 << 16;
}

/** The least multiple of `step` (a power of two) that is not below `n`. Exact beyond 2^32. */
export function roundUp(n: number, step: number): number {
  return Math.ceil(n / step) * step;
}

// A handle is slot | generation << 20. Slot 0 is never used, so that 0 is DLPack's NULL.
const SLOT_BITS = 20;
const MAX_SLOTS = 1 << SLOT_BITS;
const MAX_GENERATION = (1 << (32 - SLOT_BITS)) - 1;

/** Enters a buffer into the table, with one reference; returns its handle. */
export function addSlot(
  record: DeviceRecord,
  buffer: GPUBuffer,
  release: (() => void) | null,
  own = false,
  used: number = buffer.size,
  end: number = buffer.size,
): number {
  const { slots, freeSlots } = shared;
  if (slots.length === 0) slots.push({ ...EMPTY });
  const index = freeSlots.pop() ?? slots.length;
  if (index >= MAX_SLOTS) throw new DLPackError(`more than ${MAX_SLOTS} GPU tensors at once`);
  const generation = slots[index]?.generation ?? 0;
  slots[index] = { buffer, record, refs: 1, generation, release, own, used, end };
  return (index | (generation << SLOT_BITS)) >>> 0;
}

const EMPTY: Slot = {
  buffer: null,
  record: null,
  refs: 0,
  generation: 0,
  release: null,
  own: false,
  used: 0,
  end: 0,
};

/** A slot that holds a buffer. */
export type LiveSlot = Slot & { readonly buffer: GPUBuffer; readonly record: DeviceRecord };

/** The slot of a handle; throws ReleasedError for a stale or forged one. */
export function slotOf(handle: number): LiveSlot {
  const slot = shared.slots[handle & (MAX_SLOTS - 1)];
  if (slot?.buffer && slot.generation === handle >>> SLOT_BITS) return slot as LiveSlot;
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

/** Drops a reference; the last one lets the buffer go. Never throws: C calls it as well. */
export function releaseSlot(handle: number): void {
  try {
    const slot: Slot = slotOf(handle);
    if (--slot.refs > 0) return;
    const { release, own, buffer, record } = slot as LiveSlot;
    slot.buffer = slot.record = slot.release = null;
    // A slot whose generations are used up is given up, so that no old handle is ever valid again.
    if (slot.generation++ < MAX_GENERATION) shared.freeSlots.push(handle & (MAX_SLOTS - 1));
    if (!own) release?.();
    else if (record.lost === null) record.pool.give(buffer);
  } catch (error) {
    console.error(error);
  }
}

const PADDING = new Uint8Array(16);
/** How many bytes of a pooled buffer may be something else than 0. */
const filled = new WeakMap<GPUBuffer, number>();

/**
 * The handle of a buffer for `nbytes`, padded to a multiple of 16 bytes and never empty. What
 * lies behind `nbytes` is 0, and with `zeros` all of it is.
 */
export function allocate(
  record: DeviceRecord,
  nbytes: number,
  usage: number,
  zeros: boolean,
): number {
  checkAlive(record);
  const { device, pool } = record;
  const { gpu } = device;
  const size = Math.max(roundUp(nbytes, 16), 16);
  const limit = gpu.limits.maxBufferSize;
  if (size > limit) {
    const adapter = record.adapterLimits;
    throw new UnsupportedError(
      `${size} bytes are needed, ${nameOf(record)} allows ${limit} in one buffer` +
        `${adapter ? ` and its adapter ${adapter.maxBufferSize}` : ""}: ` +
        `use a device from requestDevice({ maxBufferSize: ${size} })`,
      { given: size, needed: limit, device: record.device },
    );
  }
  const words = roundUp(nbytes, 4);
  const idle = pool.take(size, usage);
  if (idle !== undefined) {
    if (zeros) {
      const encoder = gpu.createCommandEncoder();
      encoder.clearBuffer(idle);
      gpu.queue.submit([encoder.finish()]);
    } else if (words < (filled.get(idle) as number)) {
      gpu.queue.writeBuffer(idle, size - 16, PADDING);
    }
    filled.set(idle, words);
    return addSlot(record, idle, null, true, nbytes);
  }
  const make = () => gpu.createBuffer({ size, usage });
  const buffer = isRisky(size, usage)
    ? watched(record, `createBuffer for ${size} bytes`, make)
    : make();
  if (usage !== DEFAULT_USAGE) {
    return addSlot(record, buffer, () => buffer.destroy(), false, nbytes);
  }
  filled.set(buffer, words);
  return addSlot(record, buffer, null, true, nbytes);
}

/**
 * The buffer of a tensor, for others. Who takes it may keep it, so that it is never used for
 * another tensor, nor destroyed: the garbage collector does that.
 */
export function bufferOf(tensor: Tensor): GPUBuffer {
  const slot = slotOf(tensor._handle);
  if (slot.own) {
    (slot as Slot).own = false;
    slot.record.taken++;
  }
  return slot.buffer;
}

/** Implements the `capacity` of an exchange. What is behind a view may be elements of others. */
export function capacityOf(tensor: Tensor): number {
  const { used, end } = slotOf(tensor._handle);
  const { start, bytes } = spanOf(tensor._type, tensor.shape, tensor._strides, tensor._start);
  return (start + bytes >= used ? end : start + bytes) - tensor._start;
}

/** A tensor over a slot, whose reference it takes over. */
export function tensorOfSlot(
  handle: number,
  byteOffset: number,
  dtype: DType,
  shape: readonly number[],
  readOnly: boolean,
  strides: readonly number[] | null = null,
): Tensor {
  const { device } = slotOf(handle).record;
  return new Tensor(gpuStorage, handle, byteOffset, dtype, shape, strides, device, readOnly);
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
  usage = DEFAULT_USAGE,
): Tensor {
  const handle = allocate(record, bytesOf(dtype, sizeOf(shape)), usage, true);
  return tensorOfSlot(handle, 0, dtype, shape, false);
}

/** Implements `Tensor.fromGPUBuffer`. */
export function fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): Tensor {
  if (typeof buffer?.size !== "number") {
    throw new TypeError(`a GPUBuffer is needed, not ${String(buffer)}`);
  }
  const record = useDevice(options.device);
  checkAlive(record);
  const shape = checkShape(options.shape);
  const dtype = dtypeNamed(options.dtype, options.padded);
  const byteOffset = options.byteOffset ?? 0;
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0) {
    throw new RangeError(`byteOffset ${byteOffset} is not a non-negative integer`);
  }
  const strides = checkStrides(shape, options.strides);
  const { start, bytes } = spanOf(dtype, shape, strides, byteOffset);
  if (start < 0 || start + bytes > buffer.size) {
    throw new RangeError(
      `shape [${shape}] of ${dtype.name} from byte ${byteOffset} reaches from byte ${start} to ` +
        `${start + bytes}; the GPUBuffer has ${buffer.size}`,
    );
  }
  const rest = buffer.size - byteOffset;
  const nbytes = bytesOf(dtype, sizeOf(shape));
  const capacity = options.capacity ?? (rest <= roundUp(nbytes, 16) ? rest : nbytes);
  const end = byteOffset + Math.min(capacity, rest);
  const handle = addSlot(record, buffer, options.release ?? null, false, start + bytes, end);
  return tensorOfSlot(handle, byteOffset, dtype, shape, options.readOnly === true, strides);
}

/** The slot of a tensor that must be on this device; DeviceError naming both where it is not. */
export function slotOn(record: DeviceRecord, tensor: Tensor): LiveSlot {
  tensor._check();
  const slot = tensor.device.type === CPU ? null : slotOf(tensor._handle);
  if (slot?.record === record) return slot;
  throw new DeviceError(
    `${tensor.dtype}[${tensor.shape}] on ${slot ? nameOf(slot.record) : "cpu"} cannot be used on ` +
      `${nameOf(record)}: ${slot ? "devices do not share buffers; await read() it, then " : ""}` +
      "upload it with to(gpuDevice)",
    { device: record.device },
  );
}

/** Throws UnsupportedError naming the usage flag that the tensor's buffer lacks. */
export function checkUsage(tensor: Tensor, flag: keyof typeof Usage, what: string): void {
  const { usage } = slotOf(tensor._handle).buffer;
  if (usage & Usage[flag]) return;
  const has = Object.entries(Usage).flatMap(([name, bit]) => (usage & bit ? [name] : []));
  throw new UnsupportedError(
    `${what} needs a GPUBuffer with GPUBufferUsage.${flag}; that of ${tensor} has ` +
      `${has.join(" | ") || "none of the flags needed here"}: create it with ${flag} too`,
    { given: usage, needed: Usage[flag], device: tensor.device },
  );
}

/** Storage in GPU buffers. `_handle` of its tensors is a slot's handle. */
export const gpuStorage: Storage = {
  bytes(tensor) {
    throw new UnsupportedError(
      `${tensor} has no data that JS can see: use await tensor.read(), or tensor.buffer`,
      { device: tensor.device },
    );
  },
  share(tensor) {
    retainSlot(tensor._handle);
    return tensor._again(tensor._handle);
  },
  pack(tensor) {
    const { record } = slotOf(tensor._handle);
    checkRowMajor(tensor);
    checkCopySource(tensor, "copying");
    const copy = emptyOnDevice(record, tensor.shape, tensor._type);
    copyBuffers(record, tensor, slotOf(copy._handle).buffer, 0);
    return copy;
  },
  release: releaseSlot,
};

/** Copies a tensor's bytes into another buffer of the same device. */
export function copyBuffers(
  record: DeviceRecord,
  tensor: Tensor,
  target: GPUBuffer,
  offset: number,
): void {
  const { nbytes, byteOffset } = tensor;
  if (nbytes === 0) return;
  count(record, "copied", nbytes);
  watched(record, `copying ${tensor}`, () => {
    const { gpu } = record.device;
    const { buffer } = slotOf(tensor._handle);
    const encoder = gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, byteOffset, target, offset, roundUp(nbytes, 4));
    gpu.queue.submit([encoder.finish()]);
  });
}

/** The bytes that a tensor's elements lie in, gaps included. */
export function spanOf(
  dtype: DType,
  shape: readonly number[],
  strides: readonly number[] | null,
  byteOffset: number,
): { start: number; bytes: number } {
  const size = sizeOf(shape);
  if (strides === null || size === 0) return { start: byteOffset, bytes: bytesOf(dtype, size) };
  const { low, high } = extentOf(shape, strides);
  return { start: byteOffset + low * dtype.step, bytes: (high - low + 1) * dtype.step };
}

/** Throws for a strided tensor, whose elements a kernel or copy would take for others. */
export function checkRowMajor(tensor: Tensor): void {
  if (tensor._strides === null) return;
  throw new UnsupportedError(
    `${tensor} has strides [${tensor.strides}]: on WebGPU it can be read, and nothing else; ` +
      "upload what read() gives",
    { device: tensor.device },
  );
}

/** WebGPU copies whole groups of 4 bytes at offsets that are multiples of 4. */
export function checkCopySource(tensor: Tensor, what: string): void {
  checkUsage(tensor, "COPY_SRC", what);
  const { byteOffset, nbytes } = tensor;
  const end = byteOffset + roundUp(nbytes, 4);
  const { size } = slotOf(tensor._handle).buffer;
  if (byteOffset % 4 === 0 && end <= size) return;
  throw new UnsupportedError(
    `${what} ${tensor} needs a byteOffset that is a multiple of 4 (it is ${byteOffset}) and ` +
      `${end} bytes in its GPUBuffer (it has ${size}): pad the buffer to a multiple of 16`,
    { given: size, needed: end, device: tensor.device },
  );
}
