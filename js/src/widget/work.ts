/** What a kernel asks of the page's GPU, in its order: py/dlpack_web/_page sends it. */
import { type DTypeName, dtypeNamed } from "../core/dtype.js";
import { DLPackError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import { checkShape } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { adoptSlot, emptyOnDevice } from "../webgpu/buffers.js";
import { useDevice } from "../webgpu/device.js";
import { calledAt } from "../webgpu/faults.js";
import type { Part } from "../webgpu/formulas/formulas.js";
import { timed } from "../webgpu/index.js";
import { type Argument, Kernel } from "../webgpu/kernel.js";
import type { NamedTensors } from "./tensors.js";

/** A view of a buffer. */
interface View {
  readonly id: number;
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[] | null;
  readonly dtype: string;
  readonly padded: boolean;
  readonly readOnly: boolean;
}

/** A call of a kernel; numbers are strings that `Number()` reads. */
interface Call {
  readonly kernel: number;
  readonly args: readonly (View | string)[];
  readonly groups: readonly number[];
  /** Ids of the buffers that it writes. */
  readonly writes: readonly number[];
  readonly site: number;
}

/** Elements that come by the wire under a name. */
interface Arriving {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly padded: boolean;
}

interface KernelSource {
  readonly id: number;
  readonly wgsl: string;
  readonly entry: string;
  readonly label: string;
  readonly check: boolean;
  readonly parts: readonly Part[];
  readonly site: number;
}

/** Elements of an earlier operation that were given up: they do not come, or may be wrong. */
interface Cancel {
  readonly op: "cancel";
  readonly name: string;
  readonly why: string;
  /** The tensor that they were written to. */
  readonly to?: number;
}

/** An operation; with `reply` it is answered. */
export type Operation = { readonly reply?: number } & (
  | { op: "empty"; id: number; shape: readonly number[]; dtype: string }
  | ({ op: "take"; id: number } & Arriving)
  | { op: "write"; to: View; site: number; source: View }
  | ({ op: "write"; to: View; site: number; source?: undefined } & Arriving)
  | { op: "free"; what: readonly (readonly ["tensor" | "kernel", number])[] }
  | ({ op: "kernel" } & KernelSource)
  | { op: "run"; calls: readonly Call[] }
  | { op: "time"; call: Call }
  | { op: "ready"; kernel: number }
  | { op: "read"; what: readonly View[]; names: readonly string[]; site: number }
  | { op: "settle" }
  | { op: "canvas"; what: View }
  | { op: "give"; key: string; what: View | null; site: number }
  | Cancel
);

/** What the work needs of the page. */
export interface Surroundings {
  /** Sends elements to the kernel; resolves as soon as it has them. */
  send(name: string, tensor: Tensor): Promise<void>;
  /** Answers an operation. */
  reply(number: number, value: unknown, error?: unknown): void;
  /** Reports an error of an operation that is not answered. */
  report(error: unknown, site: number): void;
  draw(tensor: Tensor): Promise<void>;
  /** What the widget's script gets. */
  readonly tensors: NamedTensors;
}

/** Bytes of a tensor that is read back as a whole; a larger one is read in pieces. */
const MOST_WHOLE = 4 << 20;

type Named<T> = [T | undefined, unknown];

/** Tensors and kernels by number. A number whose making failed keeps the error. */
export class Work {
  readonly #device: GPUDevice;
  readonly #page: Surroundings;
  readonly #tensors = new Map<number, Named<Tensor>>();
  readonly #kernels = new Map<number, Named<Kernel>>();
  /** The names that the script knows tensors by, and their numbers. */
  readonly #given = new Map<string, number>();
  /** What came by the wire and was not taken yet, or why it will not come. */
  readonly #arrived = new Map<string, Tensor | Error>();
  readonly #waiting = new Map<string, () => void>();
  /** The names of cancelled elements, which may still arrive. */
  readonly #cancelled = new Set<string>();
  readonly #queue: Exclude<Operation, Cancel>[] = [];
  #isBusy = false;
  #ended = false;

  constructor(device: GPUDevice, page: Surroundings) {
    this.#device = device;
    this.#page = page;
  }

  /** Does an operation after all earlier ones; cancels at once. */
  add(operation: Operation): void {
    if (operation.op === "cancel") {
      this.#cancel(operation);
      return;
    }
    this.#queue.push(operation);
    if (!this.#isBusy) void this.#work();
  }

  /** Elements came by the wire; the tensor is the wire's. */
  arrive(name: string, tensor: Tensor): void {
    if (this.#cancelled.delete(name)) return;
    this.#settle(name, adoptSlot(tensor._handle, 0, tensor._type, tensor.shape, false));
  }

  /** Ends all, and releases all. */
  end(): void {
    this.#ended = true;
    this.#queue.length = 0;
    for (const key of this.#given.keys()) this.#page.tensors.set(key, undefined);
    for (const [tensor] of this.#tensors.values()) tensor?.release();
    for (const found of this.#arrived.values()) if (!(found instanceof Error)) found.release();
    this.#given.clear();
    this.#tensors.clear();
    this.#kernels.clear();
    this.#arrived.clear();
    for (const wake of this.#waiting.values()) wake();
  }

  #cancel({ name, why, to }: Cancel): void {
    const waits = this.#waiting.has(name);
    if (!waits && !this.#queue.some((each) => "name" in each && each.name === name)) {
      // It was done, and nobody would take what is kept for it.
      if (to !== undefined) this.#spoil([to], new UnsupportedError(why));
      return;
    }
    if (!this.#arrived.has(name)) this.#cancelled.add(name);
    this.#settle(name, new UnsupportedError(why));
  }

  #settle(name: string, found: Tensor | Error): void {
    const before = this.#arrived.get(name);
    if (before !== undefined && !(before instanceof Error)) before.release();
    this.#arrived.set(name, found);
    this.#waiting.get(name)?.();
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      try {
        const waits = this.#do(next);
        if (waits) await waits;
      } catch (error) {
        this.#fail(next, error);
      }
    }
    this.#isBusy = false;
  }

  /** What later operations have to wait for is a promise. */
  #do(given: Exclude<Operation, Cancel>): Promise<void> | void {
    switch (given.op) {
      case "empty": {
        const record = useDevice(this.#device);
        const made = emptyOnDevice(record, checkShape(given.shape), dtypeNamed(given.dtype));
        this.#tensors.set(given.id, [made, undefined]);
        return;
      }
      case "take":
        return this.#take(given).then((tensor) => {
          this.#tensors.set(given.id, [tensor, undefined]);
        });
      case "write": {
        const wrote = () => this.#wrote([given.to.id]);
        const waits = this.#write(given);
        return waits ? waits.then(wrote) : wrote();
      }
      case "free":
        for (const [kind, id] of given.what) this.#free(kind, id);
        return;
      case "kernel":
        this.#kernels.set(given.id, [this.#compile(given), undefined]);
        return;
      case "run":
        for (const call of given.calls) this.#run(call);
        this.#wrote(given.calls.flatMap(({ writes }) => writes));
        return;
      case "time":
        this.#answer(
          given,
          timed(this.#device, (timestampWrites) => {
            this.#run(given.call, timestampWrites);
            this.#wrote(given.call.writes);
          }),
        );
        return;
      case "ready":
        this.#answer(given, this.#kernel(given.kernel).ready);
        return;
      case "read":
        this.#answer(given, this.#read(given.what, given.names, given.site));
        return;
      case "settle":
        this.#answer(given, this.#device.queue.onSubmittedWorkDone());
        return;
      case "canvas": {
        const tensor = this.#view(given.what);
        this.#answer(
          given,
          this.#page.draw(tensor).finally(() => tensor.release()),
        );
        return;
      }
      case "give":
        this.#give(given.key, given.what);
        return;
      default:
        given satisfies never;
        throw new UnsupportedError(
          `the page does not know ${String((given as Operation).op)}: is it of an older version?`,
        );
    }
  }

  /** Keeps an error for those who use what the operation should have made. */
  #fail(given: Operation, error: unknown): void {
    if (this.#ended) return;
    if (given.reply !== undefined) this.#page.reply(given.reply, undefined, error);
    else if (given.op === "empty" || given.op === "take")
      this.#tensors.set(given.id, [undefined, error]);
    else if (given.op === "give") {
      this.#give(given.key, null);
      this.#page.report(error, given.site);
    } else if (given.op === "kernel") this.#kernels.set(given.id, [undefined, error]);
    else if (given.op === "write") this.#spoil([given.to.id], error);
    else if (given.op === "run")
      this.#spoil(
        given.calls.flatMap(({ writes }) => writes),
        error,
      );
    else console.error(error);
  }

  #spoil(ids: readonly number[], error: unknown): void {
    for (const id of ids) {
      this.#tensors.get(id)?.[0]?.release();
      if (this.#tensors.has(id)) this.#tensors.set(id, [undefined, error]);
    }
  }

  #answer({ reply }: Operation, promise: Promise<unknown>): void {
    promise.then(
      (value) => this.#page.reply(reply as number, value),
      (error) => this.#page.reply(reply as number, undefined, error),
    );
  }

  /** Waits for elements; the result is the caller's. */
  async #take({ name, shape, dtype, padded }: Arriving): Promise<Tensor> {
    if (!this.#arrived.has(name) && !this.#ended) {
      await new Promise<void>((wake) => this.#waiting.set(name, wake));
      this.#waiting.delete(name);
    }
    const found = this.#arrived.get(name);
    this.#arrived.delete(name);
    if (found === undefined) throw new DLPackError("the page was closed");
    if (found instanceof Error) throw found;
    try {
      return adoptSlot(found._handle, 0, dtypeNamed(dtype as DTypeName, padded), shape, false);
    } finally {
      found.release();
    }
  }

  #write(given: Operation & { op: "write" }): Promise<void> | void {
    const write = (source: Tensor) => {
      try {
        const to = this.#view(given.to);
        try {
          calledAt(given.site, () => to.write(source));
        } finally {
          to.release();
        }
      } finally {
        source.release();
      }
    };
    if (given.source) write(this.#view(given.source));
    else return this.#take(given as Arriving).then(write);
  }

  /** Gives a tensor to the script under a name, or none. */
  #give(key: string, what: View | null): void {
    const tensor = what ? this.#view(what) : undefined;
    if (what) this.#given.set(key, what.id);
    else this.#given.delete(key);
    this.#page.tensors.set(key, tensor);
  }

  /** Tells the script that tensors with these numbers have other elements. */
  #wrote(ids: readonly number[]): void {
    for (const [key, id] of [...this.#given]) {
      if (ids.includes(id)) this.#page.tensors.changed(key);
    }
  }

  #free(kind: "tensor" | "kernel", id: number): void {
    if (kind === "kernel") this.#kernels.delete(id);
    else {
      this.#tensors.get(id)?.[0]?.release();
      this.#tensors.delete(id);
    }
  }

  #compile({ wgsl, entry, label, check, parts, site }: KernelSource): Kernel {
    return calledAt(site, () => new Kernel(this.#device, wgsl, { entry, label, check }, parts));
  }

  #run(
    { kernel, args, groups, site }: Call,
    timestampWrites?: Parameters<Parameters<typeof timed>[1]>[0],
  ): void {
    const given: Argument[] = [];
    try {
      for (const arg of args) given.push(typeof arg === "string" ? Number(arg) : this.#view(arg));
      const options = { workgroups: groups as [number], timestampWrites };
      calledAt(site, () => this.#kernel(kernel).run(given, options));
    } finally {
      for (const arg of given) if (typeof arg !== "number") arg.release();
    }
  }

  async #read(what: readonly View[], names: readonly string[], site: number): Promise<void> {
    const found = await Promise.allSettled(what.map((view) => this.#elements(view, site)));
    const targets = found.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
    try {
      for (const each of found) if (each.status === "rejected") throw each.reason;
      await Promise.all(targets.map((tensor, i) => this.#page.send(names[i] as string, tensor)));
    } finally {
      for (const target of targets) target.release();
    }
  }

  /** The bytes of a view, as they are now; the caller releases them. */
  async #elements(what: View, site: number): Promise<Tensor> {
    const source = this.#view(what);
    try {
      if (source.nbytes > MOST_WHOLE && source._strides === null) {
        return calledAt(site, () => copyOf(source));
      }
      const { buffer, byteOffset, byteLength } = await calledAt(site, () => source.read());
      return Tensor.fromTypedArray(new Uint8Array(buffer, byteOffset, byteLength));
    } finally {
      source.release();
    }
  }

  /** A view of a tensor; the caller releases it. */
  #view({ id, offset, shape, strides, dtype, padded, readOnly }: View): Tensor {
    const found = this.#tensors.get(id);
    if (found === undefined) throw new ReleasedError(`the page has no tensor ${id}`);
    const [tensor, error] = found;
    if (tensor === undefined) throw error;
    const type = dtypeNamed(dtype as DTypeName, padded);
    return adoptSlot(tensor._handle, offset, type, shape, readOnly, strides);
  }

  #kernel(id: number): Kernel {
    const found = this.#kernels.get(id);
    if (found === undefined) throw new ReleasedError(`the page has no kernel ${id}`);
    const [kernel, error] = found;
    if (kernel === undefined) throw error;
    return kernel;
  }
}

/** The bytes of a row-major tensor in a buffer of their own, which is read in pieces. */
function copyOf({ _handle, _start, nbytes }: Tensor): Tensor {
  const [uint8, skip] = [dtypeNamed("uint8"), _start % 4]; // copies begin at whole words
  const words = adoptSlot(_handle, _start - skip, uint8, [skip + nbytes], true);
  try {
    const copy = words._packed();
    try {
      return adoptSlot(copy._handle, skip, uint8, [nbytes], true);
    } finally {
      copy.release();
    }
  } finally {
    words.release();
  }
}
