/// <reference lib="esnext.disposable" preserve="true" />

import { EXCHANGE, type Exchange, type ExchangeRequest, produce } from "../exchange/produce.js";
import { CPU, WEBGPU } from "../pyodide/layout.js";
import { ArrayStorage } from "./arrays.js";
import { checkTarget, gather, targetBytes } from "./copies.js";
import {
  arrayHolds,
  bytesOf,
  classOf,
  type DType,
  type DTypeName,
  dtypeNamed,
  dtypeOfArray,
  type TypedArray,
} from "./dtype.js";
import { type Element, readElement } from "./elements.js";
import { ReleasedError, UnsupportedError } from "./errors.js";
import { type Device, type Hold, makeDevice, shared, unclonable } from "./realm.js";
import {
  checkShape,
  checkStrides,
  extentOf,
  positionOf,
  rowMajorStrides,
  sizeOf,
} from "./shape.js";
import {
  deviceLayer,
  type FromGPUBufferOptions,
  type FromTypedArrayOptions,
  type Storage,
  type Target,
  type TensorMessage,
  type ToOptions,
} from "./storage.js";

export const CPU_DEVICE: Device = makeDevice(CPU, 0, null, "cpu");

// Well-known in newer engines only; Symbol.for keeps the method reachable by name elsewhere.
const dispose: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** How tensors are told from other objects, also across copies of this library. */
const BRAND = Symbol.for("dlpack-web.tensor");

/**
 * A dense array of any rank on the CPU or on a WebGPU device: shape, strides and dtype over
 * memory that it holds until `release()`.
 *
 * Tensors are made by `bridge.tensor`, `bridge.empty`, `Tensor.fromTypedArray` and
 * `Tensor.fromGPUBuffer`, never by `new`. Who made a tensor releases it, once; `using` does it at
 * the end of a block. Afterwards everything that touches memory throws {@link ReleasedError},
 * while shape, strides, dtype and device stay readable.
 *
 * @typeParam T - the class of `data`, e.g. `Float32Array`
 */
export class Tensor<T extends TypedArray = TypedArray> {
  /** Lengths of the axes; [] for a single element. Not to be written to. */
  readonly shape: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** Where the elements are; `String(tensor.device)` is "cpu" or "webgpu:0". */
  readonly device: Device;
  /**
   * Whether the owner of the memory forbids writing. JS has no read-only typed arrays: writes
   * through `data` are not stopped, and are as wrong as they are in the owner's language.
   */
  readonly readOnly: boolean;

  // Plain underscored fields, not #private ones: the layers above need them, and so does
  // another copy of this library that is handed our tensors.
  /** @internal */ readonly _storage: Storage;
  /** @internal 0 = released. */ _handle: number;
  /** @internal Byte position of element 0 in the storage. */ readonly _start: number;
  /** @internal */ readonly _type: DType;
  /** @internal null = row-major without gaps. */ readonly _strides: readonly number[] | null;
  /** @internal */ _view: T | null = null;
  /** @internal What releases this tensor should nobody do it; see net.ts. */
  _watcher: FinalizationRegistry<Hold> | null = null;

  /** @internal */
  constructor(
    storage: Storage,
    handle: number,
    start: number,
    type: DType,
    shape: readonly number[],
    strides: readonly number[] | null,
    device: Device,
    readOnly: boolean,
  ) {
    this._storage = storage;
    this._handle = handle;
    this._start = start;
    this._type = type;
    this.shape = shape;
    this.size = sizeOf(shape);
    this._strides = strides;
    this.device = device;
    this.readOnly = readOnly;
    shared.live++;
    if (shared.net !== null) this._watch(shared.net);
  }

