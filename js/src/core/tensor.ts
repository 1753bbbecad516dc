// More than 500 lines: one class, whose methods share its private state.
/// <reference lib="esnext.disposable" preserve="true" />

import { type NotArray, notArray, toPrimitive } from "./arraylike.js";
import { ArrayStorage, checkAttached, packedArray } from "./arrays.js";
import { canConvert, checkConversion, convertElements, misfitOf } from "./convert.js";
import { CPU_DEVICE, type Device } from "./device.js";
import { CPU, WEBGPU } from "./dlpack.js";
import {
  type AnyTypedArray,
  type ArrayOf,
  arrayHolds,
  type Becomes,
  bytesOf,
  type CopyOf,
  classOf,
  type DataOf,
  type DType,
  type DTypeName,
  type DTypeOf,
  dtypeNamed,
  dtypeOfArray,
  type HeldBy,
  type TypedArray,
} from "./dtype.js";
import { type Element, putBytes, readElement } from "./elements.js";
import { ReleasedError, tagOf, UnsupportedError } from "./errors.js";
import type { GPUBuffer, GPUDevice } from "./globals.js";
import { type Hold, net } from "./leaks.js";
import {
  checkOptions,
  type FromGPUBufferOptions,
  type FromMemoryOptions,
  type FromTypedArrayOptions,
  type TensorMessage,
  type ToOptions,
} from "./options.js";
import type {
  AsyncExchangeRequest,
  Exchange,
  Exchangeable,
  ExchangeRequest,
  Needs,
} from "./protocol.js";
import { counts } from "./realm.js";
import {
  checkShape,
  checkStrides,
  extentOf,
  positionOf,
  rowMajorStrides,
  sameShape,
  sizeOf,
  spanOf,
} from "./shape.js";
import { elementsOf } from "./show.js";
import type { Place, Storage } from "./storage.js";
import { EXCHANGE, EXCHANGE_ASYNC } from "./symbols.js";
import { type Layout, permute, type Range, reshape, slice } from "./views.js";

// Well-known in newer engines only; Symbol.for keeps the method reachable by name elsewhere.
const dispose: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** Where `read()` may put elements: an array of the same number of bytes, or a CPU tensor. */
export type Target = AnyTypedArray | Tensor;

/**
 * A dense array of any rank on the CPU or on a WebGPU device: shape, strides and dtype over
 * memory that it holds until `release()`.
 *
 * Tensors are made by `bridge.tensor`, `bridge.empty`, `Tensor.from…`, and by the methods below,
 * never by `new`. Release each tensor that you make, once; `using` does it at the end of a block.
 * Afterwards everything that touches memory throws {@link ReleasedError}, while shape, strides,
 * dtype and device stay readable.
 *
 * @typeParam D - the dtype's name, e.g. `"float32"`, from which the class of `data` follows
 */
export class Tensor<D extends DTypeName = DTypeName> {
  /**
   * Throws TypeError, as `byteLength` and `tensor[0]` do: a tensor is not an array. If JavaScript
   * or a library needs one, pass {@link Tensor.data}, or {@link Tensor.copy} if it keeps the array
   * or reads its `buffer`.
   */
  declare readonly length: NotArray;

  // In this order browsers' consoles show the first ones; private fields would come before them.
  /** @internal First: code that copies a tensor property by property reads its guard. */
  readonly _storage: Storage;
  /** Name of the element type, in DLPack's and the array API's words. */
  readonly dtype: D;
  /** @internal */ readonly _shape: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** Where the elements are; `String(tensor.device)` is "cpu" or "webgpu:0". */
  readonly device: Device;
  /**
   * Whether the owner of the memory forbids writing. JS has no read-only typed arrays: writes
   * through `data` are not stopped, but are as wrong as in the owner's language.
   */
  readonly readOnly: boolean;

