/** Work that fails, and devices that are lost (E1, E2, E4). */
import { broken, isThenable, mustNotThrow, nameOf, show, skip } from "./report.js";
import { leavesNone, showsHolds } from "./requests.js";
import { eventually, type Held, refusalOf, type Subject, Trial } from "./trial.js";
import { type DeviceLike, EXCHANGE, EXCHANGE_ASYNC } from "./types.js";

/** The names of X1, without that of faults. */
const OTHERS =
  "BusyError CopyError DeviceLostError ReleasedError UnsupportedError TypeError RangeError".split(
    " ",
  );

/** What `fault()` gives: null, or an error. It needs no `this` (F15). */
async function faultOf({ fields }: Held): Promise<unknown> {
  const { fault } = fields;
  const result = fault ? mustNotThrow("E2", "fault()", fault) : null;
  if (result === null) return null;
  if (!isThenable(result)) broken("E2", `fault() returned ${show(result)}`);
  let error: unknown;
  try {
    error = await result;
  } catch (error) {
    broken("E2", `the promise of fault() was rejected with ${show(error)}`);
  }
  if (error === null || typeof Object(error).message === "string") return error;
  return broken("E2", `fault() gave ${show(error)}, which is not null or an error`);
}

/** Elements that are right have none. */
export async function noFault(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  if (!held.fields.fault) skip("it has no fault()");
  const well = (error: unknown) => {
    if (error !== null) broken("E2", `fault() gave ${show(error)} for elements that are well`);
  };
  held.flush();
  well(await faultOf(held));
  const late = faultOf(held); // its promise has to outlive the hold
  held.release();
  well(await late);
}

async function faulty(trial: Trial): Promise<Subject> {
  if (!trial.options.makeFaulty) skip("makeFaulty was not given");
  const subject = await trial.tryMake(undefined, undefined, 0, "makeFaulty");
  return subject ?? skip("makeFaulty gave undefined");
}

/** Elements of work that failed, and copies of those. */
export async function fault(trial: Trial): Promise<void> {
  for (const request of [{}, { copy: true }]) await faultOfAnswer(trial, request);
}

async function faultOfAnswer(trial: Trial, request: object): Promise<void> {
  const subject = await faulty(trial);
  let held: Held;
  try {
    held = await trial.hold(subject, request);
  } catch (error) {
    if ("copy" in request && nameOf(error) === "UnsupportedError") return;
    return checkName(error); // it is known already
  }
  if (!held.fields.fault) skip("it has no fault()");
  held.flush();
  for (const when of ["fault()", "fault(), called again,"]) {
    if ((await faultOf(held)) === null) {
      broken("E2", `${when} gave null, and the work of its elements had failed`);
    }
  }
  const late = faultOf(held);
  held.release();
  if ((await late) === null) broken("E2", "fault() gave null after release()");
}

/** E1: a fault that is known is thrown, and a read-back waits for one that is pending. */
export async function knownFault(trial: Trial): Promise<void> {
  const subject = await faulty(trial);
  const { moves } = trial.known;
  const readBack = moves && (await refusalOf(() => subject.x[EXCHANGE_ASYNC]?.(moves)));
  await learn(trial, subject);
  const refusal = await lateRefusalOf(() => trial.ask(subject));
  if (refusal === undefined) {
    const held = await trial.hold(subject);
    if (!held.fields.fault) skip("it does not watch its work");
    broken("E1", "a request was answered, though the fault of the elements was known");
  }
  checkName(refusal);
  if (moves && readBack === undefined) broken("E1", "elements of work that failed were read back");
  checkName(readBack);
  const later = subject.x[EXCHANGE_ASYNC];
  if (typeof later === "function") {
    const late = await lateRefusalOf(() => later.call(subject.x, {}));
    if (late === undefined) broken("E1", "the method of M3 answered, though a fault was known");
    checkName(late);
  }
  if (!(await showsHolds(trial))) return;
  if (!(await leavesNone(trial, async () => {}, "makeFaulty"))) return;
  const use = async (other: Subject) => {
    if (moves) await refusalOf(() => other.x[EXCHANGE_ASYNC]?.(moves));
    await learn(trial, other);
    await lateRefusalOf(() => trial.ask(other));
  };
  if (!(await leavesNone(trial, use, "makeFaulty"))) {
    broken("X2", "after a fault was thrown, a hold is left");
  }
}

