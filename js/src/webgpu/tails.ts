/**
 * WebGPU copies whole words. A shader of one invocation clears the rest of a tensor's last word.
 */
import type { GPUBuffer, GPUCommandEncoder, GPUDevice } from "../core/globals.js";

type Pipeline = GPUComputePipeline | GPURenderPipeline;

/** Our own pipelines, by what makes them different. */
const pipelines = new WeakMap<GPUDevice, Map<string, Pipeline>>();

/** A compiled pipeline, kept as long as the device; without `make`, `key` is the WGSL of a compute pipeline. */
export function kept<P extends Pipeline>(gpu: GPUDevice, key: string, make?: () => P): P {
  const all = pipelines.get(gpu) ?? new Map<string, Pipeline>();
  pipelines.set(gpu, all);
  let pipeline = all.get(key) ?? make?.();
  if (!pipeline) {
    const module = gpu.createShaderModule({ code: key });
    pipeline = gpu.createComputePipeline({ layout: "auto", compute: { module } });
  }
  all.set(key, pipeline);
  return pipeline as P;
}

/** Drops all of a device: they may be the cause of an error. */
export function forget(gpu: GPUDevice): void {
  pipelines.delete(gpu);
}

/** Clears the rest of the last word of `nbytes` (not a multiple of 4) from `offset` on. */
export function maskTail(
  gpu: GPUDevice,
  encoder: GPUCommandEncoder,
  buffer: GPUBuffer,
  offset: number,
  nbytes: number,
): void {
  const code = `@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1) fn main() {
  words[arrayLength(&words) - 1] &= ${2 ** (8 * (nbytes % 4)) - 1};
}`;
  const pipeline = kept<GPUComputePipeline>(gpu, code);
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
