/** The suite's own producers, which record what a consumer does with them. */
import { type Layout, type Plan as Lie, layoutOf, overwritten } from "./layout.js";
import { type ArrayPlace, arrayMemory, deviceMemory, type OfferMemory } from "./memory.js";
import { broken, show } from "./report.js";
import { type DeviceLike, EXCHANGE, EXCHANGE_ASYNC } from "./types.js";
import { encode, get, type Kind, kindOf, same } from "./values.js";

export type Exchange = Record<string, unknown>;

export interface Plan extends Lie {
  /** What `data` is on the CPU. */
  readonly data?: ArrayPlace;
  /** `GPUBufferUsage` flags. */
  readonly usage?: number;
  /** Fields of the exchange to replace. */
  readonly say?: (exchange: Exchange) => object;
  /** Returned instead of the exchange. */
  readonly wrap?: (exchange: Exchange) => Exchange;
  readonly releaseError?: Error;
  /** Thrown instead of an exchange. */
  readonly refusal?: Error;
  /** The later result of the promise of `fault()`. */
  readonly fault?: Error | null;
  /** Runs in the middle of each `flush()`, and of `release()`. */
  readonly meanwhile?: () => void;
}

interface Hold {
  readonly exchange: Exchange;
  readonly said: string;
  /** The fields that `said` does not have. */
  objects: readonly unknown[];
  readonly writes: boolean;
  flushes: number;
  releases: number;
  /** What release() was given. */
  wrote?: unknown;
  /** All bytes, just before the memory was given back. */
  left?: Promise<Uint8Array>;
}

// What elements are before flush(), and after release().
const BEFORE = 0x11;
const AFTER = 0x22;

/** A producer, and what was done with it. */
export class Offer {
  readonly kind: Kind;
  readonly producer: object;
  readonly #layout: Layout;
  readonly #memory: OfferMemory;
  readonly #holds: Hold[] = [];
  #misuse: [rule: string, message: string] | undefined;

  constructor(
    readonly plan: Plan,
    readonly device: DeviceLike | null,
    base: Kind,
  ) {
    this.kind = kindOf(plan.dtype ?? "") ?? base;
    this.#layout = layoutOf(plan, this.kind, device ? 0 : 16);
    const size = this.#layout.right.length;
    this.#memory = device
      ? deviceMemory(size, device, plan.usage ?? 128)
      : arrayMemory(size, plan.data ?? "array", this.kind);
    this.#memory.write(overwritten(this.#layout, BEFORE));
    const offer = this;
    this.producer = {
      [EXCHANGE](this: unknown, request?: unknown) {
        return offer.#produce(this, request);
      },
      async [EXCHANGE_ASYNC](this: unknown, request?: { signal?: AbortSignal }) {
        request?.signal?.throwIfAborted();
        return offer.#produce(this, request);
      },
    };
  }

  /** How many exchanges were given out, and how many of those released. */
  get counts(): { holds: number; released: number } {
    const released = this.#holds.filter((hold) => hold.releases > 0).length;
    return { holds: this.#holds.length, released };
  }

  /** Throws Broken with what the consumer did to exchange and memory. */
  async audit(failed: boolean): Promise<void> {
    if (this.#misuse) broken(...this.#misuse);
    for (const hold of this.#holds) {
      const { flushes, releases, said, objects, exchange, left } = hold;
      if (releases > 1) broken("O2", `release() was called ${releases} times`);
      if (releases < 1 && failed) broken("X2", "release() was not called after an error");
      if (releases < 1) broken("O2", "release() was not called");
      if (!failed && flushes < 1 && this.#layout.values.length > 0) {
        broken("T3", "flush() was not called");
      }
      if (said !== told(exchange) || objectsOf(exchange).some((each, i) => each !== objects[i])) {
        broken("F14", `the exchange said ${said}, and was changed`);
      }
      if (left) this.#compare(await left, hold, failed);
    }
  }

  free(): void {
    this.#memory.free?.();
  }

  /** Throws Broken, by `rule` where nothing else is seen, unless these are the elements. */
  compare(got: unknown, rule: string): void {
    const { kind } = this;
    const { values } = this.#layout;
    const list = isList(got) ? got : broken("M1", `consume gave ${show(got)}, no elements`);
    if (same(list, values)) return;
    if (ArrayBuffer.isView(got)) {
      const bytes = new Uint8Array(got.buffer, got.byteOffset, got.byteLength);
      const steps = (this.plan.flags ?? 0) & 4 ? [kind.width, 8] : [kind.width];
      if (steps.some((step) => same(bytes, encode(kind, values, step)))) return;
    }
    const all = (fill: number) => {
      const view = new DataView(new Uint8Array(16).fill(fill).buffer);
      const filled = values.map(() => get(view, kind, 0));
      return values.length > 0 && same(list, filled);
    };
    if (all(BEFORE)) broken("T3", "it read the elements from before flush()");
    if (all(AFTER)) broken("O3", "it read the elements from after release()");
    broken(rule, `it read ${show(Array.from(list))}, not ${show(values)}`);
  }

  #compare(left: Uint8Array, { writes, flushes, wrote }: Hold, failed: boolean): void {
    const { right, parts, values } = this.#layout;
    left.forEach((byte, i) => {
      if (byte === right[i]) return;
      if (parts[i] === "other") broken("S7", "it wrote to bytes that are not the tensor's");
      if (!writes && flushes > 0) broken("R5", "it wrote, and did not ask for `writes`");
    });
    // release(false) says so.
    if (writes && wrote !== false && !failed && values.length > 0 && same(left, right)) {
      broken("R5", "it asked for `writes`, and only read");
    }
  }

  #produce(self: unknown, request: unknown): Exchange {
    const { plan } = this;
    if (self !== this.producer) {
      this.#misuse ??= ["M1", "it called the method without its `this`"];
      throw new TypeError("the method was called without its `this`");
    }
    if (plan.refusal) throw plan.refusal;
    const { copy, writes } = this.#read(request);
    const exchange = this.#describe(copy);
    const counts = { flushes: 0, releases: 0 };
    const hold: Hold = { exchange, said: told(exchange), objects: [], writes, ...counts };
    exchange.flush = () => this.#flush(hold);
    if (plan.fault !== undefined) exchange.fault = () => this.#fault(hold);
    exchange.release = (wrote?: unknown) => this.#release(hold, wrote);
    hold.objects = objectsOf(exchange);
    this.#holds.push(hold);
    return plan.wrap?.(exchange) ?? exchange;
  }

