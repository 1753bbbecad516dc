import type { Device } from "../../core/device.js";
import type { GPUBuffer, GPUDevice, GPUSupportedLimits } from "../../core/globals.js";
import { shared } from "../../core/realm.js";
import type { Pipeline } from "../buffers/pipelines.js";
import type { Pool } from "../buffers/pool.js";
import type { BufferRecord, Extent } from "../errors/record.js";

/** The record of one registered `GPUDevice`. Records are never removed: ids stay valid. */
export interface DeviceRecord {
  readonly device: Device & { readonly gpu: GPUDevice };
  /** Why the device was lost; null while it works. */
  lost: string | null;
  /** The adapter's limits, if we requested it ourselves. */
  readonly adapterLimits: GPUSupportedLimits | null;
  /** The options of Python's request_device(); undefined if it did not make the device. */
  asked?: string;
  /** Listeners for faults that no read has raised. */
  readonly listeners: Set<FaultListener>;
  /** Idle buffers for reuse. */
  readonly pool: Pool;
  /** Pipelines of our own shaders: see buffers/pipelines.ts. */
  readonly pipelines: Map<string, Pipeline>;
  /** Bytes uploaded, read back, and copied from one GPUBuffer to another; in how many copies. */
  readonly moved: { up: number; down: number; copied: number; copies: number };
  /** Number of errors of the device, with or without a tensor that raises them. */
  errors: number;
  /** Buffers of ours that foreign code took, which are left to the garbage collector. */
  taken: number;
}

/**
 * Called with a fault that no read has raised.
 *
 * @param error - the fault
 * @param site - the number that Python gave the call, undefined for calls of JavaScript
 * @returns whether it has reported it
 */
export type FaultListener = (error: Error, site: number | undefined) => boolean;

/** One entry of the table of GPU buffers: tensors that share a hold on one. */
export interface Slot {
  buffer: GPUBuffer | null;
  record: DeviceRecord | null;
  /** The buffer's record. */
  facts: BufferRecord | null;
  /** JS tensors and C managed tensors that hold the slot. */
  refs: number;
  generation: number;
  /** Of a free slot: the one to use after it. */
  next: number;
  /** Called once when the last reference goes: notifies a lender. */
  release: (() => void) | null;
  /**
   * Bytes from the start up to the end of the whole tensor's elements; a fraction if they end
   * within a byte.
   */
  used: number;
  /** Bytes from the start of the buffer that belong to no other tensor. */
  end: number;
}

/** The devices and buffers of all copies of this library: C and Python know them by number. */
export const state = shared("webgpu", () => ({
  devices: [] as DeviceRecord[],
  slots: [] as Slot[],
  firstFree: 0,
  lastFree: 0,
  free: 0,
  /** Listeners for the faults of all devices, called after those of each. */
  listeners: new Set<FaultListener>(),
}));

/** A batch that records; batch.ts implements it. */
export interface Recorder {
  /** Records a call of a kernel instead of running it. */
  _record(kernel: object, args: readonly unknown[], options: object): void;
  /** Whether a recorded kernel writes to these bytes, or, for `writing`, uses them. */
  _uses(extent: Extent, writing: boolean): boolean;
}

/** The batch that records now, of any copy of the library. */
export const recording = shared("recording", () => ({ batch: null as Recorder | null }));
