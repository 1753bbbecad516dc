import type { DType } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import { spanOf } from "./shape.js";

/** The fields of a tensor that its storage needs. */
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

/** The byte range of a tensor's elements in its storage, gaps included. */
export function spanOfTensor({ _type, _shape, _strides, _start }: Described) {
  return spanOf(_type, _shape, _strides, _start);
}

/** The place of elements, with a hold on it. */
export interface Place {
  readonly storage: Storage;
  readonly handle: number;
  /** Byte position of element 0. */
  readonly start: number;
}

/** Some elements, in memory that the next call reuses. */
export interface Chunk {
  /** -1 if the elements are not whole words. */
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Memory of one kind, and how a hold on it is shared and dropped. It knows no `Tensor`. */
export interface Storage {
  /** {@link unclonable}: code that copies a tensor property by property reads this first. */
  readonly guard: object;
  /** Finds the memory after it moved; absent if it never moves. */
  readonly memory?: { readonly buffer: ArrayBufferLike } | undefined;
  /** Whether its `buffer` may be replaced without detaching views of the old one. */
  readonly mayBeReplaced: boolean;
  /** The memory that `data` views; throws if JS cannot see it, or it is gone. */
  bytes(tensor: Described): ArrayBufferLike;
  /** A second hold on the same memory. */
  share(tensor: Described): number;
  /**
   * The same memory as another tensor: its element 0 is `offset` elements from this one's. Absent if
   * it only needs a second hold.
   */
  view?(
    tensor: Described,
    shape: readonly number[],
    strides: readonly number[] | null,
    offset: number,
  ): Place;
  /** A fresh, row-major, aligned copy in the same kind of memory. */
  pack(tensor: Described): Place;
  /** The buffer, if it has no other elements and no other holds. */
  yield?(tensor: Described): ArrayBuffer | undefined;
  /** Drops one hold. Never throws. */
  release(handle: number): void;
  /**
   * Some elements as `dtype`, from row-major position `first` on. Absent if there is only `pack`.
   */
  chunk?(tensor: Described, dtype: DType, first: number): Chunk;
}

/** Throws an error that says what to do instead of cloning or posting a tensor. */
export const unclonable: object = Object.defineProperty({}, "tensor", {
  enumerable: true,
  get(): never {
    throw new UnsupportedError(
      "tensors cannot be cloned or posted: post transfer() of a CPU tensor, or what read() returns for " +
        "a WebGPU tensor",
    );
  },
});
