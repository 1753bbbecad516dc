/** The fields of an exchange, checked by rules F and S and then used to read it. */
import { readBuffer } from "./device.js";
import { broken, isThenable, show } from "./report.js";
import type { BufferLike, DeviceLike } from "./types.js";
import { get, type Kind, kindOf, positions } from "./values.js";

/** `{ memory, ptr }` (S2). */
interface Moving {
  readonly memory: { readonly buffer: ArrayBufferLike };
  readonly ptr: number;
}

/** The fields of an exchange, each read once. */
export type Fields = ReturnType<typeof describe>;

const MAX_NDIM = 64;
/** The minor version of the text that this suite goes by. */
const NEWEST = 1;

/** Throws Broken("M2") for a promise, and M1 for anything but a plain object. */
export function checkObject(exchange: unknown): asserts exchange is Record<string, unknown> {
  if (isThenable(exchange)) {
    Promise.resolve(exchange as PromiseLike<{ release?(): void }>).then(
      (late) => late?.release?.(),
      () => {},
    );
    broken("M2", "the method returned a promise");
  }
  if (typeof exchange !== "object" || exchange === null || Array.isArray(exchange)) {
    broken("M1", `the method returned ${show(exchange)}, which is not an exchange`);
  }
  const prototype = Object.getPrototypeOf(exchange);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    broken("M1", "the exchange is not a plain object");
  }
}

/** @param wanted - what the factory was asked for */
export function describe(exchange: unknown, wanted: { kind: Kind; shape: readonly number[] }) {
  checkObject(exchange);
  const { version, device, dtype, shape, strides, data, byteOffset, capacity, flags } = exchange;
  const { flush, fault = null, release } = exchange;
  const minor = checkVersion(version);
  if (typeof flush !== "function") broken("F10", `flush is ${show(flush)}`);
  if (typeof release !== "function") broken("F11", `release is ${show(release)}`);
  const gpu = deviceOf(device);
  if (fault !== null && typeof fault !== "function") broken("F15", `fault is ${show(fault)}`);
  if (fault !== null && !gpu) broken("F15", "fault() is there, though the tensor is on the CPU");
  const mask = whole("F9", "flags", flags, 0);
  if (mask > 15 && minor <= NEWEST) broken("F9", `flags are ${mask}: those above 8 mean nothing`);
  const kind = kindIn(dtype, wanted.kind);
  const dims = list("F4", "shape", shape, 0);
  if (dims.length > MAX_NDIM) broken("F4", `shape has ${dims.length} dimensions`);
  if (!equal(dims, wanted.shape)) broken("F4", `shape is ${show(dims)}, not ${show(wanted.shape)}`);
  const steps = strides === null ? null : list("F5", "strides", strides);
  if (steps && steps.length !== dims.length) {
    broken("F5", `strides ${show(steps)} are not as many as dimensions`);
  }
  const small = kind.bits < 8;
  const padded = (mask & 4) !== 0;
  if (padded && !small) broken("F13", `flag 4 is set, though ${kind.name} has whole bytes`);
  if (small && !padded && steps) broken("F13", `packed ${kind.name} has strides ${show(steps)}`);
  const { before, bytes } = bytesIn(data, gpu);
  const start = whole("F7", "byteOffset", byteOffset, 0);
  const own = whole("F8", "capacity", capacity, 0);
  const step = small && padded ? 8 : kind.bits;
  const places = positions(dims, steps);
  const least = places.reduce((a, b) => Math.min(a, b), 0);
  const most = places.reduce((a, b) => Math.max(a, b), -1);
  const from = start + Math.floor((least * step) / 8);
  const to = start + Math.ceil(((most + 1) * step) / 8);
  if (places.length > 0 && (from < -before || to > bytes)) {
    broken("S1", `its elements are the bytes ${from} to ${to} of data, which has ${bytes}`);
  }
  if (places.length > 0 && start + own < to) {
    broken("S5", `capacity ${own} ends before the last element`);
  }
  if (own > 0 && start + own > bytes) {
    const rule = places.length > 0 ? "S5" : "S9";
    broken(rule, `capacity ${own} from byte ${start} on leaves data, which has ${bytes}`);
  }
  return {
    kind,
    gpu,
    shape: dims,
    strides: steps,
    data: data as BufferLike | ArrayBufferView | Moving,
    byteOffset: start,
    capacity: own,
    flags: mask,
    /** Bits from an element to the next. */
    step,
    positions: places,
    /** Bytes of `data` from the first element to the end of the last. */
    from,
    to,
    flush: flush as () => unknown,
    /** null where there is none. */
    fault: fault as (() => unknown) | null,
    release: release as (wrote?: boolean) => unknown,
  };
}