  /** Checks a request for anything that a consumer may not ask. */
  #read(request: unknown): { copy: unknown; writes: boolean } {
    const { device, plan } = this;
    const asked = Object(request ?? {}) as Record<string, unknown>;
    const { versions = [1], device: where = device, copy, writes = false } = asked;
    const misuse = (rule: string, message: string): never => {
      this.#misuse ??= [rule, message];
      throw new TypeError(message);
    };
    if (!Array.isArray(versions) || !versions.includes(1) || versions.some((n) => n !== 1)) {
      misuse("R2", `it asked for versions ${show(versions)}; only 1 exists`);
    }
    if (typeof where !== "object") misuse("R3", `it asked for the device ${show(where)}`);
    if (copy !== undefined && typeof copy !== "boolean") misuse("R4", `copy was ${show(copy)}`);
    if (typeof writes !== "boolean") misuse("R5", `writes was ${show(writes)}`);
    if (where !== device) throw named("DeviceError", "the suite's tensor is on its own device");
    if (writes && (plan.flags ?? 0) & 1) throw named("UnsupportedError", "it may not be written");
    return { copy, writes: writes as boolean };
  }

  #describe(copy: unknown): Exchange {
    const { device, plan, kind } = this;
    const { start, first, end, stop } = this.#layout;
    const exchange: Exchange = {
      version: [1, 1],
      device: { type: device ? 15 : 1, id: 0, gpu: device },
      dtype: { code: kind.code, bits: kind.bits, lanes: 1 },
      shape: [...(plan.shape ?? [2, 3])],
      strides: plan.strides ? [...plan.strides] : null,
      data: this.#memory.data(start, stop),
      byteOffset: first - start,
      capacity: end - first,
      flags: (plan.flags ?? 0) | (copy ? 2 : 0),
    };
    return Object.assign(exchange, plan.say?.(exchange));
  }

  #flush(hold: Hold): void {
    hold.flushes++;
    if (hold.releases > 0) {
      this.#misuse ??= ["O2", "it called flush() after release()"];
      return;
    }
    this.#memory.write(this.#layout.right);
    // Views made before this are empty, and those that are made now must not outlive an `await`.
    this.#memory.grow?.();
    queueMicrotask(() => this.#memory.grow?.());
    this.plan.meanwhile?.();
  }

  async #fault(hold: Hold): Promise<Error | null> {
    if (hold.releases > 0) {
      this.#misuse ??= ["E3", "it called fault() after release()"];
    } else if (hold.flushes < 1) {
      this.#misuse ??= ["E3", "it called fault() before flush()"];
    }
    // A GPU reports later: a consumer that does not wait has read by then.
    await new Promise((resolve) => setTimeout(resolve, 5));
    return this.plan.fault ?? null;
  }

  #release(hold: Hold, wrote: unknown): void {
    hold.releases++;
    if (wrote !== undefined && typeof wrote !== "boolean") {
      this.#misuse ??= ["O4", `release() was called with ${show(wrote)}`];
    } else if (wrote && !hold.writes) {
      this.#misuse ??= ["O4", "it called release(true), and had not asked for `writes`"];
    }
    if (hold.releases === 1) {
      hold.wrote = wrote;
      hold.left = this.#memory.read();
      hold.left.catch(() => {}); // is awaited later
      const { holds, released } = this.counts;
      if (holds === released) this.#memory.write(overwritten(this.#layout, AFTER));
    }
    this.plan.meanwhile?.();
    if (this.plan.releaseError) throw this.plan.releaseError;
  }
}

export function isList(x: unknown): x is ArrayLike<unknown> {
  return typeof (x as ArrayLike<unknown> | null | undefined)?.length === "number";
}

export function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

function objectsOf({ data, device, flush, release, fault }: Exchange): unknown[] {
  return [data, device, flush, release, fault];
}

/** The fields of an exchange, and of those, that can be written as text. */
const TEXTS =
  "version device type id dtype code bits lanes shape strides byteOffset capacity flags".split(" ");

const told = (exchange: Exchange): string => JSON.stringify(exchange, TEXTS);
