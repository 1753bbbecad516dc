import { registered } from "../device/device.js";
import { table } from "./table.js";

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

/** Memory and work of each registered device, in the order of their ids. */
export function stats(): DeviceStats[] {
  return registered.devices.map((device) => {
    const { named, lost, moved, pool, escaped: taken } = device;
    const { idleBytes = 0, created = 0, reused = 0 } = pool ?? {};
    const found = table.slots.filter((slot) => slot.device === device);
    const bytes = found.reduce((sum, { buffer }) => sum + (buffer?.gpu.size ?? 0), 0);
    const buffers = { device: `${named}`, lost, buffers: found.length, bytes };
    return { ...buffers, idleBytes, created, reused, ...moved, taken };
  });
}
