/**
 * The names by which packages beside dlpack-web use it, besides its public ones, without a promise
 * between minor versions: such a package requires the same version.
 */
import type { AbortSignal, GPUBuffer, GPUDevice } from "./core/globals.js";
import { checkWrite as checkManaged } from "./core/targets.js";
import type { Tensor } from "./core/tensor.js";
import { checkAlive as checkRecord, useDevice } from "./webgpu/device.js";
import { slotOf } from "./webgpu/references.js";
import { read } from "./webgpu/transfer.js";

export { inTurn, isUsable } from "./adapters/common.js";
export { shareDevice } from "./adapters/devices.js";
export { ON_CPU, ON_GPU } from "./adapters/generated.js";
export { fromOrt, type Ort, toOrt } from "./adapters/ort.js";
export { isOfRun, nameSession } from "./adapters/ortruns.js";
export { CopyError, ReleasedError } from "./core/errors.js";
export type { Handle, Wait, Work } from "./pyodide/numbers.js";
export type { Python } from "./pyodide/python.js";
export { realDevice } from "./webgpu/device.js";
export { unseen } from "./webgpu/faults.js";
export type { GPUBuffer, GPUDevice, Tensor };

/**
 * Checks that a device works.
 *
 * @param device - registered if it is not
 * @throws DeviceLostError if it is lost
 */
export function checkAlive(device: GPUDevice): void {
  checkRecord(useDevice(device));
}

/**
 * The buffer of a tensor, which is reused after its release, unlike that of `tensor.buffer`.
 *
 * @param tensor - on a GPU
 * @returns the buffer, for as long as the tensor is not released
 */
export function bufferOf(tensor: Tensor): GPUBuffer {
  return slotOf(tensor._managed.handle).buffer;
}

/**
 * Checks that `target.write(source)` would write.
 *
 * @param target - the tensor to overwrite
 * @param source - the new elements
 * @throws UnsupportedError for another shape or dtype, or if the target is read-only
 */
export function checkWrite(target: Tensor, source: Tensor): void {
  checkManaged(target._managed, source._managed);
}

/**
 * Reads tensors into others at once: one submit and one map for each device.
 *
 * @param sources - the caller may release them at once
 * @param targets - in memory; one for each
 * @param signal - once it is aborted, nothing writes to the targets, nor holds them
 * @throws the fault of the first tensor that has one
 */
export async function readInto(
  sources: readonly Tensor[],
  targets: readonly Tensor[],
  signal: AbortSignal,
): Promise<void> {
  const managed = (tensors: readonly Tensor[]) => tensors.map((tensor) => tensor._managed);
  await read(managed(sources), managed(targets), signal as never);
}
