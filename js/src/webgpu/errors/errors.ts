/**
 * errors/: deferred errors. WebGPU reports errors asynchronously: each operation here has its own error
 * scopes, and their errors are stored with the bytes that it wrote. Reading a tensor with such bytes raises
 * the error; other tensors are unaffected.
 *
 * Other folders submit all of their work with `operate`, read with `mapAfter`, and find in `record.ts` the
 * record of each buffer.
 */
import { DeviceError, UnsupportedError } from "../../core/errors.js";
import type { GPUDevice, GPUError } from "../../core/globals.js";
import { checkAlive, type DeviceRecord, nameOf, registered } from "../device/device.js";
import * as messages from "../messages.js";
import {
  type BufferRecord,
  type Extent,
  type Fault,
  isOpen,
  markWritten,
  type Outcome,
  openOutcomes,
  setOutcome,
} from "./record.js";

/** How long a fault waits for a read before it is reported to a listener. */
const GRACE_MS = 1000;

export class Settling implements Outcome {
  fault: Fault | null | undefined = undefined;
  readonly done: Promise<Fault | null>;

  /**
   * @param own - the operation's own error; never rejects
   * @param parents - operations that it depends on
   */
  constructor(own: Promise<Fault | null>, parents: readonly Outcome[]) {
    this.done = this.#settle(own, parents);
  }

  async #settle(own: Promise<Fault | null>, parents: readonly Outcome[]) {
    const found = await own;
    // Earlier operations failed first: the rest are consequences.
    for (const parent of parents) {
      const inherited = parent.fault === undefined ? await parent.done : parent.fault;
      if (inherited === null) continue;
      // What the batch that has not run computes later may hide it.
      if (found !== null && inherited.batch === undefined) found.reported = true;
      this.fault = inherited;
      return inherited;
    }
    this.fault = found;
    return found;
  }
}

/** `GPUErrorFilter`: what an error scope looks for. */
export type ErrorFilter = "validation" | "out-of-memory" | "internal";

/** Errors of creating a buffer or texture. */
export const CREATION_ERRORS: readonly ErrorFilter[] = ["validation", "out-of-memory"];

/** One piece of work for a device. */
export interface Operation {
  /** Names it in messages: `kernel "blur"`, `reading …`. */
  readonly what: string;
  /** What it reads. */
  readonly reads?: readonly Extent[];
  /** What it writes; with `fresh` all of it, so earlier faults there no longer matter. */
  readonly writes?: readonly Extent[];
  readonly fresh?: boolean;
  /** Its other dependency: the compilation of its shader. */
  readonly after?: readonly (Outcome | null)[];
  /** Possible later errors; empty: only losing the device. */
  readonly filters?: readonly ErrorFilter[];
  /** Converts the error of a scope. */
  readonly explain?: (cause: GPUError) => Promise<Error> | Error;
}

/** The number that Python gave the call that is running; see {@link calledAt}. */
let site: number | undefined;

/** Runs `block` as a Python call with that number. */
export function calledAt<R>(number: number | undefined, block: () => R): R {
  const outer = site;
  site = number;
  try {
    return block();
  } finally {
    site = outer;
  }
}

/** The number of the call that is running. */
export function currentSite(): number | undefined {
  return site;
}

/** Where outcomes are collected while a block runs; see {@link collecting}. */
let collector: Outcome[] | null = null;

/** Runs WebGPU calls and stores their errors with the bytes that they write; null if none can come. */
export function operate<R>(
  device: DeviceRecord,
  operation: Operation,
  calls: () => R,
): { result: R; outcome: Outcome | null } {
  const { filters = [], writes = [] } = operation;
  for (const { buffer, end } of writes) markWritten(buffer, end);
  if (filters.length === 0) return { result: calls(), outcome: conclude(device, operation, []) };
  const { result, scopes } = scoped(device.gpu, filters, calls);
  return { result, outcome: conclude(device, operation, scopes) };
}

/** Runs WebGPU calls in error scopes, whose errors do not matter if the calls throw. */
export function scoped<R>(gpu: GPUDevice, filters: readonly ErrorFilter[], calls: () => R) {
  for (const filter of filters) gpu.pushErrorScope(filter);
  let result: R;
  try {
    result = calls();
  } catch (error) {
    for (const _ of filters) gpu.popErrorScope().catch(() => {});
    throw error;
  }
  // The last is popped first: running out of memory comes before the invalid buffer that it causes.
  return { result, scopes: filters.map(() => gpu.popErrorScope()) };
}

/** Stores an operation's errors with the bytes that it writes; null: no errors. */
export function conclude(
  device: DeviceRecord,
  operation: Operation,
  scopes: readonly Promise<GPUError | null>[],
): Outcome | null {
  const parents = parentsOf(operation);
  const outcome =
    scopes.length === 0 && parents.length <= 1
      ? (parents[0] ?? null)
      : new Settling(ownFault(device, operation, scopes, site), parents);
  for (const extent of operation.writes ?? []) setOutcome(extent, outcome);
  if (outcome !== null) collector?.push(outcome);
  return outcome;
}

/** The outcome of elements that a recorded kernel computes, until it runs. */
export function notRun(buffer: BufferRecord): Outcome {
  const error = new UnsupportedError(messages.notRun());
  const fault = { error, reported: true, batch: null, buffer };
  return { fault, done: Promise.resolve(fault) };
}

/** An operation's dependencies that are not known to have succeeded; each once. */
function parentsOf({ reads = [], writes = [], fresh, after = [] }: Operation): Outcome[] {
  const parents: Outcome[] = [];
  const add = (outcome: Outcome | null) => {
    if (isOpen(outcome) && !parents.includes(outcome)) parents.push(outcome);
  };
  const addOf = (extent: Extent) => openOutcomes(extent).forEach(add);
  reads.forEach(addOf);
  // A buffer that could not be made cannot be written.
  writes.forEach(fresh ? ({ buffer }) => add(buffer.creation) : addOf);
  after.forEach(add);
  return parents;
}

