// A training step of tinygrad after its JIT: by dlpack_web_tinygrad, and the same kernels over the
// same buffers from plain JavaScript.
import { expect } from "./paths.mjs";

const KINDS = {
  uniform: "uniform",
  "storage,read": "read-only-storage",
  "storage,read_write": "storage",
};

/** Starts Python's side; returns its module. */
export async function trainingModule(pyodide) {
  const names = await (await fetch("/wheels/wheels.json")).json();
  const ours = (await (await fetch("/wheel/packages.json")).json())["dlpack-web-tinygrad"];
  const wheels = [`/wheels/${names.tinygrad}`, `/wheel/${ours}`];
  await pyodide.loadPackage(wheels, { messageCallback() {} });
  const source = await (await fetch(new URL("training.py", import.meta.url))).text();
  pyodide.FS.writeFile("training.py", source);
  return pyodide.runPythonAsync("import training\ntraining");
}

/** `{ways, done}`; `layout` is the name of a network. */
export async function trainingWays({ pyodide, device }, _bytes, layout) {
  const module = await trainingModule(pyodide);
  const captured = async () => {
    const training = await module.Training.callPromising(module[layout]);
    for (let i = 0; i < 3; i++) await training.loss.callPromising(); // TinyJit has captured it
    return training;
  };
  const training = await captured();
  const other = await captured(); // a batch watches runs on buffers that a page has
  const replay = byHand(
    device,
    pyodide.runPython("lambda f, t: list(f(t))")(module.kernels, other),
  );
  const settle = () => device.queue.onSubmittedWorkDone();
  const verify = async () => {
    const loss = await training.loss.callPromising();
    expect(loss > 0 && loss < 2, `the loss is ${loss}`);
  };
  const ways = [
    { name: "dlpack-web", loop: (count) => training.steps(count), settle, verify, maxBatch: 64 },
    { name: "floor", run: replay, settle, verify: () => check(device, replay), maxBatch: 64 },
  ];
  return {
    ways,
    sampleMs: 20,
    done() {
      training.destroy();
      other.destroy();
      module.destroy();
    },
  };
}

/** Throws if WebGPU refuses a part of it. */
async function check(device, run) {
  device.pushErrorScope("validation");
  run();
  const error = await device.popErrorScope();
  expect(error === null, error?.message);
}

/** What a page would write itself: pipelines and bind groups once, then one pass of a submit. */
function byHand(device, kernels) {
  const calls = kernels.toJs().map(([code, entryPoint, bound, kinds, groups]) => {
    const layout = device.createBindGroupLayout({
      entries: kinds.map((kind, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: KINDS[kind] },
      })),
    });
    const pipeline = device.createComputePipeline({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ code }), entryPoint },
    });
    const entries = bound.map(([buffer, offset, bytes], binding) => ({
      binding,
      resource: { buffer, offset, size: Math.ceil(bytes / 4) * 4 },
    }));
    return { pipeline, group: device.createBindGroup({ layout, entries }), groups };
  });
  kernels.destroy();
  return () => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const { pipeline, group, groups } of calls) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(...groups);
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
  };
}

/** Milliseconds of a step of tinygrad's CPU device, which takes seconds: one row, measured once. */
export async function cpuRow({ pyodide }, layout) {
  const module = await trainingModule(pyodide);
  const ms = 1e3 * (await module.on_cpu.callPromising(module[layout]));
  module.destroy();
  return { way: "tinygrad on its CPU device", median_ms: ms, iqr_ms: 0, js_ms: ms, n: 1 };
}
