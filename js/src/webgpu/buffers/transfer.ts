// What has tensors of GPUs also exchanges them.
import "../../exchange/take.js";
import type { AnyTypedArray, CopyOf } from "../../core/dtype.js";
import { UnsupportedError } from "../../core/errors.js";
import type { AbortSignal, GPUDevice } from "../../core/globals.js";
import { registerDeviceLayer } from "../../core/layers.js";
import { ManagedTensor } from "../../core/managed.js";
import { bytesOfOut, checkOut, type Out, readInto } from "../../core/targets.js";
import type { Tensor } from "../../core/tensor.js";
import { needCopy } from "../../exchange/produce.js";
import type { Needs } from "../../exchange/types.js";
import { checkAlive, count, type DeviceRecord, workingDevice } from "../device/device.js";
import { mapAfter, operate, readMapped, throwFirst } from "../errors/errors.js";
import {
  type BufferRecord,
  isOpen,
  isPrivate,
  type Outcome,
  openOutcomes,
} from "../errors/record.js";
import { faultOf, joinFault } from "../errors/reports.js";
import { bufferOf, copyOf, exportBuffer, fromBuffer, tensorOn } from "./buffers.js";
import { checkUsage, checkWholeWords, managedIn, refuseRecorded } from "./checks.js";
import { type AllocateOptions, createBuffer, isReusable, poolOf } from "./pool.js";
import { capacityIn, DEFAULT_USAGE, extentIn, type LiveSlot, roundUp, Usage } from "./slot.js";
import { extentOf, slotOf } from "./table.js";
import { upload, uploadNew, write } from "./upload.js";

// --- for other consumers ----------------------------------------------------------------------------------

/** Implements `fit` for a GPU tensor. */
export function fit(held: ManagedTensor, needs: Needs, copy: boolean | undefined): ManagedTensor {
  const { offset, padTo = 4, exactUsage } = needs;
  const usage = needs.usage ?? exactUsage ?? Usage.STORAGE;
  const slot = slotOf(held.handle);
  const own = slot.buffer.gpu.usage;
  const capacity = capacityIn(slot, held);
  const size = Math.max(roundUp(held.nbytes, padTo), padTo);
  const misfit =
    held.strides !== null
      ? `has strides [${held.strides}]`
      : held.start !== (offset ?? roundUp(held.start, 4))
        ? `begins at byte ${held.start} of its GPUBuffer, not at ${offset ?? "a multiple of 4"}`
        : !(capacity >= size)
          ? `has ${capacity} bytes to itself in its GPUBuffer, not ${size}`
          : (own & usage) !== usage
            ? `lacks GPUBufferUsage flags: it has ${own}, needed are ${usage}`
            : exactUsage !== undefined && own !== exactUsage
              ? `has GPUBufferUsage flags ${own}, not exactly ${exactUsage}`
              : null;
  if (misfit === null && !copy) return held.share();
  if (misfit) needCopy(held, copy, misfit);
  return tensorOn(copyOf(held, slot, allocateFor(needs)), 0, held.dtype, held.shape);
}

/** Implements `fit` for a CPU tensor that goes to a device. */
export function fitUpload(tensor: ManagedTensor, gpu: GPUDevice, needs: Needs): ManagedTensor {
  const device = workingDevice(gpu);
  return uploadNew(tensor, device, tensor.dtype, allocateFor(needs));
}

/** Options of a fresh buffer; throws UnsupportedError for needs that none can meet. */
function allocateFor({ offset = 0, padTo = 4, usage = 0, exactUsage }: Needs): AllocateOptions {
  if (offset !== 0 || !Number.isSafeInteger(padTo) || padTo < 1) {
    throw new UnsupportedError(
      `a copy begins at offset 0 and padTo is a positive integer: offset ${offset}, ` +
        `padTo ${padTo} is not supported`,
      { given: offset, needed: 0 },
    );
  }
  let multiple = padTo;
  while (multiple % 16 !== 0) multiple += padTo;
  if (exactUsage === undefined) return { usage: DEFAULT_USAGE | usage, padTo: multiple };
  if (exactUsage & Usage.COPY_DST) return { usage: exactUsage, exact: true, padTo: multiple };
  throw new UnsupportedError(
    `a buffer with exactly the usage ${exactUsage} cannot be copied into: add COPY_DST (8)`,
    { given: exactUsage, needed: exactUsage | Usage.COPY_DST },
  );
}

// --- back to the CPU ------------------------------------------------------------------------------------------

/** Rows further apart are copied one by one: commands for that cost as much as so many bytes. */
const APART = 4096;

