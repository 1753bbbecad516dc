/**
 * The rules for producers. Left out are rules that cannot be observed from outside:
 *
 * | rules | why |
 * |---|---|
 * | M4 | a name |
 * | S4, T3, E3 | what consumers may do, and must |
 * | E1, E4 | a test cannot make foreign work fail, or lose the device of a page |
 * | O3 | a producer that does not wait looks like one that does |
 * | O6, S7, N1 to N3 | what consumers do; tested in consumers.ts |
 * | D2 to D5 | what is not done, and the page's device |
 * | V1 | seen with R2 |
 */
import * as holds from "./holds.js";
import { later } from "./later.js";
import { Book, Broken, broken, Ended, show, skip } from "./report.js";
import * as requests from "./requests.js";
import { EXCLUSIVE, expect, expectNow, type Held, type Subject, Trial } from "./trial.js";
import type { DeviceLike, ProducerOptions, Report } from "./types.js";
import { DTYPES, type Kind, kindOf } from "./values.js";

/** In the order of the text and of the report. */
const RULES = [
  "M1 M2 M3 R1 R2 R3 R4 R5 R6 R7 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 S1 S2 S3 S5 S6",
  "S8 S9 T1 T2 T4 T5 E2 O1 O2 O4 O5 O7 D1 X1 X2 X3",
].flatMap((ids) => ids.split(" "));
/** Those that one correctly described exchange confirms. */
const SEEN = "M2 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F15 S1".split(" ");

type Check = (trial: Trial) => Promise<unknown>;

/**
 * Tests a producer by the rules of js/EXCHANGE.md. The promise is never rejected: the report has
 * everything that the factory and its producers do.
 *
 * @returns an entry for each rule that a program can test
 */
export async function conformance(options: ProducerOptions): Promise<Report> {
  const { make, device, dtypes = DTYPES, timeoutMs = 10_000 } = Object(options) as ProducerOptions;
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
  if (!device) for (const id of ["T1", "D1"]) book.skipped(id, "no GPUDevice was given");
  for (const where of typeof make !== "function" ? [] : device ? [null, device] : [null]) {
    if (await testOn(where, { make, device, timeoutMs }, kinds, book)) made = true;
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
  const run = (id: string, check: Check, ...after: string[]) => {
    const trial = new Trial(options, device, base);
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
    return book.check(id, name, test, { after, hangs: () => trial.making });
  };

  const began = await run("M1", async (trial) => {
    base = await firstMade(trial, kinds);
    await basics(trial, base);
    for (const id of SEEN) book.pass(id);
    book.pass(device ? "T1" : "T2");
    if (device) book.pass("D1");
  });
  // If the simplest exchange is wrong, the other rules cannot be tested.
  if (!began) return base !== undefined;
  for (const [id, check, ...after] of CHECKS) await run(id, check, ...after);
  const made: string[] = [];
  for (const kind of kinds) {
    await run("S8", async (trial) => {
      if (await holds.oneDtype(trial, kind)) made.push(kind.name);
    });
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
  ["R3", requests.devices],
  ["R7", requests.nonsense],
  ["X2", requests.usableAfterErrors],
  ["R6", requests.needs],
  ["O5", requests.exclusive],
  ["R4", requests.copies, "R1"],
  ["R5", requests.writing, "R1"],
  ["O4", holds.written, "R4", "R5", "T5"],
  ["S5", holds.neighbours, "T5", "R6"],
  ["S6", holds.padding, "R6"],
  ["T4", holds.sharedFlush, "T5"],
  ["S2", holds.growing],
  ["X1", requests.afterRelease],
  ["X3", requests.order, "R2", "R3", "R7", "X1"],
  ["X2", requests.nothingHeld, "X1", "X3"],
  ["E2", holds.noFault],
  ["O7", requests.reentered, "R1", "O1", "O2", "F14", "S3", "X2"],
  ["M3", later, "R1", "R2", "R3", "R4", "R5", "O1", "X1", "X2"],
];

/** The basis of all other rules: correct exchanges, in sequence and at once. */
async function basics(trial: Trial, subject: Subject): Promise<void> {
  const first = await firstHeld(trial, subject);
  await expect(first, subject);
  if (!(first.fields.flags & EXCLUSIVE)) {
    const second = await trial.hold(subject);
    if (second.exchange === first.exchange) broken("M1", "two calls returned one object");
    second.release();
    await expectNow(first, subject.values, "O1");
  }
  first.release();
  let again: Held;
  try {
    again = await trial.hold(subject);
  } catch (error) {
    if (error instanceof Broken) throw error;
    broken("O1", `after an exchange was released, the next request saw ${show(error)}`);
  }
  await expect(again, subject, "O1");
}

async function firstHeld(trial: Trial, subject: Subject): Promise<Held> {
  try {
    return await trial.hold(subject);
  } catch (error) {
    if (error instanceof Broken) throw error;
    for (const request of [{}, { versions: [1] }] as { versions?: number[] }[]) {
      if (await works(() => trial.hold(subject, request))) {
        broken(
          "R1",
          `a request without ${request.versions ? "fields" : "argument"} saw ${show(error)}`,
        );
      }
    }
    throw error;
  }
}

async function works(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch {
    return false;
  }
}
