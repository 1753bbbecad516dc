/**
 * buffers/: tensors in GPU buffers, their references, and how elements get there, from there to another
 * buffer, and back.
 *
 * Other folders use `slotOf` and `extentOf` (`references.ts`), `allocate`, `tensorOfSlot`, `copyOf`, and
 * the checks of `checks.ts`.
 */

import { placeElements } from "../../core/arrays.js";
import type { DType } from "../../core/dtype.js";
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { GPUBuffer } from "../../core/globals.js";
import { ManagedTensor, type Place, type Storage, unclonable } from "../../core/managed.js";
import { checkOptions, FROM_GPU_BUFFER, type FromGPUBufferOptions } from "../../core/options.js";
import { sizeOf } from "../../core/shape.js";
import { Tensor } from "../../core/tensor.js";
import { count, workingDevice } from "../device/device.js";
import type { DeviceRecord } from "../device/state.js";
import { notRun, operate } from "../errors/errors.js";
import { type BufferRecord, markExposed, recordOf, setOutcome } from "../errors/record.js";
import { checkCopySource, refuseRecorded } from "./checks.js";
import { type AllocateOptions, allocate } from "./making.js";
import { clearPadding } from "./padding.js";
import {
  addSlot,
  DEFAULT_USAGE,
  extentOf,
  releaseSlot,
  retainSlot,
  roundUp,
  slotOf,
  Usage,
} from "./references.js";

/**
 * The buffer of a tensor, for foreign code, which may keep it. So it is never reused for another
 * tensor nor destroyed, but left to the garbage collector. A buffer with other usages than the
 * default still ends with its tensor.
 */
export function bufferOf(tensor: ManagedTensor): GPUBuffer {
  const { facts, record } = slotOf(tensor.handle);
  if (!facts.taken && facts.origin !== "others") {
    facts.taken = true;
    if (facts.origin === "tensors") record.taken++;
  }
  return facts.buffer;
}

/** The same for code that may write to it, until the tensor is released. */
export function lend(tensor: ManagedTensor): GPUBuffer {
  const { facts } = slotOf(tensor.handle);
  markExposed(facts);
  return facts.buffer;
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
  recorded = false,
): Tensor {
  const handle = allocate(record, sizeOf(shape) * dtype.step, { zeros: true });
  const tensor = tensorOfSlot(handle, 0, dtype, shape, false);
  const extent = extentOf(tensor);
  if (recorded) setOutcome(extent, notRun(extent.facts));
  return new Tensor(tensor);
}

/** Implements `Tensor.fromGPUBuffer`. */
export function fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): ManagedTensor {
  if (typeof buffer?.size !== "number" || typeof buffer.usage !== "number") {
    throw new TypeError(`a GPUBuffer is needed, not ${tagOf(buffer)}`);
  }
  const example = 'device, shape: [2, 3], dtype: "float32"';
  checkOptions<FromGPUBufferOptions>(options, "fromGPUBuffer()", FROM_GPU_BUFFER, example);
  const record = workingDevice(options.device);
  const { size } = buffer;
  const byteOffset = checkCount("byteOffset", options.byteOffset ?? 0);
  const place = placeElements(options, byteOffset, size, "GPUBuffer");
  const { dtype, shape, strides } = place;
  const rest = size - byteOffset;
  const capacity = checkCount("capacity", options.capacity ?? (size - place.end < 16 ? rest : 0));
  const used = strides === null ? place.start + sizeOf(shape) * dtype.step : place.end;
  const end = Math.max(place.end, byteOffset + Math.min(capacity, rest));
  const { release = null, readOnly } = options; // before there is a slot: getters may throw
  const handle = addSlot(record, recordOf(buffer), { release, used, end });
  return tensorOfSlot(handle, byteOffset, dtype, shape, readOnly === true, strides);
}

function checkCount(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${name} ${value} is not a non-negative integer`);
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

// --- copies from buffer to buffer ------------------------------------------------------------------------

/** A fresh buffer with a tensor's elements, and zeros after them. */
export function copyOf(tensor: ManagedTensor, options: AllocateOptions): number {
  checkCopySource(tensor, "copying");
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
  const handle = allocate(record, tensor.exact, { ...options, usage });
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
  const { nbytes } = tensor;
  if (nbytes === 0) return;
  refuseRecorded(tensor, false);
  const { record } = slotOf(tensor.handle);
  const { gpu } = record.device;
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
      encodeCopy(encoder, tensor, target.buffer, offset);
      gpu.queue.submit([encoder.finish()]);
    },
  );
  if (nbytes % 4 !== 0) outcome?.done.then((fault) => fault && record.pipelines.clear());
}

/** The commands of such a copy, of at least one byte. */
export function encodeCopy(
  encoder: GPUCommandEncoder,
  { handle, start, nbytes }: ManagedTensor,
  target: GPUBuffer,
  offset: number,
): void {
  const { buffer, record } = slotOf(handle);
  encoder.copyBufferToBuffer(buffer, start, target, offset, roundUp(nbytes, 4));
  if (nbytes % 4 !== 0) clearPadding(record, encoder, target, offset, nbytes);
  count(record, "copied", nbytes);
}
