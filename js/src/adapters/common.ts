import { ArrayStorage } from "../core/arrays.js";
import { CPU_DEVICE } from "../core/device.js";
import { dtypeNamed, type TypedArray } from "../core/dtype.js";
import { CopyError, DeviceError, UnsupportedError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import { Tensor } from "../core/tensor.js";
import { EXCHANGE, type ExchangeRequest } from "../exchange/types.js";

/** Options of every function that gives a tensor to a library. */
export interface GiveOptions {
  /** true: always fresh memory. false: CopyError where a copy is needed. */
  copy?: boolean;
}

/** A library may still be at work on what nobody else knows: an asynchronous run of a session. */
const GRACE_MS = 60_000;

/** Lets go of what a library was not told to dispose of. */
const net = new FinalizationRegistry<Tensor>((held) => {
  const timer: unknown = setTimeout(() => held.release(), GRACE_MS);
  (timer as { unref?(): void }).unref?.(); // Node waits for its timers
});

/** Releases `held` after `owner` was garbage-collected, if not before; one owner at a time. */
export function releaseWith(owner: object, held: Tensor): void {
  net.unregister(held);
  net.register(owner, held, held);
}

/**
 * Makes `object[key]` the tensor's elements, anew for every look: views of wasm memory that grew
 * are empty. Assigning something else to it, as libraries do to dispose of it, releases `held`.
 */
export function alias(
  object: object,
  key: string,
  held: Tensor,
  value: () => unknown = () => held.data,
): void {
  Object.defineProperty(object, key, {
    configurable: true,
    enumerable: true,
    get: value,
    set(other) {
      Object.defineProperty(object, key, { value: other, writable: true });
      held.release();
    },
  });
  releaseWith(object, held);
}

/** The tensor, if it is on the CPU; else it is released, and UnsupportedError thrown. */
export function onCPU(library: string, held: Tensor): Tensor {
  if (!held.device.gpu) return held;
  held.release();
  throw new UnsupportedError(`${library} has no GPU arrays: await read() ${held}`, {
    device: held.device,
  });
}

/** A read-only tensor over an array that a library handed out, which `release` gives back. */
export function overArray(
  array: TypedArray,
  dtype: string,
  shape: readonly number[],
  release: () => void,
): Tensor {
  const storage = new ArrayStorage(array, release);
  const type = dtypeNamed(dtype);
  return new Tensor(storage, 1, array.byteOffset, type, [...shape], null, CPU_DEVICE, true);
}

/** A copy of a CPU tensor's elements, for a library that does not share; releases the tensor. */
export function ownCopy(library: string, held: Tensor, copy: boolean | undefined): TypedArray {
  if (copy === false) {
    throw new CopyError(`${library} copies ${held} as it takes it, which copy: false forbids`);
  }
  const data = held.data.slice();
  held.release();
  return data;
}

/**
 * The dtype by which a library that gives a bool 4 bytes on a GPU knows a tensor.
 *
 * @param dtype - "bool" where the tensor of int32 holds bools
 */
export function storedName(library: string, tensor: Tensor, dtype?: "bool"): string {
  if (tensor.device.gpu && tensor.dtype === "bool") {
    throw new UnsupportedError(
      `${library} has 4 bytes for each bool on a GPU, and ${tensor} has 1: upload it as int32, and ` +
        'pass dtype: "bool"',
      { given: "bool", needed: "int32" },
    );
  }
  return dtype === "bool" && tensor.dtype === "int32" ? "bool" : tensor.dtype;
}

/** Throws UnsupportedError for a dtype that a library lacks. */
export function checkDType(library: string, given: string, supported: readonly string[]): void {
  if (supported.includes(given)) return;
  throw new UnsupportedError(
    `${library} has no ${given} there: it takes ${supported.join(", ")}; convert it first, e.g. ` +
      "in NumPy with astype()",
    { given, needed: supported },
  );
}

/** Throws DeviceError for a tensor that is on another device than the library. */
export function checkDevice(library: string, tensor: Tensor, device: GPUDevice | undefined): void {
  if (device === tensor.device.gpu) return;
  throw new DeviceError(
    device
      ? `${tensor} is on another GPUDevice than ${library}: useDevice() puts it on the tensor's`
      : `${library} has no GPUDevice yet: await useDevice(), with that of ${tensor}, first`,
    { device: tensor.device },
  );
}

/**
 * Runs `start`, which asks for an adapter and that for a device, and lets it get `device`.
 *
 * @throws DeviceError if it did not ask
 */
export async function withDevice(
  library: string,
  device: GPUDevice,
  start: () => Promise<unknown>,
): Promise<void> {
  const { gpu } = navigator;
  const before = gpu.requestAdapter;
  const own = Object.hasOwn(gpu, "requestAdapter");
  let asked = false;
  // Only for what `start` does at once: nobody else runs in between.
  gpu.requestAdapter = async (options) => {
    asked = true;
    const adapter = (await before.call(gpu, options)) as GPUAdapter;
    adapter.requestDevice = async () => device;
    return adapter;
  };
  let started: Promise<unknown>;
  try {
    started = start();
  } finally {
    delete (gpu as Partial<GPU>).requestAdapter;
    if (own) gpu.requestAdapter = before;
  }
  await started;
  if (!asked) {
    throw new DeviceError(`this version of ${library} does not ask for a device as it starts`);
  }
}

/** Gives a library's class of tensors the method by which they are handed out. */
export function makeExchangeable<V>(Class: { prototype: V }, from: (value: V) => Tensor): void {
  Object.defineProperty(Class.prototype, EXCHANGE, {
    configurable: true,
    writable: true,
    value(this: V, request?: ExchangeRequest) {
      const tensor = from(this);
      try {
        return tensor[EXCHANGE](request);
      } finally {
        tensor.release();
      }
    },
  });
}
