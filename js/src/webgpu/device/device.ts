/**
 * device/: the registered devices, how they are requested and shared, and how their loss is reported.
 *
 * Other folders use `useDevice` at each entry with a `GPUDevice`, `checkAlive`, `nameOf` in messages, and
 * the state that all copies of the library share (`state.ts`).
 */
import { NamedDevice } from "../../core/device.js";
import { WEBGPU } from "../../core/dlpack.js";
import { DeviceError, DeviceLostError, textOf } from "../../core/errors.js";
import type { GPUDevice, GPUSupportedLimits } from "../../core/globals.js";
import { Pool } from "../buffers/pool.js";
import { type DeviceRecord, type FaultListener, state } from "./state.js";

/** The key of the device in an object that stands for it; see adapters/watched.ts. */
export const REAL: unique symbol = Symbol.for("dlpack-web.device") as never;

/** The device itself, if a library reports the object that stands for it. */
export function realDevice<D extends GPUDevice | undefined>(gpu: D): D {
  return (gpu as { [REAL]?: D } | undefined)?.[REAL] ?? gpu;
}

/** The record of a device, registered at its first use. The same object has the same id. */
export function useDevice(
  given: GPUDevice,
  adapterLimits: GPUSupportedLimits | null = null,
): DeviceRecord {
  const gpu = realDevice(given);
  for (const record of state.devices) if (record.device.gpu === gpu) return record;
  if (!isDevice(gpu)) throw new TypeError(`a GPUDevice is needed, not ${textOf(gpu)}`);
  const id = state.devices.length;
  const record: DeviceRecord = {
    device: new NamedDevice(WEBGPU, id, gpu, `webgpu:${id}`),
    lost: null,
    adapterLimits,
    listeners: new Set(),
    pool: new Pool(),
    pipelines: new Map(),
    moved: { up: 0, down: 0, copied: 0, copies: 0 },
    errors: 0,
    taken: 0,
  };
  const lost = (info: { reason?: unknown; message?: string }) => {
    record.lost = `${info.reason}${info.message ? `: ${info.message}` : ""}`;
    record.pool.drop();
  };
  gpu.lost.then(lost);
  // Small buffers are made and written without error scopes; their errors come here.
  gpu.addEventListener?.("uncapturederror", () => record.errors++);
  state.devices.push(record);
  return record;
}

/** The same of a device that works; throws DeviceLostError for a lost one. */
export function workingDevice(gpu: GPUDevice): DeviceRecord {
  const device = useDevice(gpu);
  checkAlive(device);
  return device;
}

/** Checks the members of a device before registering it. */
function isDevice(gpu: GPUDevice): boolean {
  const { createBuffer, pushErrorScope, queue, lost, limits } = Object(gpu) as GPUDevice;
  return (
    typeof createBuffer === "function" &&
    typeof pushErrorScope === "function" &&
    typeof queue?.submit === "function" &&
    typeof lost?.then === "function" &&
    typeof limits?.maxBufferSize === "number"
  );
}

/** "webgpu:0" with the device's label, for messages. */
export function nameOf({ device }: DeviceRecord): string {
  return device.gpu.label ? `${device} ("${device.gpu.label}")` : `${device}`;
}

/** Throws DeviceLostError unless the device works. */
export function checkAlive({ lost, device }: DeviceRecord): void {
  if (lost === null) return;
  throw new DeviceLostError(
    // In Python: lost(device, why)
    `${device} is lost (${lost}), with its tensors: request a new device and upload again`,
    { device },
  );
}

/** The record with this id; throws DeviceError listing what is registered. */
export function deviceWithId(id: number): DeviceRecord {
  const record = state.devices[id];
  if (record) return record;
  throw new DeviceError(
    state.devices.length === 0
      ? "no WebGPU device is registered: await requestDevice() first"
      : // In Python: not_registered(id, devices)
        `webgpu:${id} is not registered; there are ${state.devices.map((r) => r.device)}`,
    { given: id, device: `webgpu:${id}` },
  );
}

/**
 * Calls a function with each fault of a device that no read has raised within a second, such as a
 * kernel that does not compile and whose results are not read. Without a listener, the fault is
 * logged on the console.
 *
 * @param gpu - a device; it is registered if it was not
 * @param listener - returns true to keep the fault off the console
 * @returns ends it
 */
export function listenForFaults(gpu: GPUDevice, listener: FaultListener): () => void {
  const { listeners } = useDevice(gpu);
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Memory and work of one device, in bytes unless stated otherwise. */
export interface DeviceStats {
  /** Its name, "webgpu:0". */
  device: string;
  /** Why it was lost; null while it works. */
  lost: string | null;
  /** Number of buffers under tensors, and their bytes. */
  buffers: number;
  bytes: number;
  /** Bytes of pooled buffers. */
  idleBytes: number;
  /** Numbers of buffers that were made and reused. */
  created: number;
  reused: number;
  /** Uploaded, read back, and copied from buffer to buffer. */
  up: number;
  down: number;
  copied: number;
  /** Number of all three: one for each tensor that moved. */
  copies: number;
  /** Number of buffers made here that foreign code took, and that are no longer destroyed here. */
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

/** Memory and work of each registered device, in the order of their ids. */
export function stats(): DeviceStats[] {
  return state.devices.map((record) => {
    const { device, lost, moved, pool, taken } = record;
    const { idleBytes, created, reused } = pool;
    const found = state.slots.filter((slot) => slot.record === record);
    const bytes = found.reduce((sum, { buffer }) => sum + (buffer?.size ?? 0), 0);
    const facts = { device: `${device}`, lost, buffers: found.length, bytes };
    return { ...facts, idleBytes, created, reused, ...moved, taken };
  });
}