/** One tensor on its way back. */
interface Piece {
  readonly tensor: ManagedTensor;
  /** null: a new array, made while the GPU copies. */
  target: Out | null;
  readonly slot: LiveSlot;
  /** Its rows, or itself: of each, all bytes from the lowest to the highest are copied. */
  readonly rows: readonly ManagedTensor[];
  /** Of the first row in the staging buffer, and bytes from there to the next one. */
  readonly offset: number;
  readonly pitch: number;
  /** Outcomes of its elements that were pending when they were copied. */
  before: readonly Outcome[];
  /** The outcome of the copy itself. */
  copied: Outcome | null;
}

/** The pieces that share one staging buffer and one map. */
interface Batch {
  readonly device: DeviceRecord;
  readonly pieces: Piece[];
  bytes: number;
}

/** The arrays of some tensors. */
export type CopiesOf<T extends readonly Tensor[]> = {
  -readonly [K in keyof T]: T[K] extends Tensor<infer D> ? CopyOf<D> : never;
};

/**
 * Reads several tensors at once, as `tensor.read()` reads one: on each device with one submit and
 * one wait.
 *
 * ```js
 * const [mean, deviation] = await webgpu.readAll([x, y]);
 * ```
 *
 * @param tensors - of any devices; you may release them right after the call
 * @returns a new array for each tensor
 * @throws the first error that `read()` of one of the tensors throws
 */
export async function readAll<const T extends readonly Tensor[]>(tensors: T): Promise<CopiesOf<T>> {
  return (await read(tensors.map(managedIn), [])) as CopiesOf<T>;
}

/**
 * Reads tensors into `outs`, or into new arrays: one submit and one map for each device (more only
 * beyond its `maxBufferSize`, and for buffers that foreign code may have destroyed), one copy for
 * each tensor. All work is submitted before this returns; the caller may release the sources at
 * once. Once `signal` is aborted, nothing writes to tensors among `outs`, nor holds them.
 *
 * @throws the fault of the first tensor that has one
 */
export async function read<O extends Out>(
  tensors: readonly ManagedTensor[],
  outs: readonly (O | undefined)[],
  signal?: AbortSignal,
): Promise<(O | AnyTypedArray)[]> {
  const batches: Batch[] = [];
  const holds: ManagedTensor[] = [];
  const releaseAll = () => {
    for (const hold of holds) hold.release();
  };
  try {
    signal?.addEventListener("abort", releaseAll);
    const targets = tensors.map((tensor, i) => {
      tensor.check();
      const out = outs[i];
      if (!tensor.isOnGPU) return { target: out ?? tensor.newArray() };
      if (out) checkOut(tensor, out);
      const slot = slotOf(tensor.handle);
      checkUsage(slot, tensor, "COPY_SRC", "reading");
      refuseRecorded(slot, tensor, false);
      // The caller may release `out`, or the tensor, while the GPU works.
      const held = out instanceof ManagedTensor ? out.share() : (out ?? null);
      if (held instanceof ManagedTensor) holds.push(held);
      const source = tensor.share();
      holds.push(source);
      const piece = plan(batches, slot, source, held);
      holds.push(...piece.rows);
      return piece;
    });
    const readHost = async (tensor: ManagedTensor, i: number) => {
      if (!tensor.isOnGPU) readInto(targets[i]?.target as Out, tensor);
    };
    const jobs = [...tensors.map(readHost), ...batches.map(readBatch)];
    throwFirst(await Promise.allSettled<unknown>(jobs), !signal?.aborted);
    return targets.map(({ target }, i) => outs[i] ?? (target as AnyTypedArray));
  } finally {
    signal?.removeEventListener("abort", releaseAll);
    releaseAll();
  }
}

/** The rows of the result are the caller's to release. */
function plan(batches: Batch[], slot: LiveSlot, tensor: ManagedTensor, target: Out | null): Piece {
  const { device } = slot;
  checkAlive(device);
  checkWholeWords(slot, tensor);
  const rows = rowsOf(tensor);
  const [{ span }] = rows as [ManagedTensor];
  const pitch = span.bytes && roundUp((rows[1] ? 3 : span.start % 4) + span.bytes, 4);
  // Also without elements: only the map says whether the device still works.
  const bytes = roundUp(rows.length * pitch || 1, 16);
  const limit = device.gpu.limits.maxBufferSize;
  let batch = batches.find((b) => b.device === device && b.bytes + bytes <= limit);
  if (batch === undefined) {
    batch = { device, pieces: [], bytes: 0 };
    batches.push(batch);
  }
  const offset = batch.bytes;
  const piece: Piece = { rows, tensor, target, slot, offset, pitch, before: [], copied: null };
  batch.pieces.push(piece);
  batch.bytes += bytes;
  return piece;
}

/** Views of the rows of a tensor, if there is much between them; else the tensor. */
function rowsOf(tensor: ManagedTensor): ManagedTensor[] {
  const [count = 0, ...shape] = tensor.shape;
  const [apart = 0, ...strides] = tensor.strides ?? [];
  const bytes = count * Math.abs(apart) * tensor.dtype.step; // from row to row, and of the last
  if (bytes - tensor.span.bytes < APART) return [tensor];
  return Array.from({ length: count }, (_, i) =>
    tensor.viewed({ shape, strides, offset: i * apart }),
  );
}

