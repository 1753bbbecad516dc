/**
 * The names by which packages beside dlpack-web use it, besides its public ones, without a promise
 * between minor versions: such a package requires the same version.
 */
import { type DType, type DTypeName, dtypeNamed } from "./core/dtype.js";
import type { AbortSignal, GPUBuffer, GPUDevice } from "./core/globals.js";
import { checkShape } from "./core/shape.js";
import { checkWrite as checkManaged } from "./core/targets.js";
import type { Tensor } from "./core/tensor.js";
import { emptyOnDevice } from "./webgpu/buffers/buffers.js";
import { extentOf, slotOf } from "./webgpu/buffers/table.js";
import { read } from "./webgpu/buffers/transfer.js";
import { useDevice, workingDevice } from "./webgpu/device/device.js";
import * as compiling from "./webgpu/errors/compiling.js";
import { loadExplanations } from "./webgpu/errors/explanations.js";
import { type Outcome, openOutcomes, setOutcome } from "./webgpu/errors/record.js";
import type { Part } from "./webgpu/formulas/formulas.js";
import { Kernel, type KernelOptions } from "./webgpu/kernels/kernels.js";

export { inTurn, isUsable } from "./adapters/common.js";
export { shareDevice } from "./adapters/devices.js";
export { ON_CPU, ON_GPU } from "./adapters/generated.js";
export { fromOrt, type Ort, toOrt } from "./adapters/ort.js";
export { isOfRun, nameSession } from "./adapters/ortruns.js";
export { CopyError, ReleasedError, tagOf, textOf } from "./core/errors.js";
export { checkOptions } from "./core/options.js";
export { tagOfDType } from "./open/dtypes.js";
export { factsOf, readHeader, writeHeader } from "./open/safetensors.js";
export type { Handle, Wait, Work } from "./pyodide/numbers.js";
export type { Python } from "./pyodide/python.js";
export { copyBytes, viewOf } from "./webgpu/buffers/described.js";
export { listenForFaults, realDevice } from "./webgpu/device/device.js";
export { requestDevice } from "./webgpu/device/request.js";
export { calledAt, sites, unseen } from "./webgpu/errors/errors.js";
export { toCanvas } from "./webgpu/images/images.js";
export { timed } from "./webgpu/kernels/timing.js";
export type { DType, GPUDevice };

/**
 * Checks that a device works.
 *
 * @param device - registered if it is not
 * @throws DeviceLostError if it is lost
 */
export function checkAlive(device: GPUDevice): void {
  workingDevice(device);
}

/**
 * The buffer of a tensor, which is reused after its release, unlike that of `tensor.buffer`.
 *
 * @param tensor - on a GPU
 * @returns the buffer, for as long as the tensor is not released
 */
export function bufferOf(tensor: Tensor): GPUBuffer {
  return slotOf(tensor._managed.handle).buffer.gpu;
}

/**
 * The dtype of a tensor, of which there is one object for each name, and for padded elements.
 *
 * @param tensor - on any device
 */
export function dtypeOf(tensor: Tensor): DType {
  return tensor._managed.dtype;
}

/**
 * The bytes of a contiguous tensor.
 *
 * @param tensor - in memory
 * @returns the memory itself, for as long as the tensor is not released and memory does not grow
 * @throws ReleasedError; UnsupportedError for a tensor on a GPU
 */
export function bytesOf(tensor: Tensor): Uint8Array {
  return tensor._managed.bytes();
}

/**
 * A tensor of zeros on a device.
 *
 * @param device - registered if it is not
 * @param shape - checked
 * @param dtype - its name
 * @param recorded - whether a kernel that a batch records computes it: it cannot be read before
 * @returns yours to release
 * @throws DeviceLostError; RangeError, TypeError, UnsupportedError for what no tensor has
 */
export function emptyOn(
  device: GPUDevice,
  shape: readonly number[],
  dtype: string,
  recorded = false,
): Tensor {
  const type = dtypeNamed(dtype as DTypeName);
  return emptyOnDevice(useDevice(device), checkShape(shape), type, recorded);
}

/**
 * A batch that computes a tensor begins to run: from now on it can be read.
 *
 * @param tensor - on a GPU
 */
export function beginRun(tensor: Tensor): void {
  const extent = extentOf(tensor._managed);
  const isFirst = ({ fault }: Outcome) => fault?.batch === null && fault.buffer === extent.buffer;
  if (openOutcomes(extent).some(isFirst)) setOutcome(extent, null);
}

/**
 * A kernel whose source has parts, where errors are shown as of the part.
 *
 * @param device - where it runs
 * @param wgsl - the source
 * @param options - as of `webgpu.Kernel`
 * @param parts - of each its name, first line and number of lines
 */
export function compile(
  device: GPUDevice,
  wgsl: string,
  options: KernelOptions,
  parts: readonly Part[],
): Kernel {
  return new Kernel(device, wgsl, options, { parts });
}

/** From now on errors of shaders and runs are explained by code of this bundle, not loaded later. */
export function explainHere(): void {
  loadExplanations(async () => compiling);
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
