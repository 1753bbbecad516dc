/**
 * Faults at the hand-over to a library and back (EXCHANGE.md, E1 to E3). What a library does
 * with a tensor is unknown, so its results may depend on every tensor that it was given.
 */

import { DeviceError } from "../core/errors.js";
import type { GPUDevice, GPUError } from "../core/globals.js";
import { shared } from "../core/realm.js";
import type { Tensor } from "../core/tensor.js";
import { extentOf, slotOf } from "../webgpu/buffers/table.js";
import { conclude, Settling, scoped, throwFailed } from "../webgpu/errors/errors.js";
import { type Fault, isOpen, type Outcome, openOutcomes } from "../webgpu/errors/record.js";

/**
 * A library may still be running asynchronous work that is not visible here, such as a session's
 * run.
 */
export const GRACE_MS = 60_000;

/** A tensor that a library was given before its pending work had succeeded. */
interface Given {
  readonly held: Tensor;
  readonly outcome: Outcome;
  /** Until when results may depend on it; Infinity while the library has it. */
  until: number;
}

const given = shared("given", () => new WeakMap<object, Given[]>());

/** Throws the fault of a GPU tensor, where it is known already. */
export function checkFault(held: Tensor): void {
  throwFailed(openOutcomes(extentOf(held._managed)));
}

/**
 * Remembers the pending work of a GPU tensor that a library was given: the library's results have
 * its fault until a minute after the library releases the tensor.
 */
export function handed(library: object, name: string, held: Tensor): void {
  const open = openOutcomes(extentOf(held._managed));
  if (open.length === 0) return;
  const outcome = new Settling(inGeneral(name, held, open), []);
  const before = pendingOf(library);
  before.push({ held, outcome, until: Number.POSITIVE_INFINITY });
  given.set(library, before);
}

/** The fault of a tensor, for results that may not depend on it: its error is the cause. */
async function inGeneral(
  name: string,
  held: Tensor,
  open: readonly Outcome[],
): Promise<Fault | null> {
  const { device } = held;
  const text = held.toString();
  for (const outcome of open) {
    const fault = await outcome.done;
    if (!fault) continue;
    const message =
      `${name} was given ${text}, which has a fault; this result of ${name} may depend on it: ` +
      fault.error.message;
    return {
      error: new DeviceError(message, { device, cause: fault.error }),
      // It is the tensor's own, once more.
      get reported() {
        return fault.reported;
      },
      set reported(value) {
        fault.reported = value;
      },
    };
  }
  return null;
}

/** Entries that still matter. */
function pendingOf(library: object): Given[] {
  const now = Date.now();
  return (given.get(library) ?? []).filter((one) => {
    if (one.held.released) one.until = Math.min(one.until, now + GRACE_MS);
    return isOpen(one.outcome) && now < one.until;
  });
}

/** A library's tensor also has the faults of the tensors that the library was given. */
export function joined(library: object, name: string, tensor: Tensor): Tensor {
  return tensor.device.gpu && given.has(library) ? concluded(library, name, tensor, []) : tensor;
}

/**
 * The same for a tensor that `take` takes, for which the library submits work: GPU errors of that
 * work are the tensor's fault.
 */
export function flushed(library: object, name: string, gpu: GPUDevice, take: () => Tensor): Tensor {
  const { result: tensor, scopes } = scoped(gpu, ["validation"], take);
  return concluded(library, name, tensor, scopes);
}

function concluded(
  library: object,
  name: string,
  tensor: Tensor,
  scopes: readonly Promise<GPUError | null>[],
): Tensor {
  const { device } = slotOf(tensor._managed.handle);
  const pending = pendingOf(library);
  given.set(library, pending);
  const after = pending.map(({ outcome }) => outcome);
  const writes = [extentOf(tensor._managed)];
  const what = `${name}, which handed out ${tensor.toString()},`;
  conclude(device, { what, writes, after }, scopes);
  return tensor;
}
