/**
 * Faults on their way from library to library (js/EXCHANGE.md, E1 to E4): what is pending of a tensor's
 * elements as it is handed out, and what a producer of others says of its own.
 */
import { DeviceError } from "../core/errors.js";
import type { Tensor } from "../core/tensor.js";
import { extentOf, slotOf } from "./buffers.js";
import { checkAlive, Settling, tellLater } from "./faults.js";
import { type Fault, isOpen, type Outcome, openOutcomes, setOutcome } from "./record.js";
import type { DeviceRecord } from "./state.js";

/** The buffer's record that a `fault` of this library, in whichever copy, goes by. */
const FACTS = Symbol.for("dlpack-web.facts");

/**
 * The `fault` of an exchange. It may be called as long as the tensor is held.
 *
 * @throws the fault of the elements, where it is known already; DeviceLostError
 */
export function faultOf(tensor: Tensor): () => Promise<Error | null> | null {
  const { record } = slotOf(tensor._handle);
  checkAlive(record);
  const extent = extentOf(tensor);
  const known = openOutcomes(extent).find(({ fault }) => fault)?.fault;
  if (known) throw told(known);
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
  return fault && told(fault);
}

/** From here on only the consumer has to raise it. */
function told(fault: Fault): Error {
  fault.told = true;
  return fault.error;
}

/** What a producer of others reports of its elements; it holds until the next report. */
class Reported extends Settling {
  constructor(
    fault: Promise<Fault | null>,
    /** What this library knows of the same bytes. */
    readonly own: readonly Outcome[],
  ) {
    super(fault, own);
  }
}

/** Whether it is a {@link Reported}, of whichever copy of the library. */
function isReport(outcome: Outcome): outcome is Reported {
  return "own" in outcome;
}

/**
 * The elements of a tensor that was taken also have the fault that their producer reports. A
 * producer that is a copy of this library is not asked. It has the same record of the buffer, and
 * asking would mark a fault as reported that no reader has seen.
 *
 * @throws what `fault` throws
 */
export function joinFault(tensor: Tensor, fault: () => unknown): void {
  const { record } = slotOf(tensor._handle);
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
    error = cause; // it must not reject, and what it says by that is clear enough
  }
  if (error === null) return null;
  const fault: Fault = { error: errorFor(record, error), told: false };
  tellLater(record, fault, undefined);
  return fault;
}

function errorFor({ device }: DeviceRecord, error: unknown): Error {
  // An error of another realm is no instance of ours.
  if (typeof (error as Error).message === "string") return error as Error;
  return new DeviceError(`the tensor's producer reports a fault on ${device}`, {
    device,
    cause: error,
  });
}
