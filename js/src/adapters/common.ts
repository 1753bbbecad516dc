/** Code that adapters share: lifetimes and error messages. */

import { fromTypedArray } from "../core/arrays.js";
import { classOf, type TypedArray } from "../core/dtype.js";
import { CopyError, DeviceError, quietly, tagOf, UnsupportedError } from "../core/errors.js";
import type { GPUAdapter, GPUBuffer, GPUDevice } from "../core/globals.js";
import type { FromGPUBufferOptions, FromTypedArrayOptions } from "../core/options.js";
import { shared } from "../core/realm.js";
import { keeping, releasing } from "../core/releasing.js";
import { sameShape, sizeOf } from "../core/shape.js";
import { EXCHANGE, EXCHANGE_ASYNC } from "../core/symbols.js";
import { isTensor, Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import { checkRequest } from "../exchange/produce.js";
import { adapterHint, isExchangeable, take } from "../exchange/take.js";
import type { AsyncExchangeRequest, ExchangeRequest } from "../exchange/types.js";
import { checkAlive, useDevice as register } from "../webgpu/device/device.js";
import { checkFault, GRACE_MS } from "./faults.js";

/** Options of every function that gives a tensor to a library. */
export interface GiveOptions {
  /** true: always fresh memory. false: CopyError where a copy is needed. */
  copy?: boolean | undefined;
}

/** Options of every function that takes a library's tensor. */
export type TakeOptions = GiveOptions;

// --- lifetimes --------------------------------------------------------------------------------------

/** Releases memory that a library did not dispose of. */
const net = new FinalizationRegistry<Tensor>((held) => {
  const timer: unknown = setTimeout(() => held.release(), GRACE_MS);
  (timer as { unref?(): void }).unref?.(); // Node waits for its timers
});

/** Tensors behind objects of libraries; some are of another copy of this library. */
const behind = shared("behind", () => new WeakMap<object, Tensor>());

/** Lets {@link shareOf} find the tensor behind a library's object. */
export function remember(owner: object, held: Tensor): void {
  behind.set(owner, held);
}

/** The same, and `held` is released after `owner` was garbage-collected; one owner at a time. */
export function releaseWith(owner: object, held: Tensor): void {
  net.unregister(held);
  net.register(owner, held, held);
  remember(owner, held);
}

/**
 * The memory that a library's object, of that shape by now, has from us, with a hold of its own;
 * undefined for memory of the library's own. The library's description is not enough: a view of wasm
 * memory moves when that grows, and a buffer has lost its faults.
 */
export function shareOf(
  owner: object,
  shape: readonly number[],
  readOnly = false,
): Tensor | undefined {
  const held = behind.get(owner);
  if (held === undefined || held.released || held.size !== sizeOf(shape)) return undefined;
  // A second hold knows which elements are null.
  const own = take(held);
  const made = sameShape(own.shape, shape) ? own : releasing(own, () => own.reshape(shape));
  if (!readOnly || made.readOnly) return made;
  return releasing(made, () => new Tensor(made._managed.share(true)));
}

/**
 * Makes `object[key]` the tensor's elements, read again for every access: views of wasm memory that
 * grew are empty. Assigning something else to it, as libraries do to dispose of it, releases
 * `held`.
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
      // three.js puts back what it found. Memory that is gone has no elements to compare.
      if (other && !held.released && isSame(other, value())) return;
      Object.defineProperty(object, key, { value: other, writable: true });
      held.release();
    },
  });
  releaseWith(object, held);
}

function isSame(a: unknown, b: unknown): boolean {
  if (!ArrayBuffer.isView(a) || !ArrayBuffer.isView(b)) return a === b;
  const place = a.buffer === b.buffer && a.byteOffset === b.byteOffset;
  return place && a.byteLength === b.byteLength && classOf(a) === classOf(b);
}

/** A tensor that ends a hold on a library's memory, once; if making it fails, the hold ends at once. */
export function lending(release: () => void, make: (release: () => void) => Tensor): Tensor {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    release();
  };
  try {
    return make(once);
  } catch (error) {
    quietly(once); // or its own error would hide this one
    throw error;
  }
}

/** A tensor over a whole GPUBuffer that only its elements are in, which ends a hold as {@link lending} does. */
export function overBuffer(
  buffer: GPUBuffer,
  options: FromGPUBufferOptions,
  release: () => void,
): Tensor {
  const whole = { ...options, capacity: buffer.size };
  return lending(release, (once) => Tensor.fromGPUBuffer(buffer, { ...whole, release: once }));
}

