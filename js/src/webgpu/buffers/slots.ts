/**
 * The table of GPU buffers by handle. It has the policy of wasm/handles.h, which says how long a stale
 * handle is refused and why handles never run out; both are tested with tests/handles/vectors.json.
 */
import { DLPackError } from "../../core/errors.js";
import type { Slot } from "../device/state.js";

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

/** A free slot, which comes into use with this generation. */
function freeSlot(generation: number): Slot {
  return {
    buffer: null,
    record: null,
    facts: null,
    release: null,
    refs: 0,
    used: 0,
    end: 0,
    generation,
    next: 0,
  };
}

/** Enters a buffer into a slot, whose generation is set; returns its handle. */
export function enter(table: SlotTable, slot: Slot, sizes: Sizes = SIZES): number {
  const index = takeFree(table, sizes);
  slot.generation = table.slots[index]?.generation ?? 0;
  table.slots[index] = slot;
  return (index | (slot.generation << sizes.slotBits)) >>> 0;
}

/** The slot of a handle; undefined for a stale or forged one. */
export function find(table: SlotTable, handle: number, sizes: Sizes = SIZES): Slot | undefined {
  const slot = table.slots[handle & ((1 << sizes.slotBits) - 1)];
  return slot?.facts && slot.generation === handle >>> sizes.slotBits ? slot : undefined;
}

/** Frees the slot of a handle that {@link find} finds. */
export function leave(table: SlotTable, handle: number, sizes: Sizes = SIZES): void {
  const index = handle & ((1 << sizes.slotBits) - 1);
  const { slots } = table;
  const generation = ((slots[index] as Slot).generation + 1) & ((1 << sizes.generationBits) - 1);
  slots[index] = freeSlot(generation);
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
