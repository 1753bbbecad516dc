/**
 * What a tensor is inside: elements of one dtype in memory of one kind, and a hold on that memory.
 * `Tensor` is the face of it that users see; all other modules work with this.
 */
import { convertElements } from "./convert.js";
import type { Device } from "./device.js";
import { WEBGPU } from "./dlpack.js";
import { bytesOf, type CopyOf, type DType, type DTypeName, type TypedArray } from "./dtype.js";
import { gather, putBytes } from "./elements.js";
import { ReleasedError, UnsupportedError } from "./errors.js";
import { counts, type Hold, net } from "./realm.js";
import {
  checkShape,
  checkStrides,
  checkSubByte,
  extentOf,
  rowMajorStrides,
  sizeOf,
  spanOf,
} from "./shape.js";
import type { Layout } from "./views.js";

/** The place of elements, with a hold on it. */
export interface Place {
  readonly storage: Storage;
  readonly handle: number;
  /** Byte position of element 0. */
  readonly start: number;
}

/** Some elements, in memory that the next call reuses: whole words, but for the last ones. */
export interface Chunk {
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Memory of one kind, and how a hold on it is shared and dropped. */
export interface Storage {
  /** {@link unclonable}: code that copies a tensor property by property reads this first. */
  readonly guard: object;
  /** Finds the memory after it moved; absent if it never moves. */
  readonly memory?: { readonly buffer: ArrayBufferLike } | undefined;
  /** Whether its `buffer` may be replaced without detaching views of the old one. */
  readonly mayBeReplaced: boolean;
  /** The memory that `data` views; throws if JS cannot see it, or it is gone. */
  bytes(tensor: ManagedTensor): ArrayBufferLike;
  /** A second hold on the same memory. */
  share(tensor: ManagedTensor): number;
  /** The place of a view of a tensor. Absent if that only needs a second hold. */
  view?(tensor: ManagedTensor, layout: Layout): Place;
  /** A fresh, row-major, aligned copy in the same kind of memory. */
  pack(tensor: ManagedTensor): Place;
  /** The buffer, if it has no other elements and no other holds. */
  yield?(tensor: ManagedTensor): ArrayBuffer | undefined;
  /** Drops one hold. Never throws. */
  release(handle: number): void;
  /**
   * Some elements as `dtype`, from row-major position `first` on. Absent if there is only `pack`.
   */
  chunk?(tensor: ManagedTensor, dtype: DType, first: number): Chunk;
}

/** Throws an error that says what to do instead of cloning or posting a tensor. */
export const unclonable: object = Object.defineProperty({}, "tensor", {
  enumerable: true,
  get(): never {
    throw new UnsupportedError(
      "tensors cannot be cloned or posted: post the result of transfer() or read()",
    );
  },
});

let made = 0;

/** DLPack's managed tensor in JavaScript: described memory, with a hold on it until `release()`. */
export class ManagedTensor {
  /** First: code that copies a tensor property by property reads its guard. */
  readonly storage: Storage;
  /** No other tensor has or had it. */
  readonly serial: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** In elements; null = row-major without gaps. */
  readonly strides: readonly number[] | null;
  readonly device: Device;
  readonly readOnly: boolean;
  /** Byte position of element 0 in the storage. */
  readonly start: number;
  /** The hold; 0 = released. */
  handle: number;
  /** See core/watch.ts. */
  watcher: FinalizationRegistry<Hold> | null;
  /** The last `data`. */
  view: TypedArray | null;
  /** Its length, which a detached, shrunk or growing array no longer has. */
  count: number;

  constructor(
    storage: Storage,
    handle: number,
    start: number,
    dtype: DType,
    shape: readonly number[],
    strides: readonly number[] | null,
    device: Device,
    readOnly: boolean,
  ) {
    this.storage = storage;
    this.serial = ++made;
    this.dtype = dtype;
    this.shape = shape;
    this.size = sizeOf(shape);
    this.strides = strides;
    this.device = device;
    this.readOnly = readOnly;
    this.start = start;
    this.handle = handle;
    this.watcher = null;
    this.view = null;
    this.count = 0;
    counts.live++;
    if (net.registry !== null) this.watch(net.registry);
  }

  /** Bytes of all elements, without gaps. */
  get nbytes(): number {
    return bytesOf(this.dtype, this.size);
  }

  /** The same, but not whole where packed elements end within a byte. */
  get exact(): number {
    return this.size * this.dtype.step;
  }

  /** The byte range of the elements in the storage, gaps included. */
  get span(): { start: number; bytes: number } {
    return spanOf(this.dtype, this.shape, this.strides, this.start);
  }

  get isOnGPU(): boolean {
    return this.device.type === WEBGPU;
  }

  /** Whether the elements are row-major, without gaps and aligned. */
  get isPlain(): boolean {
    const aligned = this.start % this.dtype.View.BYTES_PER_ELEMENT === 0;
    return this.strides === null && (aligned || this.isOnGPU);
  }

  get layout(): Layout {
    const { shape, strides } = this;
    return { shape, strides: strides ?? rowMajorStrides(shape), offset: 0 };
  }

  /** E.g. `Tensor float32[2,3] on webgpu:0`. */
  toString(): string {
    return `Tensor ${this.dtype.name}[${this.shape}] on ${this.device}`;
  }

  // --- the hold -----------------------------------------------------------------------------------

  /** Throws if released. */
  check(): void {
    if (this.handle !== 0) return;
    throw new ReleasedError(
      `${this.toString()} was released: keep it (in Python, the Tensor whose .js it is) until after the last use`,
      { device: this.device },
    );
  }

