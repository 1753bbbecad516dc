/**
 * buffers/: tensors in GPU buffers, their references, and how elements get there, from there to another
 * buffer, and back.
 *
 * Other folders use the slots of tensors (`table.ts`), which bytes are theirs (`extents.ts`), the checks of
 * `checks.ts`, and from this file buffers for new tensors and copies of tensors.
 */
import { placeElements } from "../../core/arrays.js";
import type { CopyOf, DType } from "../../core/dtype.js";
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { GPUBuffer } from "../../core/globals.js";
import { ManagedTensor, type Place, type Storage, unclonable } from "../../core/managed.js";
import { checkOptions, FROM_GPU_BUFFER, type FromGPUBufferOptions } from "../../core/options.js";
import { sizeOf } from "../../core/shape.js";
import { Tensor } from "../../core/tensor.js";
import {
  checkAlive,
  count,
  type DeviceRecord,
  pipelineOf,
  workingDevice,
} from "../device/device.js";
import { CREATION_ERRORS, notRun, operate } from "../errors/errors.js";
import {
  type BufferRecord,
  markExposed,
  newRecord,
  type Origin,
  recordOf,
  setOutcome,
} from "../errors/record.js";
import { checkCopySource, refuseRecorded, tooLarge } from "./checks.js";
import { poolOf } from "./pool.js";
import { DEFAULT_USAGE, extentIn, type LiveSlot, roundUp, Usage } from "./slot.js";
import { addSlot, releaseSlot, retainSlot, slotOf } from "./table.js";

// --- buffers for new tensors ------------------------------------------------------------------------

/** From this size on, error scopes watch creating and writing a buffer. */
export const WATCHED: number = 1 << 16;

const ZEROS = new Uint8Array(1 << 12);

/** Options of {@link allocate}. */
export interface AllocateOptions {
  usage?: number;
  /** Whether the buffer must have no other flags. */
  exact?: boolean;
  /** The size is a multiple of this, itself a multiple of 16; default 16. */
  padTo?: number;
  /** Whether the elements must be 0 too, not only the padding. */
  zeros?: boolean;
}

/**
 * A slot over a buffer that {@link obtain} gives.
 *
 * @param used - bytes of the elements, which may end within one
 */
export function allocate(
  device: DeviceRecord,
  used: number,
  { usage = DEFAULT_USAGE, padTo, zeros }: AllocateOptions = {},
): LiveSlot {
  checkAlive(device);
  return addSlot(device, obtain(device, Math.ceil(used), usage, padTo, zeros), { used });
}

/**
 * A buffer for `nbytes`, padded to a multiple of 16 bytes and never empty. Everything after
 * `nbytes` is 0, and with `zeros` all of it. The device works; the caller enters the buffer into the
 * table, or disposes of it.
 */
export function obtain(
  device: DeviceRecord,
  nbytes: number,
  usage: number,
  padTo = 16,
  zeros = false,
): BufferRecord {
  const { gpu, errors } = device;
  const size = Math.max(roundUp(nbytes, padTo), padTo);
  if (size > gpu.limits.maxBufferSize) throw tooLarge(device, size);
  const words = nbytes + (-nbytes & 3);
  const origin = usage === DEFAULT_USAGE ? "tensors" : "single";
  const idle = origin === "tensors" ? poolOf(device).take(size, origin, errors) : undefined;
  const end = zeros ? 0 : words;
  if (idle && idle.dirty > end) clear(device, idle, end);
  const buffer = idle ?? createBuffer(device, size, usage, origin);
  buffer.dirty = end;
  return buffer;
}

/** Words of a uniform that a kernel of ours reads, in a buffer that is only for them. */
export class Words {
  readonly buffer: BufferRecord;

  constructor(device: DeviceRecord, words: CopyOf<"uint32">) {
    this.buffer = obtain(device, words.byteLength, DEFAULT_USAGE);
    device.gpu.queue.writeBuffer(this.buffer.gpu, 0, words);
  }
}

