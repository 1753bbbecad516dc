// Whoever imports an adapter alone must get the device layer too: it registers itself.
import "../webgpu/transfer.js";

import { ArrayStorage, type ByteSource } from "../core/arrays.js";
import { type DType, dtypePacked, dtypes } from "../core/dtype.js";
import { CopyError, DeviceError, type DLPackError, UnsupportedError } from "../core/errors.js";
import { checkShape, checkStrides } from "../core/shape.js";
import { CPU_DEVICE, isTensor, Tensor } from "../core/tensor.js";
import { CPU, READ_ONLY, SUBBYTE_PADDED, WEBGPU } from "../pyodide/layout.js";
import {
  allocate,
  capacityOf,
  checkCopySource,
  checkRowMajor,
  copyBuffers,
  DEFAULT_USAGE,
  fromBuffer,
  roundUp,
  slotOf,
  spanOf,
  tensorOfSlot,
  Usage,
} from "../webgpu/buffers.js";
import { EXCHANGE, type Exchange, type ExchangeRequest, type Needs } from "./produce.js";

export {
  EXCHANGE,
  type Exchange,
  type ExchangeRequest,
  type MovingMemory,
  type Needs,
} from "./produce.js";

/** A tensor, or anything that has `[Symbol.for("dlpack.exchange")]`. */
export type Exchangeable = Tensor | { [EXCHANGE](request?: ExchangeRequest): Exchange };

/** Whether `x` can hand out a tensor by the protocol. */
export function isExchangeable(x: unknown): x is Exchangeable {
  return typeof (x as Partial<Exchangeable> | null | undefined)?.[EXCHANGE] === "function";
}

/**
 * A tensor over the memory of any exchangeable object, with a hold of its own; without a copy
 * unless `copy` is true. Whatever the object says is checked before it is believed.
 *
 * @returns a tensor, which the caller releases
 * @throws UnsupportedError for what it does not describe rightly; what the producer throws
 */
export function take(x: Exchangeable, request: ExchangeRequest = {}): Tensor {
  if (isTensor(x)) {
    x._check();
    return request.copy ? x._storage.pack(x) : x._storage.share(x);
  }
  // Python's tensors come as proxies, whose `js` is the tensor.
  const { js } = Object(x) as { js?: unknown };
  if (isTensor(js)) return take(js, request);
  if (!isExchangeable(x)) {
    throw new TypeError(
      `${Object.prototype.toString.call(x)} is no tensor: it lacks [Symbol.for("dlpack.exchange")]`,
    );
  }
  return adopt(x[EXCHANGE]({ maxVersion: [1, 0], ...request }));
}

/**
 * A tensor over what `[EXCHANGE]()` returned; takes its hold over, also when it throws.
 *
 * @throws UnsupportedError for what it does not describe rightly
 */
export function adopt(exchange: Exchange): Tensor {
  let done = false;
  const release = () => {
    if (!done) exchange.release();
    done = true;
  };
  try {
    return wrap(exchange, release);
  } catch (error) {
    // Where the version is not ours, even `release` is not to be relied on.
    if (exchange?.version?.[0] === 1) release();
    throw error;
  }
}

function wrap(exchange: Exchange, release: () => void): Tensor {
  const { version, device, dtype, strides, byteOffset, data, capacity, flags } = exchange;
  if (version?.[0] !== 1) throw wrong("version", version, "[1, 0]");
  const type = typeOf(dtype, flags & SUBBYTE_PADDED);
  const shape = checkShape(exchange.shape);
  const steps = checkStrides(shape, strides ?? undefined);
  if (!Number.isSafeInteger(byteOffset)) throw wrong("byteOffset", byteOffset, "an integer");
  const readOnly = (flags & READ_ONLY) !== 0;
  exchange.flush();
  if (device.type === WEBGPU) {
    return fromBuffer(data as GPUBuffer, {
      device: device.gpu as GPUDevice,
      shape,
      dtype: type.name,
      padded: type.flags !== 0,
      byteOffset,
      capacity,
      release,
      readOnly,
      ...(steps && { strides: steps }),
    });
  }
  if (device.type !== CPU) throw wrong("device.type", device.type, "1 (CPU) or 15 (WebGPU)");
  const view = ArrayBuffer.isView(data) ? data : null;
  const memory = view ?? (data as { memory: ByteSource }).memory;
  const base = view ? view.byteOffset : (data as { ptr: number }).ptr;
  const { start, bytes } = spanOf(type, shape, steps, base + byteOffset);
  const end = view ? base + view.byteLength : memory.buffer.byteLength;
  if (bytes > 0 && !(start >= (view ? base : 0) && start + bytes <= end)) {
    throw wrong(
      "data",
      `${end - base} bytes`,
      `the bytes ${start - base} to ${start - base + bytes}`,
    );
  }
  const storage = new ArrayStorage(memory, release);
  return new Tensor(storage, 1, base + byteOffset, type, shape, steps, CPU_DEVICE, readOnly);
}

