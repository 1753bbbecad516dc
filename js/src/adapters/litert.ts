// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * LiteRT.js: GPU tensors share the `GPUBuffer` both ways. On the CPU LiteRT.js copies what it takes
 * and what it gives.
 */

import type { DTypeName, TypedArray } from "../core/dtype.js";
import { DeviceError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { keeping } from "../core/releasing.js";
import { listOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";
import { handed, joined } from "./faults.js";

/** The part of `@litertjs/core` that is used here. */
export interface LiteRT {
  Tensor: { new (...args: any[]): any; prototype: any };
  getDefaultEnvironment(): any;
  getWebGpuDevice(): GPUDevice | null;
  setWebGpuDevice(device: any): void;
}

/** A `Tensor` of LiteRT.js, as far as it is used here. */
export interface LiteRTTensor {
  readonly type: { dtype: string; layout: { dimensions: ArrayLike<number> } };
  readonly accelerator: string;
  readonly deleted: boolean;
  readonly environment: { readonly webGpuDevice: unknown };
  toGpuBuffer(): unknown;
  toTypedArray(): unknown;
}

/** Options of {@link toLiteRT}. */
export interface ToLiteRTOptions extends common.GiveOptions {
  /** The `Environment` of the model that the tensor is for. Default: LiteRT's own default. */
  environment?: { readonly webGpuDevice: unknown } | undefined;
}

const LIBRARY = "LiteRT.js";
const DTYPES = ["float32", "int32", "uint8"];

// --- devices ----------------------------------------------------------------------------------------

/**
 * Makes a device the one of LiteRT's default environment: new tensors and models use it. Existing
 * ones stay where they are.
 *
 * @param litert - the module `@litertjs/core`, after its `loadLiteRt()`
 * @param device - the one to run on
 * @throws DeviceError if LiteRT.js was not loaded; DeviceLostError
 */
export async function useDevice(litert: LiteRT, device: GPUDevice): Promise<void> {
  return common.inTurn(litert.Tensor, async () => {
    await common.checkUsable(device);
    if (deviceOf(defaultOf(litert)) !== device) litert.setWebGpuDevice(device);
    install(litert);
  });
}

function defaultOf(litert: LiteRT): LiteRTTensor["environment"] {
  common.checkLibrary(litert, "getDefaultEnvironment", "the module @litertjs/core");
  try {
    return litert.getDefaultEnvironment();
  } catch (cause) {
    throw new DeviceError(`${LIBRARY} is not loaded: await its loadLiteRt() first`, { cause });
  }
}

function deviceOf({ webGpuDevice }: LiteRTTensor["environment"]): GPUDevice | undefined {
  return (webGpuDevice ?? undefined) as GPUDevice | undefined;
}

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the memory of a `Tensor` of LiteRT.js on WebGPU, on its environment's device,
 * without a copy; it stays valid when the `Tensor` is deleted. A `Tensor` on the CPU is copied, by
 * LiteRT.js.
 *
 * @param litert - the module that made the `Tensor`
 * @param value - a `Tensor`, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws ReleasedError for a deleted one; UnsupportedError for one whose GPUBuffer LiteRT.js does
 * not hand out; CopyError
 */
export function fromLiteRT(
  litert: LiteRT,
  value: LiteRTTensor | Exchangeable,
  options: common.TakeOptions = {},
): Tensor {
  if (!isLiteRTTensor(litert, value)) {
    return common.takeOther(value, `a Tensor of this copy of ${LIBRARY}`, options);
  }
  if (value.deleted) throw new ReleasedError(`this Tensor of ${LIBRARY} was deleted`);
  const { dtype, layout } = value.type;
  common.checkDType("DLPack", dtype, DTYPES);
  const shape = listOf(layout.dimensions, "dimensions");
  const ours = common.shareOf(value, shape);
  if (ours) return common.copiedIf(options.copy, ours);
  if (value.accelerator === "webgpu") {
    return fromGPU(value, shape, dtype as DTypeName, options);
  }
  common.refuseCopy(options.copy, `${LIBRARY} copies elements on the CPU`);
  const values = value.toTypedArray() as TypedArray;
  return Tensor.fromTypedArray(values, { shape, dtype: dtype as DTypeName });
}

function isLiteRTTensor(litert: LiteRT, x: unknown): x is LiteRTTensor {
  return x instanceof litert.Tensor;
}

function fromGPU(
  value: LiteRTTensor,
  shape: readonly number[],
  dtype: DTypeName,
  { copy }: common.TakeOptions,
): Tensor {
  const device = deviceOf(value.environment);
  if (!device) throw new DeviceError(`the environment of this Tensor has no GPUDevice`);
  const buffer = bufferOf(value);
  // A second handle keeps the memory, and its deletion is deferred.
  const { liteRtTensorBuffer: handle } = value as any;
  const known = "onDelete" in value && typeof handle?.clone === "function";
  if (!known) common.refuseCopy(copy, `this version of ${LIBRARY} cannot share its tensors`);
  const keep = () => {
    const own = handle.clone();
    return () => own.delete();
  };
  const hold = known ? common.holdOn(value, "onDelete", keep) : () => {};
  const made = common.overBuffer(buffer, { device, shape, dtype }, hold);
  return common.copiedIf(copy || !known, joined(value.constructor, LIBRARY, made));
}

function bufferOf(value: LiteRTTensor): GPUBuffer {
  try {
    return value.toGpuBuffer() as GPUBuffer;
  } catch (cause) {
    throw new UnsupportedError(
      `${LIBRARY} hands out only buffers as large as their elements: take the GPUBuffer that this ` +
        "Tensor was made of, by Tensor.fromGPUBuffer()",
      { cause },
    );
  }
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * A `Tensor` of LiteRT.js. On WebGPU it shares the tensor's memory, which it holds until its
 * `delete()`; nothing is copied, but strided tensors, and those whose buffer begins elsewhere or
 * lacks the usage STORAGE | COPY_SRC. Elements on the CPU are copied, by LiteRT.js. Its
 * `toGpuBuffer()` refuses a buffer that is larger than the elements; models take it.
 *
 * @param litert - the module `@litertjs/core`
 * @param x - a tensor, or another object with the exchange protocol
 * @param options - `environment`, default LiteRT's own default, and `copy`: true always copies,
 * false never does
 * @throws CopyError, UnsupportedError for other dtypes and tensors without elements, DeviceError for
 * a tensor on another device than the environment
 */
export function toLiteRT<L extends LiteRT>(
  litert: L,
  x: Exchangeable,
  { copy, environment = defaultOf(litert) }: ToLiteRTOptions = {},
): InstanceType<L["Tensor"]> {
  return keeping(fit(x, { copy, needs: { offset: 0, usage: common.STORAGE_COPY_SRC } }), (held) => {
    common.checkDType(LIBRARY, held.dtype, DTYPES);
    if (held.size === 0) throw new UnsupportedError(`${LIBRARY} does not support empty tensors`);
    const shape = [...held.shape];
    if (!held.device.gpu) {
      return new litert.Tensor(common.ownCopy(LIBRARY, held, copy), shape, environment);
    }
    common.checkDevice(LIBRARY, held, deviceOf(environment));
    const release = () => held.release();
    const made = new litert.Tensor(held.buffer, shape, held.dtype, environment, release);
    common.releaseWith(made, held);
    handed(litert.Tensor, LIBRARY, held);
    return made;
  });
}

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take its `Tensor`s.
 *
 * @param litert - the module `@litertjs/core`
 */
export function install(litert: LiteRT): void {
  common.makeExchangeable(litert, litert.Tensor, fromLiteRT);
}
