/** How a check tells what it found, and how that becomes a report. */
import type { Report, Rule } from "./types.js";

/** A rule was seen broken: the one that the check is about, or another that it met on the way. */
export class Broken extends Error {
  constructor(
    readonly rule: string,
    message: string,
  ) {
    super(message);
  }
}

/** The rule that the check is about, whichever it is, was seen broken. */
export class Wrong extends Error {}

/** A check cannot be made here, for a reason. */
export class Skip extends Error {}

/** No more checks make sense. */
export class Ended extends Error {}

export function broken(rule: string, message: string): never {
  throw new Broken(rule, message);
}

export function skip(message: string): never {
  throw new Skip(message);
}

/** A value as a few words, whatever its own conversion does. */
export function show(value: unknown): string {
  try {
    if (typeof value === "string") return JSON.stringify(value);
    if (Array.isArray(value)) return `[${value.map(show).join(", ")}]`.slice(0, 120);
    return String(value).slice(0, 200);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** The `name` by which errors are told apart (X1). */
export function nameOf(error: unknown): string {
  try {
    return String((error as Error).name);
  } catch {
    return "undefined";
  }
}

export function isThenable(x: unknown): x is PromiseLike<unknown> {
  return typeof (x as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/** `run`, which must settle in time: one that hangs without giving way cannot be stopped. */
export async function within<T>(
  ms: number,
  late: () => Error,
  run: () => T | PromiseLike<T>,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([run(), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

interface Found {
  broken?: string;
  passed?: string[];
  skipped?: string;
}

/** What was found so far, rule by rule. */
export class Book {
  readonly #found = new Map<string, Found>();
  #ended = "";

  constructor(
    ids: readonly string[],
    readonly timeoutMs: number,
  ) {
    for (const id of ids) this.#found.set(id, {});
  }

  isBroken(id: string): boolean {
    return this.#of(id).broken !== undefined;
  }

  passed(id: string): boolean {
    return this.#of(id).passed !== undefined;
  }

  /** Notes that `id` was seen to hold, by the way. */
  pass(id: string, note = ""): void {
    const found = this.#of(id);
    found.passed ??= [];
    if (note) found.passed.push(note);
  }

  /**
   * Makes a check of the rule `id`. What it throws says what was seen; it never throws itself.
   *
   * @param where - the device, for the message
   * @param after - rules without which this one cannot be told
   * @param hangs - what will never answer any check, if this one does not end
   */
  async check(
    id: string,
    where: string,
    run: () => unknown,
    { after = [], hangs = () => "" }: { after?: readonly string[]; hangs?: () => string } = {},
  ): Promise<boolean> {
    const found = this.#of(id);
    const told = (message: string) => `${where}: ${message}`;
    const needed = after.find((other) => this.isBroken(other));
    const reason = this.#ended || (needed && `${needed} does not hold`);
    if (reason) {
      found.skipped ??= told(reason);
      return false;
    }
    const late = () => {
      const what = hangs();
      const text = `did not end within ${this.timeoutMs} ms`;
      return what ? new Ended(`${what} ${text}`) : new Broken(id, text);
    };
    try {
      const note = await within(this.timeoutMs, late, run);
      this.pass(id, typeof note === "string" ? told(note) : "");
      return true;
    } catch (error) {
      if (error instanceof Ended) this.#ended = error.message;
      if (error instanceof Skip) {
        found.skipped ??= told(error.message);
      } else if (error instanceof Broken && error.rule !== id) {
        this.#of(error.rule).broken ??= told(error.message);
        found.skipped ??= told(`${error.rule} does not hold`);
      } else {
        const plain = error instanceof Broken || error instanceof Ended || error instanceof Wrong;
        found.broken ??= told(plain ? error.message : `saw ${show(error)}`);
      }
      return false;
    }
  }

  skipped(id: string, message: string): void {
    this.#of(id).skipped ??= message;
  }

  report(): Report {
    const rules = [...this.#found].map(([id, { broken, passed, skipped }]): Rule => {
      if (broken !== undefined) return { id, ok: false, message: broken };
      if (passed?.length) return { id, ok: true, message: passed.join("; ") };
      if (passed) return { id, ok: true };
      return { id, ok: true, skipped: true, message: skipped ?? "no check reached it" };
    });
    return { ok: rules.every((rule) => rule.ok), rules };
  }

  #of(id: string): Found {
    let found = this.#found.get(id);
    if (!found) {
      found = {};
      this.#found.set(id, found);
    }
    return found;
  }
}
