/**
 * The rules for producers. Left out are rules that cannot be observed from outside:
 *
 * | rules | why |
 * |---|---|
 * | M4 | a name |
 * | S4, T3, E3 | what consumers may do, and must |
 * | O3 | a producer that does not wait looks like one that does |
 * | O6, S7, N1 to N3 | what consumers do; tested in consumers.ts |
 * | D2 to D5 | what is not done, and the page's device |
 * | V1 | seen with R2 |
 */
import * as copies from "./copies.js";
import * as failures from "./failures.js";
import * as holds from "./holds.js";
import * as asynchronous from "./later.js";
import { Book, Broken, broken, Ended, show, skip } from "./report.js";
import * as requests from "./requests.js";
import * as spare from "./spare.js";
import { EXCLUSIVE, type Held, refusalOf, type Subject, Trial } from "./trial.js";
import { type DeviceLike, EXCHANGE_ASYNC, type ProducerOptions, type Report } from "./types.js";
import { DTYPES, type Kind, kindOf } from "./values.js";

/** In the order of the text and of the report. */
const RULES = [
  "M1 M2 M3 R1 R2 R3 R4 R5 R6 R7 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 S1 S2 S3 S5 S6",
  "S8 S9 T1 T2 T4 T5 E1 E2 E4 O1 O2 O4 O5 O7 D1 X1 X2 X3",
].flatMap((ids) => ids.split(" "));
/** Those that one correctly described exchange confirms. */
const SEEN = "M2 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F15 S1".split(" ");

type Check = (trial: Trial) => Promise<unknown>;

/**
 * Tests a producer by the rules of EXCHANGE.md. The promise is never rejected: the report has
 * everything that the factory and its producers do.
 *
 * @param options - how the producer makes tensors, and its abilities
 * @returns an entry for each rule that a program can test
 */
export async function conformance(options: ProducerOptions): Promise<Report> {
  const given = Object(options) as ProducerOptions;
  const { make, device, dtypes = DTYPES, timeoutMs = 10_000 } = given;
  const book = new Book(RULES, timeoutMs);
  if (typeof make !== "function") {
    await book.check("M1", "options", () => broken("M1", `make is ${show(make)}, not a function`));
  }
  const kinds = dtypes.map(kindOf).filter((kind) => kind !== undefined);
  const unknown = dtypes.filter((name) => !kindOf(name));
  if (unknown.length) {
    await book.check("F3", "options", () =>
      broken("F3", `${show(unknown)} are not dtypes of DLPack`),
    );
  }
  let made = false;
  if (!device)
    for (const id of ["T1", "D1", "E1", "E2", "E4"]) book.skipped(id, "no GPUDevice was given");
  for (const where of typeof make !== "function" ? [] : device ? [null, device] : [null]) {
    if (await testOn(where, { ...given, dtypes, timeoutMs }, kinds, book)) made = true;
  }
  if (!made && !book.isBroken("M1")) {
    await book.check("M1", "everywhere", () =>
      broken("M1", "make made nothing that could be tested"),
    );
  }
  return book.report();
}

/** Whether anything was made there. */
async function testOn(
  device: DeviceLike | null,
  options: ProducerOptions,
  kinds: readonly Kind[],
  book: Book,
): Promise<boolean> {
  const name = device ? "GPU" : "CPU";
  let base: Subject | undefined;
  const known = {};
  let later = false;
  const run = (id: string, check: Check, ...after: string[]) => {
    const trial = new Trial(options, device, base, known, later);
    const test = async () => {
      try {
        const note = await check(trial);
        for (const seen of trial.seen) book.pass(seen);
        return note;
      } finally {
        trial.end();
      }
    };
    // A factory that hangs once would do so at every rule.
    return book.check(id, later ? `${name}, method of M3` : name, test, {
      after,
      hangs: () => trial.making,
    });
  };

  const began = await run(
    "M1",
    async (trial) => {
      base = await firstMade(trial, kinds);
      await basics(trial, base);
      for (const id of SEEN) book.pass(id);
      book.pass(device ? "T1" : "T2");
      if (device) book.pass("D1");
    },
    "T5",
  );
  // If the simplest exchange is wrong, the other rules cannot be tested.
  if (!began) return base !== undefined;
  const lasting = new Trial(options, device, base, known);
  let stillThere: (() => Promise<void>) | undefined;
  await run("T5", async () => {
    stillThere = await holds.lasting(lasting);
  });
  for (const [id, check, ...after] of CHECKS) await run(id, check, "T5", ...after);
  later = typeof base?.x[EXCHANGE_ASYNC] === "function";
  if (!later) book.skipped("M3", "it has no method that may wait");
  for (const [id, check, ...after] of later ? [...CHECKS, ...LATER] : []) {
    if (BOTH.includes(id)) await run(id, check, "T5", "M3", ...after);
  }
  later = false;
  for (const [id, check, ...after] of device ? [...LAST, ...GPU_CHECKS] : LAST) {
    await run(id, check, "T5", ...after);
  }
  // Where another rule is broken, its elements may be others because of it.
  if (book.report().ok) await run("T5", async () => stillThere?.());
  lasting.end();
  const made: string[] = [];
  for (const kind of kinds) {
    await run("S8", async (trial) => {
      if (await holds.oneDtype(trial, kind)) made.push(kind.name);
    });
    await run("S8", (trial) => holds.copiesOf(trial, kind), "R4", "R6", "T5", "M3");
  }
  book.pass("S8", `${name}: made were ${made.join(", ")}`);
  return true;
}