  // Plain underscored fields, not #private ones: the rooms above need them.
  /** @internal 0 = released. */ _handle: number;
  /** @internal Byte position of element 0 in the storage. */ readonly _start: number;
  /** @internal */ readonly _type: DType;
  /** @internal null = row-major without gaps. */ readonly _strides: readonly number[] | null;
  /** @internal The last `data`. */ _view: TypedArray | null = null;
  /** @internal Its length, which a detached, shrunk or growing array no longer has. */ _count = 0;
  /** @internal See core/leaks.ts. */ _watcher: FinalizationRegistry<Hold> | null = null;

  /** Tensors are not made by `new`: `Tensor.from(new Float32Array(4))` makes one. */
  constructor(...made: [never, ...never[]]);
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
  );
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
    if (type === undefined) {
      throw new TypeError(
        "do not call new Tensor(): use Tensor.from(new Float32Array([…])), bridge.tensor(…) or bridge.empty(…)",
      );
    }
    this._storage = storage;
    this._handle = handle;
    this._start = start;
    this._type = type;
    this.dtype = type.name as D;
    this._shape = shape;
    this.size = sizeOf(shape);
    this._strides = strides;
    this.device = device;
    this.readOnly = readOnly;
    counts.live++;
    if (net.registry !== null) this._watch(net.registry);
  }

  /**
   * A tensor over a typed array, without a copy; the array stays the caller's and in use.
   *
   * @param array - the elements: all of them, in row-major order, unless `strides` or `offset` say
   * otherwise
   * @throws TypeError for anything but a typed array of that dtype, RangeError for sizes that do
   * not fit, UnsupportedError for an array that was detached
   */
  static fromTypedArray<A extends AnyTypedArray, D extends DTypeName = DTypeOf<A>>(
    array: A,
    options: FromTypedArrayOptions<D> & { dtype?: HeldBy<A, D> | undefined } = {},
  ): Tensor<D> {
    const own = ArrayBuffer.isView(array) ? dtypeOfArray(array) : undefined;
    if (own === undefined) {
      throw new TypeError(
        `fromTypedArray needs a typed array, not ${tagOf(array)}: new Float32Array(…) makes one`,
      );
    }
    const names = { shape: 1, dtype: 1, strides: 1, offset: 1, padded: 1 } as const;
    checkOptions<FromTypedArrayOptions>(options, "fromTypedArray()", names, "shape: [2, 3]");
    checkAttached(array);
    const type = options.dtype === undefined ? own : dtypeNamed(options.dtype, options.padded);
    if (!arrayHolds(array, type)) {
      throw new TypeError(
        `a ${classOf(array)} does not hold ${type.name}: give a ${type.View.name} or raw bytes`,
      );
    }
    const count = Math.floor(array.byteLength / type.step);
    const from = options.offset ?? 0;
    if (!Number.isInteger(from) || from < 0 || from > count) {
      throw new RangeError(
        `offset ${from} is not a position in this ${classOf(array)}, which has ${count} elements ` +
          `of ${type.name}`,
      );
    }
    const even = options.strides === undefined;
    const shape = checkShape(options.shape ?? [even ? count - from : count]);
    const strides = checkStrides(shape, options.strides);
    const whole = even && from === 0;
    const { low, high } =
      strides && sizeOf(shape) > 0 ? extentOf(shape, strides) : { low: 0, high: sizeOf(shape) - 1 };
    const needed = bytesOf(type, from + high + 1);
    const all = whole || (even && options.shape === undefined);
    const fits = all ? needed === array.byteLength : needed <= array.byteLength;
    // Elements that share bytes cannot be stepped over.
    if (!fits || !(whole || type.step % 1 === 0) || !(from + low >= 0)) {
      throw new RangeError(
        `shape [${shape}] of ${type.name}${strides ? ` with strides [${strides}]` : ""} from ` +
          `element ${from} on needs ${needed} bytes; the array has ${array.byteLength}`,
      );
    }
    const start = array.byteOffset + from * type.step;
    const storage = new ArrayStorage(array);
    const made = new Tensor<D>(storage, 1, start, type, shape, strides, CPU_DEVICE, false);
    if (whole && classOf(array) === type.View.name) {
      made._view = array as TypedArray;
      made._count = array.length;
    }
    return made;
  }

  /**
   * A tensor over memory that moves when it grows: that of another WebAssembly module. No copy.
   *
   * @param memory - a `WebAssembly.Memory`, or anything whose `buffer` is the current one
   * @param ptr - where element 0 is, in bytes from the start of the memory
   * @throws RangeError for elements outside the memory
   */
  static fromMemory<D extends DTypeName>(
    memory: { readonly buffer: ArrayBufferLike },
    ptr: number,
    options: FromMemoryOptions<D>,
  ): Tensor<D> {
    checkOptions<FromMemoryOptions>(
      options,
      "fromMemory()",
      { shape: 1, dtype: 1, strides: 1, readOnly: 1, padded: 1, release: 1 },
      'shape: [2, 3], dtype: "float32"',
    );
    const type = dtypeNamed(options.dtype, options.padded);
    const shape = checkShape(options.shape);
    const strides = checkStrides(shape, options.strides);
    checkSubByte(type, strides, `dtype ${type.name}`);
    const room = ArrayBuffer.isView(memory) ? undefined : memory?.buffer?.byteLength;
    if (typeof room !== "number") {
      throw new TypeError("fromMemory needs a WebAssembly.Memory or an object with its buffer");
    }
    const { start, bytes } = spanOf(type, shape, strides, ptr);
    if (!Number.isSafeInteger(ptr) || !(start >= 0 && start + bytes <= room)) {
      throw new RangeError(
        `shape [${shape}] of ${type.name} from byte ${ptr} reaches from byte ${start} to ` +
          `${start + bytes}; the memory has ${room}`,
      );
    }
    const storage = new ArrayStorage(memory, options.release);
    const readOnly = options.readOnly === true;
    return new Tensor(storage, 1, ptr, type, shape, strides, CPU_DEVICE, readOnly);
  }

  /**
   * A tensor over a `GPUBuffer`, without a copy. The buffer stays the caller's unless `release` is
   * given, which is called once, when the last hold (of JS or Python) ends.
   *
   * @throws RangeError if the buffer is too small, DeviceLostError if the device is lost
   */
  static fromGPUBuffer<D extends DTypeName>(
    buffer: GPUBuffer,
    options: FromGPUBufferOptions<D>,
  ): Tensor<D> {
    return deviceLayer().fromBuffer(buffer, options) as Tensor<D>;
  }

  /**
   * A tensor over the memory of a typed array, a tensor (a second hold), or an object with
   * `[Symbol.for("dlpack.exchange")]`, which adapters add to their library's tensors.
   *
   * @throws UnsupportedError for a wrong description; TypeError for anything else
   */
  static from<D extends DTypeName>(x: Tensor<D>): Tensor<D>;
  static from<A extends AnyTypedArray>(x: A): Tensor<DTypeOf<A>>;
  static from(x: Exchangeable): Tensor;
  static from(x: AnyTypedArray | Exchangeable): Tensor {
    return ArrayBuffer.isView(x) ? Tensor.fromTypedArray(x) : exchangeLayer().take(x);
  }

  /**
   * A tensor over the message that {@link Tensor.transfer} made in another thread; no copy.
   *
   * @throws TypeError, RangeError for anything else
   */
  static receive(message: TensorMessage): Tensor {
    const { buffer, dtype, padded, shape, ...more } = Object(message) as Partial<TensorMessage>;
    const isBuffer = /ArrayBuffer\]$/.test(Object.prototype.toString.call(buffer));
    // An older version of the library also wrote which elements are null.
    if (dtype && isBuffer && Object.keys(more).length === 0) {
      return Tensor.fromTypedArray(new Uint8Array(buffer as ArrayBuffer), { dtype, padded, shape });
    }
    throw new TypeError("receive() takes what transfer() made");
  }

  /** Lengths of the axes; [] for a single element. */
  get shape(): readonly number[] {
    return Object.freeze(this._shape) as readonly number[];
  }

  /** Number of axes. */
  get ndim(): number {
    return this._shape.length;
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
    return Object.freeze(this._strides ?? rowMajorStrides(this._shape)) as readonly number[];
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
   * Whether the elements are of that dtype; TypeScript then knows the class of `data`.
   *
   * ```ts
   * if (tensor.is("float32")) tensor.data.fill(0); // a Float32Array
   * ```
   */
  is<N extends DTypeName>(dtype: N): this is Tensor<D & N> {
    return (this._type.name as DTypeName) === dtype;
  }

  /**
   * The elements of a CPU tensor, as a typed array over the memory itself. Read it for every use
   * instead of keeping it: Pyodide's memory moves when it grows, and earlier arrays are then empty.
   * Reading it again is cheap. Its `buffer` is all of that memory. Pass {@link Tensor.copy} to code
   * that keeps an array (a chart, for example), clones it, or reads its `buffer`.
   *
   * For a row-major tensor without gaps it has exactly the elements. Otherwise it is the smallest
   * range that holds them all: element (i, j) is at `dataOffset + i * strides[0] + j * strides[1]`
   * (times 2 for complex numbers).
   *
   * @throws ReleasedError; UnsupportedError on WebGPU, if the memory is gone, or not aligned to the
   * dtype
   */
  get data(): DataOf<D> {
    const view = this._view;
    // A view that was detached, by growth of the memory or a transfer, has become empty.
    if (view !== null && view.length === this._count && this._count !== 0) {
      const { mayBeReplaced, memory } = this._storage;
      if (!mayBeReplaced || memory?.buffer === view.buffer) return view as DataOf<D>;
    }
    return this._derive() as DataOf<D>;
  }

  /**
   * The elements of a CPU tensor in row-major order, as a new typed array with its own memory,
   * which you may keep, post, and pass to any library. {@link Tensor.data} instead may be a view
   * whose `.buffer` is all of WebAssembly's memory.
   *
   * @throws ReleasedError; UnsupportedError on WebGPU (await `read()`), or if the memory is gone
   */
  copy(): CopyOf<D> {
    this._check();
    return packedArray(this, this._storage.bytes(this)) as CopyOf<D>;
  }

  /**
   * Throws also in string templates: {@link Tensor.toString} describes a tensor.
   *
   * @throws TypeError where JavaScript needs a number or a string
   */
  [Symbol.toPrimitive](hint: string): never {
    return toPrimitive(this, hint);
  }

  /** Position of element 0 in `data`, in elements; not 0 if strides are negative. */
  get dataOffset(): number {
    const strides = this._strides;
    return strides === null || this.size === 0 ? 0 : -extentOf(this._shape, strides).low;
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
    const position = positionOf(this._shape, this.strides, index);
    return readElement(this._type, data as TypedArray, this.dataOffset + position);
  }

  /** The elements of a CPU tensor, one by one in row-major order, as {@link Tensor.at} gives them. */
  *[Symbol.iterator](): Generator<Element, void, undefined> {
    this.data; // throws its errors at once
    const index = this._shape.map(() => 0);
    for (let count = 0; count < this.size; count++) {
      yield this.at(...index);
      for (let axis = index.length - 1; axis >= 0; axis--) {
        index[axis] = ((index[axis] as number) + 1) % (this._shape[axis] as number);
        if (index[axis] !== 0) break;
      }
    }
  }

  /**
   * The same elements in the same order with another shape, as a view: a hold of its own on the
   * same memory, which the caller releases. One extent may be -1.
   *
   * @throws RangeError for another number of elements, UnsupportedError if a copy is needed
   */
  reshape(shape: ArrayLike<number>): Tensor<D> {
    return this.#viewed(reshape(this.#layout(), shape));
  }

  /** The axes in another order, as a view: a hold of its own, which the caller releases. */
  permute(axes: ArrayLike<number>): Tensor<D> {
    return this.#viewed(permute(this.#layout(), axes));
  }

  /**
   * Some of the elements, as a view: a hold of its own, which the caller releases.
   *
   * ```js
   * tensor.slice(0, [2, 5], [null, null, -1]); // Python's tensor[0, 2:5, ::-1]
   * ```
   *
   * @param ranges - for each axis a position (that axis goes), [start, stop, step], or null for all
   * @throws RangeError for positions out of bounds
   */
  slice(...ranges: Range[]): Tensor<D> {
    return this.#viewed(slice(this.#layout(), ranges));
  }

  #layout(): Layout {
    return { shape: this._shape, strides: this.strides, offset: 0 };
  }

  #viewed({ shape, strides, offset }: Layout): Tensor<D> {
    this._check();
    const dims = checkShape(shape);
    const steps = checkStrides(dims, strides);
    checkSubByte(this._type, steps, `a view of ${this.toString()}`);
    if ((offset * this._type.step) % 1 !== 0) {
      throw new UnsupportedError(
        `a view of ${this.toString()} would begin within a byte: copy it first`,
      );
    }
    const { _storage: storage, readOnly } = this;
    const start = this._start + offset * this._type.step;
    const place = storage.view?.(this, dims, steps, offset);
    return this._at(
      place ?? { storage, handle: storage.share(this), start },
      dims,
      steps,
      readOnly,
    );
  }

  /**
   * The tensor itself if its memory is row-major, without gaps and aligned; else a packed copy in
   * memory of its own, which the caller releases.
   */
  contiguous(): Tensor<D> {
    this._check();
    return this._plain ? this : this._packed();
  }

  /**
   * The same elements on a WebGPU device: one copy, no `await` (the queue takes the data at once,
   * so you may change or release the source right after). A tensor that is already there gives a
   * second hold on the same buffer.
   *
   * @param options - `dtype`: converts the elements; `usage` of the buffer
   * @returns a new tensor, which the caller releases
   * @throws DeviceError for another device's tensor, DeviceLostError, UnsupportedError beyond the
   * device's `maxBufferSize`
   */
  to<N extends DTypeName = D>(
    device: GPUDevice,
    options: ToOptions<N> & { dtype?: Becomes[D] | undefined } = {},
  ): Tensor<N> {
    if (this._handle === 0) this._check();
    checkOptions<ToOptions>(options, "to()", { dtype: 1, usage: 1 }, 'dtype: "float32"');
    return (devices ?? deviceLayer()).upload(this, device, options) as Tensor<N>;
  }

  /**
   * Writes elements over those of this tensor: one copy, no `await`. On WebGPU this avoids making a
   * buffer.
   *
   * @param source - a tensor of the same shape, or a typed array of as many bytes, or anything
   * exchangeable. It has the dtype of this tensor; `convert` converts its elements, as
   * {@link Tensor.to} does, and between packed and padded ones
   * @throws UnsupportedError for read-only or strided targets; nothing is written then
   */
  write(
    ...[source, options = {}]:
      | [source: ArrayOf<D> | CopyOf<D> | Exchangeable]
      | [source: AnyTypedArray | Exchangeable, options: { convert?: boolean | undefined }]
  ): void {
    this._check();
    checkOptions<typeof options>(options, "write()", { convert: 1 }, "convert: true");
    const { convert = false } = options;
    const from = this.#sourceOf(source, convert);
    try {
      from._check();
      const same = from._type === this._type;
      const fits = sameShape(from._shape, this._shape);
      if (!fits || !(same || convert)) {
        const why = fits ? misfitOf(from._type, this._type) : "shape and dtype must be the same";
        const converts = fits && from.device.type !== WEBGPU && canConvert(from._type, this._type);
        const way = converts ? "; convert: true converts" : "";
        throw new UnsupportedError(
          `${from.toString()} cannot be written over ${this.toString()}: ${why}${way}`,
          { given: from.dtype, needed: this.dtype },
        );
      }
      if (!same) checkConversion(from._type, this._type, from.toString());
      if (this.readOnly || this._strides !== null) {
        throw new UnsupportedError(
          `${this.toString()} cannot be written to: it is read-only or strided`,
        );
      }
      if (this.device.type === WEBGPU) {
        deviceLayer().write(this, from);
        return;
      }
      if (from.device.type === WEBGPU) {
        throw new UnsupportedError(
          `${from.toString()} is on a GPU: await its read(out) into this tensor`,
        );
      }
      putBytes(this._bytes(), from._as(this._type), this._exact);
    } finally {
      if (from !== source) from.release();
    }
  }

  #sourceOf(source: AnyTypedArray | Exchangeable, convert: boolean): Tensor {
    if (isTensor(source)) return source;
    if (!ArrayBuffer.isView(source)) return exchangeLayer().take(source);
    const { _shape: shape, _type } = this;
    const dtype = convert ? undefined : this.dtype;
    const padded = convert ? undefined : _type.flags !== 0;
    return Tensor.fromTypedArray(source, { shape, dtype, padded });
  }

  /**
   * Copies the elements, in row-major order, into JS-owned memory or into `out`: one copy on our
   * side. Throws the GPU's errors in the work that made this tensor.
   *
   * @param out - a typed array of `nbytes` bytes, or a writable row-major CPU tensor of as many. It
   * keeps what it had if this throws. A tensor is held meanwhile; the owner of a typed array over
   * WebAssembly memory is not
   * @returns `out`, or a new typed array of the class that `data` has
   */
  async read(): Promise<CopyOf<D>>;
  async read<O extends Target>(out: O): Promise<O>;
  async read(out?: Target): Promise<unknown> {
    this._check();
    if (this.device.type === WEBGPU) return (await deviceLayer().read([this], [out]))[0];
    const target = out ?? this._newArray();
    checkTarget(this, target);
    putBytes(bytesOfTarget(target), this._as(this._type), this._exact);
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
    const { dtype, padded, _shape, _storage } = this;
    if (this.device.type === WEBGPU) {
      throw new UnsupportedError(
        `${this.toString()} cannot be posted: post what await read() returns`,
      );
    }
    const buffer = _storage.yield?.(this) ?? packedArray(this, _storage.bytes(this)).buffer;
    this.release();
    return { dtype, padded, shape: [..._shape], buffer: buffer as ArrayBuffer };
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
    return exchangeLayer().produce(this, request);
  }

  /**
   * The asynchronous form, which also copies a WebGPU tensor to the CPU or to another device.
   *
   * @throws CopyError; the `reason` of an aborted `signal`
   */
  [EXCHANGE_ASYNC](request?: AsyncExchangeRequest): Promise<Exchange> {
    return exchangeLayer().produceAsync(this, request);
  }

  /** E.g. `Tensor float32[2,3] on webgpu:0`. */
  toString(): string {
    return `Tensor ${this.dtype}[${this._shape}] on ${this.device}`;
  }

  /** A description without the elements: use `Array.from(tensor)` for those. */
  toJSON(): { dtype: D; shape: readonly number[]; device: string } {
    return { dtype: this.dtype, shape: this.shape, device: `${this.device}` };
  }

  /**
   * What the console of Node, Deno and Bun shows: the elements too, if the CPU has them, else how to
   * get them. Of large tensors it shows the ends of each axis.
   */
  [Symbol.for("nodejs.util.inspect.custom")](
    _depth?: number,
    options?: object,
    inspect?: (value: unknown, options?: object) => string,
  ): string {
    const facts = this.toString();
    if (this._handle === 0) return `${facts} (released)`;
    if (this.device.type === WEBGPU) return `${facts} (await its read() for the elements)`;
    try {
      return `${facts} ${elementsOf(this, facts.length + 1)}`;
    } catch {
      // Not aligned, or a dtype that JavaScript lacks: its bytes.
      if (inspect && this.nbytes < 8192) return `${facts} ${inspect(this.copy(), options)}`;
      return `${facts} (see its copy())`;
    }
  }

  /** @internal Whether `x` is a tensor of this very copy of the library, in this realm. */
  static _isOurs(x: object): x is Tensor {
    return #layout in x; // a private method marks the objects of its class
  }

  /** @internal Registering costs more than all the rest of a borrow, hence only in debug mode. */
  _watch(registry: FinalizationRegistry<Hold>): void {
    const hold = { storage: this._storage, handle: this._handle, label: this.toString() };
    registry.register(this, hold, this);
  }

  /** @internal Throws if released. */
  _check(): void {
    if (this._handle !== 0) return;
    throw new ReleasedError(
      `${this.toString()} was released: keep it (in Python, the Tensor whose .js it is) until after the last use`,
      { device: this.device },
    );
  }

  /** @internal Moves the hold to the caller, who releases it; this tensor counts as released. */
  _detach(): number {
    const handle = this._handle;
    this._handle = 0;
    this._view = null;
    counts.live--;
    if (net.registry !== null) net.registry.unregister(this);
    if (this._watcher !== null) this._watcher.unregister(this);
    return handle;
  }

  /** @internal Whether the elements are row-major, without gaps and aligned. */
  get _plain(): boolean {
    const aligned = this._start % this._type.View.BYTES_PER_ELEMENT === 0;
    return this._strides === null && (aligned || this.device.type === WEBGPU);
  }

  /** @internal A tensor of the same dtype and device at a place, whose hold it takes over. */
  _at(
    { storage, handle, start }: Place,
    shape: readonly number[],
    strides: readonly number[] | null,
    readOnly: boolean,
  ): Tensor<D> {
    const { _type, device } = this;
    return new Tensor(storage, handle, start, _type, shape, strides, device, readOnly);
  }

  /** @internal A second hold on the same memory. */
  _share(): Tensor<D> {
    const { _storage: storage, _start: start, _shape, _strides, readOnly } = this;
    return this._at({ storage, handle: storage.share(this), start }, _shape, _strides, readOnly);
  }

  /** @internal A fresh, row-major, aligned copy in the same kind of memory. */
  _packed(): Tensor<D> {
    return this._at(this._storage.pack(this), this._shape, null, false);
  }

  /** @internal A fresh array for all elements. */
  _newArray(): CopyOf<DTypeName> {
    return new this._type.View(Math.ceil(this.size * this._type.components));
  }

  /** @internal The bytes of a row-major CPU tensor; unlike `data`, of any alignment. */
  _bytes(): Uint8Array {
    const { nbytes } = this;
    return new Uint8Array(this._storage.bytes(this), nbytes > 0 ? this._start : 0, nbytes);
  }

  /** @internal `nbytes`, but not whole where packed elements end within a byte. */
  get _exact(): number {
    return this.size * this._type.step;
  }

  /** @internal The bytes of a CPU tensor in row-major order as another dtype; its own or a copy. */
  _as(type: DType): Uint8Array {
    const memory = this._storage.bytes(this);
    const shared = this._exact % 1 !== 0; // a byte with a neighbour
    if (type === this._type && this._strides === null && !shared) return this._bytes();
    const packed = packedArray(this, memory);
    const made =
      type === this._type
        ? packed
        : convertElements(packed, this._type, type, this.size, this.toString());
    return new Uint8Array(made.buffer, made.byteOffset, made.byteLength);
  }

  /** @internal Makes `data` again. */
  _derive(): TypedArray {
    this._check();
    const memory = this._storage.bytes(this);
    const { View, components, step } = this._type;
    let from = this._start;
    let count = this.size * components;
    if (this._strides !== null || step % 1 !== 0) {
      const { start, bytes } = spanOf(this._type, this._shape, this._strides, from);
      from = start;
      count = Math.ceil((bytes / step) * components);
    }
    if (count === 0) from = 0;
    if (from % View.BYTES_PER_ELEMENT !== 0) {
      throw new UnsupportedError(
        `${this.toString()} begins at byte ${from}, which ${View.name} cannot view: use contiguous()`,
      );
    }
    const view = new View(memory, from, count);
    // Where the memory may be replaced, `data` reads `buffer` itself.
    if (net.onView && !this._storage.mayBeReplaced) net.onView(view);
    this._view = view;
    this._count = count;
    return view;
  }
}

