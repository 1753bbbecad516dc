/** Binds a kernel's arguments to what its shader declares. */
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { managedOf } from "../../core/tensor.js";
import { checkCopySource, checkRowMajor, checkUsage } from "../buffers/checks.js";
import { copyInto } from "../buffers/copies.js";
import { allocate, Words } from "../buffers/pool.js";
import { capacityIn, extentIn, type LiveSlot, roundUp } from "../buffers/slot.js";
import { filled, releaseSlot, slotOn } from "../buffers/table.js";
import type { DeviceRecord } from "../device/device.js";
import type { BufferRecord, Extent } from "../errors/record.js";
import * as messages from "../messages.js";
import {
  boundSize,
  checkArgumentCount,
  checkDType,
  checkLimit,
  checkWorkgroups,
  type Given,
  packNumber,
  type RunOptions,
  tensorOf,
  usualWorkgroups,
} from "./checks.js";
import type { Binding, Shader } from "./wgsl.js";

/** One argument, ready to be bound. */
export interface Bound {
  readonly resource: {
    readonly buffer: GPUBuffer;
    readonly offset: number;
    readonly size: number;
  };
  /** The elements that are bound. */
  readonly extent: Extent;
  /**
   * The handle of a copy, or of a number, to release after the submit; or 0. What the shader writes to a
   * copy goes back to the tensor.
   */
  readonly temporary: number;
  /** Whether the shader may write to it. */
  readonly written: boolean;
  /** The tensor and its slot; null for a number. */
  readonly tensor: ManagedTensor | null;
  readonly slot: LiveSlot | null;
  /** Whether it cannot be bound in place: {@link resolveAliasing} binds a copy instead. */
  readonly mustCopy: boolean;
}

export type BoundTensor = Bound & { readonly tensor: ManagedTensor; readonly slot: LiveSlot };

const COMPUTE = 4; // GPUShaderStage.COMPUTE

/** @internal The layout of the bind groups of a shader. */
export function bindGroupLayout(gpu: GPUDevice, bindings: readonly Binding[]): GPUBindGroupLayout {
  return gpu.createBindGroupLayout({
    entries: bindings.map(({ index, type }) => ({
      binding: index,
      visibility: COMPUTE,
      buffer: { type },
    })),
  });
}

/** What a call is checked against: a `Kernel`. */
interface Callee {
  readonly _device: DeviceRecord;
  readonly _label: string;
  readonly _shader: Shader;
  readonly _check: boolean;
}

/** A call that passed all checks. Release the temporary slots of `bound` after its last submit. */
export interface Prepared {
  readonly bound: readonly Bound[];
  readonly groups: readonly [number, number, number];
}

/**
 * Checks the arguments and counts of a call, and copies what cannot be bound. `uniformOf` gives the
 * buffer of a number if the call runs before any other of the kernel; else each has one of its own.
 */
export function prepare(
  { _device: device, _label: label, _shader: shader, _check: check }: Callee,
  args: readonly Given[],
  workgroups: RunOptions["workgroups"],
  uniformOf?: (value: number, index: number) => BufferRecord,
): Prepared {
  const { bindings } = shader;
  checkArgumentCount(label, bindings, args.length);
  const groups = checkWorkgroups(device, workgroups ?? usualWorkgroups(label, shader, args));
  const bound: Bound[] = [];
  try {
    for (const [i, arg] of args.entries()) {
      bound.push(
        uniformOf && typeof arg === "number"
          ? boundNumber(uniformOf(arg, i))
          : bind(device, arg, i, bindings?.[i], check),
      );
    }
    resolveAliasing(device, bound);
    return { bound, groups };
  } catch (error) {
    releaseBound(bound);
    throw error;
  }
}

/**
 * The buffer range to bind for an argument, after checks of this argument alone; {@link resolveAliasing}
 * then checks it against the others.
 */
function bind(
  device: DeviceRecord,
  arg: Given,
  index: number,
  declared: Binding | undefined,
  check: boolean,
): Bound {
  if (typeof arg === "number") return bindNumber(device, arg, index, declared);
  if (arg instanceof Words) return boundNumber(arg.buffer);
  const tensor = managedOf(arg);
  if (tensor === undefined) {
    throw new TypeError(`binding ${index} takes a tensor, not ${tagOf(arg)}${tensorOf(arg)}`);
  }
  const type = declared?.type;
  const slot = slotOn(device, tensor);
  checkRowMajor(tensor);
  const what = `binding ${index}: ${tensor.toString()}`;
  if (check && declared) checkDType(tensor.dtype, declared, what);
  // Without a parsed declaration it may be either; then WebGPU reports what is missing.
  if (type)
    checkUsage(slot, tensor, type === "uniform" ? "UNIFORM" : "STORAGE", `binding ${index}`);
  if (tensor.readOnly && type === "storage") {
    throw new UnsupportedError(messages.readOnly(what));
  }
  const size = boundSize(tensor, declared, check, what);
  checkLimit(device, size, type, what);
  const offset = tensor.start;
  const { limits } = device.gpu;
  const kind = type === "uniform" ? "Uniform" : "Storage";
  const bindable = offset % limits[`min${kind}BufferOffsetAlignment`] === 0;
  const written = type === "storage" || type === undefined;
  const resource = { buffer: slot.buffer.gpu, offset, size };
  const mustCopy = !bindable || size > capacityIn(slot, tensor);
  const extent = extentIn(slot, tensor);
  return { resource, extent, temporary: 0, written, tensor, slot, mustCopy };
}