const counted = new WeakMap<object, () => () => void>();

/**
 * A hold on the memory of a library's object, which the returned function ends: what the object calls
 * at its end, its property `key`, is deferred until our holds on it have ended, too. `keep` does what
 * else keeps the memory, and returns what ends that.
 */
export function holdOn(value: object, key: string, keep = (): (() => void) => () => {}) {
  let add = counted.get(value);
  if (add === undefined) {
    const own = value as Record<string, (() => void) | undefined>;
    const end = own[key];
    const drop = keep();
    let holds = 1;
    const release = () => {
      if (--holds > 0) return;
      try {
        drop();
      } finally {
        end?.call(value);
      }
    };
    own[key] = release;
    add = () => {
      holds++;
      return release;
    };
    counted.set(value, add);
  }
  return add();
}

/** The result of `use`; if it throws, an object that a library made is disposed of. */
export function keepingMade<R>(made: { dispose(): void }, use: () => R): R {
  return keeping({ release: () => quietly(() => made.dispose()) }, use);
}

/** A tensor that only the caller has, or with `copy` a copy of it. */
export function copiedIf(copy: boolean | undefined, tensor: Tensor): Tensor {
  if (!copy) return tensor;
  return releasing(tensor, () => take(tensor, { copy: true }));
}

/** Adds the methods of the exchange protocol to a library's class of tensors. */
export function makeExchangeable<L, V>(
  library: L,
  Class: { prototype: V },
  from: (library: L, value: V, options: TakeOptions) => Tensor,
): void {
  // Where copy is true, the tensor's own exchange copies, once.
  const tensorOf = (value: V, request: ExchangeRequest = {}) =>
    from(library, value, checkRequest(request).copy === false ? { copy: false } : {});
  const define = (name: symbol, value: (this: V, request?: AsyncExchangeRequest) => unknown) =>
    Object.defineProperty(Class.prototype, name, { configurable: true, writable: true, value });
  define(EXCHANGE, function (request) {
    return releasing(tensorOf(this, request), (tensor) => tensor[EXCHANGE](request));
  });
  define(EXCHANGE_ASYNC, async function (request) {
    const tensor = tensorOf(this, request);
    try {
      return await tensor[EXCHANGE_ASYNC](request);
    } finally {
      tensor.release();
    }
  });
}

/**
 * A value that is not what is needed: a tensor of this or another copy of dlpack-web, or any object
 * with the exchange protocol, is taken as it is.
 */
export function takeOther(x: unknown, needed: string, { copy }: TakeOptions): Tensor {
  if (isExchangeable(x)) return take(x, { copy });
  throw new TypeError(`${needed} is needed, not ${tagOf(x)}${adapterHint(x)}`);
}

/** Throws TypeError unless the first argument is the library's object, which has a member. */
export function checkLibrary(given: unknown, member: string, needed: string): void {
  if (member in Object(given)) return;
  const shown = isTensor(given) ? given.toString() : tagOf(given);
  throw new TypeError(`the first argument must be ${needed}, not ${shown}`);
}

// --- elements on the CPU ------------------------------------------------------------------------------

/** The tensor, if it is on the CPU; else it is released, and UnsupportedError thrown. */
export function onCPU(library: string, held: Tensor): Tensor {
  if (!held.device.gpu) return held;
  held.release();
  throw new UnsupportedError(`${library} has no GPU arrays: await read() ${held.toString()}`, {
    device: held.device,
  });
}

/** A tensor over an array that a library handed out, which `release` gives back. */
export function overArray(
  array: TypedArray,
  options: FromTypedArrayOptions,
  release: () => void,
  readOnly = true,
): Tensor {
  return new Tensor(fromTypedArray(array, options, undefined, { release, readOnly }));
}

/** A CPU tensor of bools as int32, which libraries store bools as. */
export function widened(bools: Tensor): Tensor {
  return releasing(fit(bools), (packed) => {
    const values = Int32Array.from(packed.data as Uint8Array, (byte) => (byte === 0 ? 0 : 1));
    return Tensor.fromTypedArray(values, { shape: bools.shape });
  });
}

/** A copy of a CPU tensor's elements, for a library that does not share; releases the tensor. */
export function ownCopy(library: string, held: Tensor, copy: boolean | undefined): TypedArray {
  refuseCopy(copy, `${library} copies ${held.toString()} on import`);
  const data = held.data.slice();
  held.release();
  return data;
}

