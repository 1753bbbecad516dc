/**
 * The types of the exchange protocol (js/EXCHANGE.md), which needs none of this library.
 */
import type { GPUBuffer, GPUDevice } from "../core/globals.js";

/** The name of the method by which a producer hands a tensor out. */
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
  maxVersion?: readonly [number, number] | undefined;
  /** Where the consumer wants the elements: a `GPUDevice`, or null for the CPU. */
  device?: GPUDevice | null | undefined;
  /** true: fresh memory. false: throw where that is needed. Default: as the producer likes. */
  copy?: boolean | undefined;
  /** What the consumer's use of a `GPUBuffer` needs. */
  needs?: Needs | undefined;
}

/** What a use of a `GPUBuffer` needs. */
export interface Needs {
  /** Byte offset of element 0; default any multiple of 4. */
  offset?: number | undefined;
  /** The buffer must have bytes up to a multiple of this; default 4. */
  padTo?: number | undefined;
  /** `GPUBufferUsage` flags that it must have; default STORAGE. */
  usage?: number | undefined;
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

/** Anything that can hand out a tensor by the protocol. */
export interface Exchangeable {
  [EXCHANGE](request?: ExchangeRequest): Exchange;
}