/** A fresh buffer, all zeros. WebGPU reports asynchronously when it cannot create one. */
export function createBuffer(
  device: DeviceRecord,
  size: number,
  usage: number,
  origin: Origin,
  what = `${size} bytes`,
): BufferRecord {
  // Dawn in Node reports an invalid buffer before createBuffer() returns.
  const { errors, gpu } = device;
  // It can fail other than by losing the device because of unusual flags, or out of memory. The
  // error scopes that would report it cost more than a small upload.
  const filters = origin === "single" || size >= WATCHED ? CREATION_ERRORS : [];
  const operation = { what: `createBuffer for ${what}`, filters };
  const create = () => gpu.createBuffer({ size, usage });
  const { result, outcome: creation } = operate(device, operation, create);
  poolOf(device).created++;
  return newRecord(result, origin, { creation, errors });
}

/** Clears what the last tensor left in an idle buffer, from a word on. */
function clear({ gpu }: DeviceRecord, buffer: BufferRecord, from: number): void {
  const end = Math.min(roundUp(buffer.dirty, 4), buffer.gpu.size);
  try {
    // A clear command costs more than writing a few bytes.
    if (end - from <= 4 * ZEROS.length) {
      for (let at = from; at < end; at += ZEROS.length) {
        gpu.queue.writeBuffer(buffer.gpu, at, ZEROS, 0, Math.min(ZEROS.length, end - at));
      }
    } else {
      const encoder = gpu.createCommandEncoder();
      encoder.clearBuffer(buffer.gpu, from, end - from);
      gpu.queue.submit([encoder.finish()]);
    }
  } catch (error) {
    buffer.gpu.destroy();
    throw error;
  }
}

// --- tensors ----------------------------------------------------------------------------------------

/** A tensor over a slot, whose reference it takes over. */
export function tensorOn(
  slot: LiveSlot,
  byteOffset: number,
  dtype: DType,
  shape: readonly number[],
  readOnly: boolean = false,
  strides: readonly number[] | null = null,
): ManagedTensor {
  const { handle, device } = slot;
  const { named } = device;
  return new ManagedTensor(gpuStorage, handle, byteOffset, dtype, shape, strides, named, readOnly);
}

/** A fresh tensor on the device, filled with zeros. */
export function emptyOnDevice(
  device: DeviceRecord,
  shape: readonly number[],
  dtype: DType,
  recorded = false,
): Tensor {
  const slot = allocate(device, sizeOf(shape) * dtype.step, { zeros: true });
  const tensor = tensorOn(slot, 0, dtype, shape);
  if (recorded) setOutcome(extentIn(slot, tensor), notRun(slot.buffer));
  return new Tensor(tensor);
}

/** Implements `Tensor.fromGPUBuffer`. */
export function fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): ManagedTensor {
  if (typeof buffer?.size !== "number" || typeof buffer.usage !== "number") {
    throw new TypeError(`a GPUBuffer is needed, not ${tagOf(buffer)}`);
  }
  const example = 'device, shape: [2, 3], dtype: "float32"';
  checkOptions<FromGPUBufferOptions>(options, "fromGPUBuffer()", FROM_GPU_BUFFER, example);
  const device = workingDevice(options.device);
  const { size } = buffer;
  const byteOffset = checkCount("byteOffset", options.byteOffset ?? 0);
  const place = placeElements(options, byteOffset, size, "GPUBuffer");
  const { dtype, shape, strides } = place;
  const rest = size - byteOffset;
  const capacity = checkCount("capacity", options.capacity ?? (size - place.end < 16 ? rest : 0));
  const used = strides === null ? place.start + sizeOf(shape) * dtype.step : place.end;
  const end = Math.max(place.end, byteOffset + Math.min(capacity, rest));
  const { release = null, readOnly } = options; // before there is a slot: getters may throw
  const slot = addSlot(device, recordOf(buffer), { release, used, end });
  return tensorOn(slot, byteOffset, dtype, shape, readOnly === true, strides);
}

