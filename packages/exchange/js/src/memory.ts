/** The memory of an offer: bytes on the CPU or in a `GPUBuffer`. */
import { readBuffer } from "./device.js";
import { skip } from "./report.js";
import type { BufferLike, DeviceLike } from "./types.js";
import type { Kind } from "./values.js";

export interface OfferMemory {
  /** `data` of an exchange, of the bytes from `start` to `stop`. */
  data(start: number, stop: number): object;
  /** Overwrites all of it. */
  write(bytes: Uint8Array<ArrayBuffer>): void;
  /** All of it, as it is now or after submitted work. */
  read(): Promise<Uint8Array>;
  /** Moves it elsewhere, if it can. */
  grow?(): void;
  /** Ends it. */
  free?(): void;
}

export type ArrayPlace = "array" | "bytes" | "DataView" | "shared" | "memory" | "holder";
type ViewClass = {
  new (buffer: ArrayBufferLike, offset: number, length?: number): ArrayBufferView;
  readonly BYTES_PER_ELEMENT: number;
};

const CLASSES: Record<string, ViewClass> = {
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
};

export function arrayMemory(size: number, place: ArrayPlace, kind: Kind): OfferMemory {
  if (place === "shared" && typeof SharedArrayBuffer === "undefined") {
    skip("there is no SharedArrayBuffer here");
  }
  const moves = place === "memory" || place === "holder";
  const memory = moves
    ? new WebAssembly.Memory({ initial: 1 })
    : { buffer: place === "shared" ? new SharedArrayBuffer(size) : new ArrayBuffer(size) };
  const holder = {
    get buffer() {
      return memory.buffer;
    },
  };
  const bytes = () => new Uint8Array(memory.buffer, 0, size);
  const View = (place !== "bytes" && CLASSES[kind.name]) || Uint8Array;
  return {
    data(start, stop) {
      if (place === "memory") return { memory, ptr: start };
      if (place === "holder") return { memory: holder, ptr: start };
      if (place === "DataView") return new DataView(memory.buffer, start, stop - start);
      return new View(memory.buffer, start, Math.floor((stop - start) / View.BYTES_PER_ELEMENT));
    },
    write: (image) => bytes().set(image),
    read: async () => bytes().slice(),
    grow() {
      if (memory instanceof WebAssembly.Memory) memory.grow(1);
    },
  };
}

export function deviceMemory(size: number, device: DeviceLike, usage: number): OfferMemory {
  const buffer: BufferLike = device.createBuffer({ size: Math.max(size, 4), usage: usage | 4 | 8 });
  return {
    data: () => buffer,
    write: (image) => device.queue.writeBuffer(buffer, 0, image),
    read: () => readBuffer(device, buffer, 0, size),
    free: () => buffer.destroy(),
  };
}
