/**
 * The rules for consumers. Left out are rules that cannot be observed from outside:
 *
 * | rules | why |
 * |---|---|
 * | M3, M4 | what they should, and need not |
 * | M2, R1, R6, R7, F1, F10, F11, S6, T4, E2, O1, O5 | what producers do; tested in producers.ts |
 * | E1 | seen with X1 |
 * | S3, S5, S8, T1, T2, T5 | seen with F3, F6, F8 and T3 |
 * | D2 to D5, N2 | what is not done, and the page's device |
 *
 * S1 is only tested with shapes over which a loop ends at once: a loop over 2^53 elements could not
 * be stopped.
 */
import { type Exchange, isList, named, Offer, type Plan } from "./offers.js";
import { Book, Broken, broken, nameOf, show, skip } from "./report.js";
import type { ConsumerOptions, DeviceLike, Report } from "./types.js";
import { DTYPES, type Kind, kindOf } from "./values.js";

/** In the order of the text and of the report. */
const RULES = [
  "M1 R2 R3 R4 R5 F2 F3 F4 F5 F6 F7 F8 F9 F12 F13 F14 F15 S1 S2 S4 S7",
  "S9 T3 E3 E4 O2 O3 O4 O6 O7 D1 N1 N3 X1 X2 V1",
].flatMap((ids) => ids.split(" "));
/** Those that every correctly read exchange confirms. */
const SEEN = "R2 R3 R4 R5 F14 S7 T3 O2 O3 O4".split(" ");
const NAMES = [
  ..."BusyError CopyError DeviceError DeviceLostError ReleasedError".split(" "),
  ..."UnsupportedError TypeError".split(" "),
];
const REFUSALS = ["UnsupportedError", "DeviceError"];

/** Layouts that a consumer reads, or refuses. */
const LAYOUTS: readonly (readonly [string, Plan])[] = [
  ["F7", { around: 4 }],
  ["F7", { data: "bytes", around: 4 }],
  ["F7", { data: "bytes", shift: 1 }],
  ["F4", { shape: [] }],
  ["F4", { shape: [2, 1, 3] }],
  ["F5", { strides: [1, 2] }],
  ["F5", { strides: [4, 1] }],
  ["F5", { strides: [-3, -1] }],
  ["F5", { strides: [0, 1] }],
  ["F6", { data: "bytes" }],
  ["F6", { data: "DataView" }],
  ["F8", { padding: 8 }],
  ["F9", { flags: 1 }],
  ["F9", { flags: 8 }],
  ["F9", { dtype: "int4", flags: 4 }],
  ["F13", { dtype: "int4", shape: [5] }],
  ["S2", { data: "memory", around: 4 }],
  ["S1", { data: "memory", strides: [-3, -1], below: true }],
  ["S4", { data: "shared" }],
  ["S7", { around: 4, padding: 4 }],
  ["N1", { usage: 0, around: 4 }],
];

