/** Checks a kernel's arguments against its shader's declarations. */
import { type DType, laneName } from "../core/dtype.js";
import { tagOf, textOf, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer } from "../core/globals.js";
import type { ManagedTensor } from "../core/managed.js";
import { isTensor, managedOf, type Tensor } from "../core/tensor.js";
import {
  allocate,
  capacityOf,
  checkCopySource,
  checkRowMajor,
  checkUsage,
  copyOf,
  extentOf,
  releaseSlot,
  roundUp,
  slotOf,
  slotOn,
} from "./buffers.js";
import type { Extent } from "./record.js";
import type { DeviceRecord } from "./state.js";
import { type Binding, DTYPES, type Scalar } from "./wgsl.js";

/** What a binding may be given: a number where the shader declares a uniform f32, i32 or u32. */
export type Argument = Tensor | number;

/** The same, or a tensor's inside. */
export type Given = Argument | ManagedTensor;

/** One argument, ready to be bound. */
export interface Bound {
  readonly resource: {
    readonly buffer: GPUBuffer;
    readonly offset: number;
    readonly size: number;
  };
  /** The elements that are bound. */
  readonly extent: Extent;
  /** A slot to release after the submit, or 0. */
  readonly temporary: number;
  /** Whether the shader may write to it. */
  readonly written: boolean;
  /** The tensor; null for a number. */
  readonly tensor: ManagedTensor | null;
  /** Whether the results are copied back after the pass, from a copy of the tensor. */
  readonly back: boolean;
  /** Whether it cannot be bound in place: {@link separate} binds a copy instead. */
  readonly aside: boolean;
}

/** The scalars of WGSL by DLPack's code and bits of a lane. */
const SCALARS: Record<string, Scalar> = {
  "2 32": "f32",
  "2 16": "f16",
  "0 32": "i32",
  "1 32": "u32",
  "5 64": "f32", // complex: pairs
  "5 32": "f16",
};

/** Throws UnsupportedError if a shader would misread the elements. */
export function checkDType({ packed, name }: DType, binding: Binding, what: string): void {
  const { scalar, atomic, value } = binding;
  const [code, bits] = [packed & 255, (packed >>> 8) & 255];
  if (scalar === null) return; // a structure: its size is checked
  if (SCALARS[`${code} ${bits}`] === scalar) return;
  // Narrower elements come as words of several each; WGSL has no type for them.
  if (scalar === "u32" && (bits < 32 || (bits === 32 && atomic && code < 2))) return;
  if (scalar === "i32" && atomic && code < 2 && bits === 32) return;
  throw new UnsupportedError(
    `${what} is ${name}, the shader's ${value} is of ${scalar}: ${wayOut(name, scalar)}`,
    { given: name, needed: scalar },
  );
}

function wayOut(dtype: string, scalar: Scalar): string {
  const to = narrowed(dtype);
  if (to) return wide(to);
  return (
    `give a tensor of ${DTYPES[scalar]}, or declare the shader otherwise (narrower types come as ` +
    "words of u32); check: false binds the bytes as they are"
  );
}

/** The dtype that an upload converts one of 64 bits to. */
export function narrowed(dtype: string): string | undefined {
  const narrower: Record<string, string> = {
    float64: "float32",
    complex128: "complex64",
    int64: "int32",
    uint64: "uint32",
  };
  return narrower[laneName(dtype)];
}

export const wide = (narrower: string) =>
  `WGSL has no 64-bit types; upload it with dtype "${narrower}"`;

/** Bytes that are bound for an argument; throws if the shader's type does not fit its size. */
function boundSize(
  arg: ManagedTensor,
  binding: Binding | undefined,
  check: boolean,
  what: string,
): number {
  const { nbytes } = arg;
  // No binding may be smaller than one element, and a uniform's size is a multiple of 16.
  const least = binding?.runtime ? Math.max(binding.stride, 4) : 4;
  const usual = Math.max(roundUp(nbytes, check && binding?.type === "uniform" ? 16 : 4), least);
  if (!check || binding === undefined || binding.stride === 0) return usual;
  const { stride, size, value, runtime } = binding;
  if (runtime && size < stride && nbytes % stride !== 0) {
    throw new UnsupportedError(
      `${what}: the elements of ${value} are ${stride} bytes apart, of which the last ` +
        `${stride - size} are padding; the tensor has none: declare array<${binding.scalar}>, or ` +
        "make its last axis 4",
      { given: nbytes, needed: stride },
    );
  }
  if (runtime) return Math.max(roundUp(nbytes, Math.max(stride, 4)), usual);
  if (nbytes >= stride) return usual;
  throw new UnsupportedError(`${what} has ${nbytes} bytes, the shader's ${value} needs ${stride}`, {
    given: nbytes,
    needed: stride,
  });
}