/** How shaders of our own see their only tensor. */
const WORDS: Omit<Binding, "type"> = {
  index: 0,
  name: "words",
  value: "array<u32>",
  scalar: "u32",
  atomic: false,
  stride: 4,
  element: 4,
  align: 0,
  runtime: true,
};

/** Calls `use`, which submits a shader of ours, with a tensor for its `@binding(0)`. */
export function withWords<R>(
  device: DeviceRecord,
  tensor: ManagedTensor,
  type: "storage" | "read-only-storage",
  use: (bound: BoundTensor) => R,
): R {
  const given = bind(device, tensor, 0, { ...WORDS, type }, false);
  const bound = given.mustCopy ? bindCopy(device, given, 0) : given;
  try {
    return use(bound as BoundTensor);
  } finally {
    releaseBound([bound]);
  }
}

/**
 * A copy, in a buffer of its own with zeros behind it: of a tensor at an offset that cannot be
 * bound, or that shares its last word or element with others.
 */
function bindCopy(device: DeviceRecord, bound: Bound, index: number): Bound {
  const { written } = bound;
  const { size } = bound.resource;
  const arg = bound.tensor as ManagedTensor;
  const slot = bound.slot as LiveSlot;
  checkCopySource(slot, arg, "binding");
  if (written) {
    const what = `binding ${index}: ${arg.toString()}`;
    checkUsage(slot, arg, "COPY_DST", what);
    if (roundUp(arg.nbytes, 4) > capacityIn(slot, arg)) {
      throw new UnsupportedError(messages.sharedWord(what), {
        given: arg.nbytes,
        device: device.named,
      });
    }
  }
  const empty = allocate(device, arg.exact, { padTo: roundUp(size, 16) });
  const { handle, buffer } = filled(empty, (copy) => copyInto(arg, slot, copy, 0));
  const resource = { buffer: buffer.gpu, offset: 0, size };
  const extent = { buffer, start: 0, end: arg.nbytes };
  return { resource, extent, temporary: handle, written, tensor: arg, slot, mustCopy: false };
}

/** A number for a uniform, in a buffer until the submit. */
function bindNumber(
  device: DeviceRecord,
  value: number,
  index: number,
  declared: Binding | undefined,
): Bound {
  const data = packNumber(value, index, declared);
  const { handle, buffer } = filled(allocate(device, data.byteLength), ({ gpu }) =>
    device.gpu.queue.writeBuffer(gpu, 0, data),
  );
  return boundNumber(buffer, handle);
}

/** A number, or words, in a buffer of their own. */
function boundNumber(buffer: BufferRecord, temporary = 0): Bound {
  const { gpu } = buffer;
  const { size } = gpu;
  const resource = { buffer: gpu, offset: 0, size };
  const extent = { buffer, start: 0, end: size };
  const isRead = { written: false, tensor: null, slot: null, mustCopy: false };
  return { resource, extent, temporary, ...isRead };
}

/** Releases the slots that are only for a submit. */
export function releaseBound(bound: readonly Bound[]): void {
  for (const { temporary } of bound) if (temporary) releaseSlot(temporary);
}

/**
 * The arguments as WebGPU takes them together. Two that are written must not overlap. Arguments
 * that cannot be bound in place, or that are read from a buffer that is bound for writing, are
 * copied.
 */
function resolveAliasing(device: DeviceRecord, bound: Bound[]): void {
  refuseOverlaps(bound);
  bound.forEach((one, i) => {
    if (!one.mustCopy && (one.written || !isWrittenThere(one, bound))) return;
    bound[i] = bindCopy(device, one, i);
  });
}

/** Whether the buffer is bound for writing, too. */
function isWrittenThere({ resource }: Bound, bound: readonly Bound[]): boolean {
  return bound.some((b) => b.written && !b.mustCopy && b.resource.buffer === resource.buffer);
}

function refuseOverlaps(bound: readonly Bound[]): void {
  // Padding is written only where it is bound.
  const end = ({ resource, mustCopy, tensor }: Bound) =>
    resource.offset + (mustCopy && tensor ? tensor.nbytes : resource.size);
  bound.forEach((a, j) => {
    if (!a.written) return;
    for (let i = j + 1; i < bound.length; i++) {
      const b = bound[i] as Bound;
      if (!b.written || a.resource.buffer !== b.resource.buffer) continue;
      const start = Math.max(a.resource.offset, b.resource.offset);
      if (start >= Math.min(end(a), end(b))) continue;
      throw new UnsupportedError(messages.overlap(j, i));
    }
  });
}
