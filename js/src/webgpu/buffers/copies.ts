/** Copies of tensors from buffer to buffer. */
import type { GPUBuffer, GPUCommandEncoder } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { count, type DeviceRecord, pipelineOf } from "../device/device.js";
import { operate } from "../errors/errors.js";
import type { BufferRecord } from "../errors/record.js";
import { refuseRecorded } from "./checks.js";
import { extentIn, type LiveSlot, roundUp } from "./slot.js";

/**
 * Copies a tensor's elements into a buffer of the same device, whose last word of them is padding
 * after them. Other bytes in the source's last word are copied too, and cleared.
 */
export function copyInto(
  tensor: ManagedTensor,
  source: LiveSlot,
  target: BufferRecord,
  offset: number,
): void {
  const { nbytes } = tensor;
  if (nbytes === 0) return;
  refuseRecorded(source, tensor, false);
  const { device } = source;
  const { gpu } = device;
  const { outcome } = operate(
    device,
    {
      what: `copying ${tensor.toString()}`,
      reads: [extentIn(source, tensor)],
      writes: [{ buffer: target, start: offset, end: offset + nbytes }],
      fresh: true,
      filters: ["validation"],
    },
    () => {
      const encoder = gpu.createCommandEncoder();
      encodeCopy(encoder, tensor, source, target.gpu, offset);
      gpu.queue.submit([encoder.finish()]);
    },
  );
  if (nbytes % 4 !== 0) outcome?.done.then((fault) => fault && device.pipelines.clear());
}

/** The commands of such a copy, of at least one byte. */
export function encodeCopy(
  encoder: GPUCommandEncoder,
  { start, nbytes }: ManagedTensor,
  { buffer, device }: LiveSlot,
  target: GPUBuffer,
  offset: number,
): void {
  encoder.copyBufferToBuffer(buffer.gpu, start, target, offset, roundUp(nbytes, 4));
  if (nbytes % 4 !== 0) clearPadding(device, encoder, target, offset, nbytes);
  count(device, "copied", nbytes);
}

/**
 * Clears the rest of the last word of `nbytes` (not a multiple of 4) from `offset` on, by a shader of one
 * invocation: WebGPU copies whole words.
 */
function clearPadding(
  device: DeviceRecord,
  encoder: GPUCommandEncoder,
  buffer: GPUBuffer,
  offset: number,
  nbytes: number,
): void {
  const code = `@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1) fn main() {
  words[arrayLength(&words) - 1] &= ${2 ** (8 * (nbytes % 4)) - 1};
}`;
  const { gpu } = device;
  const pipeline = pipelineOf<GPUComputePipeline>(device, code);
  const layout = pipeline.getBindGroupLayout(0);
  const word = offset + nbytes - (nbytes % 4);
  const from = word - (word % gpu.limits.minStorageBufferOffsetAlignment);
  const resource = { buffer, offset: from, size: word + 4 - from };
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, gpu.createBindGroup({ layout, entries: [{ binding: 0, resource }] }));
  pass.dispatchWorkgroups(1);
  pass.end();
}
