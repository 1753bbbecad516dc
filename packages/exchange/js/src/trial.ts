/** Producers that a factory makes, and their exchanges, for the rules for producers. */
import { bytesOf, checkObject, describe, elements, type Fields } from "./fields.js";
import { Broken, broken, isThenable, mustNotThrow, nameOf, show, skip, Wrong } from "./report.js";
import { type DeviceLike, EXCHANGE, EXCHANGE_ASYNC, type ProducerOptions } from "./types.js";
import { encode, get, type Kind, kindOf, same, sizeOf, valuesFor } from "./values.js";

type Method = (request?: unknown) => unknown;

/** Flags: the memory was copied for this exchange; nobody else may use it meanwhile. */
export const COPIED = 2;
export const EXCLUSIVE = 8;
/** How long a producer may take, in ms, for what it does in its own time. */
const PATIENCE = 1000;

/** Requests that a producer may answer from other memory. */
const WAYS = [{}, { needs: { padTo: 64 } }, { copy: true }, { copy: true, needs: { padTo: 256 } }];

/** A producer, and the elements that it was asked to hold. */
export interface Subject {
  readonly x: { [EXCHANGE]?: Method; [EXCHANGE_ASYNC]?: Method; release?: unknown; grow?: unknown };
  readonly kind: Kind;
  readonly shape: readonly number[];
  readonly values: readonly (number | bigint)[];
  /** The array that gave the factory the shape. */
  readonly given: number[];
  /** Its user has released it. */
  released: boolean;
}

/** What earlier checks found out about the producers of a device. */
export interface Known {
  /** Whether a hold that is left can be observed. */
  showsHolds?: boolean;
  /** A request for another device, if the method of M3 answers it. */
  moves?: object;
}

/** An exchange that is held. */
export class Held {
  fields!: Fields;
  #released = false;

  constructor(
    readonly exchange: Record<string, unknown>,
    readonly subject: Subject,
  ) {}

  /** Ends the hold, as a consumer does: once. */
  release(...wrote: boolean[]): void {
    if (this.#released) return;
    this.#released = true;
    const { release } = Object(this.exchange) as { release?: unknown };
    if (typeof release === "function") mustNotThrow("F11", "release()", () => release(...wrote));
  }

  /** Calls `flush()` as a function, which needs no `this`. */
  flush(): void {
    const { flush, gpu } = this.fields;
    const result = mustNotThrow("F10", "flush()", flush);
    if (isThenable(result)) broken(gpu ? "T1" : "T2", "flush() returned a promise");
  }

  /** Flushes, reads and compares; `rule` is broken if they differ, by default as `blame` finds. */
  async expect(rule?: string): Promise<void> {
    this.flush();
    await this.expectNow(rule);
  }

  /** The same without a flush. */
  async expectNow(rule?: string, values = this.subject.values): Promise<void> {
    const got = await elements(this.fields);
    if (same(got, values)) return;
    const found = rule ?? (await blame(this.fields, values, got));
    broken(found, `elements are ${show(got)}, not ${show(values)}`);
  }
}

/** The producers and exchanges of one check, all released at its end. */
export class Trial {
  #ends: (() => void)[] = [];
  /** The factory's pending request. */
  making = "";
  /** Rules that were confirmed along the way. */
  readonly seen = new Set<string>();
  readonly kind: Kind;
  readonly shape: readonly number[];

  /** @param base - the default dtype and shape of producers */
  constructor(
    readonly options: ProducerOptions,
    readonly device: DeviceLike | null,
    base?: Pick<Subject, "kind" | "shape">,
    readonly known: Known = {},
    /** Asks by the method of M3. */
    readonly later = false,
  ) {
    this.kind = base?.kind ?? (kindOf("float32") as Kind);
    this.shape = base?.shape ?? [2, 3];
  }

