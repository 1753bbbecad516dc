// A batch of small kernels, replayed: by hand, from JavaScript, from Python; and called one by one.
import { expect, readBuffer, TENSOR_USAGE } from "./paths.mjs";

const ADD = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = x[0] + 1; }`;

/** How many small kernels a step of the training of a small network has. */
const STEP = 33;

/** A step of small kernels, each its own and over buffers of its own. */
export function replayWays({ pyodide, bridge, device, library }, bytes) {
  const host = bridge.empty([bytes / 4], "float32");
  host.data.fill(41);
  const sources = Array.from({ length: STEP }, (_, i) => `${ADD} // ${i}`);
  const tensors = Array.from({ length: STEP + 1 }, () => host.to(device));
  const settle = () => device.queue.onSubmittedWorkDone();
  const kernels = sources.map((code) => new library.webgpu.Kernel(device, code));
  const batch = library.webgpu.batch(device).record(() => {
    for (const [i, kernel] of kernels.entries()) {
      kernel.run([tensors[i], tensors[i + 1]], { workgroups: 1 });
    }
  });
  const proxies = tensors.map((tensor) => bridge.toPython(tensor));
  const make = pyodide.runPython(`
import dlpack_web as dlw
def make(sources, *tensors):
    kernels = [dlw.webgpu.Kernel(wgsl) for wgsl in sources]
    def call():
        for i, kernel in enumerate(kernels):
            kernel(tensors[i], tensors[i + 1], workgroups=1)
    with dlw.webgpu.batch() as batch:
        call()
    def run(count):
        for _ in range(count):
            batch.run()
    def direct(count):
        for _ in range(count):
            call()
    return run, direct, batch.release
make`);
  const made = make(sources, ...proxies);
  const functions = [0, 1, 2].map((i) => made.get(i));
  const [run, direct, release] = functions;
  const raw = Array.from({ length: STEP + 1 }, () =>
    device.createBuffer({ size: bytes, usage: TENSOR_USAGE }),
  );
  const calls = sources.map((code, i) => {
    const module = device.createShaderModule({ code });
    const pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
    const entries = [0, 1].map((j) => ({ binding: j, resource: { buffer: raw[i + j] } }));
    const layout = pipeline.getBindGroupLayout(0);
    return { pipeline, group: device.createBindGroup({ layout, entries }) };
  });
  const floor = () => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const { pipeline, group } of calls) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(1);
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
  };
  const way = (name, call) => ({
    name,
    run: call,
    settle,
    maxBatch: 64,
    async verify() {
      call();
      const [last, first] = name === "floor" ? [raw[STEP], 0] : [tensors[STEP], 41];
      expect((await readBuffer(device, last, bytes))[0] === first + STEP, `replay, ${name}`);
    },
  });
  return {
    sampleMs: 20, // several replays: the first after a wait finds cold caches
    ways: [
      { ...way("dlpack-web", () => run(1)), loop: run }, // Python's loop, called once
      way("dlpack-web, from JavaScript", () => batch.run()),
      { ...way("dlpack-web, each kernel called from Python", () => direct(1)), loop: direct },
      way("floor", floor),
    ],
    done() {
      release();
      batch.release();
      for (const tensor of [host, ...tensors]) tensor.release();
      for (const proxy of proxies) proxy.release();
      for (const proxy of [...functions, made, make, ...proxies]) proxy.destroy();
      for (const buffer of raw) buffer.destroy();
    },
  };
}
