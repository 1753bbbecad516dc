/**
 * The types of the exchange protocol (EXCHANGE.md; the numbers are its rules), which needs no
 * library.
 */
import type { AbortSignal, GPUBuffer, GPUDevice } from "./globals.js";

/** The name of the method by which a producer hands a tensor out: `Symbol.for("dlpack.exchange")`. */
export declare const EXCHANGE: unique symbol;
/** That of the asynchronous one: `Symbol.for("dlpack.exchange.async")`. */
export declare const EXCHANGE_ASYNC: unique symbol;

/** Memory that moves when it grows: a `WebAssembly.Memory`, or an object with its `buffer` (S2). */
export interface MovingMemory {
  readonly memory: { readonly buffer: ArrayBufferLike };
  /**
   * The byte of `memory.buffer`, which is read again for each use, from which `byteOffset` counts.
   * With negative strides, elements may be below it.
   */
  readonly ptr: number;
}

/** A consumer's request (R1 to R7). */
export interface ExchangeRequest {
  /** The major versions of the protocol that the consumer can read; default [1]. */
  versions?: readonly number[] | undefined;
  /** Where the consumer wants the elements: a `GPUDevice`, or null for the CPU. */
  device?: GPUDevice | null | undefined;
  /** true: fresh memory. false: throw if that is needed. Default: the producer decides. */
  copy?: boolean | undefined;
  /** Whether the consumer is going to write to the memory. */
  writes?: boolean | undefined;
  /** The needs of the consumer's use of a `GPUBuffer`. A producer may ignore them. */
  needs?: Needs | undefined;
}

/** An asynchronous request (M3). */
export interface AsyncExchangeRequest extends ExchangeRequest {
  /** Ends the wait: the promise rejects with its `reason`, and nothing is held. */
  signal?: AbortSignal | undefined;
}

/** The needs of a use of a `GPUBuffer` (R6). */
export interface Needs {
  /** Byte offset of element 0; default any multiple of 4. */
  offset?: number | undefined;
  /** The buffer must have bytes up to a multiple of this; default 4. */
  padTo?: number | undefined;
  /** `GPUBufferUsage` flags that it must have; default STORAGE. */
  usage?: number | undefined;
  /** `GPUBufferUsage` flags that it must have, and no others. */
  exactUsage?: number | undefined;
}

/** The result of `[Symbol.for("dlpack.exchange")]()`: one hold on a tensor's memory (F1 to F15). */
export interface Exchange {
  /**
   * Version of the protocol, `[major, minor]`: [1, 1], or [1, 0] of older producers. Other fields
   * of another major version must not be read (O6).
   */
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
  /** Bytes from element 0 on that only this tensor uses, padding included; inside `data` (S5). */
  readonly capacity: number;
  /** 1 read-only, 2 copied for this call, 4 sub-byte elements are padded, 8 exclusive. */
  readonly flags: number;
  /** Submits the producer's pending work on the memory; queue order does the rest. */
  flush(): void;
  /**
   * Whether work that the elements depend on has failed (E2): null if it is known to have
   * succeeded, or a promise of null or the error. The promise never rejects, and outlives the hold.
   * Absent or null: the producer does not watch its work, has none, or speaks version 1.0.
   */
  readonly fault?: (() => Promise<Error | null> | null) | null | undefined;
  /**
   * Ends the hold, and with it every use of `data`; called once, after the consumer's last use was
   * submitted.
   *
   * @param wrote - whether elements were changed; default whether the request said `writes`
   */
  release(wrote?: boolean): void;
}

/** An object that hands out a tensor by the protocol (M1). */
export interface Exchangeable {
  /** @param request - the needs of the consumer */
  [EXCHANGE](request?: ExchangeRequest): Exchange;
}

/** An object that hands out a tensor asynchronously (M3). */
export interface AsyncExchangeable {
  /** @param request - the needs of the consumer, and a `signal` that aborts it */
  [EXCHANGE_ASYNC](request?: AsyncExchangeRequest): Promise<Exchange>;
}
