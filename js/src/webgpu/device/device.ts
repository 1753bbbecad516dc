/**
 * device/: the registered devices, how they are requested and shared, and how their loss is reported.
 *
 * Other folders call `workingDevice` at each entry with a `GPUDevice`, and pass its record on; they use
 * `checkAlive` after waiting, and `nameOf` in messages. `buffers/pool.ts` makes the pool of a device.
 */
import { type Device, NamedDevice } from "../../core/device.js";
import { WEBGPU } from "../../core/dlpack.js";
import { DeviceLostError, textOf } from "../../core/errors.js";
import type { GPUAnyPipeline, GPUDevice, GPUSupportedLimits } from "../../core/globals.js";
import { shared } from "../../core/realm.js";
import type { BufferRecord, Origin } from "../errors/record.js";
import * as messages from "../messages.js";

/** The record of one registered `GPUDevice`. Records are never removed: ids stay valid. */
export interface DeviceRecord {
  readonly gpu: GPUDevice;
  /** The device as tensors and errors show it. */
  readonly named: Device & { readonly gpu: GPUDevice };
  /** Why the device was lost; null while it works. */
  lost: string | null;
  /** The adapter's limits, if we requested it ourselves. */
  readonly adapterLimits: GPUSupportedLimits | null;
  /** The options of Python's request_device(); undefined if it did not make the device. */
  asked?: string;
  /** Listeners for faults that no read has raised. */
  readonly listeners: Set<FaultListener>;
  /** Idle buffers for reuse; null before the first buffer. */
  pool: Pool | null;
  /** Pipelines of our own shaders: see {@link pipelineOf}. */
  readonly pipelines: Map<string, Pipeline>;
  /** Bytes uploaded, read back, and copied from one GPUBuffer to another; in how many copies. */
  readonly moved: { up: number; down: number; copied: number; copies: number };
  /** Number of errors of the device, with or without a tensor that raises them. */
  errors: number;
  /** Number of our buffers that foreign code may keep, which are left to the garbage collector. */
  escaped: number;
}

/** Idle buffers by purpose and size; buffers/pool.ts implements it. */
export interface Pool {
  /** Bytes of the idle buffers. */
  readonly idleBytes: number;
  /** Numbers of buffers that were created and reused. */
  created: number;
  readonly reused: number;
  /**
   * An idle buffer of exactly this size, with its old contents; undefined if there is none. Buffers that
   * the errors of the device so far may have affected are destroyed.
   */
  take(size: number, origin: Origin, errors: number): BufferRecord | undefined;
  /**
   * Takes a buffer that is no longer used except by queued work, which keeps its order; destroys one that
   * may be invalid.
   */
  give(buffer: BufferRecord, errors: number): void;
  /** Destroys every idle buffer. */
  drop(): void;
}

/**
 * Called with a fault that no read has raised.
 *
 * @param error - the fault
 * @param site - the number that Python gave the call, undefined for calls of JavaScript
 * @returns whether it has reported it
 */
export type FaultListener = (error: Error, site: number | undefined) => boolean;

/** The devices of all copies of this library: C and Python know them by number. */
export const registered = shared("devices", () => ({
  devices: [] as DeviceRecord[],
  /** Listeners for the faults of all devices, called after those of each. */
  listeners: new Set<FaultListener>(),
}));

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
  const { devices } = registered;
  for (const device of devices) if (device.gpu === gpu) return device;
  if (!isDevice(gpu)) {
    throw new TypeError(
      `a GPUDevice is needed, not ${textOf(gpu)}: await webgpu.requestDevice() gives one`,
    );
  }
  const id = devices.length;
  const device: DeviceRecord = {
    gpu,
    named: new NamedDevice(WEBGPU, id, gpu, `webgpu:${id}`),
    lost: null,
    adapterLimits,
    listeners: new Set(),
    pool: null,
    pipelines: new Map(),
    moved: { up: 0, down: 0, copied: 0, copies: 0 },
    errors: 0,
    escaped: 0,
  };
  const lost = (info: { reason?: unknown; message?: string }) => {
    device.lost = `${info.reason}${info.message ? `: ${info.message}` : ""}`;
    device.pool?.drop();
  };
  gpu.lost.then(lost);
  // Small buffers are made and written without error scopes; their errors come here.
  gpu.addEventListener?.("uncapturederror", () => device.errors++);
  devices.push(device);
  return device;
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
export function nameOf({ gpu, named }: DeviceRecord): string {
  return gpu.label ? `${named} ("${gpu.label}")` : `${named}`;
}

/** Throws DeviceLostError unless the device works. */
export function checkAlive({ lost, named: device }: DeviceRecord): void {
  if (lost === null) return;
  throw new DeviceLostError(messages.lost(`${device}`, lost), { device });
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

/** Counts what moved. */
export function count({ moved }: DeviceRecord, way: "up" | "down" | "copied", bytes: number): void {
  moved[way] += bytes;
  moved.copies++;
}

export type Pipeline = GPUAnyPipeline;

/**
 * A pipeline of our own shaders, compiled once for each `key`: without `make`, the WGSL of a compute
 * pipeline. An error of its use may be its fault: then clear `pipelines`.
 */
export function pipelineOf<P extends Pipeline>(
  { gpu, pipelines }: DeviceRecord,
  key: string,
  make?: () => P,
): P {
  const found = pipelines.get(key) ?? (make ? make() : compile(gpu, key));
  pipelines.set(key, found);
  return found as P;
}

function compile(gpu: GPUDevice, code: string): GPUComputePipeline {
  const module = gpu.createShaderModule({ code });
  return gpu.createComputePipeline({ layout: "auto", compute: { module } });
}