  /** Lets go of the memory. Further calls do nothing. */
  release(): void {
    if (this.handle !== 0) this.storage.release(this.detach());
  }

  /** Moves the hold to the caller, who releases it; this tensor counts as released. */
  detach(): number {
    const { handle } = this;
    this.handle = 0;
    this.view = null;
    counts.live--;
    net.registry?.unregister(this);
    this.watcher?.unregister(this);
    return handle;
  }

  /** Registering costs more than all the rest of a borrow, hence only in debug mode. */
  watch(registry: FinalizationRegistry<Hold>): void {
    const hold = { storage: this.storage, handle: this.handle, label: this.toString() };
    registry.register(this, hold, this);
  }

  // --- tensors of the same dtype and device ---------------------------------------------------------

  /** A tensor at a place, whose hold it takes over. */
  at(
    { storage, handle, start }: Place,
    shape: readonly number[],
    strides: readonly number[] | null,
    readOnly: boolean,
  ): ManagedTensor {
    const { dtype, device } = this;
    return new ManagedTensor(storage, handle, start, dtype, shape, strides, device, readOnly);
  }

  /** A second hold on the same memory. */
  share(readOnly: boolean = this.readOnly): ManagedTensor {
    const { storage, start, shape, strides } = this;
    return this.at({ storage, handle: storage.share(this), start }, shape, strides, readOnly);
  }

  /** A fresh, row-major, aligned copy in the same kind of memory. */
  pack(): ManagedTensor {
    return this.at(this.storage.pack(this), this.shape, null, false);
  }

  /** A second hold on some of the elements, or all of them with other axes. */
  viewed({ shape, strides, offset }: Layout): ManagedTensor {
    this.check();
    const dims = checkShape(shape);
    const steps = checkStrides(dims, strides);
    const { storage, dtype, readOnly } = this;
    checkSubByte(dtype, steps, `a view of ${this.toString()}`);
    if ((offset * dtype.step) % 1 !== 0) {
      throw new UnsupportedError(
        `a view of ${this.toString()} would begin within a byte: copy it first`,
      );
    }
    const start = this.start + offset * dtype.step;
    const layout = { shape: dims, strides: steps ?? rowMajorStrides(dims), offset };
    const place = storage.view?.(this, layout);
    return this.at(place ?? { storage, handle: storage.share(this), start }, dims, steps, readOnly);
  }

  // --- elements on the CPU ----------------------------------------------------------------------------

  /** Implements `tensor.data`. */
  get data(): TypedArray {
    const { view } = this;
    // A view that was detached, by growth of the memory or a transfer, has become empty.
    if (view !== null && view.length === this.count && this.count !== 0) {
      const { mayBeReplaced, memory } = this.storage;
      if (!mayBeReplaced || memory?.buffer === view.buffer) return view;
    }
    return this.derive();
  }

  /** Makes `data` again. */
  derive(): TypedArray {
    this.check();
    const memory = this.storage.bytes(this);
    const { View } = this.dtype;
    const { start, bytes } = this.span;
    const count = bytes / View.BYTES_PER_ELEMENT;
    const from = count === 0 ? 0 : start;
    if (from % View.BYTES_PER_ELEMENT !== 0) {
      throw new UnsupportedError(
        `${this.toString()} begins at byte ${from}, which ${View.name} cannot view: use contiguous()`,
      );
    }
    const view = new View(memory, from, count);
    // Where the memory may be replaced, `data` reads `buffer` itself.
    if (net.onView && !this.storage.mayBeReplaced) net.onView(view);
    this.view = view;
    this.count = count;
    return view;
  }

  /** Position of element 0 in `data`, in elements; not 0 if strides are negative. */
  get dataOffset(): number {
    const { shape, strides } = this;
    return strides === null || this.size === 0 ? 0 : -extentOf(shape, strides).low;
  }

  /** A fresh array for all elements. */
  newArray(): CopyOf<DTypeName> {
    return new this.dtype.View(Math.ceil(this.size * this.dtype.components));
  }

  /** The bytes of a row-major tensor; unlike `data`, of any alignment. */
  bytes(): Uint8Array {
    this.check();
    const { nbytes } = this;
    return new Uint8Array(this.storage.bytes(this), nbytes > 0 ? this.start : 0, nbytes);
  }

  /** A fresh array of the elements in row-major order. */
  copy(): CopyOf<DTypeName> {
    const memory = this.storage.bytes(this);
    const packed = this.newArray();
    this.copyTo(new Uint8Array(packed.buffer), memory);
    return packed;
  }

  /** Copies the elements over bytes, in row-major order. */
  copyTo(target: Uint8Array, memory: ArrayBufferLike = this.storage.bytes(this)): void {
    const { start, bytes } = this.span;
    this.put(target, new Uint8Array(memory, bytes > 0 ? start : 0, bytes));
  }

  /** The same, from the bytes of its {@link span}. */
  put(target: Uint8Array, source: Uint8Array): void {
    if (this.strides === null) putBytes(target, source, this.exact);
    else gather(target, source, this.shape, this.strides, this.dtype.step);
  }

  /** The bytes in row-major order as another dtype; its own or a copy. */
  as(dtype: DType): Uint8Array {
    const shared = this.exact % 1 !== 0; // a byte with a neighbour
    if (dtype === this.dtype && this.strides === null && !shared) return this.bytes();
    const packed = this.copy();
    const made =
      dtype === this.dtype
        ? packed
        : convertElements(packed, this.dtype, dtype, this.size, this.toString());
    return new Uint8Array(made.buffer, made.byteOffset, made.byteLength);
  }
}
