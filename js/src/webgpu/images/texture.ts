import type { GPUTexture } from "../../core/globals.js";
import { extentIn } from "../buffers/slot.js";
import { type DeviceRecord, pipelineOf } from "../device/device.js";
import { CREATION_ERRORS, operate } from "../errors/errors.js";
import type { Outcome } from "../errors/record.js";
import type { BoundTensor } from "../kernels/arguments.js";

/**
 * Writes the pixels of the texture that `make` returns into a bound tensor of uint8 or float32 with 3 or
 * 4 channels. Messages name the operation `what`.
 */
export function pull(
  device: DeviceRecord,
  what: string,
  make: () => GPUTexture,
  bound: BoundTensor,
): void {
  const { tensor } = bound;
  const channels = tensor.shape[2] as number;
  const whole = tensor.dtype.name === "float32" && channels === 4;
  const groups = Math.ceil(Math.ceil(tensor.nbytes / (whole ? 16 : 4)) / 64);
  const { gpu } = device;
  const x = Math.min(groups, gpu.limits.maxComputeWorkgroupsPerDimension);
  const code = fromTexture(tensor.dtype.name, channels, whole);
  submit(device, what, bound, make, (texture, encoder, entry) => {
    const pipeline = pipelineOf<GPUComputePipeline>(device, code);
    const view = texture.createView({ mipLevelCount: 1 });
    const layout = pipeline.getBindGroupLayout(0);
    const entries = [entry, { binding: 1, resource: view }];
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, gpu.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(x, Math.ceil(groups / x));
    pass.end();
  });
}

/**
 * Draws a bound tensor of uint8 or float32 with 1, 3 or 4 channels on the texture of its size that `make`
 * returns: by a render pass, which takes the format that a canvas is shown in. Firefox 153 crashes with
 * other formats, and few devices let shaders store to it. Canvases show premultiplied colours.
 */
export function paint(
  device: DeviceRecord,
  what: string,
  bound: BoundTensor,
  make: () => GPUTexture,
  format: GPUTextureFormat,
  premultiplied: boolean,
): Outcome | null {
  const { gpu } = device;
  const { tensor } = bound;
  const code = toFragments(tensor.dtype.name, tensor.shape[2] as number, premultiplied);
  const compile = () => {
    const module = gpu.createShaderModule({ code });
    const fragment = { module, targets: [{ format }] };
    return gpu.createRenderPipeline({ layout: "auto", vertex: { module }, fragment });
  };
  return submit(device, what, bound, make, (texture, encoder, entry) => {
    const pipeline = pipelineOf(device, `${format} ${code}`, compile);
    const view = texture.createView();
    const pass = encoder.beginRenderPass({
      colorAttachments: [{ view, loadOp: "clear", storeOp: "store" }],
    });
    const layout = pipeline.getBindGroupLayout(0);
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, gpu.createBindGroup({ layout, entries: [entry] }));
    pass.draw(3, 1, 0, texture.width); // "instance" number width, which the shader then knows
    pass.end();
  });
}

/** Submits the commands of `encode`: one of our shaders, a texture, and a tensor, which is `@binding(0)`. */
function submit(
  device: DeviceRecord,
  what: string,
  { resource, extent, written, tensor, slot }: BoundTensor,
  make: () => GPUTexture,
  encode: (texture: GPUTexture, encoder: GPUCommandEncoder, entry: GPUBindGroupEntry) => void,
): Outcome | null {
  const { gpu } = device;
  const operation = {
    what,
    reads: written ? [] : [extent],
    writes: written ? [extentIn(slot, tensor)] : [],
    fresh: written,
    filters: CREATION_ERRORS,
  };
  const { outcome } = operate(device, operation, () => {
    const texture = make();
    const encoder = gpu.createCommandEncoder();
    encode(texture, encoder, { binding: 0, resource });
    gpu.queue.submit([encoder.finish()]);
  });
  // The pipeline may be wrong, so the next call makes it again.
  outcome?.done.then((fault) => fault && device.pipelines.clear());
  return outcome;
}

/** WGSL that writes a texture's elements, one word or whole pixel each thread; what is behind them is 0. */
function fromTexture(dtype: string, channels: number, whole: boolean): string {
  const four =
    channels === 4
      ? "pixel(id)"
      : "vec4f(element(i), element(i + 1), element(i + 2), element(i + 3))";
  return `
@group(0) @binding(0) var<storage, read_write> words: array<${whole ? "vec4f" : "u32"}>;
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
  words[id] = ${whole ? "pixel(id)" : dtype === "uint8" ? `pack4x8unorm(${four})` : "bitcast<u32>(element(id))"};
}`;
}

/**
 * WGSL that draws a tensor's pixels by a triangle over all of a texture, whose width is the instance's
 * number.
 */
function toFragments(dtype: string, channels: number, premultiplied: boolean): string {
  const bytes = dtype === "uint8";
  const whole = channels === 4;
  // Software rasterizers pay for each load and each index of a vector.
  const element = (i: string) =>
    bytes ? `unpack4x8unorm(words[(${i}) / 4] >> ((${i}) % 4 * 8)).x` : `saturate(words[${i}])`;
  const pixel = whole
    ? `${bytes ? "unpack4x8unorm" : "saturate"}(words[i])`
    : channels === 1
      ? `vec4f(vec3f(${element("i")}), 1)`
      : `vec4f(${["i * 3", "i * 3 + 1", "i * 3 + 2"].map(element)}, 1)`;
  return `
@group(0) @binding(0) var<storage, read> words: array<${bytes ? "u32" : whole ? "vec4f" : "f32"}>;

struct Corner {
  @builtin(position) at: vec4f,
  @location(0) @interpolate(flat, either) width: u32,
}
@vertex fn corners(@builtin(vertex_index) i: u32, @builtin(instance_index) width: u32) -> Corner {
  return Corner(vec4f(vec2f(f32(i & 1), f32(i >> 1)) * 4 - 1, 0, 1), width);
}
@fragment fn colours(corner: Corner) -> @location(0) vec4f {
  let at = vec2u(corner.at.xy);
  let i = at.y * corner.width + at.x;
  let p = ${pixel};
  return ${premultiplied ? "vec4f(p.rgb * p.a, p.a)" : "p"};
}`;
}
