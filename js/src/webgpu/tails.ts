/**
 * WebGPU copies whole words. A shader of one invocation clears the rest of a tensor's last word.
 */
import type { GPUBuffer, GPUCommandEncoder, GPUDevice } from "../core/globals.js";

const CODE = `
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
override mask: u32;
@compute @workgroup_size(1)
fn main() {
  words[arrayLength(&words) - 1] &= mask;
}`;

const COMPUTE = 4; // GPUShaderStage.COMPUTE

interface Masks {
  readonly layout: GPUBindGroupLayout;
  /** By the number of bytes that are kept. */
  readonly pipelines: readonly GPUComputePipeline[];
}

const made = new WeakMap<GPUDevice, Masks>();

function masksOf(gpu: GPUDevice): Masks {
  let masks = made.get(gpu);
  if (masks === undefined) {
    const module = gpu.createShaderModule({ code: CODE });
    const layout = gpu.createBindGroupLayout({
      entries: [{ binding: 0, visibility: COMPUTE, buffer: { type: "storage" } }],
    });
    const pipelines = [1, 2, 3].map((bytes) =>
      gpu.createComputePipeline({
        layout: gpu.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module, constants: { mask: 2 ** (8 * bytes) - 1 } },
      }),
    );
    masks = { layout, pipelines };
    made.set(gpu, masks);
  }
  return masks;
}

/** Drops the cached shaders: they may be the cause of an error. */
export function forgetMasks(gpu: GPUDevice): void {
  made.delete(gpu);
}

/** Clears the rest of the last word of `nbytes` (not a multiple of 4) from `offset` on. */
export function maskTail(
  gpu: GPUDevice,
  encoder: GPUCommandEncoder,
  buffer: GPUBuffer,
  offset: number,
  nbytes: number,
): void {
  const { layout, pipelines } = masksOf(gpu);
  const word = offset + nbytes - (nbytes % 4);
  const from = word - (word % gpu.limits.minStorageBufferOffsetAlignment);
  const resource = { buffer, offset: from, size: word + 4 - from };
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipelines[(nbytes % 4) - 1] as GPUComputePipeline);
  pass.setBindGroup(0, gpu.createBindGroup({ layout, entries: [{ binding: 0, resource }] }));
  pass.dispatchWorkgroups(1);
  pass.end();
}
