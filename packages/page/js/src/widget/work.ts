/** What a kernel asks of the page's GPU, in its order: py/dlpack_web_page/_page sends it. */

import { DLPackError, ReleasedError, Tensor, UnsupportedError } from "dlpack-web/core";
import {
  beginRun,
  calledAt,
  compile,
  copyBytes,
  emptyOn,
  explainHere,
  type GPUDevice,
  textOf,
  timed,
  unseen,
  viewOf,
} from "dlpack-web/internal";
import { quietly, releasing } from "../common.js";
import {
  type Arriving,
  type Call,
  type Cancel,
  checkId,
  checkList,
  checkName,
  type KernelSource,
  type Operation,
  type View,
  writtenBy,
} from "./operations.js";
import type { NamedTensors } from "./tensors.js";

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

explainHere();

/** Bytes of a tensor that is read back as a whole; a larger one is read in pieces. */
const MOST_WHOLE = 4 << 20;
/** Names of cancelled elements that may still arrive. */
const MOST_CANCELLED = 4096;

type Kernel = ReturnType<typeof compile>;
type Named<T> = [T | undefined, unknown];

/** Tensors and kernels by number. A number whose making failed keeps the error. */
export class Work {
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

  constructor(
    private readonly device: GPUDevice,
    private readonly page: Surroundings,
  ) {}

