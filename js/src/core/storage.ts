import type { DType } from "./dtype.js";
import { UnsupportedError } from "./errors.js";

/** What a storage has to know of a tensor that lies in it. */
export interface Described {
  /** The hold; 0 = released. */
  readonly _handle: number;
  /** Byte position of element 0 in the storage. */
  readonly _start: number;
  readonly _type: DType;
  readonly _shape: readonly number[];
  /** In elements; null = row-major without gaps. */
  readonly _strides: readonly number[] | null;
  readonly size: number;
  readonly nbytes: number;
  toString(): string;
}

/** Where elements are, with a hold on that. */
export interface Place {
  readonly storage: Storage;
  readonly handle: number;
  /** Byte position of element 0. */
  readonly start: number;
}

/** Some elements in memory that the next call uses again. */
export interface Chunk {
  /** -1 where the elements are no whole words. */
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Memory of one kind, and how a hold on it is shared and dropped. It knows no `Tensor`. */
export interface Storage {
  /** {@link unclonable}: what copies a tensor property by property comes here first. */
  readonly guard: object;
  /** Where the memory is found anew after it moved; absent where it never does. */
  readonly memory?: { readonly buffer: ArrayBufferLike } | undefined;
  /** Whether its `buffer` may become another one without detaching views of the old. */
  readonly mayBeReplaced: boolean;
  /** The memory that `data` views; throws where JS cannot see it, or it is gone. */
  bytes(tensor: Described): ArrayBufferLike;
  /** A second hold on the same memory. */
  share(tensor: Described): number;
  /** The same memory as another tensor: its element 0 is `offset` elements from this one's. */
  view(
    tensor: Described,
    shape: readonly number[],
    strides: readonly number[] | null,
    offset: number,
  ): Place;
  /** A fresh, row-major, aligned copy in the same kind of memory. */
  pack(tensor: Described): Place;
  /** The buffer, where it has nothing else and nobody else holds it. */
  yield?(tensor: Described): ArrayBuffer | undefined;
  /** Drops one hold. Never throws. */
  release(handle: number): void;
  /**
   * Some elements as `dtype`, from row-major position `first` on. Absent where only `pack` is
   * there.
   */
  chunk?(tensor: Described, dtype: DType, first: number): Chunk;
}

/** Throws what is to be done instead of cloning or posting a tensor. */
export const unclonable: object = Object.defineProperty({}, "tensor", {
  enumerable: true,
  get(): never {
    throw new UnsupportedError(
      "tensors cannot be cloned or posted: post transfer() of a CPU tensor, or what read() returns for " +
        "a WebGPU tensor",
    );
  },
});
