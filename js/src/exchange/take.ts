import { ArrayStorage } from "../core/arrays.js";
import { CPU_DEVICE } from "../core/device.js";
import { IS_COPIED } from "../core/dlpack.js";
import { CopyError, DeviceError, quietly, tagOf, UnsupportedError } from "../core/errors.js";
import { MADE_BY } from "../core/generated.js";
import { deviceLayer, registerExchangeLayer } from "../core/layers.js";
import { ManagedTensor } from "../core/managed.js";
import { keeping, releasing } from "../core/releasing.js";
import { spanOf } from "../core/shape.js";
import { EXCHANGE, EXCHANGE_ASYNC } from "../core/symbols.js";
import { isTensor, Tensor } from "../core/tensor.js";
import { answer, mustCopy, produce, produceAsync } from "./produce.js";
import type {
  AsyncExchangeable,
  AsyncExchangeRequest,
  Exchange,
  Exchangeable,
  ExchangeRequest,
  MovingMemory,
} from "./types.js";
import { type Checked, check, checkVersion, releaseOf, wrong } from "./validate.js";

/**
 * Whether an object can hand out a tensor by the protocol.
 *
 * @param x - anything
 */
export function isExchangeable(x: unknown): x is Exchangeable {
  return typeof (x as Partial<Exchangeable> | null | undefined)?.[EXCHANGE] === "function";
}

/**
 * A tensor over the memory of any exchangeable object, with a hold of its own; without a copy
 * unless `copy` is true. All fields are checked before use.
 *
 * @param x - the producer
 * @param request - the device, `copy`, and the needs of the memory
 * @returns a tensor, which the caller releases
 * @throws UnsupportedError for a wrong description; CopyError if it copied although `copy` is
 * false; the producer's errors
 */
export function take(x: Exchangeable, request?: ExchangeRequest): Tensor {
  return new Tensor(taken(x, request));
}

/** The inside of such a tensor. */
export function taken(x: Exchangeable, request: ExchangeRequest = {}): ManagedTensor {
  const source = sourceOf(x);
  if (isTensor(source)) return answer(source._managed, request)[0];
  if (!isExchangeable(source)) throw noTensor(x);
  return receive(source[EXCHANGE]({ versions: [1], ...request }), request);
}

/** The tensor of a proxy of Python's Tensor, which is its `js`; else `x` itself. */
export function sourceOf(x: unknown): unknown {
  if (isTensor(x)) return x;
  const { js } = Object(x) as { js?: unknown };
  return isTensor(js) || (isExchangeable(js) && !isExchangeable(x)) ? js : x;
}

/**
 * The asynchronous form, for elements that a producer does not have at once, such as elements of a GPU on
 * the CPU.
 *
 * @param x - the producer
 * @param request - as for `take`, and `signal`
 * @throws as {@link take}, and the `reason` of an aborted `signal`
 */
export async function takeAsync(
  x: Exchangeable | AsyncExchangeable,
  request: AsyncExchangeRequest = {},
): Promise<Tensor> {
  const source = sourceOf(x);
  const { signal } = request;
  signal?.throwIfAborted();
  if (typeof (source as Partial<AsyncExchangeable>)?.[EXCHANGE_ASYNC] !== "function") {
    return take(source as Exchangeable, request);
  }
  const producer = source as AsyncExchangeable;
  const exchange = await producer[EXCHANGE_ASYNC]({ versions: [1], ...request });
  const tensor = receive(exchange, request);
  if (!signal?.aborted) return new Tensor(tensor);
  tensor.release();
  throw signal.reason;
}

function noTensor(x: unknown): TypeError {
  const hint = Array.isArray(x)
    ? "; give a typed array, as new Float32Array(…) makes it"
    : ArrayBuffer.isView(x)
      ? "; Tensor.from(array) makes one"
      : adapterHint(x);
  return new TypeError(
    `${tagOf(x)} is not a tensor: it lacks [Symbol.for("dlpack.exchange")]${hint}`,
  );
}

/** The end of a message: what makes a tensor of it. */
export function adapterHint(x: unknown): string {
  for (const [key, name] of Object.entries(MADE_BY)) {
    if (key in Object(x))
      return `; ${/\./.test(name) ? name : `"dlpack-web/${name}"`} makes one of it`;
  }
  return "";
}

