/** Producers that a factory makes, and their exchanges, for the rules for producers. */
import { bytesOf, checkObject, describe, elements, type Fields } from "./fields.js";
import { Broken, broken, isThenable, nameOf, show, skip, Wrong } from "./report.js";
import { type DeviceLike, EXCHANGE, EXCHANGE_ASYNC, type ProducerOptions } from "./types.js";
import { encode, get, type Kind, kindOf, same, sizeOf, valuesFor } from "./values.js";

type Method = (request?: unknown) => unknown;

/** The flag of exclusive exchanges. */
export const EXCLUSIVE = 8;

/** A producer, and the elements that it was asked to hold. */
export interface Subject {
  readonly x: { [EXCHANGE]?: Method; [EXCHANGE_ASYNC]?: Method; release?: unknown; grow?: unknown };
  readonly kind: Kind;
  readonly shape: readonly number[];
  readonly values: readonly (number | bigint)[];
  /** The array that gave the factory the shape. */
  readonly given: number[];
}

/** An exchange that is held. */
export interface Held {
  readonly exchange: Record<string, unknown>;
  readonly fields: Fields;
  /** Ends the hold, as a consumer does: once. */
  release(...wrote: boolean[]): void;
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
  ) {
    this.kind = base?.kind ?? (kindOf("float32") as Kind);
    this.shape = base?.shape ?? [2, 3];
  }

  /** undefined: the factory cannot make that. */
  async tryMake(kind = this.kind, shape = this.shape, start = 0): Promise<Subject | undefined> {
    const { device } = this;
    const values = valuesFor(kind, sizeOf(shape), start);
    const bytes = encode(kind, values);
    const wanted = { dtype: kind.name, shape: [...shape], values: [...values], bytes, device };
    const about = `make({ dtype: "${kind.name}", shape: ${show(shape)} })`;
    this.making = about;
    let x: unknown;
    try {
      x = await this.options.make(wanted);
    } catch (error) {
      throw new Error(`${about} threw ${show(error)}`);
    }
    this.making = "";
    if (x === undefined) return undefined;
    const methods = Object(x) as Subject["x"];
    if (typeof methods[EXCHANGE] !== "function" && typeof methods[EXCHANGE_ASYNC] !== "function") {
      broken("M1", `${about} gave ${show(x)}, without [Symbol.for("dlpack.exchange")]`);
    }
    const subject = { x: methods, kind, shape, values, given: wanted.shape };
    this.#ends.push(() => letGo(subject));
    return subject;
  }

  async make(start = 0): Promise<Subject> {
    return (await this.tryMake(this.kind, this.shape, start)) ?? skip("make gave no second one");
  }

  /** The method's result, or its promise if the producer has only the method of M3. */
  async ask(subject: Subject, ...request: unknown[]): Promise<unknown> {
    const { x } = subject;
    if (typeof x[EXCHANGE] !== "function") return await x[EXCHANGE_ASYNC]?.(...request);
    const exchange = x[EXCHANGE](...request);
    checkObject(exchange);
    return exchange;
  }

  /** A hold, whose fields are checked. */
  async hold(subject: Subject, ...request: unknown[]): Promise<Held> {
    const held = this.held(await this.ask(subject, ...request), subject);
    const { device } = Object(request[0]) as { device?: DeviceLike | null };
    const { gpu } = held.fields;
    if (device !== undefined) {
      if (gpu !== device) broken("R3", `device ${show(device)} was asked for, not given`);
    } else if (gpu !== this.device) {
      broken(gpu && this.device ? "D1" : "F2", "the device is not the one it was made on");
    }
    return held;
  }

  held(exchange: unknown, subject: Subject): Held {
    let done = false;
    const release = (...wrote: boolean[]) => {
      if (done) return;
      done = true;
      const { release } = Object(exchange) as { release?: unknown };
      if (typeof release === "function") release(...wrote);
    };
    this.#ends.push(release);
    const fields = describe(exchange, subject);
    if (fields.kind.bits < 8 && fields.step < 8) this.seen.add("F13");
    return { exchange: exchange as Record<string, unknown>, fields, release };
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
    let answer: unknown;
    try {
      answer = await this.ask(subject, request);
    } catch (error) {
      if (error instanceof Broken) throw error;
      if (nameOf(error) === name) return;
      throw new Wrong(`${brief(request)} led to ${show(error)}, not to ${name}`);
    }
    (answer as Partial<Held> | undefined)?.release?.();
    throw new Wrong(`${brief(request)} was answered, and not refused by ${name}`);
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

/** Releases a producer as its user would, if the factory says how. */
export function letGo({ x }: Subject): boolean {
  if (typeof x.release !== "function") return false;
  x.release();
  return true;
}

/** Calls `flush()` as a function, which needs no `this`. */
export function flush({ fields }: Held): void {
  const { flush, gpu } = fields;
  let result: unknown;
  try {
    result = flush();
  } catch (error) {
    broken("F10", `flush() threw ${show(error)}`);
  }
  if (isThenable(result)) broken(gpu ? "T1" : "T2", "flush() returned a promise");
}

/**
 * Whether an exchange reports no fault, as it must for elements that the suite has made: the caller
 * awaits the promise, also after a release.
 */
export function well({ fields }: Held): Promise<void> {
  const { fault } = fields; // F15: as a function, which needs no `this`
  let result: unknown;
  try {
    result = fault ? fault() : null;
  } catch (error) {
    broken("E2", `fault() threw ${show(error)}`);
  }
  if (result !== null && !isThenable(result)) broken("E2", `fault() returned ${show(result)}`);
  return Promise.resolve(result).then(
    (error) => {
      if (error !== null) broken("E2", `fault() gave ${show(error)} for elements that are well`);
    },
    (error) => broken("E2", `the promise of fault() was rejected with ${show(error)}`),
  );
}

/** Flushes, reads and compares; `rule` is broken if they differ, by default as `blame` finds. */
export async function expect(held: Held, { values }: Subject, rule?: string): Promise<void> {
  flush(held);
  await expectNow(held, values, rule);
}

/** The same without a flush. */
export async function expectNow(
  { fields }: Held,
  values: Subject["values"],
  rule?: string,
): Promise<void> {
  const got = await elements(fields);
  if (same(got, values)) return;
  broken(
    rule ?? (await blame(fields, values, got)),
    `elements are ${show(got)}, not ${show(values)}`,
  );
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
function brief(request: unknown): string {
  const fields = Object.entries(Object(request)).filter(([, value]) => value !== undefined);
  return `{ ${fields.map(([name, value]) => `${name}: ${show(value)}`).join(", ")} }`;
}
