/**
 * buffers/: tensors in GPU buffers, their references, and how elements get there, from there to another
 * buffer, and back.
 *
 * Other folders use the slots of tensors (`table.ts`), which bytes are theirs (`slot.ts`), the checks of
 * `checks.ts`, buffers for new tensors (`pool.ts`), and tensors over them.
 */
import { placeElements } from "../../core/arrays.js";
import type { DType } from "../../core/dtype.js";
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { GPUBuffer } from "../../core/globals.js";
import { ManagedTensor, type Place, type Storage, unclonable } from "../../core/managed.js";
import { checkOptions, FROM_GPU_BUFFER, type FromGPUBufferOptions } from "../../core/options.js";
import { sizeOf } from "../../core/shape.js";
import { Tensor } from "../../core/tensor.js";
import { checkAlive, type DeviceRecord, workingDevice } from "../device/device.js";
import { notRun } from "../errors/errors.js";
import { markExposed, recordOf, setOutcome } from "../errors/record.js";
import { checkCopySource } from "./checks.js";
import { copyInto } from "./copies.js";
import { type AllocateOptions, allocate } from "./pool.js";
import { DEFAULT_USAGE, extentIn, type LiveSlot, Usage } from "./slot.js";
import { addSlot, filled, releaseSlot, retainSlot, slotOf } from "./table.js";

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
  checkAlive(device);
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
  checkAlive(source.device);
  const slot = allocate(source.device, tensor.exact, { ...options, usage });
  return filled(slot, (buffer) => copyInto(tensor, source, buffer, 0));
}
