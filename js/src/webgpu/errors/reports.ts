/**
 * Faults between libraries (EXCHANGE.md, E1 to E4): pending work of exported tensors, and the
 * reports of foreign producers.
 */

import { DeviceError } from "../../core/errors.js";
import type { ManagedTensor } from "../../core/managed.js";
import { extentOf, slotOf } from "../buffers/references.js";
import { checkAlive } from "../device/device.js";
import type { DeviceRecord } from "../device/state.js";
import { reportLater, Settling } from "./errors.js";
import { type Fault, isOpen, type Outcome, openOutcomes, setOutcome } from "./record.js";

/** The key of the buffer's record in a `fault` function of any copy of this library. */
const FACTS = Symbol.for("dlpack-web.facts");

/**
 * The `fault` of an exchange, which may be called while the tensor is held.
 *
 * @throws the fault of the elements, if it is known already; DeviceLostError
 */
export function faultOf(tensor: ManagedTensor): () => Promise<Error | null> | null {
  const { record } = slotOf(tensor.handle);
  checkAlive(record);
  const extent = extentOf(tensor);
  const known = openOutcomes(extent).find(({ fault }) => fault)?.fault;
  if (known) throw reported(known);
  const fault = () => {
    const open = openOutcomes(extent);
    return open.length === 0 && record.lost === null ? null : errorOf(record, open);
  };
  return Object.assign(fault, { [FACTS]: extent.facts });
}

async function errorOf(record: DeviceRecord, open: readonly Outcome[]): Promise<Error | null> {
  let fault: Fault | null = null;
  for (const outcome of open) fault ??= await outcome.done;
  try {
    checkAlive(record);
  } catch (lost) {
    return lost as Error;
  }
  return fault && reported(fault);
}

/** From here on, the consumer raises it. */
function reported(fault: Fault): Error {
  fault.reported = true;
  return fault.error;
}

/** A foreign producer's report on its elements, valid until the next report. */
class Reported extends Settling {
  constructor(
    fault: Promise<Fault | null>,
    /** What this library knows of the same bytes. */
    readonly own: readonly Outcome[],
  ) {
    super(fault, own);
  }
}

/** Whether it is a {@link Reported} of any copy of the library. */
function isReport(outcome: Outcome): outcome is Reported {
  return "own" in outcome;
}

/**
 * The elements of an imported tensor also have the fault that their producer reports. Copies of
 * this library are not asked: they share the buffer's record, and asking would mark a fault as
 * reported that no read has raised.
 *
 * @throws what `fault` throws
 */
export function joinFault(tensor: ManagedTensor, fault: () => unknown): void {
  const { record } = slotOf(tensor.handle);
  const extent = extentOf(tensor);
  if ((fault as { [FACTS]?: unknown })[FACTS] === extent.facts) return;
  const reported = fault() ?? null;
  const open = openOutcomes(extent);
  const reports = open.filter(isReport);
  const own = open.flatMap((each) => (isReport(each) ? each.own : each)).filter(isOpen);
  if (reported !== null) {
    setOutcome(extent, new Reported(faultFrom(record, reported), own));
  } else if (reports.length > 0) {
    setOutcome(extent, own.length > 0 ? new Settling(Promise.resolve(null), own) : null);
  }
}

async function faultFrom(record: DeviceRecord, reported: unknown): Promise<Fault | null> {
  let error: unknown;
  try {
    error = (await reported) ?? null;
  } catch (cause) {
    error = cause; // it must not reject; a rejection counts as a fault
  }
  if (error === null) return null;
  const fault: Fault = { error: errorFor(record, error), reported: false };
  reportLater(record, fault, undefined);
  return fault;
}

function errorFor({ device }: DeviceRecord, error: unknown): Error {
  // An error of another realm is not an instance of our class.
  if (typeof (error as Error).message === "string") return error as Error;
  return new DeviceError(`the tensor's producer reports a fault on ${device}`, {
    device,
    cause: error,
  });
}