/** Number of array elements that the shader sees in a tensor; null if unknown. */
export function countOf(arg: ManagedTensor, binding: Binding): number | null {
  if (binding.stride === 0) return null;
  if (!binding.runtime) return null;
  return Math.ceil(arg.nbytes / binding.stride);
}

/**
 * The buffer range to bind for an argument, after checks of this argument alone; {@link separate}
 * then checks it against the others.
 */
export function bind(
  record: DeviceRecord,
  arg: Given,
  index: number,
  declared: Binding | undefined,
  check: boolean,
): Bound {
  if (typeof arg === "number") return bindNumber(record, arg, index, declared);
  const tensor = managedOf(arg);
  if (tensor === undefined) {
    throw new TypeError(`binding ${index} takes a tensor, not ${tagOf(arg)}${tensorOf(arg)}`);
  }
  const type = declared?.type;
  const slot = slotOn(record, tensor);
  checkRowMajor(tensor);
  const what = `binding ${index}: ${tensor.toString()}`;
  if (check && declared) checkDType(tensor.dtype, declared, what);
  // Without a parsed declaration it may be either; then WebGPU reports what is missing.
  if (type) checkUsage(tensor, type === "uniform" ? "UNIFORM" : "STORAGE", `binding ${index}`);
  if (tensor.readOnly && type === "storage") {
    throw new UnsupportedError(`${what} is read-only, the shader's binding is read_write`);
  }
  const size = boundSize(tensor, declared, check, what);
  checkLimit(record, size, type, what);
  const offset = tensor.start;
  const { limits } = record.device.gpu;
  const kind = type === "uniform" ? "Uniform" : "Storage";
  const bindable = offset % limits[`min${kind}BufferOffsetAlignment`] === 0;
  const written = type === "storage" || type === undefined;
  const resource = { buffer: slot.buffer, offset, size };
  const aside = !bindable || size > capacityOf(tensor);
  const extent = extentOf(tensor);
  return { resource, extent, temporary: 0, written, tensor, back: false, aside };
}

/** The end of a message: how to make a tensor of the value. */
function tensorOf(x: unknown): string {
  if (ArrayBuffer.isView(x)) return ": Tensor.from(array).to(device) makes one";
  const isBuffer = tagOf(x) === "[object GPUBuffer]";
  return isBuffer ? ": Tensor.fromGPUBuffer(buffer, { device, shape, dtype }) makes one" : "";
}

/** The only tensor of one of our own shaders, which declares only words. */
export function bindAlone(record: DeviceRecord, tensor: ManagedTensor, declared: Binding): Bound {
  const bound = bind(record, tensor, 0, declared, false);
  return bound.aside ? bindAside(record, bound, 0) : bound;
}

function checkLimit(
  record: DeviceRecord,
  size: number,
  type: GPUBufferBindingType | undefined,
  what: string,
): void {
  const limit = `max${type === "uniform" ? "Uniform" : "Storage"}BufferBindingSize` as const;
  const most = record.device.gpu.limits[limit];
  if (size <= most) return;
  const hint = `use a device from requestDevice({ ${limit}: ${size} })`;
  throw new UnsupportedError(
    `${what} needs ${size} bytes, of which ${most} can be bound: ${hint}`,
    { given: size, needed: most, device: record.device },
  );
}

/**
 * A copy, in a buffer of its own with zeros behind it: of a tensor at an offset that cannot be
 * bound, or that shares its last word or element with others.
 */