  /** undefined: the factory cannot make that. `by` is another factory of the options. */
  async tryMake(
    kind = this.kind,
    shape = this.shape,
    start = 0,
    by: "make" | "makeFaulty" = "make",
  ): Promise<Subject | undefined> {
    const { device, options } = this;
    const values = valuesFor(kind, sizeOf(shape), start);
    const bytes = encode(kind, values);
    const wanted = { dtype: kind.name, shape: [...shape], values: [...values], bytes, device };
    const about = `${by}({ dtype: "${kind.name}", shape: ${show(shape)} })`;
    this.making = about;
    let x: unknown;
    try {
      x = await options[by]?.(wanted);
    } catch (error) {
      throw new Error(`${about} threw ${show(error)}`);
    }
    this.making = "";
    if (x === undefined) return undefined;
    const methods = Object(x) as Subject["x"];
    if (typeof methods[EXCHANGE] !== "function" && typeof methods[EXCHANGE_ASYNC] !== "function") {
      broken("M1", `${about} gave ${show(x)}, without [Symbol.for("dlpack.exchange")]`);
    }
    const given = wanted.shape;
    const subject: Subject = { x: methods, kind, shape, values, given, released: false };
    this.#ends.push(() => letGo(subject));
    return subject;
  }

  async make(start = 0): Promise<Subject> {
    return (await this.tryMake(this.kind, this.shape, start)) ?? skip("make gave no second one");
  }

  /** The method's result, or its promise if the producer has only the method of M3. */
  async ask(subject: Subject, ...request: unknown[]): Promise<unknown> {
    const { x } = subject;
    if (this.later || typeof x[EXCHANGE] !== "function") return await start(x, ...request);
    const exchange = x[EXCHANGE](...request);
    checkObject(exchange);
    return exchange;
  }

  /** A hold, whose fields are checked: its elements are on the device that was asked for. */
  async hold(subject: Subject, ...request: unknown[]): Promise<Held> {
    return this.answered(await this.ask(subject, ...request), subject, request[0]);
  }

  /** That of an answer to a request. */
  answered(exchange: unknown, subject: Subject, request: unknown): Held {
    const held = this.held(exchange, subject);
    const { device } = Object(request) as { device?: DeviceLike | null };
    const { gpu } = held.fields;
    if (device !== undefined) {
      if (gpu !== device) broken("R3", `device ${show(device)} was asked for, not given`);
    } else if (gpu !== this.device) {
      broken(gpu && this.device ? "D1" : "F2", "the device is not the one it was made on");
    }
    return held;
  }

  /** Makes a request, reads the elements and releases them. */
  async read(subject: Subject, rule?: string, ...request: unknown[]): Promise<void> {
    const held = await this.hold(subject, ...request);
    await held.expect(rule);
    held.release();
  }

  held(exchange: unknown, subject: Subject): Held {
    const held = new Held(exchange as Record<string, unknown>, subject);
    this.#ends.push(() => held.release());
    held.fields = describe(exchange, subject);
    if (held.fields.kind.bits < 8 && held.fields.step < 8) this.seen.add("F13");
    return held;
  }

  /** A hold, or undefined if the request was refused by one of these names. */
  async attempt(subject: Subject, request: object, ...names: string[]): Promise<Held | undefined> {
    try {
      return await this.hold(subject, request);
    } catch (error) {
      if (error instanceof Broken) throw error;
      if (names.includes(nameOf(error))) return undefined;
      throw new Wrong(`${brief(request)} led to ${show(error)}, not to ${names.join(" or ")}`);
    }
  }

  /** Throws unless the request is refused by that name. */
  async refused(subject: Subject, request: unknown, name: string): Promise<void> {
    const error = await refusalOf(() => this.ask(subject, request));
    if (error instanceof Broken) throw error;
    if (nameOf(error) === name) return;
    const happened = error === undefined ? "was answered" : `led to ${show(error)}`;
    throw new Wrong(`${brief(request)} ${happened}, and was not refused by ${name}`);
  }

  /** Holds of a tensor in all ways. */
  async *holdsOf(subject: Subject): AsyncGenerator<Held> {
    for (const request of WAYS) {
      const held = await this.attempt(subject, request, "UnsupportedError");
      if (held) yield held;
      held?.release();
    }
    const { moves } = this.known;
    if (!moves) return;
    const held = this.answered(await subject.x[EXCHANGE_ASYNC]?.(moves), subject, moves);
    yield held;
    held.release();
  }

