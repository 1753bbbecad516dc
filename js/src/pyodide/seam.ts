// More than 500 lines: the one table of what Python calls in JavaScript.

import type { Libraries } from "../adapters/devices.js";
import { type DTypeName, dtypeNamed, type TypedArray } from "../core/dtype.js";
import type { GPUBuffer, GPUDevice, HTMLCanvasElement, OffscreenCanvas } from "../core/globals.js";
import { watchOver } from "../core/leaks.js";
import type { ManagedTensor } from "../core/managed.js";
import { shared } from "../core/realm.js";
import { checkShape } from "../core/shape.js";
import { isTensor, Tensor } from "../core/tensor.js";
import type { Exchangeable } from "../exchange/types.js";
import type {
  LoadOptions,
  OpenOptions,
  OpenSource,
  SaveOptions,
  SaveTarget,
  TensorFile,
} from "../open/index.js";
import type { Place } from "../open/sink.js";
import { Batch } from "../webgpu/batch.js";
import { emptyOnDevice } from "../webgpu/buffers.js";
import type { Argument } from "../webgpu/checks/calls.js";
import { checkAlive, type DeviceStats, deviceWithId, stats, useDevice } from "../webgpu/device.js";
import { calledAt, siteOf } from "../webgpu/faults.js";
import { features, featuresAtOnce } from "../webgpu/features.js";
import type { Part } from "../webgpu/formulas/formulas.js";
import { type FrameSource, type Frames, frames } from "../webgpu/frames.js";
import { type FromImageOptions, fromImage, type ImageSource, toCanvas } from "../webgpu/images.js";
import { Kernel } from "../webgpu/kernel.js";
import { extentOf, releaseSlot, slotOf } from "../webgpu/references.js";
import type { RequestDeviceOptions } from "../webgpu/request.js";
import { state } from "../webgpu/state.js";
import { read } from "../webgpu/transfer.js";
import { Bridge } from "./bridge.js";
import { HeapStorage } from "./heap.js";
import { moduleOf, type Pyodide, PyodideHost } from "./host.js";
import { Waits } from "./waits.js";

/** The result of Arrow's adapter with `nulls: "mask"`. */
interface Masked {
  readonly values: Tensor;
  readonly valid: Tensor;
}

/** An adapter, as Python uses it. */
interface Adapter {
  give(library: unknown, tensor: Tensor, options: object): unknown;
  take(library: unknown, value: unknown, options: object): Tensor | Masked;
  use?(library: unknown, device: GPUDevice): Promise<unknown>;
  install?(library: unknown): void;
}

const all = () => import("../adapters/all.js");
const later = () => import("../webgpu/late.js");
const files = () => import("../open/index.js");

/**
 * The functions that `dlpack_web/_backends/browser` calls. Tensors cross as numbers, in one step each,
 * so an interrupt of Python never finds one between two owners: from Python as the address of a
 * `Tensor` that the caller keeps during the call, to Python as a new hold in the C core for it to
 * take over.
 */
export class PythonSeam {
  readonly bridge: Bridge;
  readonly #heap: HeapStorage;
  readonly #host: PyodideHost;
  readonly #waits: Waits;
  /** What ends pending work that Python awaits, by Python's number of it. */
  readonly #pending = new Map<number, AbortController>();
  /** Python's kernels, by number. */
  readonly #kernels = new Map<number, WeakRef<Kernel>>();
  #lastKernel = 0;
  #failure: unknown;

