import type { Pool } from "../webgpu/pool.js";
import { DLPackError, UnsupportedError } from "./errors.js";

/** A tensor's device, as DLPack names it. */
export interface Device {
  /** `DLDeviceType`: 1 = CPU, 15 = WebGPU. */
  readonly type: 1 | 15;
  /** 0 on CPU; on WebGPU the index in the table of registered devices. */
  readonly id: number;
  /** The `GPUDevice`; null on CPU. */
  readonly gpu: GPUDevice | null;
  /** "cpu" or "webgpu:0". */
  toString(): string;
}

/** Throws what is to be done instead of cloning or posting a tensor. */
export function unclonable(): never {
  throw new UnsupportedError(
    "tensors cannot be cloned or posted: post transfer() of a CPU tensor, what read() gives of a " +
      "WebGPU tensor",
  );
}

/** Describes a device. */
export function makeDevice<G extends GPUDevice | null>(
  type: 1 | 15,
  id: number,
  gpu: G,
  name: string,
) {
  return {
    /** What copies a tensor property by property comes here first. */
    get _clone(): never {
      return unclonable();
    },
    type,
    id,
    gpu,
    toString: () => name,
  };
}

/** What is known of one registered `GPUDevice`. Records are never removed: ids stay valid. */
export interface DeviceRecord {
  readonly device: Device & { readonly gpu: GPUDevice };
  /** Why the device was lost; null while it works. */
  lost: string | null;
  /** What the adapter would have allowed, where we asked it ourselves. */
  readonly adapterLimits: GPUSupportedLimits | null;
  /**
   * What the GPU answers about earlier work, in the order of that work: an error, or null, which
   * takes itself off the list. The next read throws the first error. They never reject.
   */
  readonly answers: Set<Promise<Error | null>>;
  /** Idle buffers that are used again. */
  readonly pool: Pool;
  /** Bytes uploaded, read back, and copied from one GPUBuffer to another; in how many copies. */
  readonly moved: { up: number; down: number; copied: number; copies: number };
  /** Buffers of ours that somebody took, so that they are left to the garbage collector. */
  taken: number;
}

/** One entry of the table of GPU buffers. */
export interface Slot {
  buffer: GPUBuffer | null;
  record: DeviceRecord | null;
  /** JS tensors and C managed tensors that hold the buffer. */
  refs: number;
  generation: number;
  /** Called once when the last reference goes: gives an owned buffer back, tells a lender. */
  release: (() => void) | null;
  /** Whether the buffer is ours and nobody else has seen it. */
  own: boolean;
  /** Bytes from the start of the buffer that are no other tensor's. */
  end: number;
  /** Bytes from the start that elements of the whole tensor lie in; padding is behind. */
  used: number;
}

/** What a lost tensor leaves behind for the net to release. */
export interface Hold {
  readonly storage: { release(handle: number): void };
  readonly handle: number;
  readonly label: string;
}

/** State that all copies of this library in one agent (page or worker) have in common. */
export interface Shared {
  readonly version: 1;
  /** Tensors made and not yet released. */
  live: number;
  /** Releases forgotten tensors; only there after `connect(pyodide, { debug: true })`. */
  net: FinalizationRegistry<Hold> | null;
  readonly devices: DeviceRecord[];
  readonly slots: Slot[];
  readonly freeSlots: number[];
  /** The Python seam of each connected Pyodide, by its module object. */
  readonly seams: WeakMap<object, object>;
}

const KEY = Symbol.for("dlpack-web");

function attach(): Shared {
  const scope = globalThis as { [KEY]?: Shared };
  const found = scope[KEY];
  if (found === undefined) {
    const made: Shared = {
      version: 1,
      live: 0,
      net: null,
      devices: [],
      slots: [],
      freeSlots: [],
      seams: new WeakMap(),
    };
    // Not enumerable: the page did not ask for this global.
    Object.defineProperty(globalThis, KEY, { value: made });
    return made;
  }
  if (found.version !== 1) {
    throw new DLPackError(
      `another version of dlpack-web is loaded (state ${found.version}, here 1): load one only`,
      { given: found.version, needed: 1 },
    );
  }
  return found;
}

/** A notebook may load this code twice (wheel and npm package); both must agree on GPU handles. */
export const shared: Shared = attach();

/** Number of tensors made by this library in this page or worker and not yet released. */
export function liveTensors(): number {
  return shared.live;
}