Object.setPrototypeOf(Tensor.prototype, notArray);

/** Whether `x` is a tensor of this copy of the library; others use the exchange protocol. */
export function isTensor(x: unknown): x is Tensor {
  return typeof x === "object" && x !== null && Tensor._isOurs(x);
}

/** Elements that share bytes have no strides. */
export function checkSubByte(type: DType, strides: readonly number[] | null, what: string): void {
  if (strides === null || type.step % 1 === 0) return;
  throw new UnsupportedError(
    `${what}: packed elements of less than a byte must be row-major; copy them first`,
  );
}

/** Checks that `out` can take the elements of `source`, before anything is started. */
export function checkTarget(source: Tensor, out: Target): void {
  const isArray = ArrayBuffer.isView(out);
  if (!isArray && !isTensor(out)) {
    throw new TypeError("out must be a typed array or a tensor of this library");
  }
  if (!isArray) out._check();
  if (!isArray && (out.device.type !== CPU || out._strides !== null || out.readOnly)) {
    throw new UnsupportedError(
      `out must be a writable, row-major CPU tensor, not ${out.readOnly ? "read-only " : ""}` +
        `${out.toString()} with strides [${out.strides}]`,
    );
  }
  // In the last byte of packed elements, neighbours may begin.
  const [has, needed] = isArray ? [out.byteLength, source.nbytes] : [out._exact, source._exact];
  if (has !== needed) {
    throw new RangeError(
      `out has ${has} bytes (0: detached); ${source.toString()} needs ${needed}`,
    );
  }
  if (!isArray && out._type.packed === source._type.packed && out._type !== source._type) {
    throw new UnsupportedError(
      `${source.toString()} cannot be read into out: ${misfitOf(source._type, out._type)}; read() it, ` +
        "and write() that with convert: true",
    );
  }
}