  constructor(pyodide: Pyodide) {
    const host = new PyodideHost(pyodide, releaseSlot, (address) => this.#run(address));
    this.#host = host;
    this.#heap = new HeapStorage(host);
    this.#waits = new Waits(host);
    this.bridge = new Bridge(pyodide, host, this.#heap);
  }

  /** The JS tensor for a Python one, with a hold of its own. */
  tensorAt(address: number): Tensor {
    return new Tensor(this.#heap.borrow(address, false));
  }

  /** Anything that `bridge.tensor` takes; arrays of JS are copied once, into Python's memory. */
  fromJs(value: Exchangeable | TypedArray): number {
    // Nothing else can release the hold of a tensor that was made only for this call.
    if (isTensor(value)) watchOver(value._managed);
    return this.#give(this.bridge.tensor(value as Exchangeable)._managed);
  }

  /** A CPU tensor's elements, on a device; converted if `dtype` is given. */
  upload(site: number, address: number, deviceId: number, dtype?: DTypeName): number {
    return this.#during(address, (source) => {
      const { gpu } = deviceWithId(deviceId).device;
      return this.#give(calledAt(site, () => source.to(gpu, { dtype }))._managed);
    });
  }

  /** Writes a tensor's elements over those of another. */
  write(site: number, target: number, source: number, convert: boolean): void {
    const [to, from] = this.#tensorsAt([target, source]) as [Tensor, Tensor];
    try {
      calledAt(site, () => to.write(from, { convert }));
    } finally {
      to.release();
      from.release();
    }
  }

  /**
   * Reports unread faults of Python's calls to Python, with the message and the number of the call.
   */
  onFault(listener: (message: string, site: number) => void): void {
    state.listeners.add((error, site) => {
      if (site === undefined) return false;
      listener(error.message, site);
      return true;
    });
  }

  /** The number of the Python call that caused an error; 0: none. */
  siteOf(error: object): number {
    return siteOf(error) ?? 0;
  }

  stats(): DeviceStats[] {
    return stats();
  }

  /** A tensor of zeros on a device. */
  empty(shape: ArrayLike<number>, dtype: string, deviceId: number): number {
    const record = deviceWithId(deviceId);
    return this.#give(emptyOnDevice(record, checkShape(shape), dtypeNamed(dtype))._managed);
  }

  /** A tensor over a foreign buffer; `release` is called at its end. */
  fromGPUBuffer(
    buffer: GPUBuffer,
    shape: ArrayLike<number>,
    dtype: DTypeName,
    deviceId: number,
    byteOffset: number,
    release?: () => void,
  ): number {
    const options = { device: this.device(deviceId), shape, dtype, byteOffset };
    const made = Tensor.fromGPUBuffer(buffer, release ? { ...options, release } : options);
    return this.#give(made._managed);
  }

  /** Reads the first half of the tensors into the second: row-major CPU ones of as many bytes. */
  read(work: number, ...addresses: number[]): Promise<void> {
    return this.#until(work, (signal) => this.#read(addresses, signal));
  }

  /** The same, as the number with which Python waits for it. */
  reading(...addresses: number[]): number {
    return this.#waits.add(this.#read(addresses));
  }

  async #read(addresses: readonly number[], signal?: AbortSignal): Promise<void> {
    const tensors = this.#tensorsAt(addresses).map((tensor) => tensor._managed);
    const half = tensors.length / 2;
    let done: Promise<unknown>;
    try {
      done = read(tensors.slice(0, half), tensors.slice(half), signal); // has holds of its own
    } finally {
      for (const tensor of tensors) tensor.release();
    }
    await done;
  }