async function ownFault(
  device: DeviceRecord,
  operation: Operation,
  scopes: readonly Promise<GPUError | null>[],
  calledAt: number | undefined,
): Promise<Fault | null> {
  // A scope rejects if the device was lost, as device.lost says. All have handlers from the start:
  // one that rejects while another is pending would count as unhandled.
  const found = await Promise.all(scopes.map((scope) => scope.catch(() => null)));
  const cause = found.find((error) => error !== null);
  if (!cause) return null;
  device.errors++;
  let error: Error;
  try {
    error = (await operation.explain?.(cause)) ?? failure(device, operation.what, cause);
  } catch {
    error = failure(device, operation.what, cause);
  }
  const fault = { error, reported: false };
  if (!sites.has(error)) sites.set(error, calledAt);
  reportLater(device, fault, sites.get(error));
  return fault;
}

/** The number that Python gave the call that caused an error. */
export const sites = new WeakMap<object, number | undefined>();

/** The error for a GPU error of an operation. */
export function failure(
  device: DeviceRecord,
  what: string,
  cause: GPUError,
  text: string = cause.message,
): DeviceError {
  const message = `${what} failed on ${nameOf(device)}: ${text}`;
  return new DeviceError(message, { device: device.named, cause });
}

const again = new WeakMap<Error, () => void>();

/** The fault of an error that nobody sees, though a read threw it, is reported as unread ones are. */
export function unseen(error: unknown): void {
  again.get(error as Error)?.();
}

/** Throws the first error of several jobs. Nobody sees the others, nor that one unless `isSeen`. */
export function throwFirst(found: readonly PromiseSettledResult<unknown>[], isSeen = true): void {
  const reasons = found.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  for (const reason of reasons) if (!isSeen || reason !== reasons[0]) unseen(reason);
  if (reasons.length > 0) throw reasons[0];
}

export function reportLater(
  device: DeviceRecord,
  fault: Fault,
  calledAt: number | undefined,
): void {
  again.set(fault.error, () => {
    fault.reported = false;
    reportLater(device, fault, calledAt);
  });
  const timer: unknown = setTimeout(() => {
    if (fault.reported) return;
    fault.reported = true;
    for (const listener of [...device.listeners, ...registered.listeners]) {
      try {
        if (listener(fault.error, calledAt)) return;
      } catch (error) {
        console.error(error);
      }
    }
    console.error(fault.error);
  }, GRACE_MS);
  (timer as { unref?(): void }).unref?.(); // Node waits for its timers
}

/** The outcomes of what runs in `block`, in order. */
export function collecting(block: () => void): Outcome[] {
  const outer = collector;
  const inner: Outcome[] = [];
  collector = inner;
  try {
    block();
  } finally {
    collector = outer;
  }
  outer?.push(...inner);
  return inner;
}

/** Waits for outcomes and throws the first fault; DeviceLostError if the device was lost. */
export async function ask(
  device: DeviceRecord,
  outcomes: readonly (Outcome | null)[],
): Promise<void> {
  let first: Fault | undefined;
  for (const outcome of outcomes) {
    const fault = outcome && (await outcome.done);
    if (fault) first ??= fault;
  }
  checkAlive(device);
  if (first !== undefined) throw reported(first);
}

/** Throws the first fault of outcomes that have failed by now. */
export function throwFailed(outcomes: readonly Outcome[]): void {
  const failed = outcomes.find(({ fault }) => fault)?.fault;
  if (failed) throw reported(failed);
}

/** The error of a fault; from here on, the caller raises it. */
export function reported(fault: Fault): Error {
  fault.reported = true;
  return fault.error;
}

/** `GPUMapMode.READ`, which is a global only where WebGPU is. */
const READ = 1;

/**
 * Maps the first bytes of a buffer for reading, after what was done to it. Throws the error of one of
 * `outcomes`, or of having `made` it; DeviceLostError; DeviceError.
 */
export async function mapAfter(
  device: DeviceRecord,
  what: string,
  outcomes: readonly (Outcome | null)[],
  buffer: GPUBuffer,
  bytes: number,
  made: Outcome | null = null,
): Promise<void> {
  const { gpu } = device;
  // Only `made` reports that it could not be made.
  const isWatched = isOpen(made);
  if (isWatched) gpu.pushErrorScope("validation");
  const mapped = buffer.mapAsync(READ, 0, bytes).then(
    () => null,
    (cause) => ({ cause }),
  );
  if (isWatched) gpu.popErrorScope().catch(() => {});
  const failed = await mapped;
  if (failed) await checkLost(device, 10);
  await ask(device, [made, ...outcomes]); // the scopes' errors are better messages
  if (!failed) return;
  await checkLost(device, 1000); // Firefox reports the loss late; no other cause is known
  throw new DeviceError(`${what} failed on ${nameOf(device)}`, failed);
}

/** The result of `read` on mapped memory; DeviceLostError if it is gone with its device. */
export async function readMapped<R>(device: DeviceRecord, read: () => R): Promise<R> {
  try {
    return read();
  } catch (error) {
    if (error instanceof DOMException) await checkLost(device, 1000);
    throw error;
  }
}

/** DeviceLostError if the device was lost, which may be reported so many ms later. */
async function checkLost(device: DeviceRecord, ms: number): Promise<void> {
  await Promise.race([device.gpu.lost, new Promise((done) => setTimeout(done, ms))]);
  checkAlive(device);
}
