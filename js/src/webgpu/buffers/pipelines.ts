import type { GPUDevice } from "../../core/globals.js";

export type Pipeline = GPUComputePipeline | GPURenderPipeline;

interface Compiled {
  readonly device: { readonly gpu: GPUDevice };
  readonly pipelines: Map<string, Pipeline>;
}

/**
 * A pipeline of our own shaders, compiled once for a device. An error of its use may be its fault: then
 * clear `pipelines`.
 *
 * @param key - differs for each pipeline: without `make`, the WGSL of a compute pipeline
 */
export function pipelineOf<P extends Pipeline>(
  { device, pipelines }: Compiled,
  key: string,
  make?: () => P,
): P {
  const found = pipelines.get(key) ?? (make ? make() : compile(device.gpu, key));
  pipelines.set(key, found);
  return found as P;
}

function compile(gpu: GPUDevice, code: string): GPUComputePipeline {
  const module = gpu.createShaderModule({ code });
  return gpu.createComputePipeline({ layout: "auto", compute: { module } });
}
