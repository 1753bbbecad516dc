/** Binds a kernel's arguments to what its shader declares. */
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { managedOf } from "../../core/tensor.js";
import { copyOf } from "../buffers/buffers.js";
import { checkCopySource, checkRowMajor, checkUsage, slotOn } from "../buffers/checks.js";
import { allocate, Words } from "../buffers/making.js";
import { capacityOf, extentOf, releaseSlot, roundUp, slotOf } from "../buffers/references.js";
import type { DeviceRecord } from "../device/state.js";
import type { BufferRecord, Extent } from "../errors/record.js";
import { boundSize, checkDType, checkLimit, type Given, packNumber, tensorOf } from "./checks.js";
import type { Binding } from "./wgsl.js";

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
   * The slot of a copy, or of a number, to release after the submit; or 0. What the shader writes to a
   * copy goes back to the tensor.
   */
  readonly temporary: number;
  /** Whether the shader may write to it. */
  readonly written: boolean;
  /** The tensor; null for a number. */
  readonly tensor: ManagedTensor | null;
  /** Whether it cannot be bound in place: {@link resolveAliasing} binds a copy instead. */
  readonly mustCopy: boolean;
}

const COMPUTE = 4; // GPUShaderStage.COMPUTE

/** @internal The layout of the bind groups of a shader. */
export function bindGroupLayout(
  device: GPUDevice,
  bindings: readonly Binding[],
): GPUBindGroupLayout {
  return device.createBindGroupLayout({
    entries: bindings.map(({ index, type }) => ({
      binding: index,
      visibility: COMPUTE,
      buffer: { type },
    })),
  });
}

/**
 * The buffer range to bind for an argument, after checks of this argument alone; {@link resolveAliasing}
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
  if (arg instanceof Words) return boundNumber(arg.facts);
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
    throw new UnsupportedError(
      // In Python: read_only(what)
      `${what} is read-only, the shader's binding is read_write`,
    );
  }
  const size = boundSize(tensor, declared, check, what);
  checkLimit(record, size, type, what);
  const offset = tensor.start;
  const { limits } = record.device.gpu;
  const kind = type === "uniform" ? "Uniform" : "Storage";
  const bindable = offset % limits[`min${kind}BufferOffsetAlignment`] === 0;
  const written = type === "storage" || type === undefined;
  const resource = { buffer: slot.buffer, offset, size };
  const mustCopy = !bindable || size > capacityOf(tensor);
  const extent = extentOf(tensor);
  return { resource, extent, temporary: 0, written, tensor, mustCopy };
}

/** The only tensor of one of our own shaders, which declares only words. */
export function bindAlone(record: DeviceRecord, tensor: ManagedTensor, declared: Binding): Bound {
  const bound = bind(record, tensor, 0, declared, false);
  return bound.mustCopy ? bindCopy(record, bound, 0) : bound;
}

/**
 * A copy, in a buffer of its own with zeros behind it: of a tensor at an offset that cannot be
 * bound, or that shares its last word or element with others.
 */
function bindCopy(record: DeviceRecord, bound: Bound, index: number): Bound {
  const { written } = bound;
  const { size } = bound.resource;
  const arg = bound.tensor as ManagedTensor;
  checkCopySource(arg, "binding");
  if (written) {
    const what = `binding ${index}: ${arg.toString()}`;
    checkUsage(arg, "COPY_DST", what);
    if (roundUp(arg.nbytes, 4) > capacityOf(arg)) {
      throw new UnsupportedError(
        // In Python: shared_word(what)
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
  return { resource, extent, temporary, written, tensor: arg, mustCopy: false };
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
  return boundNumber(facts, temporary);
}

/** A number, or words, in a buffer of their own. */
export function boundNumber(facts: BufferRecord, temporary = 0): Bound {
  const { buffer } = facts;
  const resource = { buffer, offset: 0, size: buffer.size };
  const extent = { facts, start: 0, end: buffer.size };
  return { resource, extent, temporary, written: false, tensor: null, mustCopy: false };
}

/**
 * The arguments as WebGPU takes them together. Two that are written must not overlap. Arguments
 * that cannot be bound in place, or that are read from a buffer that is bound for writing, are
 * copied.
 */
export function resolveAliasing(record: DeviceRecord, bound: Bound[]): void {
  refuseOverlaps(bound);
  bound.forEach((one, i) => {
    if (!one.mustCopy && (one.written || !isWrittenThere(one, bound))) return;
    bound[i] = bindCopy(record, one, i);
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
      throw new UnsupportedError(
        // In Python: overlap(first, second)
        `arguments ${j} and ${i} of the kernel overlap, and both are read_write: give one of ` +
          "them a copy",
      );
    }
  });
}
