/**
 * Faults between libraries (EXCHANGE.md, E1 to E4): pending work of exported tensors, and the
 * reports of foreign producers.
 */

import { DeviceError } from "../../core/errors.js";
import { checkAlive, type DeviceRecord } from "../device/device.js";
import { reported, reportLater, Settling, throwFailed } from "./errors.js";
import {
  type Extent,
  type Fault,
  isOpen,
  type Outcome,
  openOutcomes,
  setOutcome,
} from "./record.js";

/** The key of the buffer's record in a `fault` function of any copy of this library. */
const BUFFER = Symbol.for("dlpack-web.buffer");

/**
 * The `fault` of an exchange of some elements, which may be called while their tensor is held. Throws the
 * fault that they have by now; DeviceLostError.
 */
export function faultOf(device: DeviceRecord, extent: Extent): () => Promise<Error | null> | null {
  checkAlive(device);
  throwFailed(openOutcomes(extent));
  const fault = () => {
    const open = openOutcomes(extent);
    return open.length === 0 && device.lost === null ? null : errorOf(device, open);
  };
  return Object.assign(fault, { [BUFFER]: extent.buffer });
}

async function errorOf(device: DeviceRecord, open: readonly Outcome[]): Promise<Error | null> {
  let fault: Fault | null = null;
  for (const outcome of open) fault ??= await outcome.done;
  try {
    checkAlive(device);
  } catch (lost) {
    return lost as Error;
  }
  return fault && reported(fault);
}

/** A foreign producer's report on its elements, valid until the next report. */
interface Report extends Outcome {
  /** What this library knows of the same bytes. */
  readonly own: readonly Outcome[];
}

/** Whether it is a report, which any copy of the library made. */
function isReport(outcome: Outcome): outcome is Report {
  return "own" in outcome;
}

/**
 * The elements of an imported tensor also have the fault that their producer reports, or throws. Copies
 * of this library are not asked: they share the buffer's record, and asking would mark a fault as
 * reported that no read has raised.
 */
export function joinFault(device: DeviceRecord, extent: Extent, fault: () => unknown): void {
  if ((fault as { [BUFFER]?: unknown })[BUFFER] === extent.buffer) return;
  const report = fault() ?? null;
  const open = openOutcomes(extent);
  const reports = open.filter(isReport);
  const own = open.flatMap((each) => (isReport(each) ? each.own : each)).filter(isOpen);
  if (report !== null) {
    const outcome = new Settling(faultFrom(device, report), own);
    setOutcome(extent, Object.assign(outcome, { own }));
  } else if (reports.length > 0) {
    setOutcome(extent, own.length > 0 ? new Settling(Promise.resolve(null), own) : null);
  }
}

async function faultFrom(device: DeviceRecord, report: unknown): Promise<Fault | null> {
  let error: unknown;
  try {
    error = (await report) ?? null;
  } catch (cause) {
    error = cause; // it must not reject; a rejection counts as a fault
  }
  if (error === null) return null;
  const fault: Fault = { error: errorFor(device, error), reported: false };
  reportLater(device, fault, undefined);
  return fault;
}

function errorFor({ named: device }: DeviceRecord, error: unknown): Error {
  // An error of another realm is not an instance of our class.
  if (typeof (error as Error).message === "string") return error as Error;
  return new DeviceError(`the tensor's producer reports a fault on ${device}`, {
    device,
    cause: error,
  });
}
