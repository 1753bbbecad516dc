import type { GPUTexture } from "../core/globals.js";
import type { Tensor } from "../core/tensor.js";
import { bind } from "./arguments.js";
import { releaseSlot, slotOf } from "./buffers.js";
import { operate } from "./faults.js";
import type { DeviceRecord, Outcome } from "./state.js";
import type { Binding } from "./wgsl.js";

/**
 * Writes a texture's pixels into a tensor of uint8 or float32 with 3 or 4 channels.
 *
 * @param what - names the operation in what it fails with
 */
export function pull(
  record: DeviceRecord,
  what: string,
  texture: GPUTexture,
  tensor: Tensor,
  after: Outcome | null,
): void {
  const channels = tensor.shape[2] as number;
  const whole = tensor.dtype === "float32" && channels === 4;
  const groups = Math.ceil(Math.ceil(tensor.nbytes / (whole ? 16 : 4)) / 64);
  const x = Math.min(groups, record.device.gpu.limits.maxComputeWorkgroupsPerDimension);
  const code = whole ? PIXELS : fromTexture(tensor.dtype, channels);
  dispatch(record, what, code, tensor, "storage", texture, [x, Math.ceil(groups / x)], after);
}

/**
 * Draws a tensor of uint8 or float32 with 1, 3 or 4 channels on a texture of its size.
 *
 * @param what - names the operation in what it fails with
 */
export function draw(
  record: DeviceRecord,
  what: string,
  tensor: Tensor,
  texture: GPUTexture,
  premultiplied: boolean,
  after: Outcome | null,
): Outcome | null {
  const code = toStorageTexture(tensor.dtype, tensor.shape[2] as number, premultiplied);
  const groups = [Math.ceil(texture.width / 8), Math.ceil(texture.height / 8)] as const;
  return dispatch(record, what, code, tensor, "read-only-storage", texture, groups, after);
}

/** Runs a shader over a tensor, `@binding(0)`, and a texture, `@binding(1)`. */
function dispatch(
  record: DeviceRecord,
  what: string,
  code: string,
  tensor: Tensor,
  type: GPUBufferBindingType,
  texture: GPUTexture,
  [x, y]: readonly [number, number],
  after: Outcome | null,
): Outcome | null {
  const { gpu } = record.device;
  const writes = type === "storage";
  const { resource, slot, temporary } = bind(record, tensor, 0, { ...WORDS, type }, false);
  const operation = {
    what,
    reads: [slot],
    writes: writes ? [slotOf(tensor._handle)] : [],
    fresh: writes,
    after: [after],
    filters: ["validation"] as const,
  };
  try {
    const { outcome } = operate(record, operation, () => {
      const pipeline = pipelineOf(gpu, code);
      const view = texture.createView({ mipLevelCount: 1 });
      const layout = pipeline.getBindGroupLayout(0);
      const entries = [
        { binding: 0, resource },
        { binding: 1, resource: view },
      ];
      const encoder = gpu.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, gpu.createBindGroup({ layout, entries }));
      pass.dispatchWorkgroups(x, y);
      pass.end();
      gpu.queue.submit([encoder.finish()]);
    });
    // It may be the pipeline that is wrong, which the next one had better make anew.
    outcome?.done.then((fault) => fault && pipelines.get(gpu)?.delete(code));
    return outcome;
  } finally {
    if (temporary) releaseSlot(temporary);
  }
}

/** The tensor as the shaders below see it. */
const WORDS: Omit<Binding, "type"> = {
  index: 0,
  name: "words",
  value: "array<u32>",
  scalar: "u32",
  atomic: false,
  stride: 4,
  size: 4,
  runtime: true,
};

const pipelines = new WeakMap<GPUDevice, Map<string, GPUComputePipeline>>();

/** The compiled shader, kept as long as the device. */
function pipelineOf(gpu: GPUDevice, code: string): GPUComputePipeline {
  const kept = pipelines.get(gpu) ?? new Map<string, GPUComputePipeline>();
  pipelines.set(gpu, kept);
  const found = kept.get(code);
  if (found) return found;
  const module = gpu.createShaderModule({ code });
  const pipeline = gpu.createComputePipeline({ layout: "auto", compute: { module } });
  kept.set(code, pipeline);
  return pipeline;
}

/** WGSL that writes a texture's pixels as they are, one each thread. */
const PIXELS = `
@group(0) @binding(0) var<storage, read_write> pixels: array<vec4f>;
@group(0) @binding(1) var image: texture_2d<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) count: vec3u) {
  let id = at.y * count.x * 64 + at.x;
  if (id >= arrayLength(&pixels)) { return; }
  let width = textureDimensions(image).x;
  pixels[id] = textureLoad(image, vec2u(id % width, id / width), 0);
}`;

/** WGSL that writes a texture's elements, one word each thread; what is behind them is 0. */
function fromTexture(dtype: string, channels: number): string {
  const four =
    channels === 4
      ? "pixel(id)"
      : "vec4f(element(i), element(i + 1), element(i + 2), element(i + 3))";
  return `
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@group(0) @binding(1) var image: texture_2d<f32>;

fn pixel(i: u32) -> vec4f {
  let size = textureDimensions(image);
  let at = vec2u(i % size.x, i / size.x);
  return select(vec4f(), textureLoad(image, at, 0), at.y < size.y);
}
fn element(i: u32) -> f32 {
  return pixel(i / ${channels})[i % ${channels}];
}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) count: vec3u) {
  let id = at.y * count.x * 64 + at.x;
  if (id >= arrayLength(&words)) { return; }
  let i = 4 * id;
  words[id] = ${dtype === "uint8" ? `pack4x8unorm(${four})` : "bitcast<u32>(element(id))"};
}`;
}

/** WGSL that draws a tensor's elements, one pixel each thread. */
function toStorageTexture(dtype: string, channels: number, premultiplied: boolean): string {
  const [g, b] = channels === 1 ? [0, 0] : [1, 2];
  return `
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var image: texture_storage_2d<rgba8unorm, write>;

fn element(i: u32) -> f32 {
  return ${dtype === "uint8" ? "unpack4x8unorm(words[i / 4])[i % 4]" : "saturate(bitcast<f32>(words[i]))"};
}
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let size = textureDimensions(image);
  if (any(id.xy >= size)) { return; }
  let i = (id.y * size.x + id.x) * ${channels};
  let rgb = vec3f(element(i), element(i + ${g}), element(i + ${b}));
  let a = ${channels === 4 ? "element(i + 3)" : "1f"};
  textureStore(image, id.xy, vec4f(rgb${premultiplied ? " * a" : ""}, a));
}`;
}