/** Impossible exchanges; `shape` and `byteOffset` are those of 2 x 3 elements. */
const LIES: readonly (readonly [string, (exchange: Exchange) => object, Plan?])[] = [
  ["S1", () => ({ shape: [3, 3] })],
  ["S1", () => ({ strides: [9, 1] })],
  ["S1", () => ({ strides: [-3, 1] })],
  ["S1", () => ({ strides: [2 ** 52, 1] })],
  ["S1", () => ({ strides: [-8, 4] })],
  ["S1", () => ({ strides: [2 ** 53 - 1, 1 - 2 ** 53] })],
  ["S1", () => ({ byteOffset: 64 })],
  ["S1", detached, { data: "array" }],
  ["S1", ({ data }) => ({ data: { ...(data as object), ptr: 2 ** 31 } }), { data: "memory" }],
  ["F6", ({ data }) => ({ data: { ...(data as object), ptr: -4 } }), { data: "memory" }],
  ["F2", () => ({ device: { type: 7, id: 0, gpu: null } })],
  ["F2", () => ({ device: { type: 15, id: 0, gpu: null } })],
  [
    "F2",
    ({ device }) => ({ device: { type: 1, id: 0, gpu: (device as { gpu: unknown }).gpu ?? {} } }),
  ],
  ["F3", ({ dtype }) => ({ dtype: { ...(dtype as object), code: 99 } })],
  ["F3", ({ dtype }) => ({ dtype: { ...(dtype as object), bits: 7 } })],
  ["F3", ({ dtype }) => ({ dtype: { ...(dtype as object), lanes: 0 } })],
  ["F4", () => ({ shape: [2, -3] })],
  ["F4", () => ({ shape: [-2, -3] })],
  ["F4", () => ({ shape: new Array(65).fill(1) })],
  ["F4", () => ({ shape: null })],
  ["F5", () => ({ strides: [1] })],
  ["F5", () => ({ strides: 3 })],
  ["F6", () => ({ data: null })],
  ["F6", () => ({ data: {} })],
  ["F7", () => ({ byteOffset: -4 })],
  ["F12", () => ({ shape: [1.5, 2] })],
  ["F12", () => ({ shape: [Number.NaN, 3] })],
  ["F12", () => ({ shape: [0, 2 ** 53] })],
  ["F12", () => ({ strides: [0.5, 1] })],
  ["F12", () => ({ byteOffset: 0.5 })],
  ["F12", () => ({ byteOffset: Number.NaN })],
  ["F13", () => ({ strides: [1, 2] }), { dtype: "int4" }],
  [
    "F13",
    ({ dtype }) => ({ dtype: { ...(dtype as object), lanes: 2 }, shape: [2, 1] }),
    { dtype: "int4", flags: 4 },
  ],
];

/** What a consumer did: its elements, or its error. */
type Outcome = { got: unknown } | { error: unknown };

/**
 * Tests a consumer by the rules of EXCHANGE.md, with good exchanges and with bad ones. The
 * promise is never rejected: the report has everything that the consumer does.
 *
 * @param options - how the consumer is called, and its abilities
 * @returns an entry for each rule that a program can test
 */
export async function consumerConformance(options: ConsumerOptions): Promise<Report> {
  const {
    consume,
    device,
    requestDevice,
    dtypes = DTYPES,
    timeoutMs = 10_000,
  } = Object(options) as ConsumerOptions;
  const book = new Book(RULES, timeoutMs);
  const kinds = dtypes.map(kindOf).filter((kind) => kind !== undefined);
  if (kinds.length < dtypes.length) {
    await book.check("F3", "options", () => broken("F3", `${show(dtypes)}: not all are dtypes`));
  }
  if (typeof consume === "function") {
    for (const where of device ? [null, device] : [null]) {
      await new Tests(consume, where, book, requestDevice).run(kinds);
    }
  }
  if (!book.passed("M1") && book.report().ok) {
    await book.check("M1", "everywhere", () => broken("M1", "consume read nothing at all"));
  }
  return book.report();
}

class Tests {
  readonly #name: string;
  #base = kindOf("float32") as Kind;
  #waiting = false;

  constructor(
    readonly consume: ConsumerOptions["consume"],
    readonly device: DeviceLike | null,
    readonly book: Book,
    readonly requestDevice?: ConsumerOptions["requestDevice"],
  ) {
    this.#name = device ? "GPU" : "CPU";
  }

