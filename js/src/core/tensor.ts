/// <reference lib="esnext.disposable" preserve="true" />
import { type NotArray, notArray, toPrimitive } from "./arraylike.js";
import { fromMemory, fromMessage, fromTypedArray, toMessage } from "./arrays.js";
import type { Device } from "./device.js";
import type {
  AnyTypedArray,
  ArrayOf,
  Becomes,
  CopyOf,
  DataOf,
  DTypeName,
  DTypeOf,
  HeldBy,
} from "./dtype.js";
import { bytesOf } from "./dtype.js";
import { type Element, readElement } from "./elements.js";
import { UnsupportedError } from "./errors.js";
import type { GPUBuffer, GPUDevice } from "./globals.js";
import { deviceLayer, exchangeLayer } from "./layers.js";
import { ManagedTensor } from "./managed.js";
import {
  checkOptions,
  type FromGPUBufferOptions,
  type FromMemoryOptions,
  type FromTypedArrayOptions,
  type TensorMessage,
  type ToOptions,
} from "./options.js";
import type { AsyncExchangeRequest, Exchange, Exchangeable, ExchangeRequest } from "./protocol.js";
import { positionOf } from "./shape.js";
import { shown } from "./show.js";
import { dispose, EXCHANGE, EXCHANGE_ASYNC } from "./symbols.js";
import { checkSameDType, type Out, readInto, writeOver } from "./targets.js";
import { type Layout, permute, type Range, reshape, slice } from "./views.js";