  /**
   * A tensor over a typed array, without a copy; the array stays the caller's and in use.
   *
   * @param array - the elements: all of them, in row-major order, unless `strides` or `offset` say
   * otherwise
   */
  static fromTypedArray<A extends TypedArray>(
    array: A,
    options: FromTypedArrayOptions = {},
  ): Tensor<A> {
    const own = ArrayBuffer.isView(array) ? dtypeOfArray(array) : undefined;
    if (own === undefined) throw new TypeError("fromTypedArray needs a typed array");
    const type = options.dtype === undefined ? own : dtypeNamed(options.dtype, options.padded);
    if (!arrayHolds(array, type)) {
      throw new TypeError(
        `a ${classOf(array)} does not hold ${type.name}: give a ${type.View.name} or raw bytes`,
      );
    }
    const shape = checkShape(options.shape ?? [Math.floor(array.byteLength / type.step)]);
    const size = sizeOf(shape);
    const strides = checkStrides(shape, options.strides);
    const from = options.offset ?? 0;
    const whole = options.strides === undefined && from === 0;
    const { low, high } =
      strides && size > 0 ? extentOf(shape, strides) : { low: 0, high: size - 1 };
    const needed = bytesOf(type, from + high + 1);
    const fits = whole ? needed === array.byteLength : needed <= array.byteLength;
    // Elements that share bytes cannot be stepped over.
    if (!fits || !(whole || type.step % 1 === 0) || !(from + low >= 0) || from % 1 !== 0) {
      throw new RangeError(
        `shape [${shape}] of ${type.name}${strides ? ` with strides [${strides}]` : ""} from ` +
          `element ${from} on needs ${needed} bytes; the array has ${array.byteLength}`,
      );
    }
    const storage = new ArrayStorage(array);
    const start = array.byteOffset + from * type.step;
    const made = new Tensor<A>(storage, 1, start, type, shape, strides, CPU_DEVICE, false);
    if (whole && classOf(array) === type.View.name) made._view = array;
    return made;
  }

