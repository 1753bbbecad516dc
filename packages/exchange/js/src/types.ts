/**
 * Input and output of the suite. WebGPU's objects have only the members used here, so this compiles
 * without WebGPU's types and accepts yours.
 */

/** The name of a producer's method (M1). */
export const EXCHANGE = Symbol.for("dlpack.exchange");
/** That of the asynchronous one (M3). */
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
    // biome-ignore lint/suspicious/noExplicitAny: a command buffer, which is opaque
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
  /** Only that of `requestDevice` is destroyed, and its loss awaited. */
  destroy?(): void;
  readonly lost?: Promise<unknown>;
}

/** The request to a factory. */
export interface Wanted {
  /** A dtype of DLPack: "float32". */
  readonly dtype: string;
  /** Copy it: the suite changes it later, to see which exchanges change with it (F14). */
  readonly shape: readonly number[];
  /**
   * The components in row-major order: numbers, bigints for integers of 64 bits, 0 and 1 for bool;
   * a complex element has two, its real part first.
   */
  readonly values: readonly (number | bigint)[];
  /** The same as DLPack stores them (S8), row-major without gaps; the factory may keep it. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where the elements are to be: a `GPUDevice`, or null for the CPU. */
  // biome-ignore lint/suspicious/noExplicitAny: the reader's own GPUDevice
  readonly device: any;
}

/** Options of `conformance`. */
export interface ProducerOptions {
  /**
   * Makes a producer, or a promise of one; undefined if it cannot make that. If the object has
   * `release()`, for its user to release it, and `grow()`, which makes its elements' memory grow,
   * the rules for these events are tested too.
   */
  make: (wanted: Wanted) => unknown;
  /**
   * As `make`, but GPU work on which the elements depend fails after it was submitted, because of an
   * invalid shader or a destroyed buffer, for example. Without it, E1 is not tested, nor E2 for
   * elements that have a fault.
   */
  makeFaulty?: ((wanted: Wanted) => unknown) | undefined;
  /**
   * Gives a `GPUDevice` of its own, or a promise of one, for which `make` makes a producer and which
   * is then destroyed. Without it, E4 is not tested.
   */
  requestDevice?: (() => DeviceLike | PromiseLike<DeviceLike>) | undefined;
  /** A `GPUDevice` to test on; without it the GPU is not tested. */
  device?: DeviceLike | null | undefined;
  /** Default: all of DLPack 1.3 with one lane. */
  dtypes?: readonly string[] | undefined;
  /** How long one check may take on one device; default 10,000, enough for busy machines. */
  timeoutMs?: number | undefined;
}

/** Options that a consumer gets with each producer. */
export interface ConsumeOptions {
  /** The device of the producer's elements, which may be requested. */
  // biome-ignore lint/suspicious/noExplicitAny: the reader's own GPUDevice
  device: any;
  /** false if the consumer must throw CopyError rather than take a copy. */
  copy: boolean | undefined;
}

/** Options of `consumerConformance`. */
export interface ConsumerOptions extends Pick<ProducerOptions, "device" | "dtypes" | "timeoutMs"> {
  /**
   * Takes a tensor, reads it and releases it: returns the components of its elements in row-major
   * order, or their bytes as DLPack stores them, or a promise of those. It throws UnsupportedError
   * or DeviceError for requests that it does not support, such as a dtype, which count as skipped.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the reader's own type of producers
  consume: (producer: any, options: ConsumeOptions) => unknown;
  /** Gives a `GPUDevice` that the suite destroys: E4 is then tested by more than `fault()`. */
  requestDevice?: (() => DeviceLike | PromiseLike<DeviceLike>) | undefined;
}

/** The result for a rule of EXCHANGE.md. */
export interface Rule {
  readonly id: string;
  /** false: it is broken. Also true if it was skipped. */
  readonly ok: boolean;
  /** It was not tested; `message` has the reason. */
  readonly skipped?: true;
  /** The finding, or why the rule was skipped. */
  readonly message?: string;
}

export interface Report {
  /** Whether something was tested, and no rule was found broken. */
  readonly ok: boolean;
  readonly rules: Rule[];
}