/**
 * Where `read()` may put elements: an array of as many bytes and of the class that `data` has, or of raw
 * bytes, or a CPU tensor of the same dtype.
 */
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

  /** @internal First: code that copies a tensor property by property reads its guard. */
  readonly _managed: ManagedTensor;
  // In this order consoles show the first five, and no getters; without fields, assigning asks the Proxy.
  /** Name of the element type, in DLPack's and the array API's words. */
  readonly dtype: D;
  /** @internal For consoles. */
  private readonly _shape: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** Where the elements are; `String(tensor.device)` is "cpu" or "webgpu:0". */
  readonly device: Device;
  /**
   * Whether the owner of the memory forbids writing. JS has no read-only typed arrays: writes
   * through `data` are not stopped, but are as wrong as in the owner's language.
   */
  readonly readOnly: boolean;

  /**
   * Tensors are not made by `new`: `Tensor.from(new Float32Array(4))` makes one.
   *
   * @param made - nothing that programs have
   */
  constructor(...made: [never, ...never[]]);
  /** @internal */
  constructor(managed: ManagedTensor);
  constructor(managed: ManagedTensor) {
    if (managed?.storage === undefined) {
      throw new TypeError(
        "do not call new Tensor(): use Tensor.from(…), bridge.tensor(…) or bridge.empty(…)",
      );
    }
    this._managed = managed;
    this.dtype = managed.dtype.name as D;
    this._shape = managed.shape;
    this.size = managed.size;
    this.device = managed.device;
    this.readOnly = managed.readOnly;
  }

  /**
   * A tensor over a typed array, without a copy; the array stays the caller's and in use.
   *
   * @param array - the elements: all of them, in row-major order, unless `strides` or `offset` say
   * otherwise
   * @param options - `shape`, `dtype`, `strides` and `offset` in elements, `padded`
   * @returns a tensor, which the caller releases
   * @throws TypeError for anything but a typed array of that dtype, RangeError for sizes that do
   * not fit, UnsupportedError for an array that was detached
   */
  static fromTypedArray<A extends AnyTypedArray, D extends DTypeName = DTypeOf<A>>(
    array: A,
    options?: FromTypedArrayOptions<D> & { dtype?: HeldBy<A, D> | undefined },
  ): Tensor<D> {
    return new Tensor<D>(fromTypedArray(array, options));
  }

  /**
   * A tensor over memory that moves when it grows: that of another WebAssembly module. No copy.
   *
   * @param memory - a `WebAssembly.Memory`, or anything whose `buffer` is the current one
   * @param ptr - where element 0 is, in bytes from the start of the memory
   * @param options - `shape` and `dtype`; `strides` in elements, `readOnly`, `padded`, `release`
   * @returns a tensor, which the caller releases
   * @throws RangeError for elements outside the memory
   */
  static fromMemory<D extends DTypeName>(
    memory: { readonly buffer: ArrayBufferLike },
    ptr: number,
    options: FromMemoryOptions<D>,
  ): Tensor<D> {
    return new Tensor<D>(fromMemory(memory, ptr, options));
  }

  /**
   * A tensor over a `GPUBuffer`, without a copy. The buffer stays the caller's unless `release` is
   * given, which is called once, when the last hold (of JS or Python) ends.
   *
   * @param buffer - of the device of `options`
   * @param options - `device`, `shape` and `dtype`; `byteOffset` and `capacity` in bytes, `strides` in
   * elements, `readOnly`, `padded`, `release`
   * @returns a tensor, which the caller releases
   * @throws RangeError if the buffer is too small, DeviceLostError if the device is lost
   */
  static fromGPUBuffer<D extends DTypeName>(
    buffer: GPUBuffer,
    options: FromGPUBufferOptions<D>,
  ): Tensor<D> {
    return new Tensor<D>(deviceLayer().fromBuffer(buffer, options));
  }

  /**
   * A tensor over the memory of a typed array, a tensor (a second hold), or an object with
   * `[Symbol.for("dlpack.exchange")]`, which adapters add to their library's tensors.
   *
   * @param x - the owner of the elements
   * @returns a tensor, which the caller releases
   * @throws UnsupportedError for a wrong description; TypeError for anything else
   */
  static from<D extends DTypeName>(x: Tensor<D>): Tensor<D>;
  /**
   * A tensor over the memory of a typed array, as {@link Tensor.fromTypedArray} makes it.
   *
   * @param x - the elements
   * @param options - `shape`, `dtype`, `strides` and `offset` in elements, `padded`
   * @returns a tensor, which the caller releases
   * @throws TypeError, RangeError, UnsupportedError as {@link Tensor.fromTypedArray}
   */
  static from<A extends AnyTypedArray, D extends DTypeName = DTypeOf<A>>(
    x: A,
    options?: FromTypedArrayOptions<D> & { dtype?: HeldBy<A, D> | undefined },
  ): Tensor<D>;
  static from(x: Exchangeable): Tensor;
  static from(x: AnyTypedArray | Exchangeable, options?: FromTypedArrayOptions): Tensor {
    if (ArrayBuffer.isView(x)) return new Tensor(fromTypedArray(x, options, "Tensor.from()"));
    const made = new Tensor(exchangeLayer().take(x));
    if (options === undefined) return made;
    made.release();
    throw new TypeError("Tensor.from() has options for typed arrays only: use reshape(shape)");
  }

  /**
   * A tensor over the message that {@link Tensor.transfer} made in another thread; no copy.
   *
   * @param message - as it was posted
   * @returns a tensor, which the caller releases
   * @throws TypeError, RangeError for anything else
   */
  static receive(message: TensorMessage): Tensor {
    return new Tensor(fromMessage(message));
  }

  /** Lengths of the axes; [] for a single element. */
  get shape(): readonly number[] {
    return Object.freeze(this._shape);
  }

  /** Number of axes. */
  get ndim(): number {
    return this._shape.length;
  }

  /** Steps between neighbours along each axis, in elements; may be negative or 0. */
  get strides(): readonly number[] {
    return Object.freeze(this._managed.layout.strides) as readonly number[];
  }

  /** Bytes of one element alone. */
  get itemsize(): number {
    return bytesOf(this._managed.dtype, 1);
  }

  /** Bytes of all elements, without gaps; sub-byte elements share bytes unless `padded`. */
  get nbytes(): number {
    return this._managed.nbytes;
  }

  /** Whether sub-byte elements have a byte each. */
  get padded(): boolean {
    return this._managed.dtype.flags !== 0;
  }

  /** Bytes from the start of the `GPUBuffer` to element 0; always 0 on CPU. */
  get byteOffset(): number {
    return this._managed.isOnGPU ? this._managed.start : 0;
  }

  /** Whether `release()` was called. */
  get released(): boolean {
    return this._managed.handle === 0;
  }

  /**
   * Whether the elements are of that dtype; TypeScript then knows the class of `data`.
   *
   * ```ts
   * if (tensor.is("float32")) tensor.data.fill(0); // a Float32Array
   * ```
   *
   * @param dtype - the name of a dtype
   */
  is<N extends DTypeName>(dtype: N): this is Tensor<D & N> {
    return (this.dtype as DTypeName) === dtype;
  }

  /**
   * The elements of a CPU tensor, as a typed array over the memory itself. Read it for every use
   * instead of keeping it: Pyodide's memory moves when it grows, and earlier arrays are then empty.
   * Reading it again is cheap. Its `buffer` is all of that memory. Pass {@link Tensor.copy} to code
   * that keeps an array (a chart, for example), clones it, or reads its `buffer`.
   *
   * For a row-major tensor without gaps it has exactly the elements. Otherwise it is the smallest
   * range that holds them all: element (i, j) is at `dataOffset + i * strides[0] + j * strides[1]`,
   * times the entries of one element: 2 for complex numbers and bfloat16; each lane of a vector has
   * its own.
   *
   * @throws ReleasedError; UnsupportedError on WebGPU, if the memory is gone, or not aligned to the
   * dtype
   */
  get data(): DataOf<D> {
    return this._managed.data as DataOf<D>;
  }

  /**
   * The elements of a CPU tensor in row-major order, as a new typed array with its own memory,
   * which you may keep, post, and pass to any library. {@link Tensor.data} instead may be a view
   * whose `.buffer` is all of WebAssembly's memory.
   *
   * @throws ReleasedError; UnsupportedError on WebGPU (await `read()`), or if the memory is gone
   */
  copy(): CopyOf<D> {
    return this.#held().copy() as CopyOf<D>;
  }

  /**
   * Throws also in string templates: {@link Tensor.toString} describes a tensor.
   *
   * @param hint - the type that JavaScript needs
   * @throws TypeError where JavaScript needs a number or a string
   */
  [Symbol.toPrimitive](hint: string): never {
    return toPrimitive(this, hint);
  }

  /** Position of element 0 in `data`, in elements; not 0 if strides are negative. */
  get dataOffset(): number {
    return this._managed.dataOffset;
  }

  /** @throws UnsupportedError on CPU */
  get buffer(): GPUBuffer {
    if (this.#held().isOnGPU) return deviceLayer().bufferOf(this._managed);
    throw new UnsupportedError("a CPU tensor has no GPUBuffer: use data, or to(gpuDevice)", {
      device: "cpu",
    });
  }

  /**
   * One element.
   *
   * @param index - a position on each axis; negative ones count from the end, as in Python
   * @returns a number, bigint or boolean, or the two parts of a complex number
   * @throws RangeError out of bounds, TypeError for a wrong number of indices
   */
  at(...index: number[]): Element {
    const { data, dtype, layout, dataOffset } = this._managed;
    return readElement(dtype, data, dataOffset + positionOf(layout.shape, layout.strides, index));
  }

  /** The elements of a CPU tensor, one by one in row-major order, as {@link Tensor.at} gives them. */
  *[Symbol.iterator](): Generator<Element, void, undefined> {
    this.data; // throws its errors at once
    const { _shape: shape } = this;
    const index = shape.map(() => 0);
    for (let count = 0; count < this.size; count++) {
      yield this.at(...index);
      for (let axis = index.length - 1; axis >= 0; axis--) {
        index[axis] = ((index[axis] as number) + 1) % (shape[axis] as number);
        if (index[axis] !== 0) break;
      }
    }
  }

  /**
   * The same elements in the same order with another shape, as a view: a hold of its own on the
   * same memory, which the caller releases.
   *
   * @param shape - the extents, of which one may be -1
   * @throws RangeError for another number of elements, UnsupportedError if a copy is needed
   */
  reshape(shape: ArrayLike<number>): Tensor<D> {
    return this.#viewed(reshape(this._managed.layout, shape));
  }

  /**
   * The axes in another order, as a view: a hold of its own, which the caller releases.
   *
   * @param axes - each axis once; negative ones count from the end
   * @throws RangeError if they are no permutation
   */
  permute(axes: ArrayLike<number>): Tensor<D> {
    return this.#viewed(permute(this._managed.layout, axes));
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
    return this.#viewed(slice(this._managed.layout, ranges));
  }

  /** The inside, unless it was released. */
  #held(): ManagedTensor {
    this._managed.check();
    return this._managed;
  }

  #viewed(layout: Layout): Tensor<D> {
    return new Tensor(this._managed.viewed(layout));
  }

  /**
   * The tensor itself if its memory is row-major, without gaps and aligned; else a packed copy in
   * memory of its own, which the caller releases.
   */
  contiguous(): Tensor<D> {
    return this.#held().isPlain ? this : new Tensor(this._managed.pack());
  }

  /**
   * The same elements on a WebGPU device: one copy, no `await` (the queue takes the data at once,
   * so you may change or release the source right after). A tensor that is already there gives a
   * second hold on the same buffer.
   *
   * @param device - a `GPUDevice`, such as `webgpu.requestDevice()` gives
   * @param options - `dtype`: converts the elements; `usage` of the buffer
   * @returns a new tensor, which the caller releases
   * @throws DeviceError for another device's tensor, DeviceLostError, UnsupportedError beyond the
   * device's `maxBufferSize`
   */
  to<N extends DTypeName = D>(
    device: GPUDevice,
    options: ToOptions<N> & { dtype?: Becomes[D] | undefined } = {},
  ): Tensor<N> {
    checkOptions<ToOptions>(options, "to()", { dtype: 1, usage: 1 }, 'dtype: "float32"');
    const { dtype, usage } = options; // before #held(): getters may release this
    return new Tensor(deviceLayer().upload(this.#held(), device, { dtype, usage }));
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
    checkOptions<typeof options>(options, "write()", { convert: 1 }, "convert: true");
    const { convert = false } = options;
    const from = this.#sourceOf(source, convert);
    try {
      writeOver(this.#held(), from, convert); // the source and the options may have released this
    } finally {
      if (!isTensor(source)) from.release();
    }
  }

  #sourceOf(source: AnyTypedArray | Exchangeable, convert: boolean): ManagedTensor {
    if (isTensor(source)) return source._managed;
    if (!ArrayBuffer.isView(source)) return exchangeLayer().take(source);
    const { dtype, padded, _shape: shape } = this;
    return fromTypedArray(source, convert ? { shape } : { shape, dtype, padded });
  }

  /**
   * Copies the elements, in row-major order, into JS-owned memory: one copy on our side. Throws the GPU's errors in the work that made this tensor.
   *
   * @returns a new typed array of the class that `data` has
   * @throws DeviceLostError, KernelError and other errors of that work
   */
  async read(): Promise<CopyOf<D>>;
  /**
   * Copies the elements, in row-major order, into `out`.
   *
   * @param out - a typed array of `nbytes` bytes, as `write()` takes them, or a writable row-major CPU
   * tensor of as many, of the same dtype. It keeps its elements if this throws. A tensor is held meanwhile; the owner of a typed array over
   * WebAssembly memory is not
   * @returns `out`
   * @throws RangeError for another size; TypeError for an array of another class; UnsupportedError for
   * another tensor; as without `out`
   */
  async read<O extends Target>(out: O): Promise<O>;
  async read(out?: Target): Promise<unknown> {
    const managed = this.#held();
    const target = out == null ? managed.newArray() : outOf(out, managed);
    if (managed.isOnGPU) await deviceLayer().read([managed], [target]);
    else readInto(target, managed);
    return out ?? target;
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
    return toMessage(this._managed);
  }

  /** Lets go of the memory. Further calls do nothing. */
  release(): void {
    this._managed.release();
  }

  [dispose](): void {
    this.release();
  }

  /**
   * Hands the tensor out by the protocol in EXCHANGE.md: a second hold on the same memory,
   * unless the request says otherwise.
   *
   * @param request - the needs of the consumer: `versions`, `device`, `copy`, `writes`
   * @throws CopyError, DeviceError where `device` cannot be had at once
   */
  [EXCHANGE](request?: ExchangeRequest): Exchange {
    return exchangeLayer().produce(this._managed, request);
  }

  /**
   * The asynchronous form, which also copies a WebGPU tensor to the CPU or to another device.
   *
   * @param request - the same, and a `signal` that aborts it
   * @throws CopyError; the `reason` of an aborted `signal`
   */
  [EXCHANGE_ASYNC](request?: AsyncExchangeRequest): Promise<Exchange> {
    return exchangeLayer().produceAsync(this._managed, request);
  }

  /** E.g. `Tensor float32[2,3] on webgpu:0`. */
  toString(): string {
    return this._managed.toString();
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
    return shown(this, (value) => inspect?.(value, options));
  }

  /** @internal Whether `x` is a tensor of this very copy of the library, in this realm. */
  static _isOurs(x: object): x is Tensor {
    return #viewed in x; // a private method marks the objects of its class
  }
}

Object.setPrototypeOf(Tensor.prototype, notArray);

/** Whether `x` is a tensor of this copy of the library; others use the exchange protocol. */
export function isTensor(x: unknown): x is Tensor {
  return typeof x === "object" && x !== null && Tensor._isOurs(x);
}

/** The inside of a tensor, which may be given itself; undefined for anything else. */
export function managedOf(x: unknown): ManagedTensor | undefined {
  if (isTensor(x)) return x._managed; // first: instanceof asks the Proxy behind each Tensor
  return x instanceof ManagedTensor ? x : undefined;
}

/** The inside of an out. */
function outOf(out: unknown, source: ManagedTensor): Out {
  const target = managedOf(out) ?? out;
  if (target instanceof ManagedTensor || ArrayBuffer.isView(target)) {
    return checkSameDType(source, target as Out);
  }
  throw new TypeError("out must be a typed array or a tensor of this library");
}
