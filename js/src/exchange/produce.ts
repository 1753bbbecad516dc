import { CopyError, DeviceError } from "../core/errors.js";
import { extentOf } from "../core/shape.js";
import { deviceLayer } from "../core/storage.js";
import type { Tensor } from "../core/tensor.js";
import { READ_ONLY } from "../pyodide/layout.js";

/**
 * The name of the method by which a producer hands a tensor out: js/EXCHANGE.md has the protocol,
 * which needs none of this library.
 */
export const EXCHANGE: unique symbol = Symbol.for("dlpack.exchange") as never;

/** Memory that moves when it grows: a `WebAssembly.Memory`, or what has its `buffer`. */
export interface MovingMemory {
  readonly memory: { readonly buffer: ArrayBufferLike };
  /** Where the tensor's bytes are in `memory.buffer`, which is read anew for every use. */
  readonly ptr: number;
}

/** What a consumer can take. A producer may ignore all of it but `copy: false`. */
export interface ExchangeRequest {
  /** The newest version that the consumer understands, `[major, minor]`. */
  maxVersion?: readonly [number, number];
  /** Where the consumer wants the elements: a `GPUDevice`, or null for the CPU. */
  device?: GPUDevice | null;
  /** true: fresh memory. false: throw where that is needed. Default: as the producer likes. */
  copy?: boolean | undefined;
  /** What the consumer's use of a `GPUBuffer` needs. */
  needs?: Needs;
}

/** What a use of a `GPUBuffer` needs. */
export interface Needs {
  /** Byte offset of element 0; default any multiple of 4. */
  offset?: number;
  /** The buffer must have bytes up to a multiple of this; default 4. */
  padTo?: number;
  /** `GPUBufferUsage` flags that it must have; default STORAGE. */
  usage?: number;
}

/** What `[EXCHANGE]()` returns: one hold on a tensor's memory, described in DLPack's words. */
export interface Exchange {
  /** Version of the protocol, `[major, minor]`; another major version is not to be touched. */
  readonly version: readonly [number, number];
  /** `type`: 1 = CPU, 15 = WebGPU. Devices are the same if `gpu` is the same object. */
  readonly device: { readonly type: number; readonly id: number; readonly gpu: GPUDevice | null };
  /** `DLDataType`. */
  readonly dtype: { readonly code: number; readonly bits: number; readonly lanes: number };
  readonly shape: readonly number[];
  /** In elements; null is row-major. */
  readonly strides: readonly number[] | null;
  /** Bytes from the start of `data` to element 0. */
  readonly byteOffset: number;
  readonly data: GPUBuffer | ArrayBufferView | MovingMemory;
  /** Bytes from element 0 on that are this tensor's alone, padding included. */
  readonly capacity: number;
  /** 1 = read-only, 2 = the memory was copied for this call, 4 = sub-byte elements are padded. */
  readonly flags: number;
  /** Submits the producer's pending work on the memory; queue order does the rest. */
  flush(): void;
  /** Ends the hold; called once, after the consumer's last use was submitted. */
  release(): void;
}

const VERSION = [1, 0] as const;
const IS_COPIED = 2;

/** Implements `tensor[EXCHANGE]`. */
export function produce(tensor: Tensor, { device, copy }: ExchangeRequest = {}): Exchange {
  tensor._check();
  const { gpu } = tensor.device;
  const moved = device !== undefined && device !== gpu;
  if (moved && gpu !== null) {
    throw new DeviceError(
      `${tensor} is not on ${device ? "that GPUDevice" : "the CPU"}: await read() it`,
      { device: tensor.device },
    );
  }
  if (moved && copy === false) {
    throw new CopyError(`${tensor} is not on that GPUDevice, which copy: false asks for`);
  }
  const held = moved
    ? tensor.to(device as GPUDevice)
    : copy
      ? tensor._storage.pack(tensor)
      : tensor._storage.share(tensor);
  try {
    const { type, id, gpu } = held.device;
    const { packed, flags } = held._type;
    return {
      version: VERSION,
      device: { type, id, gpu },
      dtype: { code: packed & 255, bits: (packed >>> 8) & 255, lanes: packed >>> 16 },
      shape: [...held.shape],
      strides: held._strides && [...held._strides],
      ...placeOf(held),
      flags: (held.readOnly ? READ_ONLY : 0) | (moved || copy ? IS_COPIED : 0) | flags,
      flush() {},
      release: () => held.release(),
    };
  } catch (error) {
    held.release();
    throw error;
  }
}

function placeOf(tensor: Tensor): Pick<Exchange, "byteOffset" | "data" | "capacity"> {
  const { _storage, _start, _strides, _type, shape, size } = tensor;
  if (tensor.device.gpu) {
    const capacity = deviceLayer().capacityOf(tensor);
    return { byteOffset: _start, data: tensor.buffer, capacity };
  }
  const high = _strides && size > 0 ? extentOf(shape, _strides).high + 1 : size;
  const capacity = Math.ceil(high * _type.step);
  const { memory } = _storage;
  return memory
    ? { byteOffset: 0, data: { memory, ptr: _start }, capacity }
    : { byteOffset: tensor.dataOffset * _type.step, data: tensor.data, capacity };
}
