/**
 * What goes into the suite and what comes out. WebGPU's objects are the little of them that is used,
 * so that this compiles where TypeScript knows none, and the reader's own fit.
 */

/** The name of a producer's method, by which everything here finds it (M1). */
export const EXCHANGE = Symbol.for("dlpack.exchange");
/** That of the one that may take its time (M3). */
export const EXCHANGE_ASYNC = Symbol.for("dlpack.exchange.async");

/** A `GPUBuffer`. */
export interface BufferLike {
  readonly size: number;
  readonly usage: number;
  mapAsync(mode: number): Promise<unknown>;
  getMappedRange(): ArrayBuffer;
  destroy(): void;
}

/** A `GPUDevice`. */
export interface DeviceLike {
  readonly queue: {
    // biome-ignore lint/suspicious/noExplicitAny: a command buffer, which nothing is known of
    submit(commands: any[]): void;
    // biome-ignore lint/suspicious/noExplicitAny: BufferLike would ask for all that GPUBuffer has
    writeBuffer(buffer: any, offset: number, data: any): void;
  };
  // biome-ignore lint/suspicious/noExplicitAny: see above
  createBuffer(descriptor: any): any;
  // biome-ignore lint/suspicious/noExplicitAny: see above
  createCommandEncoder(): any;
  // biome-ignore lint/suspicious/noExplicitAny: the filter is an enumeration
  pushErrorScope(filter: any): void;
  popErrorScope(): Promise<{ readonly message: string } | null>;
}

/** What a factory is asked for. */
export interface Wanted {
  /** A dtype of DLPack: "float32". */
  readonly dtype: string;
  /** To be copied: the suite changes it later, to see whose exchanges change with it (F14). */
  readonly shape: readonly number[];
  /**
   * The components in row-major order: numbers, bigints for integers of 64 bits, 0 and 1 for bool;
   * a complex element has two, its real part first.
   */
  readonly values: readonly (number | bigint)[];
  /** The same as DLPack stores them (S8), row-major without gaps; the factory's to keep. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where the elements are to be: a `GPUDevice`, or null for the CPU. */
  // biome-ignore lint/suspicious/noExplicitAny: the reader's own GPUDevice
  readonly device: any;
}

/** What `conformance` is told. */
export interface ProducerOptions {
  /**
   * Makes a producer, or a promise of one; undefined if it cannot make that. Where the object has
   * `release()`, by which its user lets go of it, and `grow()`, which makes the memory grow that its
   * elements are in, the rules on what happens then are tested, too.
   */
  make: (wanted: Wanted) => unknown;
  /** A `GPUDevice` to test on; without it the GPU is not tested. */
  device?: DeviceLike | null | undefined;
  /** Default: all of DLPack 1.3 with one lane. */
  dtypes?: readonly string[] | undefined;
  /** How long one rule, on one device, may take; default 10,000: for machines that are busy, too. */
  timeoutMs?: number | undefined;
}

/** What a consumer is told with each producer. */
export interface ConsumeOptions {
  /** Where the producer's elements are, and may be asked for. */
  // biome-ignore lint/suspicious/noExplicitAny: the reader's own GPUDevice
  device: any;
  /** false where the consumer has to throw CopyError rather than take a copy. */
  copy: boolean | undefined;
}

/** What `consumerConformance` is told. */
export interface ConsumerOptions {
  /**
   * Takes a tensor, reads it and lets go of it: gives the components of its elements in row-major
   * order, or their bytes as DLPack stores them, or a promise of those. What it cannot do, such as a
   * dtype, it refuses with UnsupportedError or DeviceError, which counts as skipped.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the reader's own type of producers
  consume: (producer: any, options: ConsumeOptions) => unknown;
  device?: DeviceLike | null | undefined;
  dtypes?: readonly string[] | undefined;
  timeoutMs?: number | undefined;
}

/** What was found about a rule of js/EXCHANGE.md. */
export interface Rule {
  readonly id: string;
  /** false: it is broken. True as well where it was skipped. */
  readonly ok: boolean;
  /** It was not tested, for the reason in `message`. */
  readonly skipped?: true;
  /** What was seen, or why it was skipped. */
  readonly message?: string;
}

export interface Report {
  /** Whether something was tested, and no rule was found broken. */
  readonly ok: boolean;
  readonly rules: Rule[];
}