/** Waits until the producer knows its fault. */
async function learn(trial: Trial, subject: Subject): Promise<void> {
  let held: Held;
  try {
    held = await trial.hold(subject);
  } catch {
    return;
  }
  held.flush();
  await faultOf(held);
  held.release();
}

function checkName(error: unknown): void {
  const name = nameOf(error);
  if (OTHERS.includes(name)) broken("E1", `a fault was thrown by the name ${name}`);
}

/** The error of a request that is refused, maybe after a while; undefined if it is answered. */
async function lateRefusalOf(ask: () => unknown): Promise<unknown> {
  let refusal: unknown;
  await eventually(async () => {
    refusal = await refusalOf(ask);
    return refusal !== undefined;
  });
  return refusal;
}

/** A device of its own, on which the suite may do what it likes. */
async function onOwnDevice(
  { options, kind, shape, known }: Trial,
  check: (trial: Trial, device: DeviceLike) => Promise<void>,
): Promise<void> {
  if (!options.requestDevice) skip("requestDevice was not given");
  const device = await options.requestDevice();
  if (typeof device?.destroy !== "function") skip("requestDevice gave nothing to destroy()");
  const trial = new Trial(options, device, { kind, shape }, known);
  try {
    await check(trial, device);
  } finally {
    trial.end();
    device.destroy?.();
  }
}

/** X2: a copy for which there is no memory leaves no hold. */
export const withoutMemory = (trial: Trial): Promise<void> =>
  onOwnDevice(trial, async (there, device) => {
    if (!(await showsHolds(there))) return;
    const use = async (subject: Subject) => failing(device, () => copyOften(subject));
    if (await leavesNone(there, use)) return;
    broken("X2", "after { copy: true }, for which createBuffer() threw an error, a hold is left");
  });

/** Asks for copies until one is refused: a pool of idle buffers may answer some. */
function copyOften({ x }: Subject): void {
  const held: { release?(): void }[] = [];
  try {
    for (let i = 0; i < 64; i++) held.push(Object(x[EXCHANGE]?.({ copy: true })));
  } catch {
  } finally {
    for (const exchange of held) exchange.release?.();
  }
}

/** Runs `run` while createBuffer() of the device throws. */
function failing(device: DeviceLike, run: () => void): void {
  const value = () => {
    throw new RangeError("the suite lets createBuffer() throw");
  };
  const { createBuffer } = device;
  Object.defineProperty(device, "createBuffer", { value, configurable: true, writable: true });
  try {
    run();
  } finally {
    device.createBuffer = createBuffer; // shadows that of its class from now on
  }
}

/** E4: on a device that is lost. */
export const lostDevice = (trial: Trial): Promise<void> => onOwnDevice(trial, onLostDevice);

async function onLostDevice(trial: Trial): Promise<void> {
  const subject = await trial.make();
  const held = await trial.hold(subject);
  const later = subject.x[EXCHANGE_ASYNC];
  // A read-back comes in time, or rejects with the loss.
  const { moves } = trial.known;
  const late = new Trial(trial.options, trial.device, trial, trial.known, true);
  const pending = moves && late.attempt(subject, moves, "DeviceLostError");
  pending?.catch(() => {}); // is awaited later
  held.flush();
  trial.device?.destroy?.();
  await trial.device?.lost;
  const back = await pending;
  if (back) await back.expect("E4");
  late.end();
  const asks = [() => trial.ask(subject), () => trial.ask(subject, { device: trial.device })];
  if (typeof later === "function") asks.push(async () => later.call(subject.x, {}));
  for (const ask of asks) {
    const refusal = await lateRefusalOf(ask);
    if (refusal === undefined) broken("E4", "a request was answered, and its device is lost");
    const name = nameOf(refusal);
    if (name !== "DeviceLostError")
      broken("E4", `a request for a lost device led to ${show(refusal)}`);
  }
  let fault: unknown;
  const reports = async () => {
    fault = await faultOf(held);
    return fault !== null;
  };
  if (held.fields.fault && !((await eventually(reports)) && nameOf(fault) === "DeviceLostError")) {
    broken("E4", `fault() gave ${show(fault)}, and the device is lost`);
  }
  for (const method of ["flush", "release"] as const) {
    const call = () => held.fields[method]();
    mustNotThrow("E4", `${method}()`, call, ", and the device is lost");
  }
}