/** The bytes of a target. Call it right before copying: wasm memory may have grown. */
export function bytesOfTarget(out: Target): Uint8Array {
  if (!ArrayBuffer.isView(out)) return out._bytes();
  return new Uint8Array(out.buffer, out.byteOffset, out.byteLength);
}

// --- the rooms above, which register themselves ---------------------------------------------------

/** What webgpu/ does for tensors. */
export interface DeviceLayer {
  upload(tensor: Tensor, device: GPUDevice, options: ToOptions): Tensor;
  write(target: Tensor, source: Tensor): void;
  read(tensors: readonly Tensor[], outs: readonly (Target | undefined)[]): Promise<Target[]>;
  fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): Tensor;
  bufferOf(tensor: Tensor): GPUBuffer;
  /** Its buffer for foreign code, until the tensor is released. */
  lend(tensor: Tensor): GPUBuffer;
  /** Bytes from element 0 on that only the tensor uses. */
  capacityOf(tensor: Tensor): number;
  /** The `fault` of a tensor's exchange; throws the fault that is known already. */
  faultOf(tensor: Tensor): () => Promise<Error | null> | null;
  /** Calls `fault` of an exchange, and adds its result to the elements of the imported tensor. */
  joinFault(tensor: Tensor, fault: () => unknown): void;
  /** A hold on a GPU tensor that meets the needs of a consumer: the same memory, or one copy. */
  fit(tensor: Tensor, needs: Needs, copy: boolean | undefined): Tensor;
  /** A CPU tensor's elements on a device, meeting those needs. */
  fitUpload(tensor: Tensor, device: GPUDevice, needs: Needs): Tensor;
}

/** What exchange/ does for tensors. */
export interface ExchangeLayer {
  produce(tensor: Tensor, request?: ExchangeRequest): Exchange;
  produceAsync(tensor: Tensor, request?: AsyncExchangeRequest): Promise<Exchange>;
  take(x: Exchangeable): Tensor;
}

let devices: DeviceLayer | null = null;
let exchanges: ExchangeLayer | null = null;

export function registerDeviceLayer(layer: DeviceLayer): void {
  devices = layer;
}

export function registerExchangeLayer(layer: ExchangeLayer): void {
  exchanges = layer;
}

/** The registered layer; throws if the bundle lacks it. */
export function deviceLayer(): DeviceLayer {
  if (devices !== null) return devices;
  throw new UnsupportedError('WebGPU needs import "dlpack-web"');
}

function exchangeLayer(): ExchangeLayer {
  if (exchanges !== null) return exchanges;
  throw new UnsupportedError('exchanges need import "dlpack-web/exchange"');
}
