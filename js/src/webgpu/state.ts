import type { Device } from "../core/device.js";
import type { GPUBuffer, GPUDevice, GPUSupportedLimits } from "../core/globals.js";
import { shared } from "../core/realm.js";
import type { Pool } from "./pool.js";
import type { BufferRecord } from "./record.js";

/** What is known of one registered `GPUDevice`. Records are never removed: ids stay valid. */
export interface DeviceRecord {
  readonly device: Device & { readonly gpu: GPUDevice };
  /** Why the device was lost; null while it works. */
  lost: string | null;
  /** What the adapter would have allowed, where we asked it ourselves. */
  readonly adapterLimits: GPUSupportedLimits | null;
  /** What Python's request_device() asked for; undefined where it did not make the device. */
  asked?: string;
  /** Who is told of faults that no reader asked for. */
  readonly listeners: Set<FaultListener>;
  /** Idle buffers that are used again. */
  readonly pool: Pool;
  /** Bytes uploaded, read back, and copied from one GPUBuffer to another; in how many copies. */
  readonly moved: { up: number; down: number; copied: number; copies: number };
  /** Number of errors of the device, with or without a tensor that raises them. */
  troubles: number;
  /** Buffers of ours that somebody took, so that they are left to the garbage collector. */
  taken: number;
}

/**
 * Is told of a fault that nobody asked for.
 *
 * @param site - the number that Python gave the call, undefined for calls of JavaScript
 * @returns whether it told it on, so that nobody else needs to
 */
export type FaultListener = (error: Error, site: number | undefined) => boolean;

/** One entry of the table of GPU buffers: tensors that share a hold on one. */
export interface Slot {
  buffer: GPUBuffer | null;
  record: DeviceRecord | null;
  /** What is known of the buffer. */
  facts: BufferRecord | null;
  /** JS tensors and C managed tensors that hold the slot. */
  refs: number;
  generation: number;
  /** Called once when the last reference goes: tells a lender. */
  release: (() => void) | null;
  /** Bytes from the start that elements of the whole tensor lie in, not whole where they end within one. */
  used: number;
  /** Bytes from the start of the buffer that are no other tensor's. */
  end: number;
}

/** The devices and buffers of all copies of this library: C and Python know them by number. */
export const state = shared("webgpu", () => ({
  devices: [] as DeviceRecord[],
  slots: [] as Slot[],
  freeSlots: [] as number[],
  /** Who is told of the faults of all devices, after the listeners of each. */
  listeners: new Set<FaultListener>(),
}));