/** Reads a batch; throws the fault of its first piece that has one. */
async function readBatch({ device, pieces, bytes }: Batch): Promise<void> {
  const staging = takeStaging(device, bytes);
  const { gpu, creation } = staging;
  let used = false;
  try {
    submitCopies(device, pieces, staging);
    for (const piece of pieces) piece.target ??= piece.tensor.newArray();
    const outcomes = pieces.flatMap(({ before, copied }) => [...before, copied]);
    await mapAfter(device, "reading back", outcomes, gpu, bytes, creation);
    await readMapped(device, () => {
      for (const { tensor, target } of pieces) checkOut(tensor, target as Out); // all, or none
      const mapped = new Uint8Array(gpu.getMappedRange(0, bytes));
      for (const piece of pieces) take(device, piece, mapped);
      gpu.unmap(); // which Deno refuses once the device is lost
    });
    // Buffers that were copied are valid from now on, and no later copy of them can fail.
    for (const { pitch, slot } of pieces) if (pitch) slot.buffer.creation ??= VALID;
    staging.creation ??= VALID;
    used = true;
  } finally {
    if (used) poolOf(device).give(staging, device.errors);
    else gpu.destroy();
  }
}

/**
 * One submit for our own buffers, which cannot be invalid once they are made; one for each of the
 * others, so a destroyed one does not affect other tensors' copies.
 */
function submitCopies(device: DeviceRecord, pieces: readonly Piece[], staging: BufferRecord): void {
  const { gpu } = device;
  const safe = pieces.filter(
    ({ slot: { buffer } }) => isPrivate(buffer) && !isOpen(buffer.creation),
  );
  const groups = [safe, ...pieces.filter((p) => !safe.includes(p)).map((p) => [p])];
  const isValid = [staging, ...safe.map(({ slot }) => slot.buffer)].every((buffer) =>
    isReusable(buffer, Number.NaN),
  );
  for (const group of groups) {
    if (group.length === 0) continue;
    for (const piece of group) piece.before = openOutcomes(extentIn(piece.slot, piece.tensor));
    const { outcome } = operate(
      device,
      {
        get what() {
          return `reading ${group.map(({ tensor }) => tensor.toString())}`;
        },
        // Submitting a copy of an invalid buffer fails as a consequence.
        reads: group === safe ? [] : group.map(({ slot, tensor }) => extentIn(slot, tensor)),
        after: [staging.creation],
        filters: group === safe && isValid ? [] : ["validation"],
      },
      () => {
        const encoder = gpu.createCommandEncoder();
        for (const { slot, rows, offset, pitch } of group) {
          rows.forEach(({ span: { start, bytes } }, i) => {
            const skip = start % 4; // copies are of whole words
            const length = roundUp(skip + bytes, 4);
            const to = offset + i * pitch;
            if (bytes === 0) return;
            encoder.copyBufferToBuffer(slot.buffer.gpu, start - skip, staging.gpu, to, length);
          });
        }
        gpu.queue.submit([encoder.finish()]);
      },
    );
    for (const piece of group) piece.copied = outcome;
  }
}

/** The outcome of creating a buffer that the GPU has copied. */
const VALID: Outcome = { fault: null, done: Promise.resolve(null) };

function take(device: DeviceRecord, piece: Piece, mapped: Uint8Array): void {
  const { tensor, target, rows, offset, pitch } = piece;
  if (pitch === 0) return;
  const into = bytesOfOut(target as Out);
  rows.forEach((row, i) => {
    const { start, bytes } = row.span;
    const at = offset + i * pitch + (start % 4);
    row.put(into.subarray(i * row.nbytes), mapped.subarray(at, at + bytes));
  });
  count(device, "down", tensor.nbytes);
}

// A power of two fits more reads, and the bytes after those that are read are never seen.
function takeStaging(device: DeviceRecord, bytes: number): BufferRecord {
  const { errors } = device;
  const size = Math.min(2 ** Math.ceil(Math.log2(bytes)), device.gpu.limits.maxBufferSize);
  const usage = Usage.MAP_READ | Usage.COPY_DST;
  const idle = poolOf(device).take(size, "staging", errors);
  return idle ?? createBuffer(device, size, usage, "staging", `reading ${bytes} bytes`);
}

registerDeviceLayer({
  upload,
  write,
  read,
  fromBuffer,
  bufferOf,
  exportBuffer,
  fit,
  fitUpload,
  capacityOf: (tensor) => capacityIn(slotOf(tensor.handle), tensor),
  faultOf: (tensor) => faultOf(slotOf(tensor.handle).device, extentOf(tensor)),
  joinFault: (tensor, fault) => joinFault(slotOf(tensor.handle).device, extentOf(tensor), fault),
});