  async run(kinds: readonly Kind[]): Promise<void> {
    const { book } = this;
    let reads = false;
    for (this.#base of kinds) {
      await this.#test("M1", {}, async (offer, outcome) => {
        reads = "got" in outcome && isList(outcome.got);
        if (reads) book.pass("M1");
        await this.#rightly("M1", offer, outcome);
      });
      if (reads || book.isBroken("X1") || book.isBroken("M1")) break;
    }
    if (!reads) return;
    for (const id of SEEN) book.pass(id);
    for (const [id, plan] of LAYOUTS) await this.#reads(id, plan);
    if (this.book.passed("S2")) await this.#reads("S2", { data: "holder" }, true);
    const other = ({ device }: Exchange) => ({ device: { ...(device as object), id: 7 } });
    await this.#reads("D1", { say: other }, true);
    await this.#looksAway();
    for (const capacity of [0, 2 ** 40, Number.NaN]) await this.#doubts(capacity);
    if (await this.#reads("F4", { shape: [0, 3] })) {
      const say = () => ({ byteOffset: 2 ** 40, capacity: 0 });
      await this.#reads("S9", { shape: [0, 3], say }, true);
    }
    const taken: string[] = [];
    for (const { name } of kinds) if (await this.#reads("F3", { dtype: name })) taken.push(name);
    book.pass("F3", `${this.#name}: taken were ${taken.join(", ")}`);
    await this.#reads("S1", { wrap: onlyOnce }, true);
    for (const version of [
      [1, 0],
      [1, 9],
    ]) {
      await this.#reads("V1", { say: () => ({ version, flags: 16, later: 1 }) }, true);
    }
    if (this.#base.bits >= 8) await this.#reads("F13", { say: () => ({ flags: 4 }) }, true);
    await this.#faults();
    await this.#comesBack();
    for (const [id, say, plan] of LIES) {
      // An invalid device is not the requested one, either.
      await this.#refuses(id, { ...plan, say }, id === "F2" ? { names: REFUSALS } : {});
    }
    const elsewhere = () => ({ device: { type: 15, id: 0, gpu: {} } });
    await this.#refuses("D1", { say: elsewhere }, { names: REFUSALS });
    const copied = { say: () => ({ flags: 2 }) };
    await this.#refuses("N3", copied, { names: ["CopyError"], copy: false, skips: true });
    for (const name of ["BusyError", "DeviceLostError", "ReleasedError"]) {
      await this.#refuses(
        "X1",
        { refusal: named(name, "the suite's producer") },
        { names: [name] },
      );
    }
    const unable = (exchange: Exchange) => {
      const flush = () => {
        throw new Error("flush() threw this");
      };
      return { ...exchange, flush };
    };
    await this.#test("X2", { wrap: unable }, async (offer, outcome) => {
      await offer.audit(true);
      if ("got" in outcome) broken("T3", "it read though flush() had thrown an error");
      if (!causes(outcome.error).some((error) => /flush\(\) threw this/.test(error.message))) {
        broken("T3", `an error of flush() led to ${show(outcome.error)}`);
      }
    });
    const releaseError = new Error("release() threw this");
    await this.#refuses("X2", { say: () => ({ shape: [3, 3] }), releaseError });
    for (const version of [[2, 0], [0, 1], [1], [1, 0, 0], [1, -1], "1.0", ["1", 0], undefined]) {
      await this.#leavesAlone(version);
    }
  }

  /** A capacity that cannot be: a consumer refuses it, or does not use it. */
  #doubts(capacity: number): Promise<boolean> {
    const say = () => ({ capacity });
    return this.#test("F8", { say, around: 4 }, async (offer, outcome) => {
      const refused = "error" in outcome && nameOf(outcome.error) === "UnsupportedError";
      if (refused) await offer.audit(true);
      else await this.#rightly("F8", offer, outcome, true);
    });
  }

  /** After release(), the consumer looks at no part of the exchange. */
  async #looksAway(): Promise<void> {
    const looks: string[] = [];
    const wrap = (exchange: Exchange) => {
      let held = true;
      const release = (...wrote: unknown[]) => {
        held = false;
        (exchange.release as (...wrote: unknown[]) => void)(...wrote);
      };
      const get = (target: Exchange, key: string | symbol) => {
        // Promises look for `then`, and messages for symbols.
        if (!held && typeof key === "string" && key !== "then") looks.push(key);
        return target[key as string];
      };
      return new Proxy({ ...exchange, release }, { get });
    };
    await this.#test("O2", { wrap }, async (offer, outcome) => {
      await this.#rightly("O2", offer, outcome, true);
      if (looks.length > 0) broken("O2", `after release() it looked at ${looks.join(", ")}`);
    });
  }

  /** Only GPU work fails after the call. */
  async #faults(): Promise<void> {
    if (this.device === null) return;
    await this.#reads("F15", { fault: null }, true);
    await this.#reads("F15", { say: () => ({ fault: null }) }, true);
    await this.#reads("F15", { say: () => ({ fault: () => null }) }, true);
    const fault = named("ShaderError", "the work failed that the elements depend on");
    await this.#test("E3", { fault }, async (offer, outcome) => {
      await offer.audit("error" in outcome);
      if ("got" in outcome) {
        broken("E3", `it gave elements of work that failed: ${show(outcome.got)}`);
      }
      if (causes(outcome.error).includes(fault)) return;
      broken("E3", `fault() gave ${show(fault)}, and it threw ${show(outcome.error)}`);
    });
    const lost = named("DeviceLostError", "the device is lost");
    await this.#test("E4", { fault: lost }, async (offer, outcome) => {
      await offer.audit("error" in outcome);
      if ("error" in outcome && nameOf(outcome.error) === "DeviceLostError") return;
      broken(
        "E4",
        `after the loss of the device it ${"got" in outcome ? "gave elements" : `threw ${show(outcome.error)}`}`,
      );
    });
    await this.#loses();
  }

  /** The device is lost before the elements have been read back. */
  async #loses(): Promise<void> {
    const lose = async () => {
      const device = (await this.requestDevice?.()) ?? skip("requestDevice was not given");
      const offer = new Offer({ meanwhile: () => device.destroy?.() }, device, this.#base);
      const there = new Tests(this.consume, device, this.book);
      const outcome = await there.#outcome(offer, undefined);
      const { holds, released } = offer.counts;
      if (released < holds) broken("X2", "release() was not called after an error");
      const { error = "elements" } = outcome as { error?: unknown };
      if (nameOf(error) === "DeviceLostError") return;
      broken("E4", `a device that was lost while it was read led to ${show(error)}`);
    };
    await this.book.check("E4", this.#name, lose, { after: ["E3", ...SEEN] });
  }

  /** `flush()` and `release()` that call the same consumer with another tensor. */
  async #comesBack(): Promise<void> {
    const inner: { offer: Offer; outcome: Promise<Outcome> }[] = [];
    const meanwhile = () => {
      const plan: Plan = { shape: [5], ...(this.device ? {} : { data: "bytes" }) };
      if (inner.length >= 2) return;
      const offer = new Offer(plan, this.device, this.#base);
      inner.push({ offer, outcome: this.#outcome(offer, undefined) });
    };
    try {
      await this.#test("O7", { meanwhile }, async (offer, outcome) => {
        try {
          await this.#rightly("O7", offer, outcome, true);
          for (const each of inner) {
            await this.#rightly("O7", each.offer, await each.outcome, true);
          }
        } catch (error) {
          // Each of them alone has passed.
          throw error instanceof Broken ? new Broken("O7", error.message) : error;
        }
      });
    } finally {
      for (const { offer } of inner) offer.free();
    }
  }

  /** Whether the elements were read; what is refused is skipped unless it `must` be read. */
  #reads(id: string, plan: Plan, must = false): Promise<boolean> {
    return this.#test(id, plan, (offer, outcome) => this.#rightly(id, offer, outcome, must));
  }

  async #rightly(id: string, offer: Offer, outcome: Outcome, must = false): Promise<void> {
    await offer.audit("error" in outcome);
    if ("got" in outcome) return offer.compare(outcome.got, id);
    const { error } = outcome;
    if (!NAMES.includes(nameOf(error))) {
      broken(this.#blame(id), `${show(error)}, which has no name of the protocol, was thrown`);
    }
    if (must || !REFUSALS.includes(nameOf(error))) broken(id, `it threw ${show(error)}`);
    return skip(`it was refused: ${show(error)}`);
  }

  /** It must throw an error of one of these names. */
  #refuses(
    id: string,
    plan: Plan,
    {
      names = ["UnsupportedError"],
      copy,
      skips = false,
    }: { names?: string[]; copy?: boolean; skips?: boolean } = {},
  ): Promise<boolean> {
    const check = async (offer: Offer, outcome: Outcome) => {
      const seen = offer.plan.say
        ? describe(offer.plan.say({ data: {}, dtype: {}, device: {} }))
        : "it";
      if ("got" in outcome) broken(id, `${seen} was taken: ${show(outcome.got)}`);
      const { error } = outcome;
      if (error === plan.releaseError)
        broken("X2", "an error of release() took the place of its own");
      await offer.audit(true);
      if (skips && REFUSALS.includes(nameOf(error))) skip(`it was refused: ${show(error)}`);
      if (names.includes(nameOf(error))) return;
      broken(this.#blame(id), `${seen} led to ${show(error)}, not to ${names.join(" or ")}`);
    };
    return this.#test(id, plan, check, copy);
  }

  /** An exchange of another major version, of which only the version may be read. */
  #leavesAlone(version: unknown): Promise<boolean> {
    const touched: string[] = [];
    const note = (what: string) => (_: object, key?: string | symbol) => {
      touched.push(`${what} ${String(key ?? "")}`);
      return undefined;
    };
    const proxy: ProxyHandler<Exchange> = {
      get: (target, key) => {
        if (key === "version") return target.version;
        // A promise looks for `then`, and messages for symbols.
        return key === "then" || typeof key === "symbol" ? undefined : note("get")(target, key);
      },
      set: (target, key) => {
        note("set")(target, key);
        return true;
      },
      has: (target, key) => Boolean(note("has")(target, key)),
      ownKeys: (target) => {
        note("keys")(target);
        return Reflect.ownKeys(target);
      },
    };
    const wrap = (exchange: Exchange) => new Proxy(exchange, proxy);
    return this.#test("O6", { say: () => ({ version }), wrap }, async (_, outcome) => {
      if (touched.length) broken("O6", `version ${show(version)} was touched: ${show(touched)}`);
      if ("got" in outcome) broken("O6", `version ${show(version)} was taken`);
      const name = nameOf(outcome.error);
      if (name !== "UnsupportedError") broken("X1", `version ${show(version)} led to ${name}`);
    });
  }

  async #test(
    id: string,
    plan: Plan,
    check: (offer: Offer, outcome: Outcome) => Promise<void>,
    copy?: boolean,
  ): Promise<boolean> {
    const { device } = this;
    if (device ? plan.data !== undefined : plan.usage !== undefined) return false;
    const test = async () => {
      const offer = new Offer(plan, device, this.#base);
      try {
        await check(offer, await this.#outcome(offer, copy));
      } finally {
        offer.free();
      }
    };
    const hangs = () => (this.#waiting ? "consume" : "");
    return this.book.check(id, this.#name, test, { after: rulesBefore(id, plan), hangs });
  }

  /** The rule that an error with a wrong name breaks: an unexpected error is a crash. */
  #blame(id: string): string {
    return this.book.isBroken(id) ? id : "X1";
  }

  async #outcome(offer: Offer, copy: boolean | undefined): Promise<Outcome> {
    this.#waiting = true;
    try {
      return { got: await this.consume(offer.producer, { device: this.device, copy }) };
    } catch (error) {
      return { error };
    } finally {
      this.#waiting = false;
    }
  }
}

/** The rules that another one requires. */
function rulesBefore(id: string, plan: Plan): string[] {
  const { around, strides, releaseError, wrap, below, meanwhile } = plan;
  const offset = around || strides?.some((step) => step < 0);
  return [
    ...(below ? ["F5", "S2"] : []),
    ...(meanwhile ? SEEN : []),
    ...(id === "E4" ? ["E3"] : []),
    ...(offset && id !== "F7" ? ["F7"] : []),
    ...(releaseError ? ["S1"] : []),
    ...(id === "X2" && wrap ? ["X2"] : []),
  ];
}

/** The exchange with fields that change after the first read. */
function onlyOnce(exchange: Exchange): Exchange {
  const later: Exchange = { shape: [1000], strides: [1000], byteOffset: 2 ** 40, capacity: 0 };
  const result = { ...exchange };
  for (const [field, value] of Object.entries(later)) {
    let first = true;
    const get = () => {
      if (!first) return value;
      first = false;
      return exchange[field];
    };
    Object.defineProperty(result, field, { get, enumerable: true });
  }
  return result;
}

/** A typed array that has lost its memory. */
function detached(): object {
  const data = new Float32Array(6);
  structuredClone(data, { transfer: [data.buffer] });
  return { data };
}

/** An error, and those that it names as its `cause`. */
function causes(error: unknown): Error[] {
  const found: Error[] = [];
  for (
    let each = error;
    each instanceof Object && found.length < 10;
    each = (each as Error).cause
  ) {
    found.push(each as Error);
  }
  return found;
}

/** The false fields of an exchange, in words. */
function describe(lie: object): string {
  return Object.entries(lie)
    .map(([field, value]) => `${field} ${field === "data" ? "" : JSON.stringify(value)}`)
    .join(", ");
}