/** A copy of bytes of `data`, counted from its start. GPU work is submitted at once. */
export async function bytesOf(
  { data, gpu }: Fields,
  from: number,
  to: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (gpu) return readBuffer(gpu, data as BufferLike, from, to);
  const { buffer, start } = placeOf({ data });
  return new Uint8Array(buffer as ArrayBuffer, start + from, to - from).slice();
}

/** The components of the elements in row-major order, as they are now. */
export async function elements(fields: Fields): Promise<(number | bigint)[]> {
  const { kind, step, positions, from, to, byteOffset } = fields;
  if (positions.length === 0) return [];
  const bytes = await bytesOf(fields, from, to);
  const view = new DataView(bytes.buffer);
  const first = (byteOffset - from) * 8;
  return positions.flatMap((position) =>
    Array.from({ length: kind.parts }, (_, part) =>
      get(view, kind, first + position * step + part * kind.width),
    ),
  );
}

/** The memory that an exchange's `data` is in, and the byte of it where `data` starts. */
export function placeOf({ data }: Pick<Fields, "data">): { buffer: object; start: number } {
  if (ArrayBuffer.isView(data)) return { buffer: data.buffer, start: data.byteOffset };
  if ("memory" in data) return { buffer: data.memory.buffer, start: data.ptr };
  return { buffer: data, start: 0 };
}

/** Whether the bytes of two exchanges overlap. */
export function overlap(a: Fields, b: Fields): boolean {
  const [x, y] = [placeOf(a), placeOf(b)];
  const end = (f: Fields) => f.byteOffset + f.capacity;
  if (x.buffer !== y.buffer) return false;
  return x.start + a.from < y.start + end(b) && y.start + b.from < x.start + end(a);
}

/** The minor version. */
function checkVersion(version: unknown): number {
  const [major, minor] = Array.isArray(version) && version.length === 2 ? version : [];
  if (major !== 1 || !Number.isSafeInteger(minor) || minor < 0) {
    broken("F1", `version is ${show(version)}, not [1, ${NEWEST}]`);
  }
  return minor;
}

function deviceOf(device: unknown): DeviceLike | null {
  const { type, id, gpu } = Object(device) as { type: unknown; id: unknown; gpu: unknown };
  if (typeof id !== "number") broken("F2", `device.id is ${show(id)}`);
  if (type === 1 && gpu === null) return null;
  if (type === 15 && typeof gpu === "object" && gpu !== null) return gpu as DeviceLike;
  return broken("F2", `device has type ${show(type)} and gpu ${show(gpu)}`);
}

function kindIn(dtype: unknown, wanted: Kind): Kind {
  const { code, bits, lanes } = Object(dtype) as { code: unknown; bits: unknown; lanes: unknown };
  // S8: a producer whose shaders have 32 bits for a bool says int32.
  const kinds = wanted.name === "bool" ? [wanted, kindOf("int32") as Kind] : [wanted];
  const kind = kinds.find((each) => each.code === code && each.bits === bits && lanes === 1);
  const said = `code ${show(code)}, bits ${show(bits)}, lanes ${show(lanes)}`;
  return kind ?? broken("F3", `dtype is ${said}, which is not ${wanted.name}`);
}

/** Bytes that `data` has from where `byteOffset` counts, and those before. */
function bytesIn(data: unknown, gpu: object | null): { before: number; bytes: number } {
  if (typeof data !== "object" || data === null) broken("F6", `data is ${show(data)}`);
  if (gpu) {
    const { size } = data as BufferLike;
    return {
      before: 0,
      bytes: typeof size === "number" ? size : broken("F6", "data is not a GPUBuffer"),
    };
  }
  if (ArrayBuffer.isView(data)) return { before: 0, bytes: data.byteLength };
  const { memory, ptr } = data as Moving;
  const room = memory?.buffer?.byteLength;
  if (typeof room !== "number") {
    broken("F6", "data is neither a typed array nor a DataView, and has no memory with a buffer");
  }
  const before = whole("F6", "data.ptr", ptr, 0);
  return { before, bytes: room - before };
}

function list(rule: string, field: string, value: unknown, least?: number): number[] {
  if (!Array.isArray(value)) broken(rule, `${field} is ${show(value)}, which is not an array`);
  return value.map((n, i) => whole(rule, `${field}[${i}]`, n, least));
}

function whole(rule: string, field: string, n: unknown, least = -Infinity): number {
  if (typeof n !== "number") broken(rule, `${field} is ${show(n)}, which is not a number`);
  if (!Number.isSafeInteger(n)) broken("F12", `${field} is ${n}, which is not an exact integer`);
  return n >= least ? n : broken(rule, `${field} is ${n}`);
}

function equal(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}
