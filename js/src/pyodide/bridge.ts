import type { Device } from "../core/device.js";
import { type AnyTypedArray, type DTypeName, type DTypeOf, dtypeNamed } from "../core/dtype.js";
import { CopyError, ReleasedError, tagOf, UnsupportedError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import type { ManagedTensor } from "../core/managed.js";
import { checkOptions } from "../core/options.js";
import { keeping, releasing } from "../core/releasing.js";
import { checkShape } from "../core/shape.js";
import { isTensor, Tensor } from "../core/tensor.js";
import { adapterHint, isExchangeable, take } from "../exchange/take.js";
import type { Exchangeable } from "../exchange/types.js";
import { emptyOnDevice } from "../webgpu/buffers/buffers.js";
import { releaseSlot, retainSlot } from "../webgpu/buffers/table.js";
import { type CopiesOf, readAll } from "../webgpu/buffers/transfer.js";
import { useDevice } from "../webgpu/device/device.js";
import { COPIED, type HeapStorage, IN_PLACE, WRITABLE } from "./heap.js";
import type { Pyodide, PyodideHost, PyProxy } from "./host.js";

/** Options of {@link Bridge.tensor}. */
export interface TensorOptions {
  /** true: always fresh memory. false: {@link CopyError} where a copy is needed. */
  copy?: boolean | undefined;
  /** Throw for read-only data. */
  writable?: boolean | undefined;
}

/** The bridge between JS and one Pyodide; made by {@link connect}. */
export class Bridge {
  readonly #pyodide: Pyodide;
  readonly #host: PyodideHost;
  readonly #heap: HeapStorage;

  /** @internal */
  constructor(pyodide: Pyodide, host: PyodideHost, heap: HeapStorage) {
    this.#pyodide = pyodide;
    this.#host = host;
    this.#heap = heap;
  }

  /**
   * A tensor over the memory of `x`, without a copy. It holds the memory until you call its
   * `release()`; `x` stays yours.
   *
   * @param x - a PyProxy of an object with the buffer protocol or `__dlpack__` (a NumPy array,
   * bytes, a `dlpack_web.Tensor`), a JS tensor (a second hold), a typed array, or an object with
   * `[Symbol.for("dlpack.exchange")]`, which adapters add to their library's tensors
   * @param options - `copy`: true always copies; false throws if a copy is needed. `writable`: throws
   * for read-only data
   * @returns a tensor, which the caller releases
   * @throws UnsupportedError for objects of Python without memory to share, dtypes and layouts that
   * DLPack lacks, or read-only data if `writable`; TypeError for anything else
   */
  tensor<D extends DTypeName>(x: Tensor<D>, options?: TensorOptions): Tensor<D>;
  tensor<A extends AnyTypedArray>(x: A, options?: TensorOptions): Tensor<DTypeOf<A>>;
  tensor(x: PyProxy | Exchangeable, options?: TensorOptions): Tensor;
  tensor(x: PyProxy | AnyTypedArray | Exchangeable, options?: TensorOptions): Tensor {
    if (options !== undefined) {
      const names = { copy: 1, writable: 1 } as const;
      checkOptions<TensorOptions>(options, "bridge.tensor()", names, "copy: true");
    }
    const { copy, writable } = options ?? {}; // before addressOf(): a getter may destroy the proxy
    if (ArrayBuffer.isView(x)) return this.#fromJS(x, { copy, writable });
    // Proxies are the most frequent argument, and every access to one is slow: no test before.
    let address: number;
    try {
      address = this.#host.addressOf(x);
    } catch (cause) {
      return this.#fromJS(x, { copy, writable }, cause);
    }
    const asked = copy ? COPIED : (writable ? WRITABLE : 0) | (copy === false ? IN_PLACE : 0);
    const made = this.#heap.borrow(address, asked);
    return new Tensor(copy ? packed(made) : made);
  }

  #fromJS(x: unknown, { copy, writable }: TensorOptions, cause?: unknown): Tensor {
    if (isExchangeable(x)) {
      const held = take(x, { copy });
      if (!writable || !held.readOnly) return held;
      held.release();
      throw new UnsupportedError(
        `${held.toString()} is read-only: pass copy: true for a writable copy`,
      );
    }
    if (ArrayBuffer.isView(x)) {
      const made = Tensor.fromTypedArray(x as AnyTypedArray);
      if (copy) return new Tensor(packed(made._managed));
      if (x.buffer !== this.#heap.bytes()) return made;
      made.release();
      throw new UnsupportedError(
        "this typed array views Pyodide's memory, which moves when it grows, and nothing here " +
          "keeps its owner alive: pass the Python object, or copy: true",
      );
    }
    if (x instanceof this.#pyodide.ffi.PyProxy) {
      throw new ReleasedError("this PyProxy was destroyed", { cause });
    }
    const kind = tagOf(x);
    throw new TypeError(
      kind === "[object GPUBuffer]"
        ? "a GPUBuffer does not describe its elements: use Tensor.fromGPUBuffer(buffer, { device, shape, " +
            "dtype }), in Python from_gpu_buffer()"
        : "bridge.tensor() takes a PyProxy of an array, a Tensor, a typed array or an object with " +
            `[Symbol.for("dlpack.exchange")], not ${kind}` +
            (adapterHint(x) ||
              ': for a library\'s tensor import its adapter, such as "dlpack-web/ort"'),
    );
  }

  /**
   * A new tensor whose elements are undefined (zeros on WebGPU); the caller releases it.
   *
   * @param shape - the extents
   * @param dtype - the name of a dtype; default "float32"
   * @param options - `device`: a `GPUDevice` or another tensor's `device`; without it the memory is
   * Pyodide's, aligned to 256 bytes, which Python shares without a copy
   */
  empty<N extends DTypeName = "float32">(
    shape: ArrayLike<number>,
    dtype?: N,
    options: { device?: GPUDevice | Device | undefined } = {},
  ): Tensor<N> {
    checkOptions<typeof options>(options, "bridge.empty()", { device: 1 }, "device");
    const dims = checkShape(shape);
    const type = dtypeNamed(dtype ?? "float32");
    const { device } = options;
    const gpu = device && "gpu" in device ? device.gpu : device;
    return gpu
      ? (emptyOnDevice(useDevice(gpu), dims, type) as Tensor<N>)
      : new Tensor(this.#heap.empty(dims, type));
  }

  /**
   * A `dlpack_web.Tensor` over the tensor's memory, with a hold of its own: without a copy, or with
   * exactly one if the memory is a JS array (or another Pyodide's).
   *
   * @param tensor - a tensor, or an argument of {@link Bridge.tensor}: a typed array, or an object
   * with `[Symbol.for("dlpack.exchange")]`
   * @param options - `copy`: true always copies; false throws if a copy is needed
   * @returns a PyProxy, for the caller to `destroy()`
   * @throws CopyError if a copy is needed and `copy` is false; TypeError for anything else
   */
  toPython(
    tensor: AnyTypedArray | Exchangeable,
    options: { copy?: boolean | undefined } = {},
  ): PyProxy {
    checkOptions<typeof options>(options, "toPython()", { copy: 1 }, "copy: true");
    if (!isTensor(tensor)) return this.#importToPython(tensor, options);
    const handle = this.hold(tensor._managed, options.copy);
    try {
      return this.#host.take(handle);
    } catch (error) {
      this.#heap.release(handle);
      throw error;
    }
  }

  /**
   * Reads several tensors at once: `webgpu.readAll()`.
   *
   * @param tensors - of any devices
   * @returns an array for each tensor
   * @throws as `tensor.read()`
   */
  async readAll<const T extends readonly Tensor[]>(tensors: T): Promise<CopiesOf<T>> {
    return readAll(tensors);
  }

  #importToPython(
    x: AnyTypedArray | Exchangeable,
    options: { copy?: boolean | undefined },
  ): PyProxy {
    const { copy } = options;
    const uncopied = { copy: copy === false ? copy : undefined };
    if (!ArrayBuffer.isView(x)) {
      return releasing(take(x, uncopied), (made) => this.toPython(made, { copy }));
    }
    // What #fromJS copied is copied into Python's memory in any case.
    return releasing(this.#fromJS(x, { copy }), (made) => this.toPython(made, uncopied));
  }

  /** @internal A new hold in the C core, as a number that Python can carry. */
  hold(tensor: ManagedTensor, copy?: boolean): number {
    tensor.check();
    if (copy) return releasing(tensor.pack(), (fresh) => this.hold(fresh));
    if (tensor.isOnGPU) {
      retainSlot(tensor.handle);
      try {
        return this.#heap.wrap(tensor.handle, tensor);
      } catch (error) {
        releaseSlot(tensor.handle);
        throw error;
      }
    }
    if (tensor.storage === this.#heap) return this.#heap.share(tensor);
    if (copy === false) {
      throw new CopyError(
        `Python cannot see the memory of ${tensor.toString()}: a copy is needed, which copy: false forbids; ` +
          "fill a tensor from bridge.empty() instead",
      );
    }
    return keeping(this.#heap.empty(tensor.shape, tensor.dtype), (made) => {
      const elements = tensor.as(tensor.dtype); // first: getters of its memory may make ours grow
      made.bytes().set(elements);
      return made.detach();
    });
  }
}

/** A packed copy in place of a tensor that only the caller has. */
function packed(tensor: ManagedTensor): ManagedTensor {
  return releasing(tensor, () => tensor.pack());
}