/** Throws CopyError where a copy is forbidden. */
export function refuseCopy(copy: boolean | undefined, why: string): void {
  if (copy === false) throw new CopyError(`${why}, which copy: false forbids`);
}

// --- dtypes -------------------------------------------------------------------------------------------

/** A tensor's dtype in a library that gives a bool 4 bytes on a GPU; "bool" for int32 that holds bools. */
export function storedName(library: string, tensor: Tensor, dtype?: "bool"): string {
  if (tensor.device.gpu && tensor.dtype === "bool") {
    throw new UnsupportedError(
      `${library} has 4 bytes for each bool on a GPU, and ${tensor.toString()} has 1: upload it as int32, and ` +
        'pass dtype: "bool"',
      { given: "bool", needed: "int32" },
    );
  }
  return dtype === "bool" && tensor.dtype === "int32" ? "bool" : tensor.dtype;
}

/** Usages of a GPUBuffer that some libraries need, which copy from it when they read its elements. */
export const STORAGE_COPY_SRC: number = 128 | 4;

/** Throws UnsupportedError for a dtype that a library lacks. */
export function checkDType(library: string, given: string, supported: readonly string[]): void {
  if (supported.includes(given)) return;
  const way = given.startsWith("complex")
    ? "give its real and imaginary parts, in NumPy x.view('float32')"
    : "convert it first, e.g. in NumPy with astype()";
  throw new UnsupportedError(
    `${library} has no ${given} there: it takes ${supported.join(", ")}; ${way}`,
    { given, needed: supported },
  );
}

// --- devices -----------------------------------------------------------------------------------------

/**
 * Throws DeviceError for a tensor on another device than the library's, or on a lost one, and the
 * fault of its elements if it is known.
 */
export function checkDevice(library: string, tensor: Tensor, device: GPUDevice | undefined): void {
  if (device && device === tensor.device.gpu) {
    checkAlive(register(device));
    checkFault(tensor);
    return;
  }
  throw new DeviceError(
    device
      ? `${tensor.toString()} is on another GPUDevice than ${library}: call useDevice() with the tensor's`
      : `${library} has no GPUDevice yet: first await useDevice() with that of ${tensor.toString()}`,
    { device: tensor.device },
  );
}

/** Throws DeviceLostError for a lost device, TypeError for anything else. */
export async function checkUsable(gpu: GPUDevice): Promise<void> {
  const device = register(gpu);
  await null; // a device that was lost before it was registered reports it by now
  checkAlive(device);
}

/** Whether a device is not known to be lost. */
export async function isUsable(device: GPUDevice): Promise<boolean> {
  return checkUsable(device).then(
    () => true,
    () => false,
  );
}

const turns = new WeakMap<object, Promise<unknown>>();

/** Runs tasks for one library in order: it must not be started twice at once. */
export function inTurn<R>(library: object, task: () => Promise<R>): Promise<R> {
  const done = (turns.get(library) ?? Promise.resolve()).then(task, task);
  turns.set(library, done);
  return done;
}

/**
 * Runs `start`, which asks for an adapter and that for a device, and lets it get `device`; throws
 * DeviceError if it did not ask.
 */
export async function withDevice(
  library: string,
  device: GPUDevice,
  start: () => Promise<unknown>,
): Promise<void> {
  let asked = false;
  const restore = answering((adapter) => {
    asked = true;
    return adapterFor(device, adapter);
  });
  let started: Promise<unknown>;
  try {
    started = start();
  } finally {
    restore(); // before any other code runs
  }
  await started;
  if (!asked) {
    throw new DeviceError(`this version of ${library} requests no device when it starts`);
  }
}

/** Lets `requestAdapter` give what `answer` makes of its adapter, until the returned function is called. */
export function answering(
  answer: (adapter: GPUAdapter | null, options?: object) => GPUAdapter | null,
): () => void {
  const { gpu } = navigator;
  const before = gpu.requestAdapter;
  const own = Object.hasOwn(gpu, "requestAdapter");
  gpu.requestAdapter = async (options) => answer(await before.call(gpu, options), options);
  return () => {
    delete (gpu as Partial<GPU>).requestAdapter;
    if (own) gpu.requestAdapter = before;
  };
}

/** An adapter whose requestDevice() returns `device`. */
export function adapterFor(device: GPUDevice, adapter: GPUAdapter | null): GPUAdapter {
  if (adapter === null) throw new DeviceError("this page has a GPUDevice but gets no GPUAdapter");
  adapter.requestDevice = async () => device;
  return adapter;
}
