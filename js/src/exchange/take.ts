import { ArrayStorage } from "../core/arrays.js";
import { CPU_DEVICE } from "../core/device.js";
import { IS_COPIED } from "../core/dlpack.js";
import { CopyError } from "../core/errors.js";
import { spanOf } from "../core/shape.js";
import { deviceLayer, isTensor, registerExchangeLayer, Tensor } from "../core/tensor.js";
import { produce } from "./produce.js";
import {
  EXCHANGE,
  type Exchange,
  type Exchangeable,
  type ExchangeRequest,
  type MovingMemory,
} from "./types.js";
import { type Checked, check, checkVersion, wrong } from "./validate.js";

/** Whether `x` can hand out a tensor by the protocol. */
export function isExchangeable(x: unknown): x is Exchangeable {
  return typeof (x as Partial<Exchangeable> | null | undefined)?.[EXCHANGE] === "function";
}

/**
 * A tensor over the memory of any exchangeable object, with a hold of its own; without a copy
 * unless `copy` is true. Whatever the object says is checked before it is believed.
 *
 * @returns a tensor, which the caller releases
 * @throws UnsupportedError for what it does not describe rightly; CopyError if it copied although
 * `copy` is false; what the producer throws
 */
export function take(x: Exchangeable, request: ExchangeRequest = {}): Tensor {
  if (isTensor(x)) {
    x._check();
    return request.copy ? x._packed() : x._share();
  }
  // Python's tensors come as proxies, whose `js` is the tensor.
  const { js } = Object(x) as { js?: unknown };
  if (isTensor(js)) return take(js, request);
  if (!isExchangeable(x)) {
    throw new TypeError(
      `${Object.prototype.toString.call(x)} is no tensor: it lacks [Symbol.for("dlpack.exchange")]` +
        adapterHint(x),
    );
  }
  return receive(x[EXCHANGE]({ maxVersion: [1, 0], ...request }), request.copy);
}

/** What tells the tensors of libraries apart, in the order in which to look for it. */
const ADAPTERS = {
  ort_tensor: "transformers",
  dims: "ort",
  dataId: "tfjs",
  weakType: "jax",
  nullCount: "arrow",
  itemSize: "three",
  stride: "ndarray",
};

/** The end of a message: which adapter makes a tensor of a library's. */
export function adapterHint(x: unknown): string {
  for (const [key, name] of Object.entries(ADAPTERS)) {
    if (key in Object(x)) return `; "dlpack-web/${name}" makes one of it`;
  }
  return "";
}

/**
 * A tensor over what `[EXCHANGE]()` returned; takes its hold over, also when it throws.
 *
 * @throws UnsupportedError for what it does not describe rightly
 */
export function adopt(exchange: Exchange): Tensor {
  return receive(exchange, undefined);
}

function receive(exchange: Exchange, copy: boolean | undefined): Tensor {
  checkVersion(exchange); // where it is not ours, even `release` is not to be relied on
  let done = false;
  const release = () => {
    if (done) return;
    done = true;
    exchange.release();
  };
  let tensor: Tensor;
  try {
    const fields = check(exchange);
    const copied = (fields.flags & IS_COPIED) !== 0;
    if (copied && copy === false) {
      throw new CopyError("the producer copied, which copy: false forbids");
    }
    exchange.flush();
    tensor = wrap(fields, release);
    if (copied || !copy) return tensor;
  } catch (error) {
    quietly(release); // or its own error would hide this one
    throw error;
  }
  try {
    return tensor._packed(); // it was asked for a copy, and does not say that it made one
  } finally {
    tensor.release();
  }
}

/** Ends a hold while another error is on its way, which an error of this must not hide. */
export function quietly(release: () => void): void {
  try {
    release();
  } catch (error) {
    console.error(error);
  }
}

function wrap(fields: Checked, release: () => void): Tensor {
  const { gpu, type, shape, strides, byteOffset, data, capacity, readOnly } = fields;
  if (gpu !== null) {
    return deviceLayer().fromBuffer(data as GPUBuffer, {
      device: gpu,
      shape,
      dtype: type.name,
      padded: type.flags !== 0,
      byteOffset,
      capacity,
      release,
      readOnly,
      strides: strides ?? undefined,
    });
  }
  if (ArrayBuffer.isView(data)) {
    const { start, bytes } = spanOf(type, shape, strides, data.byteOffset + byteOffset);
    const end = data.byteOffset + data.byteLength;
    if (bytes > 0 && !(start >= data.byteOffset && start + bytes <= end)) {
      throw outside(data.byteLength, start - data.byteOffset, bytes);
    }
    const at = data.byteOffset + byteOffset;
    const storage = new ArrayStorage(data, release);
    return new Tensor(storage, 1, at, type, shape, strides, CPU_DEVICE, readOnly);
  }
  const { memory, ptr } = data as MovingMemory;
  if (!Number.isSafeInteger(ptr) || ptr < 0) {
    throw wrong("data.ptr", ptr, "a non-negative integer");
  }
  const room = memory?.buffer?.byteLength;
  if (typeof room !== "number") throw wrong("data", data, "a GPUBuffer, a view, or memory");
  const { start, bytes } = spanOf(type, shape, strides, ptr + byteOffset);
  if (bytes > 0 && !(start >= 0 && start + bytes <= room)) throw outside(room, start, bytes);
  return Tensor.fromMemory(memory, ptr + byteOffset, {
    shape,
    dtype: type.name,
    padded: type.flags !== 0,
    strides: strides ?? undefined,
    readOnly,
    release,
  });
}

function outside(has: number, start: number, bytes: number) {
  return wrong("data", `${has} bytes`, `the bytes ${start} to ${start + bytes}`);
}

registerExchangeLayer({ produce, take });
