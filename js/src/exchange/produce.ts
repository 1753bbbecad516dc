import { fromTypedArray } from "../core/arrays.js";
import { IS_COPIED, READ_ONLY } from "../core/dlpack.js";
import type { AnyTypedArray } from "../core/dtype.js";
import { CopyError, DeviceError, textOf, UnsupportedError } from "../core/errors.js";
import type { AbortSignal, GPUDevice } from "../core/globals.js";
import { deviceLayer } from "../core/layers.js";
import type { ManagedTensor } from "../core/managed.js";
import { keeping, releasing } from "../core/releasing.js";
import type { AsyncExchangeRequest, Exchange, ExchangeRequest } from "./types.js";

const VERSION = [1, 1] as const;

/** Implements `tensor[EXCHANGE]`. */
export function produce(tensor: ManagedTensor, request: ExchangeRequest = {}): Exchange {
  return handOut(...answer(tensor, request));
}

/** What a request asks for: a tensor with a hold of its own, and whether it is a copy. */
export function answer(
  tensor: ManagedTensor,
  request: ExchangeRequest,
): [held: ManagedTensor, copied: boolean] {
  const { device, copy, writes } = checkRequest(request);
  tensor.check();
  if (device !== undefined && device !== tensor.device.gpu) {
    checkMove(tensor, device, copy);
    return [deviceLayer().upload(tensor, device, {}), true];
  }
  const fresh = mustCopy(tensor, copy, writes);
  return [fresh ? tensor.pack() : tensor.share(), fresh];
}

/**
 * Implements `tensor[EXCHANGE_ASYNC]`: the same, and GPU tensors are copied to the requested
 * device.
 */
export async function produceAsync(
  tensor: ManagedTensor,
  request: AsyncExchangeRequest = {},
): Promise<Exchange> {
  const { device, copy } = checkRequest(request);
  const { signal } = request;
  signal?.throwIfAborted();
  tensor.check();
  const { gpu } = tensor.device;
  if (gpu === null || device === undefined || device === gpu) return produce(tensor, request);
  needCopy(tensor, copy, `is not on ${nameOf(device)}`);
  const { dtype, shape } = tensor;
  const [array] = await abortable(deviceLayer().read([tensor], [], signal), signal);
  const padded = dtype.flags !== 0;
  const host = fromTypedArray(array as AnyTypedArray, { dtype: dtype.name, shape, padded });
  if (device === null) return handOut(host, true);
  return releasing(host, () => handOut(deviceLayer().upload(host, device, {}), true));
}

/** The result of work, or the reason of a signal that is aborted, even if the work never ends. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Throws for requests that no tensor can answer. */
export function checkRequest(request: ExchangeRequest): ExchangeRequest {
  if (typeof request !== "object" || request === null) {
    throw new TypeError(`the request must be an object, not ${textOf(request)}`);
  }
  const { versions, device, copy, writes } = request;
  if (versions !== undefined && !Array.isArray(versions)) {
    throw new TypeError(
      `versions must be a list of major versions, e.g. [1], not ${textOf(versions)}`,
    );
  }
  if (device !== undefined && typeof device !== "object") {
    throw new TypeError(`device must be a GPUDevice or null, not ${textOf(device)}`);
  }
  if (versions !== undefined && !versions.includes(VERSION[0])) {
    throw new UnsupportedError(
      `only version ${VERSION.join(".")} of the exchange protocol is supported`,
      { given: versions, needed: VERSION },
    );
  }
  return { device, copy, writes };
}

/** Whether a tensor must be copied for a request; throws if a copy is forbidden. */
export function mustCopy(
  tensor: ManagedTensor,
  copy: boolean | undefined,
  writes: boolean | undefined,
): boolean {
  const protects = writes === true && tensor.readOnly;
  if (!protects || copy !== false) return protects || Boolean(copy);
  throw new UnsupportedError(
    `${tensor.toString()} is read-only, and copy: false forbids a copy of it`,
  );
}

/** Throws unless a tensor that is elsewhere can be copied to a device: to a GPU, and from the CPU. */
export function checkMove(
  tensor: ManagedTensor,
  device: GPUDevice | null,
  copy: boolean | undefined,
): asserts device is GPUDevice {
  if (device === null || tensor.device.gpu) {
    throw new DeviceError(
      `${tensor.toString()} cannot be used on ${nameOf(device)}: await its read()`,
      { device: tensor.device },
    );
  }
  needCopy(tensor, copy, `is not on ${nameOf(device)}`);
}

/** Throws CopyError if a copy is needed but forbidden. */
export function needCopy(tensor: ManagedTensor, copy: boolean | undefined, why: string): void {
  if (copy !== false) return;
  throw new CopyError(`${tensor.toString()} ${why}: a copy is needed, which copy: false forbids`);
}

function nameOf(device: GPUDevice | null): string {
  return device ? "that GPUDevice" : "the CPU";
}

/** All our work is already in the queue or done on the CPU: one function serves all exchanges. */
function flush(): void {}

/** An exchange that takes the tensor over. @throws the fault of its elements, if known (E1) */
function handOut(held: ManagedTensor, copied: boolean): Exchange {
  return keeping(held, () => {
    const { type, id, gpu } = held.device;
    const fault = gpu ? deviceLayer().faultOf(held) : null;
    const { packed, flags } = held.dtype;
    return {
      version: VERSION,
      device: { type, id, gpu },
      dtype: { code: packed & 255, bits: (packed >>> 8) & 255, lanes: packed >>> 16 },
      shape: [...held.shape],
      strides: held.strides && [...held.strides],
      ...placeOf(held),
      flags: (held.readOnly ? READ_ONLY : 0) | (copied ? IS_COPIED : 0) | flags,
      flush,
      fault,
      release: () => held.release(),
    };
  });
}

function placeOf(tensor: ManagedTensor): Pick<Exchange, "byteOffset" | "data" | "capacity"> {
  if (tensor.device.gpu) {
    const layer = deviceLayer();
    const capacity = layer.capacityOf(tensor);
    // O2, O3: the consumer is done when it releases, and then the memory is reused.
    return { byteOffset: tensor.start, data: layer.exportBuffer(tensor), capacity };
  }
  const { start, bytes } = tensor.span;
  const capacity = bytes > 0 ? start + bytes - tensor.start : 0;
  const { memory } = tensor.storage;
  return memory
    ? { byteOffset: 0, data: { memory, ptr: tensor.start }, capacity }
    : { byteOffset: tensor.dataOffset * tensor.dtype.step, data: bytesOrData(tensor), capacity };
}

/** The elements as an array of their class; misaligned memory as bytes. */
function bytesOrData(tensor: ManagedTensor): ArrayBufferView {
  if (tensor.start % tensor.dtype.View.BYTES_PER_ELEMENT === 0) return tensor.data;
  const { start, bytes } = tensor.span;
  return new Uint8Array(tensor.storage.bytes(tensor), start, bytes);
}
