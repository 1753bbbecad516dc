import type { GPUDevice } from "../../core/globals.js";

type Pipeline = GPUComputePipeline | GPURenderPipeline;

/** Our own pipelines, by what makes them different. */
const pipelines = new WeakMap<GPUDevice, Map<string, Pipeline>>();

/** A compiled pipeline, kept as long as the device; without `make`, `key` is the WGSL of a compute pipeline. */
export function cached<P extends Pipeline>(gpu: GPUDevice, key: string, make?: () => P): P {
  const all = pipelines.get(gpu) ?? new Map<string, Pipeline>();
  pipelines.set(gpu, all);
  const found = all.get(key) ?? (make ? make() : compute(gpu, key));
  all.set(key, found);
  return found as P;
}

function compute(gpu: GPUDevice, code: string): GPUComputePipeline {
  const module = gpu.createShaderModule({ code });
  return gpu.createComputePipeline({ layout: "auto", compute: { module } });
}

/** Drops all of a device: they may be the cause of an error. */
export function dropPipelines(gpu: GPUDevice): void {
  pipelines.delete(gpu);
}
