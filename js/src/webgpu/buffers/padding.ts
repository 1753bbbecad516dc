/**
 * WebGPU copies whole words. A shader of one invocation clears the rest of a tensor's last word.
 */
import type { GPUBuffer, GPUCommandEncoder } from "../../core/globals.js";
import type { DeviceRecord } from "../device/state.js";
import { pipelineOf } from "./pipelines.js";

/** Clears the rest of the last word of `nbytes` (not a multiple of 4) from `offset` on. */
export function clearPadding(
  record: DeviceRecord,
  encoder: GPUCommandEncoder,
  buffer: GPUBuffer,
  offset: number,
  nbytes: number,
): void {
  const code = `@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1) fn main() {
  words[arrayLength(&words) - 1] &= ${2 ** (8 * (nbytes % 4)) - 1};
}`;
  const { gpu } = record.device;
  const pipeline = pipelineOf<GPUComputePipeline>(record, code);
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
