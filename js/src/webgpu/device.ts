import { DeviceError, DeviceLostError } from "../core/errors.js";
import { type DeviceRecord, makeDevice, shared } from "../core/realm.js";
import { WEBGPU } from "../pyodide/layout.js";
import { Pool } from "./pool.js";

/** The record of a device, registered at its first use. The same object has the same id. */
export function useDevice(
  gpu: GPUDevice,
  adapterLimits: GPUSupportedLimits | null = null,
): DeviceRecord {
  const known = shared.devices.find((record) => record.device.gpu === gpu);
  if (known) return known;
  if (typeof gpu?.createBuffer !== "function") {
    throw new TypeError(`a GPUDevice is needed, not ${String(gpu)}`);
  }
  const id = shared.devices.length;
  const record: DeviceRecord = {
    device: makeDevice(WEBGPU, id, gpu, `webgpu:${id}`),
    lost: null,
    adapterLimits,
    answers: new Set(),
    pool: new Pool(),
    moved: { up: 0, down: 0, copied: 0, copies: 0 },
    taken: 0,
  };
  shared.devices.push(record);
  gpu.lost.then((info) => {
    record.lost = `${info.reason}${info.message && `: ${info.message}`}`;
    record.pool.drop();
  });
  return record;
}

/** The record with this id; throws DeviceError listing what is registered. */
export function deviceWithId(id: number): DeviceRecord {
  const record = shared.devices[id];
  if (record) return record;
  throw new DeviceError(
    shared.devices.length === 0
      ? "no WebGPU device is registered: await requestDevice() first"
      : `webgpu:${id} is not registered; there are ${shared.devices.map((r) => r.device)}`,
    { given: id, device: `webgpu:${id}` },
  );
}

/** What one device holds and has done, in bytes where no unit is said. */
export interface DeviceStats {
  /** "webgpu:0" */
  device: string;
  /** Why it was lost; null while it works. */
  lost: string | null;
  /** Number of buffers under tensors, borrowed ones included, and their bytes. */
  buffers: number;
  bytes: number;
  /** Bytes of idle buffers that wait for their next use, at most 256 MiB. */
  idleBytes: number;
  /** Numbers of buffers that were made, and that came out of the idle ones. */
  created: number;
  reused: number;
  /** Bytes that tensors uploaded, read back, and copied between buffers. */
  up: number;
  down: number;
  copied: number;
  /** Number of these three together: one for each tensor that moved. */
  copies: number;
  /** Number of buffers made here that somebody took, and that nobody here destroys any more. */
  taken: number;
}

/** Counts what moved. */
export function count(
  { moved }: DeviceRecord,
  way: "up" | "down" | "copied",
  bytes: number,
  copies = 1,
): void {
  moved[way] += bytes * copies;
  moved.copies += copies;
}

/** What each registered device holds, in the order of their ids. */
export function stats(): DeviceStats[] {
  return shared.devices.map((record) => {
    const { device, lost, moved, pool, taken } = record;
    const { idleBytes, created, reused } = pool;
    const found = shared.slots.filter((slot) => slot.record === record);
    const bytes = found.reduce((sum, { buffer }) => sum + (buffer?.size ?? 0), 0);
    const buffers = found.length;
    const facts = { device: `${device}`, lost, buffers, bytes, idleBytes, created, reused };
    return { ...facts, ...moved, taken };
  });
}

/** Throws DeviceLostError unless the device works. */
export function checkAlive({ lost, device }: DeviceRecord): void {
  if (lost === null) return;
  throw new DeviceLostError(
    `${device} is lost (${lost}), with its tensors: request a new device and upload again`,
    { device },
  );
}

/** "webgpu:0" with the device's label, for messages. */
export function nameOf({ device }: DeviceRecord): string {
  return device.gpu.label ? `${device} ("${device.gpu.label}")` : `${device}`;
}

/**
 * Runs WebGPU calls and watches for the errors that they report later. Those wait in
 * `record.answers` for the next read (see {@link settled}), and are logged in case none comes.
 */
export function watched<R>(
  record: DeviceRecord,
  what: string,
  calls: () => R,
  // The last is asked first: want of memory comes before the invalid buffer that it left.
  filters: GPUErrorFilter[] = ["validation", "out-of-memory"],
): R {
  const { gpu } = record.device;
  for (const filter of filters) gpu.pushErrorScope(filter);
  try {
    return calls();
  } finally {
    for (const _ of filters) collect(record, what, gpu.popErrorScope());
  }
}

function collect(record: DeviceRecord, what: string, scope: Promise<GPUError | null>): void {
  later(
    record,
    scope.then(
      (cause) => (cause === null ? null : failure(record, what, cause.message, cause)),
      () => null, // The device was lost, which record.lost tells.
    ),
  );
}

/** Enters an answer to come; it must not reject. */
export function later(record: DeviceRecord, answer: Promise<Error | null>): void {
  record.answers.add(answer);
  answer.then((error) => error ?? record.answers.delete(answer));
}

/** The error for earlier work, logged as well in case no read asks for it. */
export function failure(
  record: DeviceRecord,
  what: string,
  message: string,
  cause?: unknown,
): Error {
  const error = new DeviceError(`${what} failed on ${nameOf(record)}: ${message}`, {
    device: record.device,
    cause,
  });
  console.error(error);
  return error;
}

/** Waits for the answers about earlier work and throws the first error, once. */
export async function settled(record: DeviceRecord): Promise<void> {
  const answers = [...record.answers];
  const found = await Promise.all(answers);
  checkAlive(record);
  // A read that ran at the same time may have thrown it already.
  const first = found.find((error, i) => error && record.answers.has(answers[i] as never));
  for (const answer of answers) record.answers.delete(answer);
  if (first) throw first;
}
