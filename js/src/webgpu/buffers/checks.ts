/**
 * Checks of tensors on GPUs, with their messages, each stated once. Python's are in
 * py/dlpack_web/_backends. The caller has looked up the tensor's slot.
 */
import type { DType } from "../../core/dtype.js";
import { textOf, UnsupportedError } from "../../core/errors.js";
import type { ManagedTensor } from "../../core/managed.js";
import { shared } from "../../core/realm.js";
import { managedOf } from "../../core/tensor.js";
import { type DeviceRecord, nameOf } from "../device/device.js";
import type { Extent } from "../errors/record.js";
import * as messages from "../messages.js";
import { capacityIn, extentIn, type LiveSlot, roundUp, Usage } from "./slot.js";

/** The inside of a tensor; throws TypeError for anything else. */
export function managedIn(x: unknown): ManagedTensor {
  const tensor = managedOf(x);
  if (tensor) return tensor;
  throw new TypeError(`a Tensor is needed, not ${textOf(x)}`);
}

/** The error for a buffer beyond the device's limit. */
export function tooLarge(device: DeviceRecord, size: number): UnsupportedError {
  const limit = device.gpu.limits.maxBufferSize;
  const most = device.adapterLimits?.maxBufferSize;
  const way =
    most !== undefined && size > most ? messages.noLargerBuffer() : messages.largerBuffer(size);
  const adapter = most === undefined ? "" : ` and its adapter ${most}`;
  return new UnsupportedError(messages.bufferTooLarge(size, nameOf(device), limit, adapter, way), {
    given: size,
    needed: limit,
    device: device.named,
  });
}

/** Throws UnsupportedError naming the usage flag that the tensor's buffer lacks. */
export function checkUsage(
  { buffer, device }: LiveSlot,
  tensor: ManagedTensor,
  flag: keyof typeof Usage,
  what: string,
): void {
  const { usage } = buffer.gpu;
  if (usage & Usage[flag]) return;
  const has = Object.entries(Usage).flatMap(([name, bit]) => (usage & bit ? [name] : []));
  const flags = has.join(" | ") || "none of the flags needed here";
  throw new UnsupportedError(messages.lacksUsage(what, flag, tensor.toString(), flags), {
    given: usage,
    needed: Usage[flag],
    device: device.named,
  });
}

/** Throws for a strided tensor, whose elements a kernel or copy would misread. */
export function checkRowMajor(tensor: ManagedTensor): void {
  if (tensor.strides === null) return;
  throw new UnsupportedError(
    `${tensor.toString()} has strides [${tensor.strides}]: on WebGPU it can be read, and nothing else; ` +
      "upload the result of read()",
    { device: tensor.device },
  );
}

/** A batch that records; kernels/batch.ts implements it. */
export interface Recorder {
  /** Records a call of a kernel instead of running it. */
  _record(kernel: object, args: readonly unknown[], options: object): void;
  /** Whether a recorded kernel writes to these bytes, or, for `writing`, uses them. */
  _uses(extent: Extent, writing: boolean): boolean;
}

/** The batch that records now, of any copy of the library. */
export const recording = shared("recording", () => ({ batch: null as Recorder | null }));

/** Throws if a tensor is read or written now that a kernel is to use later, as the batch runs. */
export function refuseRecorded(slot: LiveSlot, tensor: ManagedTensor, writing: boolean): void {
  if (!recording.batch?._uses(extentIn(slot, tensor), writing)) return;
  throw new UnsupportedError(
    `${tensor.toString()} cannot be ${writing ? "written" : "read"} here: a kernel that the batch has ` +
      `recorded ${writing ? "uses" : "writes to"} it, and runs only with run(): do this before the ` +
      "batch is recorded, or after run()",
  );
}

/** WebGPU copies whole groups of 4 bytes at offsets that are multiples of 4. */
export function checkCopySource(slot: LiveSlot, tensor: ManagedTensor, what: string): void {
  checkRowMajor(tensor);
  checkUsage(slot, tensor, "COPY_SRC", what);
  const { start } = tensor;
  const end = start + roundUp(tensor.nbytes, 4);
  const { size } = slot.buffer.gpu;
  if (start % 4 === 0 && end <= size) return;
  throw new UnsupportedError(messages.unalignedCopy(what, tensor.toString(), start, end, size), {
    given: size,
    needed: end,
    device: tensor.device,
  });
}

/** Throws if elements on a GPU would have to be converted. */
export function checkSameDType(tensor: ManagedTensor, given: DType, needed: DType): void {
  if (given === needed) return;
  throw new UnsupportedError(`${tensor.toString()} is on the GPU: only uploads convert`, {
    given: given.name,
    needed: needed.name,
  });
}

/** Throws unless the tensor's words are its own: whole words are written. */
export function checkOwnWords(slot: LiveSlot, tensor: ManagedTensor): void {
  if (tensor.start % 4 === 0 && roundUp(tensor.nbytes, 4) <= capacityIn(slot, tensor)) return;
  throw new UnsupportedError(
    `${tensor.toString()} shares words of 4 bytes with its neighbours (byteOffset ${tensor.start}, ` +
      `${tensor.nbytes} bytes): WebGPU writes whole words`,
    { device: tensor.device },
  );
}

/** Throws unless a buffer has the whole words that reading a tensor copies. */
export function checkWholeWords({ buffer }: LiveSlot, tensor: ManagedTensor): void {
  const { size } = buffer.gpu;
  const { start, bytes } = tensor.span;
  const end = roundUp(start + bytes, 4);
  if (bytes === 0 || end <= size) return;
  throw new UnsupportedError(messages.unalignedRead(tensor.toString(), end, size), {
    given: size,
    needed: end,
    device: tensor.device,
  });
}
