/**
 * Faults on their way from library to library (js/EXCHANGE.md, E1 to E4): what is pending of a tensor's
 * elements as it is handed out, and what a producer of others says of its own.
 */
import { DeviceError } from "../core/errors.js";
import type { Tensor } from "../core/tensor.js";
import { extentOf, slotOf } from "./buffers.js";
import { checkAlive, Settling, tellLater } from "./faults.js";
import { type Fault, type Outcome, openOutcomes, setOutcome } from "./record.js";
import type { DeviceRecord } from "./state.js";

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
  return () => {
    const open = openOutcomes(extent);
    return open.length === 0 && record.lost === null ? null : errorOf(record, open);
  };
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

/** The consumer raises it from here on, and nobody else needs to. */
function told(fault: Fault): Error {
  fault.told = true;
  return fault.error;
}

/** The elements of a tensor that was taken also have the fault that its producer reports. */
export function joinFault(tensor: Tensor, reported: unknown): void {
  const { record } = slotOf(tensor._handle);
  const extent = extentOf(tensor);
  setOutcome(extent, new Settling(faultFrom(record, reported), openOutcomes(extent)));
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
  if (typeof error === "object" && typeof (error as Error).message === "string") {
    return error as Error;
  }
  return new DeviceError(`the tensor's producer reports a fault on ${device}`, {
    device,
    cause: error,
  });
}
