import { checkTarget, targetBytes } from "../copy.js";
import { DeviceError } from "../errors.js";
import { CPU } from "../layout.js";
import type { DeviceRecord } from "../shared.js";
import { registerDeviceLayer, type Target, type ToOptions } from "../storage.js";
import { isTensor, type Tensor } from "../tensor.js";
import {
  allocate,
  checkCopySource,
  checkUsage,
  DEFAULT_USAGE,
  fromBuffer,
  isRisky,
  releaseSlot,
  roundUp,
  slotOf,
  slotOn,
  tensorOfSlot,
  Usage,
} from "./buffers.js";
import { checkAlive, nameOf, settled, useDevice, watched } from "./device.js";

/** Implements `Tensor.to`: one `writeBuffer` straight from the tensor's memory. */
export function upload(tensor: Tensor, device: GPUDevice, options: ToOptions): Tensor {
  const record = useDevice(device);
  checkAlive(record);
  if (tensor.device.type !== CPU) return again(tensor, record, options.usage ?? 0);

  // Only gaps need a packed copy here: writeBuffer takes bytes of any alignment.
  const source = tensor._strides === null ? tensor : tensor._storage.pack(tensor);
  const usage = (options.usage ?? DEFAULT_USAGE) | Usage.COPY_DST;
  let handle = 0;
  const move = () => {
    handle = allocate(record, source.nbytes, usage);
    write(device.queue, slotOf(handle).buffer, source._bytes());
  };
  try {
    if (isRisky(source.nbytes, usage)) watched(record, `uploading ${tensor}`, move);
    else move();
    return tensorOfSlot(handle, 0, tensor._type, tensor.shape, false);
  } catch (error) {
    if (handle !== 0) releaseSlot(handle);
    throw error;
  } finally {
    if (source !== tensor) source.release();
  }
}

/** A second hold on a tensor that is on the device already. */
function again(tensor: Tensor, record: DeviceRecord, usage: number): Tensor {
  slotOn(record, tensor);
  for (const flag of Object.keys(Usage) as (keyof typeof Usage)[]) {
    if (usage & Usage[flag]) checkUsage(tensor, flag, "to() with this usage");
  }
  return tensor._storage.share(tensor);
}

/** Writes bytes and, where they are no multiple of 4, a last word padded with zeros. */
function write(queue: GPUQueue, target: GPUBuffer, bytes: Uint8Array): void {
  const words = bytes.byteLength - (bytes.byteLength % 4);
  if (isResizable(bytes.buffer)) {
    // writeBuffer refuses views of resizable memory, so they go through a fixed array.
    const fixed = new Uint8Array(Math.min(words, 4 << 20));
    for (let at = 0; at < words; at += fixed.length) {
      const part = bytes.subarray(at, Math.min(at + fixed.length, words));
      fixed.set(part);
      queue.writeBuffer(target, at, fixed, 0, part.length);
    }
  } else if (words > 0) {
    queue.writeBuffer(target, 0, bytes.buffer, bytes.byteOffset, words);
  }
  if (words < bytes.byteLength) {
    const tail = new Uint8Array(4);
    tail.set(bytes.subarray(words));
    queue.writeBuffer(target, words, tail);
  }
}

function isResizable(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  return (resizable || growable) === true;
}

/** One tensor on its way back: its bytes at `offset` of the staging buffer, then in `target`. */
interface Piece {
  readonly tensor: Tensor;
  readonly target: Target;
  readonly offset: number;
}

/** The pieces that share one staging buffer, one submit and one map. */
interface Batch {
  readonly record: DeviceRecord;
  readonly pieces: Piece[];
  bytes: number;
}

/**
 * Reads tensors into `outs`, or into new arrays where there is none: one submit and one map for
 * each device (more only beyond its `maxBufferSize`), one copy for each tensor. All work is
 * submitted before this returns to its caller, who may release the sources at once.
 */