  /** Work that Python may give up by its number. */
  async #until<T>(number: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.#pending.set(number, controller);
    try {
      return await work(controller.signal);
    } finally {
      this.#pending.delete(number);
    }
  }

  /** Python does not await this work any more: it must not touch what Python gave. */
  giveUp(work: number): void {
    this.#pending.get(work)?.abort();
  }

  /** Keeps interrupts from Python until {@link letInterrupts}. */
  holdInterrupts(): void {
    this.#host.holdInterrupts();
  }

  letInterrupts(): void {
    this.#host.letInterrupts();
  }

  /**
   * Keeps interrupts from Python's next step, starting to wait. The first microtask after that
   * calls then() of what Python waits for, which is Python, too; the second lets interrupts in.
   */
  holdInterruptsToWait(): void {
    this.#host.holdInterrupts();
    queueMicrotask(() => queueMicrotask(() => this.#host.letInterrupts()));
  }

  /** The id of the device that was requested with these options before, else of a new one. */
  async requestDevice(options: RequestDeviceOptions): Promise<number> {
    return this.useDevice(await (await later()).requestOnce(options));
  }

  /** The id of a device made elsewhere, which keeps it for ever. */
  useDevice(gpu: GPUDevice): number {
    const { id } = useDevice(gpu).device;
    return id;
  }

  /** Whether a WebGPU tensor's buffer was made here and returns to the pool. */
  isPooled(address: number): boolean {
    return this.#during(address, (tensor) => {
      const { origin, taken } = slotOf(tensor._managed.handle).facts;
      return origin === "tensors" && !taken;
    });
  }

  /** The `GPUDevice` with an id. */
  device(id: number): GPUDevice {
    return deviceWithId(id).device.gpu;
  }

  /** Ids of the registered devices that are not lost. */
  deviceIds(): number[] {
    return state.devices.flatMap(({ lost, device }) => (lost === null ? [device.id] : []));
  }

  /** A compute shader compiled for a device; `facts`: three of each of its parts. */
  kernel(
    site: number,
    wgsl: string,
    entry: string,
    label: string,
    check: boolean,
    deviceId: number,
    facts: readonly (string | number)[],
  ): Kernel {
    const device = this.device(deviceId);
    const parts: Part[] = [];
    for (let i = 0; i < facts.length; i += 3) parts.push(facts.slice(i, i + 3) as never);
    return calledAt(site, () => new Kernel(device, wgsl, { entry, label, check }, parts));
  }

  /** A number with which C runs a kernel, valid as long as Python holds it. */
  numberOf(kernel: Kernel): number {
    for (const [number, kept] of this.#kernels) {
      if (kept.deref() === undefined) this.#kernels.delete(number);
    }
    this.#kernels.set(++this.#lastKernel, new WeakRef(kernel));
    return this.#lastKernel;
  }

  /** Throws the error of the last kernel that C ran. */
  failure(): never {
    const error = this.#failure;
    this.#failure = undefined;
    throw error;
  }

  /**
   * Runs a kernel, resolving to the GPU's time in ms: with the number of the call, workgroups (x is
   * 0: the default), and a number or the address of a Tensor for each argument, which need not be
   * held meanwhile. Bit i of `numbers` is set if argument i is a number. It does not run once
   * it was given up.
   */
  time(
    work: number,
    site: number,
    deviceId: number,
    kernel: Kernel,
    x: number,
    y: number,
    z: number,
    numbers: number,
    ...args: number[]
  ): Promise<number> {
    return this.#until(work, async (signal) => {
      const given: Argument[] = [];
      try {
        for (const [i, arg] of args.entries()) {
          given.push((numbers >>> i) & 1 ? arg : this.tensorAt(arg));
        }
        const { timed } = await later();
        return await timed(this.device(deviceId), (timestampWrites) => {
          signal.throwIfAborted();
          const workgroups = countsOf([x, y, z]);
          calledAt(site, () => kernel.run(given, { workgroups, timestampWrites }));
        });
      } finally {
        for (const arg of given) if (typeof arg !== "number") arg.release();
      }
    });
  }

  /** An empty batch on a device. */
  batch(deviceId: number): Batch {
    return new Batch(this.device(deviceId));
  }

  /** Records a call: {@link time}'s arguments, with the address of a `dlw_tensor` for a tensor. */
  batchAdd(
    site: number,
    batch: Batch,
    kernel: Kernel,
    x: number,
    y: number,
    z: number,
    numbers: number,
    ...args: number[]
  ): void {
    this.#withArguments(numbers, args, (given) => {
      const workgroups = countsOf([x, y, z]);
      calledAt(site, () => batch._record(kernel, given, { workgroups }));
    });
  }

  /** Changes a recorded call; `places` are the positions of `args` in it. */
  batchUpdate(
    batch: Batch,
    index: number,
    x: number,
    y: number,
    z: number,
    places: ArrayLike<number>,
    numbers: number,
    ...args: number[]
  ): void {
    this.#withArguments(numbers, args, (given) => {
      const changed = Object.fromEntries(given.map((arg, i) => [places[i] as number, arg]));
      batch.update(index, { args: changed, workgroups: countsOf([x, y, z]) });
    });
  }

  /** Whether a batch will write to a tensor, or, for `writing`, use it. */
  batchUses(address: number, batch: Batch, writing: boolean): boolean {
    return this.#during(address, (tensor) => batch._uses(extentOf(tensor._managed), writing));
  }

  /** Resolves once a kernel has compiled. */
  ready(kernel: Kernel): Promise<void> {
    return kernel.ready;
  }

  /** An image of the page as a tensor on a device; release() releases it, then or later. */
  fromImage(site: number, source: ImageSource, deviceId: number, options: FromImageOptions) {
    const promise = calledAt(site, () => fromImage(this.device(deviceId), source, options));
    return {
      promise,
      release() {
        promise.then(
          (tensor) => tensor.release(),
          () => {},
        );
      },
    };
  }

  /** The frames of `webgpu.frames`. */
  frames(source: FrameSource, deviceId: number, options: FromImageOptions): Frames {
    return frames(source, { ...options, device: this.device(deviceId) });
  }

  /** The next of them, or undefined; the frames release the tensor. */
  async nextFrame(given: Frames): Promise<Tensor | undefined> {
    return (await given.next()).value;
  }

  /** Draws a tensor on a canvas. */
  toCanvas(
    site: number,
    address: number,
    canvas: HTMLCanvasElement | OffscreenCanvas,
  ): Promise<void> {
    return this.#during(address, (tensor) => calledAt(site, () => toCanvas(tensor, canvas)));
  }

  /**
   * Opens a file: `promise` resolves to a Tensor or a TensorFile; release() releases it, then or
   * later; before, it ends the loading.
   *
   * @param deviceId - -1: to Python's memory
   */
  open(source: OpenSource, deviceId: number, options: OpenOptions, progress?: Progress) {
    return ending((signal) =>
      files().then(({ open }) => open(source, this.#loading(deviceId, options, progress, signal))),
    );
  }

  /** The same for a tensor of such a file. */
  load(
    file: TensorFile,
    name: string,
    deviceId: number,
    options: LoadOptions,
    progress?: Progress,
  ) {
    return ending((signal) =>
      file.get(name, this.#loading(deviceId, options, progress, signal) as LoadOptions),
    );
  }

  #loading(
    deviceId: number,
    options: OpenOptions,
    progress: Progress | undefined,
    signal: AbortSignal,
  ): OpenOptions {
    const device = deviceId < 0 ? undefined : this.device(deviceId);
    const place: Place = (shape, type) => new Tensor(this.#heap.empty(shape, type));
    const { format, dtype, shape } = options;
    // Some Pyodides convert None to null.
    return {
      ...(format && { format }),
      ...(dtype && { dtype }),
      ...(shape && { shape }),
      ...(progress && { progress }),
      device,
      place,
      signal,
    };
  }

  /** Writes tensors to a stream or file handle; release() ends it. No name: a single one. */
  save(target: SaveTarget, names: readonly string[], options: SaveOptions, ...addresses: number[]) {
    const tensors = this.#tensorsAt(addresses);
    const controller = new AbortController();
    const { format, metadata } = options;
    const signal = controller.signal;
    const named = new Map(names.map((name, i) => [name, tensors[i] as Tensor]));
    const what = format === "npy" ? (tensors[0] as Tensor) : named;
    const wanted = format === "npy" ? { format, signal } : { format, metadata, signal };
    const promise = files()
      .then(({ save }) => save(what, { ...wanted, to: target }))
      .finally(() => {
        for (const tensor of tensors) tensor.release();
      });
    promise.catch(() => {});
    return { promise, release: () => controller.abort() };
  }

  /** A file's descriptions of its tensors: [name, dtype, shape, bytes, why it is refused] of each. */
  factsOf(file: TensorFile) {
    const infos = file.names.map((name) => {
      const { dtype, shape, nbytes } = file.info(name);
      return [name, dtype, [...shape], nbytes, file._why(name)];
    });
    return { name: file.name, metadata: { ...file.metadata }, infos };
  }

  /** Waits until what was written to a device has arrived. */
  async settle(deviceId: number): Promise<void> {
    const record = deviceWithId(deviceId);
    const { queue, lost } = record.device.gpu;
    queue.submit([]);
    await Promise.race([queue.onSubmittedWorkDone(), lost]);
    checkAlive(record);
  }

  /** Features of this host: `features()`, and those known without waiting. */
  features = features;
  featuresAtOnce = featuresAtOnce;

  /** The adapter for a library, as Python calls it; the library's tensors become exchangeable. */
  async adapter(name: string, library: unknown) {
    const { adapters } = await all();
    if (!Object.hasOwn(adapters, name)) {
      throw new TypeError(
        `no adapter "${name}"; supported are ${Object.keys(adapters).join(", ")}`,
      );
    }
    const { give, take, use, install } = adapters[name as keyof typeof adapters] as Adapter;
    install?.(library);
    return {
      give: (address: number, options: object) =>
        this.#during(address, (tensor) => give(library, tensor, options)),
      take: (value: unknown, options: object) =>
        this.#give((take(library, value, options) as Tensor)._managed),
      // Python takes over each tensor by fromJs().
      takeMasked: (value: unknown, options: object) => {
        const taken = take(library, value, options);
        if (isTensor(taken)) {
          taken.release();
          throw new TypeError(`${name} has no nulls, so no option nulls: "mask"`);
        }
        const { values, valid } = taken;
        const release = () => {
          values.release();
          valid.release();
        };
        return { values, valid, release };
      },
      useDevice: async (id: number, renderer: unknown) => {
        if (use === undefined) throw new TypeError(`${name} has no device to share`);
        await use(renderer ?? library, this.device(id));
      },
    };
  }

  /** Puts libraries on one device, and resolves to its id. */
  async shareDevice(libraries: Libraries): Promise<number> {
    return this.useDevice(await (await all()).shareDevice(libraries));
  }

  /** A copy of onnxruntime-web for Python's sessions, with the arguments of `findOrt`. */
  async onnxruntime(given: unknown, threads: number, onCPU: boolean) {
    const { findOrt, Library } = await all();
    return new Library(await findOrt(given, threads, onCPU), {
      tensorAt: (address) => this.tensorAt(address),
      empty: (shape, dtype) => this.bridge.empty(shape, dtype),
      filled: (shape, dtype, elements) => this.#filled(shape, dtype, elements),
      give: (tensor) => this.#give(tensor._managed),
      waitFor: (promise, handle) => this.#waits.add(promise, handle),
    });
  }

  /** Called by C with the address of a kernel's arguments. */
  #run(address: number): 0 | 1 {
    try {
      const call = this.#heap.kernelCall(address);
      const at = (i: number) => call[i] as number;
      const kernel = this.#kernels.get(at(0))?.deref();
      if (kernel === undefined) throw new TypeError(`there is no kernel ${at(0)}`);
      const args = new Array<number>(at(6));
      for (let i = 0; i < args.length; i++) args[i] = at(7 + i);
      const workgroups = countsOf([at(2), at(3), at(4)]);
      this.#withArguments(at(5), args, (given) =>
        calledAt(at(1), () => kernel.run(given, { workgroups })),
      );
      return 1;
    } catch (error) {
      this.#failure = error;
      return 0;
    }
  }

  /** Calls `use` with a kernel's arguments: numbers, and tensors without a hold. */
  #withArguments(
    numbers: number,
    args: readonly number[],
    use: (given: readonly (ManagedTensor | number)[]) => void,
  ): void {
    const given: (ManagedTensor | number)[] = [];
    try {
      for (const [i, arg] of args.entries()) {
        given.push((numbers >>> i) & 1 ? arg : this.#heap.peek(arg));
      }
      use(given);
    } finally {
      for (const arg of given) if (typeof arg !== "number") arg.detach();
    }
  }

  /** Calls `use` with the tensor for a Python one, which has a hold for as long. */
  #during<R>(address: number, use: (tensor: Tensor) => R): R {
    const tensor = this.tensorAt(address);
    try {
      return use(tensor);
    } finally {
      tensor.release();
    }
  }

  /** Moves a tensor to Python: its hold in the C core, the JS tensor being released. */
  #give(tensor: ManagedTensor): number {
    if (tensor.storage === this.#heap && tensor.handle !== 0) return tensor.detach();
    try {
      return this.bridge.hold(tensor);
    } finally {
      tensor.release();
    }
  }

  /** Fresh Python memory with the elements of an array. */
  #filled(shape: readonly number[], dtype: DTypeName, elements: TypedArray): Tensor {
    const made = this.bridge.empty(shape, dtype);
    const { buffer, byteOffset, byteLength } = elements;
    if (byteLength === made.nbytes) {
      made._managed.bytes().set(new Uint8Array(buffer, byteOffset, byteLength));
      return made;
    }
    made.release();
    throw new RangeError(`${dtype} of shape [${shape}] cannot have ${byteLength} bytes`);
  }

  /** The tensors for all addresses, or none. */
  #tensorsAt(addresses: readonly number[]): Tensor[] {
    const tensors: Tensor[] = [];
    try {
      for (const address of addresses) tensors.push(this.tensorAt(address));
      return tensors;
    } catch (error) {
      for (const tensor of tensors) tensor.release();
      throw error;
    }
  }
}

