/** Copies, and the memory itself, as a request says (R3 to R5). */
import { overlap } from "./fields.js";
import { broken } from "./report.js";
import { brief, COPIED, EXCLUSIVE, type Held, type Subject, type Trial } from "./trial.js";
import type { DeviceLike } from "./types.js";

/** Asks for a hold; undefined if it was refused as it may be. */
export type Take = (request: object) => Promise<Held | undefined>;

/**
 * Makes a request twice: each answer is the producer's own memory, or a copy for it alone, which
 * flag 2 says.
 */
export async function honest(
  subject: Subject,
  request: object,
  take: Take,
  rule = "R4",
): Promise<Held | undefined> {
  const { copy } = request as { copy?: boolean };
  const first = await take(request);
  if (!first) return undefined;
  await first.expect(rule);
  const alone = first.fields.flags & EXCLUSIVE;
  const second = alone ? undefined : await take(request);
  if (second) await second.expect(rule);
  const says = `${brief(request)} was answered`;
  for (const { fields } of [first, second ?? first]) {
    const copied = (fields.flags & COPIED) !== 0;
    if (copied && copy === false) broken("R4", `${says} with flag 2`);
    if (!copied && copy === true) broken("R4", `${says} without flag 2`);
  }
  second?.release(false);
  if (!second || subject.values.length === 0) return first;
  const flags = [first, second].map(({ fields }) => fields.flags & COPIED);
  if (overlap(first.fields, second.fields)) {
    if (flags.includes(COPIED)) broken("R4", `${says} twice with the same memory, as a copy`);
  } else if (!flags.includes(COPIED)) {
    broken("R4", `${says} with other memory each time, without flag 2`);
  }
  return first;
}

export async function copies(trial: Trial): Promise<unknown> {
  const subject = await trial.make();
  const take = (name: string) => (request: object) => trial.attempt(subject, request, name);
  const own = await honest(subject, { copy: false }, take("CopyError"));
  if (own && own.fields.flags & EXCLUSIVE) own.release();
  const copy = await honest(subject, { copy: true }, take("UnsupportedError"));
  if (!copy) return "copies are refused";
  if (own && overlap(copy.fields, own.fields)) broken("R4", "copy: true gave the memory itself");
  return undefined;
}

/** On its own device, and on each other one: the CPU, the GPU, a second GPUDevice. */
export async function devices(trial: Trial): Promise<void> {
  const { device, options, known, later } = trial;
  const subject = await trial.make();
  await trial.read(subject, "R3", { device });
  const second: DeviceLike | null | undefined = device && (await options.requestDevice?.());
  const others = device ? [null, second] : [options.device ?? undefined];
  try {
    for (const other of others.filter((each) => each !== undefined)) {
      for (const copy of [undefined, false, true]) {
        const names = copy === undefined ? [] : [copy ? "UnsupportedError" : "CopyError"];
        const take: Take = (each) => trial.attempt(subject, each, "DeviceError", ...names);
        const held = await honest(subject, { device: other, copy }, take, "R3");
        held?.release(false);
        if (held && later && other !== second && !copy) known.moves = { device: other };
      }
    }
  } finally {
    second?.destroy?.();
  }
  if (!device) return;
  const unknown = { device: {} }; // nothing can be there, however it is refused
  const answer = await trial.ask(subject, unknown).catch(() => undefined);
  if (answer) trial.answered(answer, subject, unknown);
}

export async function writing(trial: Trial): Promise<unknown> {
  const subject = await trial.make();
  let given = 0;
  for (const copy of [undefined, false, true]) {
    const names = copy === undefined ? ["UnsupportedError"] : ["UnsupportedError", "CopyError"];
    const take: Take = (request) => trial.attempt(subject, request, ...names);
    const held = await honest(subject, { writes: true, copy }, take, "T5");
    if (!held) continue;
    if (held.fields.flags & 1) broken("R5", "writes: true was answered with flag 1");
    given++;
    held.release(false);
  }
  return given ? undefined : "writing is refused";
}