function bindAside(record: DeviceRecord, bound: Bound, index: number): Bound {
  const { written } = bound;
  const { size } = bound.resource;
  const arg = bound.tensor as ManagedTensor;
  checkCopySource(arg, "binding");
  if (written) {
    const what = `binding ${index}: ${arg.toString()}`;
    checkUsage(arg, "COPY_DST", what);
    if (roundUp(arg.nbytes, 4) > capacityOf(arg)) {
      throw new UnsupportedError(
        `${what} shares its last word of 4 bytes with a neighbour, which the shader may write to: ` +
          "give it a buffer of its own (a copy), or a multiple of 4 bytes",
        { given: arg.nbytes, device: record.device },
      );
    }
  }
  const temporary = copyOf(arg, { padTo: roundUp(size, 16) });
  const { facts } = slotOf(temporary);
  const resource = { buffer: facts.buffer, offset: 0, size };
  const extent = { facts, start: 0, end: arg.nbytes };
  return { resource, extent, temporary, written, tensor: arg, back: written, aside: false };
}

/** @internal A number as the uniform that the shader declares, padded to 16 bytes. */
export function packNumber(
  value: number,
  index: number,
  declared: Binding | undefined,
): Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> {
  const kinds = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };
  const single = declared?.type === "uniform" && declared.stride === 4;
  const Kind = single && kinds[declared.scalar as keyof typeof kinds];
  if (!Kind) {
    throw new TypeError(
      `binding ${index} takes a tensor: numbers are for var<uniform> of f32, i32 and u32`,
    );
  }
  const data = new Kind(4);
  data[0] = value;
  const rounded = Kind === Float32Array && Number.isFinite(data[0]) === Number.isFinite(value);
  if (rounded || data[0] === value) return data;
  throw new RangeError(`binding ${index}: ${value} is not a valid ${declared.scalar}`);
}

/** A number for a uniform, in a buffer until the submit. */
function bindNumber(
  record: DeviceRecord,
  value: number,
  index: number,
  declared: Binding | undefined,
): Bound {
  const data = packNumber(value, index, declared);
  const temporary = allocate(record, data.byteLength);
  const { facts } = slotOf(temporary);
  try {
    record.device.gpu.queue.writeBuffer(facts.buffer, 0, data);
  } catch (error) {
    releaseSlot(temporary);
    throw error;
  }
  const resource = { buffer: facts.buffer, offset: 0, size: 16 };
  const extent = { facts, start: 0, end: 16 };
  return {
    ...{ resource, extent, temporary, written: false },
    ...{ tensor: null, back: false, aside: false },
  };
}

/**
 * The arguments as WebGPU takes them together. Two that are written must not overlap. Arguments
 * that cannot be bound in place, or that are read from a buffer that is bound for writing, are
 * copied.
 */
export function separate(record: DeviceRecord, bound: Bound[]): void {
  refuseOverlaps(bound);
  bound.forEach((one, i) => {
    if (!one.aside && (one.written || !isWrittenThere(one, bound))) return;
    bound[i] = bindAside(record, one, i);
  });
}

/** Whether the buffer is bound for writing, too. */
function isWrittenThere({ resource }: Bound, bound: readonly Bound[]): boolean {
  return bound.some((b) => b.written && !b.aside && b.resource.buffer === resource.buffer);
}

function refuseOverlaps(bound: readonly Bound[]): void {
  // Padding is written only where it is bound.
  const end = ({ resource, aside, tensor }: Bound) =>
    resource.offset + (aside && tensor ? tensor.nbytes : resource.size);
  bound.forEach((a, j) => {
    if (!a.written) return;
    for (let i = j + 1; i < bound.length; i++) {
      const b = bound[i] as Bound;
      if (!b.written || a.resource.buffer !== b.resource.buffer) continue;
      const start = Math.max(a.resource.offset, b.resource.offset);
      if (start >= Math.min(end(a), end(b))) continue;
      throw new UnsupportedError(
        `arguments ${j} and ${i} of the kernel overlap, and both are read_write: give one of ` +
          "them a copy",
      );
    }
  });
}

/** Arguments by their positions, for `batch.update`. */
export function byPosition(given: unknown): [at: number, value: Given][] {
  if (typeof given !== "object" || isTensor(given)) {
    throw new TypeError(
      `args of update() are the new arguments by position, { 0: tensor }, not ${textOf(given)}`,
    );
  }
  return Object.entries(given as object).map(([name, value]) => {
    if (/^(?:0|-?[1-9]\d{0,9})$/.test(name)) return [Number(name), value];
    throw new TypeError(`args of update() are by position, { 0: tensor }, and none is "${name}"`);
  });
}