function typeOf({ code, bits, lanes }: Exchange["dtype"], padded: number): DType {
  const packed = code | (bits << 8);
  if (
    !dtypes.some((known) => (known.packed & 0xffff) === packed) ||
    !(lanes > 0 && lanes < 65536)
  ) {
    throw wrong("dtype", `code ${code}, bits ${bits}, lanes ${lanes}`, "a dtype of DLPack 1.3");
  }
  return dtypePacked(packed | (lanes << 16), bits < 8 ? padded : 0);
}

function wrong(field: string, given: unknown, needed: string): DLPackError {
  return new UnsupportedError(`this exchange's ${field} is ${given}; ${needed} is needed`, {
    given,
    needed,
  });
}

/**
 * A tensor that a consumer can use: the same memory where it fits the request, otherwise one copy.
 * On a GPU that is one copy from buffer to buffer; nothing is ever read back.
 *
 * @returns a tensor with a hold of its own, which the caller releases
 * @throws CopyError where a copy is needed and `copy` is false; DeviceError for a tensor on another
 * device, as no one copy brings it over; UnsupportedError for a strided WebGPU tensor
 */
export function fit(x: Exchangeable, request: ExchangeRequest = {}): Tensor {
  const { device, copy, needs = {} } = request;
  const held = take(x, { ...request, copy: copy === false ? false : undefined });
  try {
    if (device === undefined || device === held.device.gpu) {
      if (held.device.gpu) return fitBuffer(held, needs, copy);
      if (held._plain && !copy) return held._storage.share(held);
      needCopy(held, copy, `is strided or not aligned (strides [${held.strides}])`);
      return held._storage.pack(held);
    }
    if (device === null) {
      throw new DeviceError(`${held} is not on the CPU: await read() it`, { device: held.device });
    }
    if (held.device.type === CPU) needCopy(held, copy, "is not on that GPUDevice");
    return held.to(device, { usage: DEFAULT_USAGE | (needs.usage ?? 0) });
  } finally {
    held.release();
  }
}

function fitBuffer(held: Tensor, needs: Needs, copy: boolean | undefined): Tensor {
  const { offset, padTo = 4, usage = Usage.STORAGE } = needs;
  const { record, buffer } = slotOf(held._handle);
  const size = Math.max(roundUp(held.nbytes, padTo), padTo);
  const misfit =
    held._strides !== null
      ? `has strides [${held._strides}]`
      : held._start !== (offset ?? roundUp(held._start, 4))
        ? `begins at byte ${held._start} of its GPUBuffer, not at ${offset ?? "a multiple of 4"}`
        : !(capacityOf(held) >= size)
          ? `has ${capacityOf(held)} bytes to itself in its GPUBuffer, not ${size}`
          : (buffer.usage & usage) !== usage
            ? `lacks GPUBufferUsage flags: it has ${buffer.usage}, needed are ${usage}`
            : null;
  if (misfit === null && !copy) return held._storage.share(held);
  if (misfit) needCopy(held, copy, misfit);
  checkRowMajor(held);
  const handle = allocate(record, size, DEFAULT_USAGE | usage, false);
  const made = tensorOfSlot(handle, 0, held._type, held.shape, false);
  try {
    checkCopySource(held, "copying");
    copyBuffers(record, held, slotOf(handle).buffer, 0);
    return made;
  } catch (error) {
    made.release();
    throw error;
  }
}

function needCopy(tensor: Tensor, copy: boolean | undefined, why: string): void {
  if (copy !== false) return;
  throw new CopyError(`${tensor} ${why}: a copy is needed, which copy: false forbids`);
}
