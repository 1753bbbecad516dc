/**
 * The table of GPU buffers by the handles that tensors have, with their references. It has the policy of
 * wasm/handles.h, which says how long a stale handle is refused and why handles never run out; both
 * are tested with tests/handles/vectors.json.
 */
import { DeviceError, DLPackError, quietly, ReleasedError } from "../../core/errors.js";
import type { ManagedTensor } from "../../core/managed.js";
import { shared } from "../../core/realm.js";
import { type DeviceRecord, nameOf } from "../device/device.js";
import { type BufferRecord, type Extent, forget, migrate } from "../errors/record.js";
import { extentIn, type LiveSlot, type Slot } from "./slot.js";

/** Slots, of which 0 is never used; the free ones are a queue. */
export interface SlotTable {
  readonly slots: Slot[];
  /** Of the queue: the ends, and the number of slots. */
  firstFree: number;
  lastFree: number;
  free: number;
}

/** A handle has 32 bits, and 0 is DLPack's NULL. */
const SIZES = { slotBits: 20, generationBits: 12, free: 256 } as const;

/** Bits of handles, and how many slots stay free; tests have tiny tables. */
export type Sizes = { readonly [name in keyof typeof SIZES]: number };

/** The buffers of all copies of this library: C and Python know them by handle. */
export const table: SlotTable = shared("slots", () => ({
  slots: [],
  firstFree: 0,
  lastFree: 0,
  free: 0,
}));

function freeSlot(handle: number): Slot {
  return { handle, device: null, buffer: null, release: null, refs: 0, used: 0, end: 0, next: 0 };
}

/** Enters a slot, and sets its handle, which it returns. */
export function enter(table: SlotTable, slot: Slot, sizes: Sizes = SIZES): number {
  const index = takeFree(table, sizes);
  slot.handle = table.slots[index]?.handle ?? index;
  table.slots[index] = slot;
  return slot.handle;
}

/** The slot of a handle; undefined for a stale or forged one. */
export function find(table: SlotTable, handle: number, sizes: Sizes = SIZES): Slot | undefined {
  const slot = table.slots[handle & ((1 << sizes.slotBits) - 1)];
  return slot?.buffer && slot.handle === handle ? slot : undefined;
}

/** Frees the slot of a handle that {@link find} finds. */
export function leave(table: SlotTable, handle: number, sizes: Sizes = SIZES): void {
  const { slots } = table;
  const { slotBits, generationBits } = sizes;
  const index = handle & ((1 << slotBits) - 1);
  const generation = ((handle >>> slotBits) + 1) & ((1 << generationBits) - 1);
  slots[index] = freeSlot((index | (generation << slotBits)) >>> 0);
  if (table.free === 0) table.firstFree = index;
  else (slots[table.lastFree] as Slot).next = index;
  table.lastFree = index;
  table.free++;
}

/** The slot that was freed first, if more than `free` are, or a new one. */
function takeFree(table: SlotTable, { slotBits, free }: Sizes): number {
  const { slots } = table;
  if (slots.length === 0) slots.push(freeSlot(0));
  const most = (1 << slotBits) - 1 - free;
  if (slots.length - 1 - table.free === most) {
    throw new DLPackError(`more than ${most} GPU tensors at once`);
  }
  if (table.free <= free) return slots.length;
  const index = table.firstFree;
  table.firstFree = (slots[index] as Slot).next;
  table.free--;
  return index;
}

// --- references -----------------------------------------------------------------------------------

/** Enters a buffer into the table, with one reference. */
export function addSlot(
  device: DeviceRecord,
  buffer: BufferRecord,
  more: Partial<Pick<Slot, "release" | "used" | "end">> = {},
): LiveSlot {
  const { size } = buffer.gpu;
  const { release = null, used = size, end = size } = more;
  const slot = { handle: 0, device, buffer, release, refs: 1, used, end, next: 0 };
  enter(table, slot);
  buffer.slots++;
  return slot;
}

/** The slot of a handle; throws ReleasedError for a stale or forged one. */
export function slotOf(handle: number): LiveSlot {
  const slot = find(table, handle) as LiveSlot | undefined;
  if (slot) {
    migrate(slot.buffer);
    return slot;
  }
  throw new ReleasedError(`GPU handle 0x${handle.toString(16)} is not (or no longer) in use`, {
    given: handle,
  });
}

/** The slot of a tensor that must be on this device; else DeviceError naming both. */
export function slotOn(device: DeviceRecord, tensor: ManagedTensor): LiveSlot {
  tensor.check();
  const slot = tensor.isOnGPU ? slotOf(tensor.handle) : null;
  if (slot?.device === device) return slot;
  throw new DeviceError(
    `${tensor.dtype.name}[${tensor.shape}] on ${slot ? nameOf(slot.device) : "cpu"} cannot be used on ` +
      `${nameOf(device)}: ${slot ? "devices do not share buffers; await read() it, then " : ""}` +
      "upload it with to(gpuDevice)",
    { device: device.named },
  );
}

/** The bytes of a tensor on a GPU: {@link extentIn}. */
export function extentOf(tensor: ManagedTensor): Extent {
  return extentIn(slotOf(tensor.handle), tensor);
}

/** Adds a reference. */
export function retainSlot(handle: number): LiveSlot {
  const slot = slotOf(handle);
  slot.refs++;
  return slot;
}

/** Drops a reference; the last one releases the buffer. Never throws: C calls it as well. */
export function releaseSlot(handle: number): void {
  quietly(() => {
    const slot = slotOf(handle);
    if (--slot.refs > 0) return;
    const { release, device, buffer } = slot;
    leave(table, handle);
    if (--buffer.slots === 0) dispose(device, buffer);
    release?.();
  });
}

/** A slot whose elements `fill` writes; if that throws, the slot is released. */
export function filled(slot: LiveSlot, fill: (buffer: BufferRecord) => void): LiveSlot {
  try {
    fill(slot.buffer);
    return slot;
  } catch (error) {
    releaseSlot(slot.handle);
    throw error;
  }
}

/** Disposes of a buffer without tensors. */
export function dispose(device: DeviceRecord, buffer: BufferRecord): void {
  const { gpu, origin, escaped } = buffer;
  // Its owner keeps using it.
  if (origin === "others") forget(buffer);
  else if (origin === "single") gpu.destroy();
  else if (device.lost === null && !escaped) device.pool?.give(buffer, device.errors);
}
