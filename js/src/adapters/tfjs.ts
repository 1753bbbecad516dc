// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * TensorFlow.js: CPU tensors alias the values of the cpu backend, GPU tensors the buffers of the
 * webgpu backend.
 */

import { classOf, type DTypeName, dtypeNamed, type TypedArray } from "../core/dtype.js";
import { DeviceError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { keeping } from "../core/releasing.js";
import { sizeOf } from "../core/shape.js";
import type { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import { take } from "../exchange/take.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";
import { flushed, handed, joined } from "./faults.js";

/** The part of `@tensorflow/tfjs-core` that is used here. */
export interface Tf {
  Tensor: { prototype: any };
  tensor(values: any, shape?: any, dtype?: any): any;
  clone(x: any): any;
  keep(x: any): any;
  engine(): any;
  backend(): any;
  getBackend(): string;
  setBackend(name: string): Promise<boolean>;
  findBackendFactory(name: string): any;
  registerBackend(name: string, factory: any, priority?: number): boolean;
  removeBackend(name: string): void;
}

/** A `tf.Tensor`, as far as it is used here. */
export interface TfTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly dataId: object;
  readonly isDisposed: boolean;
}

const LIBRARY = "TensorFlow.js";
const MODULE = "the module @tensorflow/tfjs-core";
const DTYPES = ["float32", "int32", "bool"];
/** What TensorFlow.js itself registers its webgpu backend with. */
const PRIORITY = 3;

/**
 * Makes WebGPU, on this device, the backend of TensorFlow.js. Its webgpu backend must be imported
 * and unused; if its device was lost it restarts, without its tensors.
 *
 * @param tf - the module `@tensorflow/tfjs-core`
 * @param device - the one to run on
 * @throws DeviceError if the backend is missing, or runs on another device; DeviceLostError
 */
export async function useDevice(tf: Tf, device: GPUDevice): Promise<void> {
  common.checkLibrary(tf, "engine", MODULE);
  const factory = tf.findBackendFactory("webgpu");
  if (!factory) {
    throw new DeviceError(
      'TensorFlow.js lacks its backend: import "@tensorflow/tfjs-backend-webgpu"',
    );
  }
  return common.inTurn(tf.Tensor, async () => {
    await common.checkUsable(device);
    const started = tf.engine().registry?.webgpu;
    if (started && started.device !== device && !(await common.isUsable(started.device))) {
      tf.removeBackend("webgpu");
      tf.registerBackend("webgpu", factory, PRIORITY);
    }
    if (!tf.engine().registry?.webgpu) {
      await common.withDevice("TensorFlow.js", device, () => tf.setBackend("webgpu"));
    } else await tf.setBackend("webgpu");
    if (tf.backend().device !== device) {
      throw new DeviceError(
        "TensorFlow.js already runs on another GPUDevice: call useDevice() before setBackend()",
      );
    }
    install(tf);
  });
}

// --- from it ----------------------------------------------------------------------------------------

/** Where a backend keeps a tensor, if it is one that is known here. */
function recordOf(backend: any, dataId: object): any {
  return (backend.tensorMap ?? backend.data)?.get?.(dataId);
}

/**
 * A tensor over the memory of a `tf.Tensor`, which stays valid when that is disposed of: read-only,
 * as those are. Pending work of TensorFlow.js is submitted. bool on a GPU is int32, which is what
 * TensorFlow.js stores. Elements that it keeps as another dtype (`cast()` of int32 to float32), or in
 * another class of array (`oneHot`, `abs` of int32), are copied.
 *
 * @param tf - the module that made the tensor
 * @param value - a `tf.Tensor`, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws ReleasedError for a disposed tensor; UnsupportedError for complex64, strings, and
 * backends other than cpu and webgpu; CopyError
 */
export function fromTfjs(
  tf: Tf,
  value: TfTensor | Exchangeable,
  options: common.TakeOptions = {},
): Tensor {
  if (!isTfTensor(value)) return common.takeOther(value, "a tf.Tensor", options);
  const { dtype, shape } = value;
  if (value.isDisposed) throw new ReleasedError("this tf.Tensor was disposed of");
  common.checkDType("DLPack", dtype, DTYPES);
  const backend = tf.engine().state?.tensorInfo?.get(value.dataId)?.backend ?? tf.backend();
  if (!backend.device && !backend.data) {
    throw new UnsupportedError(
      "only the cpu and webgpu backends of TensorFlow.js share tensors: use await t.data()",
    );
  }
  const ours = common.shareOf(recordOf(backend, value.dataId) ?? {}, shape, true);
  if (ours?.dtype === storedAs(backend, dtype)) return common.copiedIf(options.copy, ours);
  ours?.release(); // what a cast to another dtype was made of
  const made = backend.device
    ? fromGPU(tf, backend, value, options)
    : fromCPU(tf, backend, value, options);
  return common.copiedIf(options.copy, made);
}

function isTfTensor(x: TfTensor | Exchangeable): x is TfTensor {
  return typeof (x as Partial<TfTensor> | null)?.dataId === "object";
}

/** The dtype of elements in a backend's memory. */
function storedAs(backend: any, dtype: string): DTypeName {
  return backend.device && dtype === "bool" ? "int32" : (dtype as DTypeName);
}

/** These may be another tensor's memory, which a clone holds. */
function keep(tf: Tf, value: TfTensor): () => void {
  const kept = tf.keep(tf.clone(value));
  return () => kept.dispose();
}

function fromCPU(tf: Tf, backend: any, value: TfTensor, { copy }: common.TakeOptions): Tensor {
  const { dtype, shape, dataId } = value;
  return common.lending(keep(tf, value), (release) => {
    const { values } = backend.data.get(dataId);
    const { View } = dtypeNamed(dtype);
    const described = { dtype: dtype as DTypeName, shape };
    if (classOf(values) === View.name) return common.overArray(values, described, release);
    common.refuseCopy(
      copy,
      `TensorFlow.js has this ${dtype} in another class of array: a copy is needed`,
    );
    const array = new View(values.length);
    (array as Float32Array).set(values);
    return common.overArray(array, described, release);
  });
}

function fromGPU(tf: Tf, backend: any, given: TfTensor, { copy }: common.TakeOptions): Tensor {
  const { dtype = given.dtype } = recordOf(backend, given.dataId) ?? {};
  const same = storedAs(backend, dtype) === storedAs(backend, given.dtype);
  if (!same)
    common.refuseCopy(copy, `TensorFlow.js has this ${given.dtype} as ${dtype}: a copy is needed`);
  const value = same ? given : converted(tf, given);
  try {
    return fromBuffer(tf, backend, value, copy);
  } finally {
    if (!same) (value as any).dispose();
  }
}

/** The elements in a buffer of their own dtype: a cast to a wider one shares the old one's. */
function converted(tf: Tf, given: TfTensor): TfTensor {
  const one = tf.tensor(1, [], given.dtype);
  try {
    return tf.engine().runKernel("Multiply", { a: given, b: one });
  } finally {
    one.dispose();
  }
}

function fromBuffer(tf: Tf, backend: any, value: TfTensor, copy: boolean | undefined): Tensor {
  backend.uploadToGPU?.(value.dataId);
  const buffer = recordOf(backend, value.dataId)?.resource;
  if (typeof buffer?.size !== "number") {
    // Other versions may keep it elsewhere: their public API makes a copy on the GPU.
    common.refuseCopy(copy, "this version of TensorFlow.js cannot share its tensors");
    const { tensorRef, buffer } = (value as any).dataToGPU();
    return onGPU(backend, value, buffer, () => tensorRef.dispose());
  }
  const made = () => onGPU(backend, value, buffer, keep(tf, value));
  if (backend.commandEncoder === null) return joined(backend, LIBRARY, made());
  return flushed(backend, LIBRARY, backend.device, () => {
    backend.ensureCommandEncoderReady();
    backend.endComputePassEncoder();
    backend.submitQueue();
    return made();
  });
}

function onGPU(backend: any, value: TfTensor, buffer: GPUBuffer, release: () => void): Tensor {
  const { device } = backend;
  const { shape, dtype } = value;
  const options = { device, shape, dtype: storedAs(backend, dtype), readOnly: true };
  return common.overBuffer(buffer, options, release);
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * A `tf.Tensor` over a tensor's memory, which it holds until its `dispose()`. On the webgpu backend
 * a CPU tensor is uploaded (one copy); GPU tensors are copied only if strided, or without the usage
 * STORAGE | COPY_SRC. On the cpu backend nothing is copied but strided tensors. Do not write to the
 * memory meanwhile: TensorFlow.js treats tensors as constants.
 *
 * @param tf - the module `@tensorflow/tfjs-core`
 * @param x - a tensor, or another object with the exchange protocol
 * @param options - `dtype: "bool"`: take a GPU tensor of int32 for bool
 * @throws CopyError, UnsupportedError for other dtypes, DeviceError for another device's tensors
 */
export function toTfjs<L extends Tf>(
  tf: L,
  x: Exchangeable,
  { copy, dtype }: common.GiveOptions & { dtype?: "bool" | undefined } = {},
): L["Tensor"]["prototype"] {
  common.checkLibrary(tf, "engine", MODULE);
  const backend = tf.backend();
  const { held, name } = fitFor(backend, x, copy, dtype);
  return keeping(held, () => {
    if (held.device.gpu) {
      common.checkDevice("TensorFlow.js", held, backend.device);
      const made = giveGPU(tf, backend, held, name);
      handed(backend, LIBRARY, held);
      return made;
    }
    return giveCPU(tf, backend, held, name, copy);
  });
}

/** A tensor that the backend can use, and its dtype there; errors are thrown before it is moved. */
function fitFor(backend: any, x: Exchangeable, copy: boolean | undefined, dtype?: "bool") {
  const taken = take(x, { copy: copy === false ? false : undefined });
  let wide: Tensor | undefined;
  try {
    let name = common.storedName("TensorFlow.js", taken, dtype);
    common.checkDType("TensorFlow.js", name, DTYPES);
    if (backend.device && taken.device.gpu === null && taken.dtype === "bool") {
      common.refuseCopy(
        copy,
        `${taken.toString()} is not on that GPUDevice, where a bool has 4 bytes`,
      );
      wide = common.widened(taken);
      name = "bool";
    }
    const request = { copy, needs: { offset: 0, usage: common.STORAGE_COPY_SRC } };
    const { device } = backend;
    return { held: fit(wide ?? taken, device ? { ...request, device } : request), name };
  } finally {
    wide?.release();
    taken.release();
  }
}

function giveGPU(tf: Tf, backend: any, held: Tensor, dtype: string): any {
  const { buffer } = held;
  const shape = [...held.shape];
  trimReads(backend);
  // tf.tensor() refuses bools in buffers, and hands the rest on to this.
  const made =
    dtype === "bool"
      ? backend.createTensorFromGPUData({ buffer, zeroCopy: true }, shape, dtype)
      : tf.tensor({ buffer, zeroCopy: true }, shape, dtype);
  return common.keepingMade(made, () => {
    const record = recordOf(backend, made.dataId);
    // The backend releases it once the work on it is submitted.
    if (record?.resource === buffer) common.alias(record, "resource", held, () => buffer);
    else common.releaseWith(made, held);
    return made;
  });
}

function giveCPU(
  tf: Tf,
  backend: any,
  held: Tensor,
  dtype: string,
  copy: boolean | undefined,
): any {
  const { data } = held;
  const shape = [...held.shape];
  const made = tf.tensor(data, shape, dtype);
  const record = recordOf(backend, made.dataId);
  if (record?.values === data) {
    linkValues(tf, made.dataId, record, held);
    return made;
  }
  made.dispose();
  return tf.tensor(common.ownCopy("TensorFlow.js", held, copy), shape, dtype);
}

/** Limits a backend's reads to a tensor's elements: it would read the whole buffer. */
function trimReads(backend: any): void {
  if (Object.hasOwn(backend, "readSync")) return;
  const { read, readSync } = backend;
  const trim = (dataId: object, values: TypedArray) => {
    const { dtype, shape = [values.length] } = recordOf(backend, dataId) ?? {};
    const size = sizeOf(shape);
    const isWhole = dtype === "complex64" || values.length <= size; // two numbers for each element
    return isWhole ? values : values.subarray(0, size);
  };
  backend.read = async (dataId: object) => trim(dataId, await read.call(backend, dataId));
  backend.readSync = (dataId: object) => trim(dataId, readSync.call(backend, dataId));
}

/** The elements of a record of the cpu backend, until it is disposed of. */
function linkValues(tf: Tf, dataId: object, record: any, held: Tensor): void {
  let count = record.refCount;
  common.alias(record, "values", held);
  Object.defineProperty(record, "refCount", {
    get: () => count,
    set(value) {
      count = value;
      if (count > 0) return;
      const { values } = record;
      held._managed.view = null; // or it would keep these elements, which it waits for, alive
      // A tensor that is moved to another backend takes these elements there.
      queueMicrotask(() => {
        if (tf.engine().state.tensorInfo.has(dataId)) common.releaseWith(values, held);
        else held.release();
      });
    },
  });
}

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take `tf.Tensor`s.
 *
 * @param tf - the module `@tensorflow/tfjs-core`
 */
export function install(tf: Tf): void {
  common.makeExchangeable(tf, tf.Tensor, fromTfjs);
}