  /** Uses memory that was given up too early: makes tensors and holds them until the end. */
  async occupy(rule = "T5", take = (subject: Subject) => this.hold(subject)): Promise<void> {
    const others: Held[] = [];
    for (const start of [20, 40]) {
      const held = await take(await this.make(start));
      await held.expect(rule);
      others.push(held);
    }
    for (const held of others) await held.expectNow(rule);
  }

  /** The rule is broken unless an exchange keeps its elements after its user has released the tensor. */
  async outlasts(held: Held, rule: string, take?: (subject: Subject) => Promise<Held>) {
    letGo(held.subject);
    // Tensors that may get the memory if it is free.
    await pause(15);
    await this.occupy(undefined, take);
    const { data, to } = held.fields;
    if (ArrayBuffer.isView(data) && data.byteLength < to) broken("S3", "data was detached");
    await held.expect(rule);
  }

  end(): void {
    // Those that the check did not reach: their errors are found elsewhere.
    const ends = this.#ends.reverse();
    this.#ends = [];
    for (const end of ends) {
      try {
        end();
      } catch {}
    }
  }
}

/** The error of a request; undefined if it is answered, and the answer was released. */
export async function refusalOf(ask: () => unknown): Promise<unknown> {
  let answer: unknown;
  try {
    answer = await ask();
  } catch (error) {
    return error;
  }
  (Object(answer) as Partial<Held>).release?.();
  return undefined;
}

/** The promise of the method of M3. */
export function start(x: Subject["x"], ...request: unknown[]): PromiseLike<unknown> {
  const call = () => x[EXCHANGE_ASYNC]?.(...request);
  const promise = mustNotThrow("M3", "the method", call, " and did not return a promise");
  return isThenable(promise) ? promise : broken("M3", "the method returned no promise");
}

/** Releases a producer as its user would, once; false if the factory does not say how. */
export function letGo(subject: Subject): boolean {
  const { x } = subject;
  if (typeof x.release !== "function") return false;
  if (!subject.released) {
    subject.released = true;
    x.release();
  }
  return true;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Whether `test` is true at last, as that of a producer that takes its time. */
export async function eventually(test: () => Promise<boolean>): Promise<boolean> {
  for (let waited = 0, ms = 1; waited < PATIENCE; waited += ms, ms *= 2) {
    if (await test()) return true;
    await pause(ms);
  }
  return test();
}

/**
 * The rule that wrong elements break. If the right one is elsewhere in `data`, its address is
 * wrong; if all are 0, the work that writes them is missing; else they are stored wrongly.
 */
async function blame(
  fields: Fields,
  values: Subject["values"],
  got: readonly (number | bigint)[],
): Promise<string> {
  const { kind, gpu, data } = fields;
  if (got.every((value) => Number(value) === 0)) return gpu ? "T1" : "T2";
  if (kind.bits < 8 || kind.parts > 1) return "S8";
  const wrong = values.findIndex((value, i) => Number(value) !== Number(got[i]));
  const size = "size" in data ? data.size : ArrayBuffer.isView(data) ? data.byteLength : fields.to;
  const bytes = await bytesOf(fields, 0, Math.min(size - (size % 4), 65536));
  const view = new DataView(bytes.buffer);
  const step = kind.bits / 8;
  for (let at = fields.byteOffset % step; at + step <= bytes.length; at += step) {
    if (Number(get(view, kind, at * 8)) === Number(values[wrong])) return wrong === 0 ? "F7" : "F5";
  }
  return "S8";
}

/** A request in words. */
export function brief(request: unknown): string {
  if (typeof request !== "object" || request === null) return `the request ${show(request)}`;
  const fields = Object.entries(Object.getOwnPropertyDescriptors(request))
    .filter(([, { value, get }]) => value !== undefined || get)
    .map(
      ([name, { value, get }]) =>
        `${name}: ${get ? "a getter" : isPlain(value) ? brief(value) : show(value)}`,
    );
  return fields.length > 0 ? `{ ${fields.join(", ")} }` : "{}";
}

function isPlain(value: unknown): boolean {
  return value instanceof Object && Object.getPrototypeOf(value) === Object.prototype;
}