async function firstMade(trial: Trial, kinds: readonly Kind[]): Promise<Subject> {
  try {
    for (const shape of [[2, 3], [6]]) {
      for (const kind of kinds) {
        const subject = await trial.tryMake(kind, shape);
        if (subject) return subject;
      }
    }
  } catch (error) {
    // It would do the same again.
    throw error instanceof Ended ? error : new Ended(show(error));
  }
  return skip("make gave undefined for all dtypes");
}

/** Each with the rules that it requires. */
const CHECKS: readonly (readonly [string, Check, ...string[]])[] = [
  ["T5", holds.otherTensors],
  ["O2", holds.releasedTwice],
  ["O1", holds.outlives, "T5", "O2"],
  ["F14", holds.staysTheSame, "O1", "S3"],
  ["F4", holds.shapes],
  ["R1", requests.optionalFields],
  ["R2", requests.versions],
  ["R3", copies.devices],
  ["R7", requests.nonsense],
  ["R6", requests.needs],
  ["O5", requests.exclusive],
  ["R4", copies.copies, "R1"],
  ["R5", copies.writing, "R1", "R4"],
  ["O2", (trial) => holds.releasedTwice(trial, { copy: true }), "R4"],
  ["O1", (trial) => holds.outlives(trial, { copy: true }), "R4", "O2"],
  ["X2", requests.usableAfterErrors, "R3", "R4"],
  ["S5", spare.neighbours, "R4", "R5", "R6"],
  ["T4", holds.sharedFlush, "T5"],
  ["S2", holds.growing],
  ["X1", requests.afterRelease],
  ["X3", requests.order, "R2", "R3", "R7", "X1"],
  ["O2", requests.ended, "X1", "O1", "S3"],
  ["X2", requests.nothingHeld, "R3", "X1", "X3", "O2", "S3"],
  ["O7", requests.reentered, "R1", "O1", "O2", "F14", "S3", "X2"],
];
/** Those of `CHECKS` that both methods keep, and those of the method of M3. */
const BOTH = "R1 R2 R3 R4 R5 R7 O1 O2 O5 X1 X2 X3 M3";
const BEFORE_LATER = "R1 R2 R3 R4 R5 R7 S3 T5 O1 O2 X1 X2".split(" ");
const LATER = [
  asynchronous.asMuch,
  asynchronous.aborts,
  asynchronous.abortedTooLate,
  asynchronous.nothingLeft,
].map((check) => ["M3", check, ...BEFORE_LATER] as const);
/** Those that also ask for elements elsewhere. */
const LAST: typeof CHECKS = [
  ["O4", holds.written, "R4", "R5", "X2"],
  ["S6", spare.padding, "R6", "R4"],
];
/** Those of work that fails after the call, and of devices. */
const GPU_CHECKS: typeof CHECKS = [
  ["E2", failures.noFault],
  ["E2", failures.fault],
  ["E1", failures.knownFault, "E2", "X1", "X2", "O2"],
  ["X2", failures.withoutMemory, "X1", "O2"],
  ["E4", failures.lostDevice, "E2", "X1", "M3"],
];

/** The basis of all other rules: correct exchanges, in sequence and at once. */
async function basics(trial: Trial, subject: Subject): Promise<void> {
  const first = await firstHeld(trial, subject);
  await first.expect();
  if (!(first.fields.flags & EXCLUSIVE)) {
    const second = await trial.hold(subject);
    if (second.exchange === first.exchange) broken("M1", "two calls returned one object");
    second.release();
    await first.expectNow("O1");
  }
  first.release();
  for (let i = 0; i < 3; i++) {
    try {
      await trial.read(subject, "O1");
    } catch (error) {
      if (error instanceof Broken) throw error;
      broken("O1", `after an exchange was released, the next request saw ${show(error)}`);
    }
  }
}

async function firstHeld(trial: Trial, subject: Subject): Promise<Held> {
  try {
    return await trial.hold(subject);
  } catch (error) {
    if (error instanceof Broken) throw error;
    for (const request of [{}, { versions: [1] }] as { versions?: number[] }[]) {
      if ((await refusalOf(() => trial.hold(subject, request))) !== undefined) continue;
      const what = request.versions ? "fields" : "argument";
      broken("R1", `a request without ${what} saw ${show(error)}`);
    }
    throw error;
  }
}