  /**
   * A tensor over a `GPUBuffer`, without a copy. The buffer stays the caller's unless `release`
   * is given; then that is called once, when the last holder (JS or Python) let go.
   *
   * @throws RangeError if the buffer is too small, DeviceLostError if the device is lost
   */
  static fromGPUBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): Tensor {
    return deviceLayer().fromBuffer(buffer, options);
  }

  /**
   * A tensor over what {@link Tensor.transfer} made in another thread, as it arrived; no copy.
   *
   * @throws TypeError, RangeError for anything else
   */
  static receive({ buffer, ...options }: TensorMessage): Tensor {
    if (options.dtype) return Tensor.fromTypedArray(new Uint8Array(buffer), options);
    throw new TypeError("receive() takes what transfer() made");
  }

  /** Name of the element type, in DLPack's and the array API's words. */
  get dtype(): DTypeName {
    return this._type.name;
  }

  /** Number of axes. */
  get ndim(): number {
    return this.shape.length;
  }

  /** Bytes of one element alone. */
  get itemsize(): number {
    return bytesOf(this._type, 1);
  }

  /** Bytes of all elements, without gaps; sub-byte elements share bytes unless `padded`. */
  get nbytes(): number {
    return bytesOf(this._type, this.size);
  }

  /** Whether sub-byte elements have a byte each. */
  get padded(): boolean {
    return this._type.flags !== 0;
  }

  /** Steps between neighbours along each axis, in elements; may be negative or 0. */
  get strides(): readonly number[] {
    return this._strides ?? rowMajorStrides(this.shape);
  }

  /** Bytes from the start of the `GPUBuffer` to element 0; always 0 on CPU. */
  get byteOffset(): number {
    return this.device.type === WEBGPU ? this._start : 0;
  }

  /** Whether `release()` was called. */
  get released(): boolean {
    return this._handle === 0;
  }

  /**
   * The elements of a CPU tensor, as a typed array over the memory itself. Read it anew for every
   * use instead of keeping it: Pyodide's memory moves when it grows, and what was read before is
   * then empty. Reading it again is cheap.
   *
   * Of a tensor that is row-major without gaps it has exactly the elements. Otherwise it is the
   * smallest range that holds them all: element (i, j) is at
   * `dataOffset + i * strides[0] + j * strides[1]` (times 2 for complex numbers).
   *
   * @throws ReleasedError; UnsupportedError on WebGPU, or if the memory is not aligned to the dtype
   */
  get data(): T {
    const view = this._view;
    // A view that was detached, by growth of the memory or a transfer, has become empty.
    return view !== null && view.length !== 0 ? view : this._derive();
  }

  /** Position of element 0 in `data`, in elements; not 0 where strides are negative. */
  get dataOffset(): number {
    const strides = this._strides;
    return strides === null || this.size === 0 ? 0 : -extentOf(this.shape, strides).low;
  }

  /** @throws UnsupportedError on CPU */
  get buffer(): GPUBuffer {
    this._check();
    if (this.device.type === WEBGPU) return deviceLayer().bufferOf(this);
    throw new UnsupportedError("a CPU tensor has no GPUBuffer: use data, or to(gpuDevice)", {
      device: "cpu",
    });
  }

  /**
   * One element. Negative indices count from the end, as in Python.
   *
   * @throws RangeError out of bounds, TypeError for a wrong number of indices
   */
  at(...index: number[]): Element {
    const data = this.data;
    const position = positionOf(this.shape, this.strides, index);
    return readElement(this._type, data, this.dataOffset + position);
  }

  /**
   * The tensor itself where its memory is row-major, without gaps and aligned; else a packed copy
   * in memory of its own, which the caller releases.
   */
  contiguous(): Tensor<T> {
    this._check();
    return this._plain ? this : (this._storage.pack(this) as Tensor<T>);
  }

  /**
   * The same elements on a WebGPU device: one copy, no `await` (the queue takes the data at once,
   * so that the source may change or be released right after). A tensor that is there already
   * gives a second hold on the same buffer.
   *
   * @param options - `dtype`: what elements are converted to on the way; `usage` of the buffer
   * @returns a new tensor, which the caller releases
   * @throws DeviceError for another device's tensor, DeviceLostError, UnsupportedError beyond the
   * device's `maxBufferSize`
   */
  to(device: GPUDevice, options: ToOptions = {}): Tensor<T> {
    this._check();
    return deviceLayer().upload(this, device, options) as Tensor<T>;
  }

  /**
   * Writes elements over those of this tensor: one copy, no `await`. On WebGPU that spares making
   * a buffer.
   *
   * @param source - a tensor of the same shape, or a typed array of as many bytes. It has the
   * dtype of this tensor; with `convert` its elements become that, as {@link Tensor.to} does it
   * @throws UnsupportedError for read-only or strided targets; nothing is written then
   */
  write(source: Tensor | TypedArray, { convert = false } = {}): void {
    this._check();
    const from = isTensor(source)
      ? source
      : Tensor.fromTypedArray(source, { shape: this.shape, dtype: this.dtype });
    try {
      from._check();
      if (`${from.shape}` !== `${this.shape}` || (!convert && from._type !== this._type)) {
        throw new UnsupportedError(`${from} cannot be written over ${this}`, {
          given: from.dtype,
          needed: this.dtype,
        });
      }
      if (this.readOnly || this._strides !== null) {
        throw new UnsupportedError(`${this} cannot be written to: it is read-only or strided`);
      }
      if (this.device.type === WEBGPU) deviceLayer().write(this, from, this._type);
      else copyElements(from, this);
    } finally {
      if (from !== source) from.release();
    }
  }

  /**
   * Copies the elements, in row-major order, into JS-owned memory or into `out`: one copy on our
   * side. Errors that the GPU reported about earlier work on this device are thrown here too.
   *
   * @param out - a typed array of `nbytes` bytes, or a writable row-major CPU tensor of as many
   * @returns `out`, or a new typed array of the class that `data` has
   */
  async read(): Promise<T>;
  async read<O extends Target>(out: O): Promise<O>;
  async read(out?: Target): Promise<Target> {
    this._check();
    if (this.device.type === WEBGPU) return (await deviceLayer().read([this], [out]))[0] as Target;
    const target = out ?? this._newArray();
    checkTarget(this, target);
    copyElements(this, target);
    return target;
  }

  /**
   * Makes the tensor ready for another thread, which calls {@link Tensor.receive}, and releases it:
   *
   * ```js
   * const message = tensor.transfer();
   * worker.postMessage(message, [message.buffer]);
   * ```
   *
   * Nothing is copied if the tensor alone holds all of an `ArrayBuffer` of JavaScript; posting
   * detaches that. Otherwise the elements are copied once.
   *
   * @throws UnsupportedError for a WebGPU tensor
   */
  transfer(): TensorMessage {
    this._check();
    const { dtype, padded, shape, _storage } = this;
    if (this.device.type === WEBGPU) unclonable();
    const buffer = _storage.yield?.(this) ?? this._elements().buffer;
    this.release();
    return { dtype, padded, shape: [...shape], buffer: buffer as ArrayBuffer };
  }

  /** Lets go of the memory. Further calls do nothing. */
  release(): void {
    if (this._handle !== 0) this._storage.release(this._detach());
  }

  [dispose](): void {
    this.release();
  }

  /**
   * Hands the tensor out by the protocol in js/EXCHANGE.md: a second hold on the same memory,
   * unless the request says otherwise.
   *
   * @throws CopyError, DeviceError where `device` cannot be had at once
   */
  [EXCHANGE](request?: ExchangeRequest): Exchange {
    return produce(this, request);
  }

  /** E.g. `Tensor float32[2,3] on webgpu:0`. */
  toString(): string {
    return `Tensor ${this.dtype}[${this.shape}] on ${this.device}`;
  }

  /** What Node's console shows: the elements too, of a contiguous CPU tensor. */
  [Symbol.for("nodejs.util.inspect.custom")](
    _depth: number,
    options: object,
    inspect: (value: unknown, options: object) => string,
  ): string {
    if (this._handle === 0) return `${this} (released)`;
    const visible = this.device.type === CPU && this._plain;
    return visible ? `${this} ${inspect(this.data, options)}` : `${this}`;
  }

  /** @internal */
  get [BRAND](): 1 {
    return 1;
  }

  /** @internal Registering costs more than all the rest of a borrow, hence in debug mode alone. */
  _watch(net: FinalizationRegistry<Hold>): void {
    net.register(this, { storage: this._storage, handle: this._handle, label: `${this}` }, this);
  }

  /** @internal Throws if released. */
  _check(): void {
    if (this._handle === 0) throw released(this);
  }

  /** @internal Gives the hold up to the caller, who releases it; for this tensor it is over. */
  _detach(): number {
    const handle = this._handle;
    this._handle = 0;
    this._view = null;
    shared.live--;
    if (shared.net !== null) shared.net.unregister(this);
    if (this._watcher !== null) this._watcher.unregister(this);
    return handle;
  }

  /** @internal Whether the elements are row-major, without gaps and aligned. */
  get _plain(): boolean {
    const aligned = this._start % this._type.View.BYTES_PER_ELEMENT === 0;
    return this._strides === null && (aligned || this.device.type === WEBGPU);
  }

  /** @internal Another tensor like this one, for a hold that the caller has got. */
  _again(handle: number): Tensor {
    const { _storage, _start, _type, shape, _strides, device, readOnly } = this;
    return new Tensor(_storage, handle, _start, _type, shape, _strides, device, readOnly);
  }

  /** @internal A row-major copy, in JS's own memory, of a CPU tensor. */
  _copy(): Tensor {
    const { shape, _type } = this;
    const storage = new ArrayStorage(this._elements());
    return new Tensor(storage, 1, 0, _type, shape, null, CPU_DEVICE, false);
  }

  /** @internal A fresh array of the elements, in row-major order, of a CPU tensor. */
  _elements(): TypedArray<ArrayBuffer> {
    const { shape, size, _strides, _type } = this;
    const copy = this._newArray();
    if (_strides === null) targetBytes(copy).set(this._bytes());
    else if (size > 0) {
      const { low, high } = extentOf(shape, _strides);
      const { step } = _type;
      const memory = this._storage.bytes(this);
      const from = new Uint8Array(memory, this._start + low * step, (high - low + 1) * step);
      gather(targetBytes(copy), from, this, _strides, step);
    }
    return copy;
  }

  /** @internal A fresh array for all elements. */
  _newArray(): TypedArray<ArrayBuffer> {
    return new this._type.View(Math.ceil(this.size * this._type.components));
  }

  /** @internal The bytes of a row-major CPU tensor; unlike `data`, of any alignment. */
  _bytes(): Uint8Array {
    return new Uint8Array(this._storage.bytes(this), this._start, this.nbytes);
  }

  /** @internal Makes `data` anew. */
  _derive(): T {
    this._check();
    const memory = this._storage.bytes(this);
    const { View, step, components } = this._type;
    let count = this.size;
    let start = count === 0 ? 0 : this._start;
    if (this._strides !== null && count !== 0) {
      const { low, high } = extentOf(this.shape, this._strides);
      start += low * step;
      count = high - low + 1;
    }
    // The width of a component is a power of two; & is exact below 4 GiB, and cheaper than %.
    if ((start & (step / components - 1)) !== 0) throw misaligned(this, start);
    const view = new View(memory, start, Math.ceil(count * components)) as T;
    this._view = view;
    return view;
  }
}

/** The elements of a CPU tensor into a target of as many bytes. */
function copyElements(source: Tensor, target: Target): void {
  const packed = source._strides === null ? source : source._storage.pack(source);
  try {
    targetBytes(target).set(packed._bytes());
  } finally {
    if (packed !== source) packed.release();
  }
}

function released(tensor: Tensor): Error {
  return new ReleasedError(`${tensor} was released; release after the last use`, {
    device: tensor.device,
  });
}

function misaligned(tensor: Tensor, start: number): Error {
  return new UnsupportedError(
    `${tensor} begins at byte ${start}, which ${tensor._type.View.name} cannot view: ` +
      "use contiguous()",
  );
}

/** Whether `x` is a tensor of this library, of any copy of it. */
export function isTensor(x: unknown): x is Tensor {
  return typeof x === "object" && x !== null && (x as { [BRAND]?: unknown })[BRAND] === 1;
}
