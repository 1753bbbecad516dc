/** Results of checks, and the report made of them. */
import type { Report, Rule } from "./types.js";

/** A rule is broken: the check's own, or another that it also tests. */
export class Broken extends Error {
  constructor(
    readonly rule: string,
    message: string,
  ) {
    super(message);
  }
}

/** The check's own rule is broken. */
export class Wrong extends Error {}

/** A check cannot be made here; has the reason. */
export class Skip extends Error {}

/** No more checks make sense. */
export class Ended extends Error {}

export function broken(rule: string, message: string): never {
  throw new Broken(rule, message);
}

export function skip(message: string): never {
  throw new Skip(message);
}

/** A value as short text, without calling its own conversion. */
export function show(value: unknown): string {
  try {
    if (typeof value === "string") return JSON.stringify(value);
    if (Array.isArray(value)) return `[${value.map(show).join(", ")}]`.slice(0, 120);
    return String(value).slice(0, 200);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** The result of `run`; the rule is broken if that throws. `told` ends the message. */
export function mustNotThrow<T>(rule: string, what: string, run: () => T, told = ""): T {
  try {
    return run();
  } catch (error) {
    return broken(rule, `${what} threw ${show(error)}${told}`);
  }
}

/** The `name` that distinguishes errors (X1). */
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

/** `run`, which must settle in time: an endless loop cannot be stopped. */
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

  /** Notes that another check has confirmed `id`. */
  pass(id: string, note = ""): void {
    const found = this.#of(id);
    found.passed ??= [];
    if (note) found.passed.push(note);
  }

  /**
   * Makes a check of the rule `id`, unless it is broken already. The check's errors are its results;
   * this never throws.
   *
   * @param where - the device, for the message
   * @param after - rules that this one requires
   * @param hangs - the object that will answer no other check, if this one does not end
   */
  async check(
    id: string,
    where: string,
    run: () => unknown,
    { after = [], hangs = () => "" }: { after?: readonly string[]; hangs?: () => string } = {},
  ): Promise<boolean> {
    const found = this.#of(id);
    const told = (message: string) => `${where}: ${message}`;
    const needed = [id, ...after].find((other) => this.isBroken(other));
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