function checkCount(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${name} ${value} is not a non-negative integer`);
}

/**
 * The buffer of a tensor, for foreign code, which may keep it. So it is never reused for another
 * tensor nor destroyed, but left to the garbage collector. A buffer with other usages than the
 * default still ends with its tensor.
 */
export function bufferOf(tensor: ManagedTensor): GPUBuffer {
  const { buffer, device } = slotOf(tensor.handle);
  if (!buffer.escaped && buffer.origin !== "others") {
    buffer.escaped = true;
    if (buffer.origin === "tensors") device.escaped++;
  }
  return buffer.gpu;
}

/** The same for code that may write to it, until the tensor is released. */
export function exportBuffer(tensor: ManagedTensor): GPUBuffer {
  const { buffer } = slotOf(tensor.handle);
  markExposed(buffer);
  return buffer.gpu;
}

/** Storage in GPU buffers. `handle` of its tensors is a slot's handle. */
export const gpuStorage: Storage = {
  guard: unclonable,
  mayBeReplaced: false,
  bytes(tensor) {
    throw new UnsupportedError(
      `${tensor.toString()} has no data that JS can see: use await tensor.read(), or tensor.buffer`,
      { device: slotOf(tensor.handle).device.named },
    );
  },
  share(tensor) {
    return retainSlot(tensor.handle).handle;
  },
  pack(tensor): Place {
    const { handle } = copyOf(tensor, slotOf(tensor.handle), {});
    return { storage: gpuStorage, handle, start: 0 };
  },
  release: releaseSlot,
};

// --- copies from buffer to buffer -------------------------------------------------------------------

/** A fresh buffer with a tensor's elements, and zeros after them. */
export function copyOf(
  tensor: ManagedTensor,
  source: LiveSlot,
  options: AllocateOptions,
): LiveSlot {
  checkCopySource(source, tensor, "copying");
  const { exact, usage: asked = DEFAULT_USAGE } = options;
  const usage = exact ? asked : asked | Usage.COPY_DST | Usage.STORAGE; // for its padding
  if (tensor.nbytes % 4 !== 0 && !(usage & Usage.STORAGE)) {
    throw new UnsupportedError(
      `a copy of ${tensor.nbytes} bytes needs a buffer with STORAGE (128), not exactly ${usage}`,
      { given: usage, needed: usage | Usage.STORAGE },
    );
  }
  const slot = allocate(source.device, tensor.exact, { ...options, usage });
  try {
    copyInto(tensor, source, slot.buffer, 0);
    return slot;
  } catch (error) {
    releaseSlot(slot.handle);
    throw error;
  }
}

/**
 * Copies a tensor's elements into a buffer of the same device, whose last word of them is padding
 * after them. Other bytes in the source's last word are copied too, and cleared.
 */
export function copyInto(
  tensor: ManagedTensor,
  source: LiveSlot,
  target: BufferRecord,
  offset: number,
): void {
  const { nbytes } = tensor;
  if (nbytes === 0) return;
  refuseRecorded(source, tensor, false);
  const { device } = source;
  const { gpu } = device;
  const { outcome } = operate(
    device,
    {
      what: `copying ${tensor.toString()}`,
      reads: [extentIn(source, tensor)],
      writes: [{ buffer: target, start: offset, end: offset + nbytes }],
      fresh: true,
      filters: ["validation"],
    },
    () => {
      const encoder = gpu.createCommandEncoder();
      encodeCopy(encoder, tensor, source, target.gpu, offset);
      gpu.queue.submit([encoder.finish()]);
    },
  );
  if (nbytes % 4 !== 0) outcome?.done.then((fault) => fault && device.pipelines.clear());
}

/** The commands of such a copy, of at least one byte. */
export function encodeCopy(
  encoder: GPUCommandEncoder,
  { start, nbytes }: ManagedTensor,
  { buffer, device }: LiveSlot,
  target: GPUBuffer,
  offset: number,
): void {
  encoder.copyBufferToBuffer(buffer.gpu, start, target, offset, roundUp(nbytes, 4));
  if (nbytes % 4 !== 0) clearPadding(device, encoder, target, offset, nbytes);
  count(device, "copied", nbytes);
}

/**
 * Clears the rest of the last word of `nbytes` (not a multiple of 4) from `offset` on, by a shader of one
 * invocation: WebGPU copies whole words.
 */
function clearPadding(
  device: DeviceRecord,
  encoder: GPUCommandEncoder,
  buffer: GPUBuffer,
  offset: number,
  nbytes: number,
): void {
  const code = `@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1) fn main() {
  words[arrayLength(&words) - 1] &= ${2 ** (8 * (nbytes % 4)) - 1};
}`;
  const { gpu } = device;
  const pipeline = pipelineOf<GPUComputePipeline>(device, code);
  const layout = pipeline.getBindGroupLayout(0);
  const word = offset + nbytes - (nbytes % 4);
  const from = word - (word % gpu.limits.minStorageBufferOffsetAlignment);
  const resource = { buffer, offset: from, size: word + 4 - from };
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, gpu.createBindGroup({ layout, entries: [{ binding: 0, resource }] }));
  pass.dispatchWorkgroups(1);
  pass.end();
}