export async function read(
  tensors: readonly Tensor[],
  outs: readonly (Target | undefined)[],
): Promise<Target[]> {
  const batches: Batch[] = [];
  const holds: Tensor[] = [];
  const jobs: Promise<unknown>[] = [];
  try {
    const targets = tensors.map((tensor, i) => {
      tensor._check();
      const target = outs[i] ?? tensor._newArray();
      if (tensor.device.type !== CPU) {
        checkTarget(tensor, target);
        checkCopySource(tensor, "reading");
        // Whoever passed `out` may release it while the GPU works.
        const held = isTensor(target) ? target._storage.share(target) : target;
        if (isTensor(held)) holds.push(held);
        plan(batches, tensor, held);
      }
      return target;
    });
    tensors.forEach((tensor, i) => {
      if (tensor.device.type === CPU) jobs.push(tensor.read(targets[i] as Target));
    });
    jobs.push(...batches.map(readBatch));
    for (const job of await Promise.allSettled(jobs)) {
      if (job.status === "rejected") throw job.reason;
    }
    return targets;
  } finally {
    for (const hold of holds) hold.release();
  }
}

function plan(batches: Batch[], tensor: Tensor, target: Target): void {
  const { record } = slotOf(tensor._handle);
  checkAlive(record);
  const bytes = roundUp(tensor.nbytes, 16);
  const limit = record.device.gpu.limits.maxBufferSize;
  let batch = batches.find((b) => b.record === record && b.bytes + bytes <= limit);
  if (batch === undefined) {
    batch = { record, pieces: [], bytes: 0 };
    batches.push(batch);
  }
  batch.pieces.push({ tensor, target, offset: batch.bytes });
  batch.bytes += bytes;
}

async function readBatch({ record, pieces, bytes }: Batch): Promise<void> {
  // Tensors without elements need no GPU, but earlier errors are due here all the same.
  if (bytes === 0) return settled(record);
  const { gpu } = record.device;
  const staging = takeStaging(record, bytes);
  let used = false;
  try {
    watched(record, `reading ${pieces.map((piece) => piece.tensor)}`, () => {
      const encoder = gpu.createCommandEncoder();
      for (const { tensor, offset } of pieces) {
        const { buffer } = slotOf(tensor._handle);
        const nbytes = roundUp(tensor.nbytes, 4);
        if (nbytes > 0) {
          encoder.copyBufferToBuffer(buffer, tensor.byteOffset, staging, offset, nbytes);
        }
      }
      gpu.queue.submit([encoder.finish()]);
    });
    // Kept as a value: what the error scopes say is the better message.
    const failure = await staging.mapAsync(Usage.MAP_READ, 0, bytes).catch((cause) => ({ cause }));
    if (failure) await Promise.race([gpu.lost, new Promise((done) => setTimeout(done))]);
    await settled(record);
    if (failure) throw new DeviceError(`reading back from ${nameOf(record)} failed`, failure);
    const mapped = staging.getMappedRange(0, bytes);
    for (const { tensor, target, offset } of pieces) {
      checkTarget(tensor, target);
      targetBytes(target).set(new Uint8Array(mapped, offset, tensor.nbytes));
    }
    used = true;
  } finally {
    if (used) giveStaging(record, staging);
    else staging.destroy();
  }
}

/** Idle staging memory that a device keeps, in bytes. */
const KEPT = 256 << 20;

// Making a staging buffer costs as much as the read itself, so that some are kept.
function takeStaging(record: DeviceRecord, bytes: number): GPUBuffer {
  const fit = record.staging.findIndex(({ size }) => size >= bytes && size <= 2 * bytes);
  const [kept] = fit < 0 ? [] : record.staging.splice(fit, 1);
  if (kept) return kept;
  const usage = Usage.MAP_READ | Usage.COPY_DST;
  return watched(record, `createBuffer for reading ${bytes} bytes`, () =>
    record.device.gpu.createBuffer({ size: bytes, usage }),
  );
}

function giveStaging(record: DeviceRecord, staging: GPUBuffer): void {
  staging.unmap();
  record.staging.push(staging);
  let total = 0;
  for (const { size } of record.staging) total += size;
  while (total > KEPT) {
    const oldest = record.staging.shift() as GPUBuffer;
    total -= oldest.size;
    oldest.destroy();
  }
}

registerDeviceLayer({
  upload,
  read,
  fromBuffer,
  bufferOf: (tensor) => slotOf(tensor._handle).buffer,
});