type Progress = NonNullable<LoadOptions["progress"]>;

/** A load in progress; release() ends it, or releases its result. */
function ending<T extends Tensor | TensorFile>(start: (signal: AbortSignal) => Promise<T>) {
  const controller = new AbortController();
  let found: T | null = null;
  const letGo = () => {
    if (found === null) return;
    if ("close" in found) found.close();
    else found.release();
    found = null;
  };
  const promise = start(controller.signal);
  promise.then(
    (loaded) => {
      found = loaded;
      if (controller.signal.aborted) letGo();
    },
    () => {},
  );
  return {
    promise,
    release() {
      controller.abort();
      letGo();
    },
  };
}

/** Workgroups along x, y, z; where x is 0, the default. */
const countsOf = (counts: readonly number[]) => (counts[0] === 0 ? undefined : counts);

/** The seam of each connected Pyodide, by its module object. */
const seams = shared("seams", () => new WeakMap<object, object>());

/**
 * The seam of a Pyodide, made at the first call. `dlpack_web` must be importable. Used by
 * `connect()`, and by the copy of this code in the wheel for notebooks.
 */
export function attach(pyodide: Pyodide): PythonSeam {
  const module = moduleOf(pyodide);
  let seam = seams.get(module) as PythonSeam | undefined;
  if (seam === undefined) {
    seam = new PythonSeam(pyodide);
    seams.set(module, seam);
  }
  return seam;
}