  /** Does an operation after all earlier ones; cancels at once. It never throws. */
  add(operation: Operation): void {
    if (operation.op === "cancel") this.#cancel(operation);
    else {
      this.#queue.push(operation);
      if (!this.#isBusy) void this.#work();
    }
  }

  /** Elements came by the wire; the tensor is the wire's. */
  arrive(name: string, tensor: Tensor): void {
    if (this.#cancelled.delete(name)) return;
    const { shape, dtype, padded } = tensor;
    this.#settle(name, viewOf(tensor, { shape, dtype, padded }));
  }

  /** Ends all, and releases all. */
  end(): void {
    this.#ended = true;
    this.#queue.length = 0;
    for (const key of this.#given.keys()) this.page.tensors.set(key, undefined);
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
      this.#spoil([to], new UnsupportedError(textOf(why)));
      return;
    }
    if (!this.#arrived.has(name)) this.#cancelled.add(name);
    const [oldest = name] = this.#cancelled;
    if (this.#cancelled.size > MOST_CANCELLED) this.#cancelled.delete(oldest);
    this.#settle(name, new UnsupportedError(textOf(why)));
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
        const { id, shape, dtype, recorded } = given;
        this.#have(id, emptyOn(this.device, checkList(shape), dtype, recorded));
        return;
      }
      case "take":
        return this.#take(given).then((tensor) => this.#have(given.id, tensor));
      case "write": {
        const wrote = () => this.#wrote([given.to.id]);
        const waits = this.#write(given);
        return waits ? waits.then(wrote) : wrote();
      }
      case "free":
        this.#free(given.what);
        return;
      case "kernel":
        this.#kernels.set(checkId(given.id), [this.#compile(given), undefined]);
        return;
      case "run":
        for (const id of checkList(given.first ?? [])) this.#begin(id);
        for (const call of checkList(given.calls)) this.#run(call);
        this.#wrote(given.calls.flatMap(({ writes }) => writes));
        return;
      case "time":
        this.#answer(
          given,
          timed(this.device, (timestampWrites) => {
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
        this.#answer(given, this.device.queue.onSubmittedWorkDone());
        return;
      case "canvas":
        this.#answer(given, this.#draw(given.what));
        return;
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

  /**
   * An operation failed, whatever its form: the error is its answer, or is kept for those who use
   * what it should have made or written, or is reported. It never throws.
   */
  #fail(given: Operation, error: unknown): void {
    if (this.#ended) return;
    const isKept = this.#keep(given, error);
    if (given.reply !== undefined) this.#reply(given, undefined, error);
    else if (!isKept) {
      const { site } = given as { site?: unknown };
      quietly(() => this.page.report(error, typeof site === "number" ? site : 0));
    }
  }

  /** Whether somebody will ask for it. */
  #keep(given: Operation, error: unknown): boolean {
    switch (given.op) {
      case "empty":
      case "take":
        if (Number.isSafeInteger(given.id)) this.#have(given.id, undefined, error);
        return Number.isSafeInteger(given.id);
      case "kernel":
        if (Number.isSafeInteger(given.id)) this.#kernels.set(given.id, [undefined, error]);
        return Number.isSafeInteger(given.id);
      case "write":
        return this.#spoil([given.to?.id], error);
      case "run":
        return this.#spoil(writtenBy(given.calls), error);
      case "give":
        if (typeof given.key === "string") this.#give(given.key, null);
        return false;
      default:
        return false;
    }
  }

  /** Whether there are tensors with these ids, which have an error then. */
  #spoil(ids: readonly unknown[], error: unknown): boolean {
    const spoilt = (ids as number[]).filter((id) => this.#tensors.has(id));
    for (const id of spoilt) this.#have(id, undefined, error);
    return spoilt.length > 0;
  }

  /**
   * Enters a tensor, or why there is none. The kernel numbers its buffers: where it uses an id
   * again, it has forgotten the buffer before, which is released.
   */
  #have(id: number, tensor: Tensor | undefined, error?: unknown): void {
    const before = this.#tensors.get(id);
    const isRight = Number.isSafeInteger(id);
    if (isRight && !this.#ended) this.#tensors.set(id, [tensor, error]);
    else tensor?.release();
    if (!isRight) checkId(id);
    before?.[0]?.release();
  }

  #answer(given: Operation, promise: Promise<unknown>): void {
    promise.then(
      (value) => this.#reply(given, value),
      (error) => this.#fail(given, error),
    );
  }

  /** What cannot be sent now is sent again with what the channel has lost. */
  #reply({ reply }: Operation, value: unknown, error?: unknown): void {
    if (this.#ended || reply === undefined) return;
    quietly(() => this.page.reply(reply, value, error));
  }

  /** Waits for elements; the result is the caller's. */
  async #take({ name, shape, dtype, padded }: Arriving): Promise<Tensor> {
    checkName(name);
    if (!this.#arrived.has(name) && !this.#ended) {
      await new Promise<void>((wake) => this.#waiting.set(name, wake));
      this.#waiting.delete(name);
    }
    const found = this.#arrived.get(name);
    this.#arrived.delete(name);
    if (found === undefined) throw new DLPackError("the page was closed");
    if (found instanceof Error) throw found;
    return releasing(found, () => viewOf(found, { shape: checkList(shape), dtype, padded }));
  }

  #write(given: Operation & { op: "write" }): Promise<void> | void {
    const write = (source: Tensor) => {
      releasing(source, () => {
        releasing(this.#view(given.to), (to) => calledAt(given.site, () => to.write(source)));
      });
    };
    if (given.source) write(this.#view(given.source));
    else return this.#take(given as Arriving).then(write);
  }

  /** Gives a tensor to the script under a name, or none. */
  #give(key: string, what: View | null): void {
    checkName(key);
    const tensor = what ? this.#view(what) : undefined;
    if (what) this.#given.set(key, what.id);
    else this.#given.delete(key);
    this.page.tensors.set(key, tensor);
  }

  /** Tells the script that tensors with these numbers have other elements. */
  #wrote(ids: readonly number[]): void {
    for (const [key, id] of [...this.#given]) {
      if (ids.includes(id)) this.page.tensors.changed(key);
    }
  }

  /** Frees all that it can, before an error for the rest. */
  #free(what: readonly (readonly ["tensor" | "kernel", number])[]): void {
    let wrong: unknown;
    for (const each of checkList(what)) {
      const { 0: kind, 1: id } = Object(each) as typeof each;
      if (kind === "kernel") this.#kernels.delete(id);
      else if (kind === "tensor") {
        this.#tensors.get(id)?.[0]?.release();
        this.#tensors.delete(id);
      } else wrong = new UnsupportedError(`the page cannot free ${textOf(kind)}`);
    }
    if (wrong) throw wrong;
  }

  async #draw(what: View): Promise<void> {
    const tensor = this.#view(what);
    try {
      await this.page.draw(tensor);
    } finally {
      tensor.release();
    }
  }

  #compile({ wgsl, entry, label, check, parts, site }: KernelSource): Kernel {
    return calledAt(site, () => compile(this.device, wgsl, { entry, label, check }, parts));
  }

  #run(
    { kernel, args, groups, site }: Call,
    timestampWrites?: Parameters<Parameters<typeof timed>[1]>[0],
  ): void {
    const given: (Tensor | number)[] = [];
    try {
      for (const arg of checkList(args))
        given.push(typeof arg === "string" ? Number(arg) : this.#view(arg));
      const options = { workgroups: groups as [number], timestampWrites };
      calledAt(site, () => this.#kernel(kernel).run(given, options));
    } finally {
      for (const arg of given) if (typeof arg !== "number") arg.release();
    }
  }

  /** A batch that computes a tensor runs. */
  #begin(id: number): void {
    const tensor = this.#tensors.get(id)?.[0];
    if (tensor !== undefined) beginRun(tensor);
  }

  async #read(what: readonly View[], names: readonly string[], site: number): Promise<void> {
    const elements = checkList(what).map((view) => this.#elements(view, site));
    const found = await Promise.allSettled(elements);
    const targets = found.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
    try {
      const [first, ...others] = found.flatMap((each) =>
        each.status === "rejected" ? [each] : [],
      );
      for (const { reason } of others) unseen(reason);
      if (first) throw first.reason;
      await Promise.all(targets.map((tensor, i) => this.page.send(names[i] as string, tensor)));
    } finally {
      for (const target of targets) target.release();
    }
  }

  /** The bytes of a view, as they are now; the caller releases them. */
  async #elements(what: View, site: number): Promise<Tensor> {
    const source = this.#view(what);
    try {
      const copy = source.nbytes > MOST_WHOLE ? calledAt(site, () => copyBytes(source)) : undefined;
      if (copy) return copy;
      const { buffer, byteOffset, byteLength } = await calledAt(site, () => source.read());
      return Tensor.fromTypedArray(new Uint8Array(buffer, byteOffset, byteLength));
    } finally {
      source.release();
    }
  }

  /** A view of a tensor; the caller releases it. */
  #view(what: View): Tensor {
    const found = this.#tensors.get(what.id);
    if (found === undefined) throw new ReleasedError(`the page has no tensor ${textOf(what.id)}`);
    const [tensor, error] = found;
    if (tensor === undefined) throw error;
    const { shape, strides } = what;
    return viewOf(tensor, {
      ...what,
      shape: checkList(shape),
      strides: strides ? checkList(strides) : null,
    });
  }

  #kernel(id: number): Kernel {
    const found = this.#kernels.get(id);
    if (found === undefined) throw new ReleasedError(`the page has no kernel ${textOf(id)}`);
    const [kernel, error] = found;
    if (kernel === undefined) throw error;
    return kernel;
  }
}
