// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * onnxruntime-web: CPU tensors share memory with `ort.Tensor`s (ORT itself copies at `run()`), GPU
 * tensors share the `GPUBuffer`.
 */

import type { DTypeName, TypedArray } from "../core/dtype.js";
import { DeviceError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import {
  alias,
  checkDevice,
  checkDType,
  type GiveOptions,
  makeExchangeable,
  ownCopy,
  releaseWith,
} from "./common.js";

/** The part of `onnxruntime-web` that is used here. */
export interface Ort {
  Tensor: {
    new (type: any, data: any, dims: readonly number[]): any;
    fromGpuBuffer(buffer: any, options: any): any;
    prototype: any;
  };
  InferenceSession: { create(...args: any[]): Promise<any> };
  env: { webgpu: any };
}

/** An `ort.Tensor`, as far as it is used here. */
export interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly location: string;
  readonly data: unknown;
  readonly gpuBuffer: unknown;
}

const ON_GPU = ["float32", "float16", "int32", "int64", "uint32", "uint8", "bool", "int4", "uint4"];
const ON_CPU = [...ON_GPU, "int8", "int16", "uint16", "uint64", "float64"];

const devices = new WeakMap<object, GPUDevice>();

/**
 * Lets the sessions that are created from now on run on a device, whatever their options say: ORT
 * takes one in the options of a session alone, and its older WebGPU backend asks for its own.
 *
 * @returns the execution provider `{ name: "webgpu", device }`
 * @throws DeviceError if ORT runs on another device already
 */
export async function useDevice(
  ort: Ort,
  device: GPUDevice,
): Promise<{ name: "webgpu"; device: GPUDevice }> {
  const provider = { name: "webgpu" as const, device };
  const known = devices.get(ort.env) ?? (await ort.env.webgpu?.device);
  if (known && known !== device) {
    throw new DeviceError(
      "onnxruntime-web runs on another GPUDevice already, and has one only: call useDevice() " +
        "before the first session",
    );
  }
  if (!devices.has(ort.env)) {
    const { create } = ort.InferenceSession;
    ort.InferenceSession.create = function (this: unknown, ...args: unknown[]) {
      return create.apply(this, args.map((arg) => withProvider(arg, provider)) as [unknown]);
    };
    const adapter = (await navigator.gpu.requestAdapter()) as GPUAdapter;
    adapter.requestDevice = async () => device;
    ort.env.webgpu.adapter = adapter;
  }
  devices.set(ort.env, device);
  install(ort);
  return provider;
}

function withProvider(arg: unknown, provider: object): unknown {
  const { executionProviders: given } = Object(arg) as { executionProviders?: unknown };
  if (!Array.isArray(given)) return arg;
  const executionProviders = given.map((one) =>
    (one?.name ?? one) === "webgpu" ? { ...Object(one.name && one), ...provider } : one,
  );
  return { ...(arg as object), executionProviders };
}

/** The device that ORT runs on: its own word where it has one, else what it was told. */
function deviceOf(ort: Ort): GPUDevice | undefined {
  const told = devices.get(ort.env);
  if (told) return told;
  // Some builds have a promise there.
  const { device } = ort.env.webgpu ?? {};
  return device?.queue ? device : undefined;
}

/**
 * A tensor over the memory of an `ort.Tensor`, without a copy. It is a hold of its own: disposing
 * of the value does not end it.
 *
 * @throws ReleasedError for a disposed value; UnsupportedError for strings, textures and MLTensors;
 * DeviceError for a GPU tensor if ORT's device is not known
 */
export function fromOrt(ort: Ort, value: OrtTensor): Tensor {
  const { type, location } = value;
  const shape = value.dims;
  const dtype = type as DTypeName;
  if (location === "none") throw new ReleasedError(`this ort.Tensor ${type} was disposed`);
  if (location !== "gpu-buffer" && !location.startsWith("cpu")) {
    throw new UnsupportedError(
      `an ort.Tensor with its data as ${location} cannot be shared: use preferredOutputLocation ` +
        '"gpu-buffer" or "cpu"',
      { given: location },
    );
  }
  checkDType("DLPack", type, ON_CPU);
  if (location !== "gpu-buffer") {
    return Tensor.fromTypedArray(value.data as TypedArray, { shape, dtype });
  }
  const device = deviceOf(ort);
  if (!device) {
    throw new DeviceError("onnxruntime-web has no GPUDevice that is known: useDevice() first");
  }
  const buffer = value.gpuBuffer as GPUBuffer;
  const made = Tensor.fromGPUBuffer(buffer, {
    device,
    shape,
    dtype,
    capacity: buffer.size,
    release: hold(value),
  });
  // Without the field that is counted in `hold`, the buffer may be used again too soon.
  return "disposer" in value ? made : copyOf(made);
}

function copyOf(tensor: Tensor): Tensor {
  try {
    return fit(tensor, { copy: true });
  } finally {
    tensor.release();
  }
}

const counted = new WeakMap<object, { holds: number; drop(): void }>();

/** Defers what an `ort.Tensor` does at its disposal until our holds on it have ended, too. */
function hold(value: object): () => void {
  let entry = counted.get(value);
  if (entry === undefined) {
    const own = value as { disposer?: () => void };
    const { disposer } = own;
    const made = {
      holds: 1,
      drop() {
        if (--made.holds === 0) disposer?.call(value);
      },
    };
    if (disposer) own.disposer = made.drop;
    counted.set(value, made);
    entry = made;
  }
  entry.holds++;
  return entry.drop;
}

/**
 * An `ort.Tensor` over a tensor's memory. It holds that until its `dispose()`; ORT reads it during
 * `run()`. Nothing is copied, but strided tensors, and GPU tensors whose buffer begins elsewhere or
 * lacks padding to 16 bytes, without which ORT computes wrong last elements.
 *
 * @throws CopyError, UnsupportedError for other dtypes, DeviceError for another device's tensors
 */
export function toOrt(ort: Ort, x: Exchangeable, { copy }: GiveOptions = {}) {
  const held = fit(x, { copy, needs: { offset: 0, padTo: 16 } });
  try {
    const { dtype } = held;
    const dims = [...held.shape];
    if (held.device.gpu) {
      checkDevice("onnxruntime-web", held, deviceOf(ort));
      checkDType("onnxruntime-web on WebGPU", dtype, ON_GPU);
      const made = ort.Tensor.fromGpuBuffer(held.buffer, {
        dataType: dtype,
        dims,
        dispose: () => held.release(),
        download: () => held.read(),
      });
      releaseWith(made, held);
      return made;
    }
    checkDType("onnxruntime-web", dtype, ON_CPU);
    const data = held.data;
    const made = new ort.Tensor(dtype, data, dims);
    if (made.cpuData === data) {
      alias(made, "cpuData", held);
      return made;
    }
    // A version that keeps its elements elsewhere gets some of its own.
    return new ort.Tensor(dtype, ownCopy("onnxruntime-web", held, copy), dims);
  } catch (error) {
    held.release();
    throw error;
  }
}

/** Lets every consumer of the exchange protocol take `ort.Tensor`s, `bridge.tensor()` among them. */
export function install(ort: Ort): void {
  makeExchangeable<OrtTensor>(ort.Tensor, (value) => fromOrt(ort, value));
}
