// Mean and standard deviation in one read: by hand, and by ReductionKernel.
import { expect, readBuffer, settling, TENSOR_USAGE } from "./paths.mjs";

const GROUPS = 64;
/** 256 invocations and as wide loads as there are; then one invocation for the sums of the groups. */
const BY_HAND = [
  `@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2f>;
var<workgroup> sums: array<vec2f, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) at: vec3u, @builtin(local_invocation_index) local: u32) {
  var sum = vec4f();
  var squares = vec4f();
  for (var k = 256 * at.x + local; k < arrayLength(&x); k += 256 * ${GROUPS}) {
    sum += x[k];
    squares += x[k] * x[k];
  }
  sums[local] = vec2f(dot(sum, vec4f(1)), dot(squares, vec4f(1)));
  for (var half = 128u; half > 0; half /= 2) {
    workgroupBarrier();
    if (local < half) { sums[local] += sums[local + half]; }
  }
  if (local == 0) { y[at.x] = sums[0]; }
}`,
  `@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2f>;
@compute @workgroup_size(1) fn main() {
  let n = 4 * f32(arrayLength(&x));
  var sums = vec2f();
  for (var k = 0; k < ${GROUPS}; k++) { sums += y[k]; }
  let mean = sums.x / n;
  y[0] = vec2f(mean, sqrt(sums.y / n - mean * mean));
}`,
];

export function reductionWays({ bridge, device, library: { webgpu } }, bytes) {
  const host = bridge.empty([bytes / 4], "float32");
  const [n, sums] = [bytes / 4, [0, 0]];
  for (let i = 0; i < n; i++) {
    host.data[i] = (i % 1000) / 1000;
    sums[0] += host.data[i];
    sums[1] += host.data[i] ** 2;
  }
  const expected = [sums[0] / n, Math.sqrt(sums[1] / n - (sums[0] / n) ** 2)];
  const x = host.to(device);
  host.release();
  const kernel = new webgpu.ReductionKernel(device, {
    ...{ inputs: "f32 x", outputs: "f32 mean, f32 deviation", reduceType: "vec2f", identity: 0 },
    ...{ map: "vec2f(x, x * x)", reduce: "a + b" },
    postMap: "mean = a.x / f32(n); deviation = sqrt(a.y / f32(n) - mean * mean)",
  });
  const outputs = kernel.run([x]);
  const y = device.createBuffer({ size: 8 * GROUPS, usage: TENSOR_USAGE });
  const layout = device.createBindGroupLayout({
    entries: ["read-only-storage", "storage"].map((type, binding) => ({
      ...{ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } },
    })),
  });
  const pipelines = BY_HAND.map((code) =>
    device.createComputePipeline({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ code }) },
    }),
  );
  const resources = [{ buffer: x.buffer, offset: x.byteOffset, size: bytes }, { buffer: y }];
  const entries = resources.map((resource, binding) => ({ binding, resource }));
  const group = device.createBindGroup({ layout, entries });
  const byHand = () => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setBindGroup(0, group);
    for (const [i, pipeline] of pipelines.entries()) {
      pass.setPipeline(pipeline);
      pass.dispatchWorkgroups(i === 0 ? GROUPS : 1);
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
  };
  const isNear = (value, at) => Math.abs(value - expected[at]) < 1e-4;
  const way = (name, run, found) => ({
    ...{ name, run, settle: settling(device), maxBatch: 8 },
    async verify() {
      run();
      expect((await found()).slice(0, 2).every(isNear), `reduction, ${name}`);
    },
  });
  const read = async () => (await Promise.all(outputs.map((one) => one.read()))).map(([v]) => v);
  return {
    ways: [
      way("dlpack-web", () => kernel.run([x, ...outputs]), read),
      way("floor", byHand, () => readBuffer(device, y, 8)),
    ],
    done() {
      for (const tensor of [x, ...outputs]) tensor.release();
      y.destroy();
    },
  };
}