/**
 * A tensor over the result of `[EXCHANGE]()`; takes its hold over, also when it throws.
 *
 * @param exchange - the producer's result
 * @throws UnsupportedError for a wrong description
 */
export function adopt(exchange: Exchange): Tensor {
  return new Tensor(receive(exchange, {}));
}

function receive(exchange: Exchange, { copy, writes, device }: ExchangeRequest): ManagedTensor {
  const minor = checkVersion(exchange); // for another version even `release` is not reliable
  const end = releaseOf(exchange);
  let done = false;
  const release = () => {
    if (done) return;
    done = true;
    end.call(exchange);
  };
  let tensor: ManagedTensor | undefined;
  let fresh: boolean;
  try {
    const fields = check(exchange, minor);
    if (device !== undefined && fields.gpu !== device) {
      throw new DeviceError("the producer gave a tensor on another device than it was asked for");
    }
    fresh = (fields.flags & IS_COPIED) !== 0;
    if (fresh && copy === false) {
      throw new CopyError("the producer copied, which copy: false forbids");
    }
    fields.flush.call(exchange);
    tensor = wrap(fields, release);
    const { fault, gpu } = fields; // called after flush(), whose work it also reports
    if (fault !== null && gpu !== null) deviceLayer().joinFault(tensor, fault);
    else if ((fault?.() ?? null) !== null) {
      throw wrong("fault", "a promise", "null, as the CPU's work is done,"); // F15
    }
  } catch (error) {
    quietly(() => (tensor ?? { release }).release()); // or its own error would hide this one
    throw error;
  }
  // What the producer did not provide is done here.
  const fits = keeping(tensor, () => !mustCopy(tensor, fresh ? undefined : copy, writes));
  return fits ? tensor : releasing(tensor, () => tensor.pack());
}

function wrap(fields: Checked, release: () => void): ManagedTensor {
  const { gpu, type, shape, strides, byteOffset, data, capacity, readOnly } = fields;
  if (gpu !== null) {
    checkRoom(fields, (data as GPUBuffer).size);
    const options = {
      device: gpu,
      shape,
      dtype: type.name,
      padded: type.flags !== 0,
      byteOffset,
      capacity,
      release,
      readOnly,
      strides: strides ?? undefined,
    };
    try {
      return deviceLayer().fromBuffer(data as GPUBuffer, options);
    } catch (cause) {
      if (!(cause instanceof RangeError || cause instanceof TypeError)) throw cause;
      // X1: a description is wrong here, not an argument.
      throw new UnsupportedError(cause.message, { cause });
    }
  }
  const isView = ArrayBuffer.isView(data);
  const { memory, ptr } = isView ? { memory: data, ptr: data.byteOffset } : (data as MovingMemory);
  if (!Number.isSafeInteger(ptr) || ptr < 0) {
    throw wrong("data.ptr", ptr, "a non-negative integer");
  }
  const size = isView ? data.byteLength : memory?.buffer?.byteLength;
  if (typeof size !== "number") throw wrong("data", data, "a GPUBuffer, a view, or memory");
  // DLPack's `data` pointer is element 0's, below which negative strides reach: S1 allows it.
  const first = isView ? ptr : 0;
  const at = ptr + byteOffset;
  const { start, bytes } = spanOf(type, shape, strides, at);
  if (bytes > 0 && !(start >= first && start + bytes <= first + size)) {
    const needed = `the bytes ${start - first} to ${start - first + bytes}`;
    throw wrong("data", `${size} bytes`, needed);
  }
  checkRoom(fields, first + size - ptr);
  const storage = new ArrayStorage(memory, release);
  return new ManagedTensor(storage, 1, at, type, shape, strides, CPU_DEVICE, readOnly);
}

/** Throws if `capacity` exceeds the `size` bytes that `data` has (S5). */
function checkRoom({ byteOffset, capacity }: Checked, size: number): void {
  if (capacity === 0 || !(byteOffset + capacity > size)) return;
  throw wrong("capacity", capacity, `at most ${Math.max(0, size - byteOffset)} bytes of data`);
}

registerExchangeLayer({ produce, produceAsync, take: taken });
