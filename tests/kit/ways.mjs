// What the kit measures beside the ways of tests/bench: a copy on the device, kernels, and tensors that
// change hands.
import { EXCHANGE, take } from "/js/exchange/index.js";
import {
  copyBuffer,
  expect,
  readBuffer,
  same,
  settling,
  TENSOR_USAGE,
} from "/tests/bench/paths.mjs";

const USAGE = { READ: 0x01, COPY_DST: 0x08 };
const MOST_GROUPS = 32768; // in one dimension; a power of two, as all sizes are

/** A host tensor with values that differ all along. */
function pattern(bridge, bytes) {
  const tensor = bridge.empty([bytes / 4], "uint32");
  const { data } = tensor;
  for (let i = 0; i < data.length; i++) data[i] = Math.imul(i, 2654435761);
  return tensor;
}

/** All words of a GPU buffer. */
const words = async (...args) => new Uint32Array((await readBuffer(...args)).buffer);

/** From one buffer of the device into another: what its memory can do. */
export function copyWay({ bridge, device }, bytes) {
  const [from, to] = [0, 1].map(() => device.createBuffer({ size: bytes, usage: TENSOR_USAGE }));
  const host = pattern(bridge, bytes);
  const expected = host.data.slice();
  device.queue.writeBuffer(from, 0, host.data);
  host.release();
  const run = () => copyBuffer(device, from, to, bytes);
  const verify = async () => {
    run();
    expect(same(await words(device, to, bytes), expected), "copy");
  };
  return {
    ways: [{ name: "device to device", run, verify, settle: settling(device), maxBatch: 64 }],
    done() {
      for (const buffer of [from, to]) buffer.destroy();
    },
  };
}

const BY_HAND = "by hand, four floats per invocation";
// 256 invocations per workgroup.
const TWICE = `
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 256 + id.x;
  if (i < arrayLength(&y)) { y[i] = 2 * x[i]; }
}`;

/** Kernels that read float32 once: the first two write as much, the sum one number. */
export function kernelWays({ bridge, device, library: { webgpu } }, bytes) {
  const count = bytes / 4;
  const host = bridge.empty([count], "float32");
  const { data } = host;
  for (let i = 0; i < count; i++) data[i] = i % 1000;
  const expected = data.map((each) => 2 * each);
  const sum = data.reduce((all, each) => all + each, 0);
  const x = host.to(device);
  host.release();
  const twice = { inputs: "f32 x", outputs: "f32 y", operation: "y = 2 * x" };
  const double = new webgpu.ElementwiseKernel(device, twice);
  const y = double.run([x]);
  const adding = { map: "x", reduce: "a + b", postMap: "y = a", identity: 0 };
  const add = new webgpu.ReductionKernel(device, { inputs: "f32 x", outputs: "f32 y", ...adding });
  const total = add.run([x]);
  const nothing = new webgpu.ElementwiseKernel(device, {
    ...{ inputs: "", outputs: "f32 y", operation: "y = -1" },
  });
  const groups = Math.ceil(count / 1024);
  const across = Math.min(groups, MOST_GROUPS);
  const byHand = new webgpu.Kernel(device, TWICE);
  const workgroups = [across, Math.ceil(groups / across)];
  const way = (name, run, result, isRight) => ({
    ...{ name, run, settle: settling(device), maxBatch: 64 },
    async verify() {
      nothing.run([result]);
      run();
      expect(isRight(await result.read()), `kernels, ${name}`);
    },
  });
  const isDoubled = (found) => same(found, expected);
  const isSum = ([found]) => Math.abs(found / sum - 1) < 1e-4;
  return {
    ways: [
      way("ElementwiseKernel", () => double.run([x, y]), y, isDoubled),
      way(BY_HAND, () => byHand.run([x, y], { workgroups }), y, isDoubled),
      way("ReductionKernel, a sum", () => add.run([x, total]), total, isSum),
    ],
    done() {
      for (const tensor of [x, y, total]) tensor.release();
    },
  };
}

/** A tensor on the GPU given to another owner and taken back: by the protocol, or to Python. */
export function handoverWays({ bridge, device, library }, bytes, to) {
  const buffer = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const expected = Uint32Array.from({ length: bytes / 4 }, (_, i) => i);
  device.queue.writeBuffer(buffer, 0, expected);
  const options = { device, shape: [bytes / 4], dtype: "float32" };
  const tensor = library.Tensor.fromGPUBuffer(buffer, options);
  const staging = device.createBuffer({ size: bytes, usage: USAGE.READ | USAGE.COPY_DST });
  const fresh = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const other = { [EXCHANGE]: (request) => tensor[EXCHANGE](request) };
  let seen = null;
  const byProtocol = () => {
    const back = take(other);
    seen = back.buffer;
    back.release();
  };
  const byPython = () => {
    const proxy = bridge.toPython(tensor);
    const back = bridge.tensor(proxy);
    seen = back.buffer;
    back.release();
    proxy.release();
    proxy.destroy();
  };
  const ours = to === "Python" ? byPython : byProtocol;
  const throughCPU = async () => {
    copyBuffer(device, buffer, staging, bytes);
    await staging.mapAsync(USAGE.READ);
    device.queue.writeBuffer(fresh, 0, staging.getMappedRange());
    staging.unmap();
    await device.queue.onSubmittedWorkDone();
  };
  return {
    ways: [
      {
        name: "dlpack-web",
        run: ours,
        verify() {
          ours();
          expect(seen === buffer, `handover, ${to}`);
        },
      },
      {
        name: "through the CPU: mapAsync, writeBuffer",
        each: throughCPU,
        async verify() {
          await throughCPU();
          expect(same(await words(device, fresh, bytes), expected), "through the CPU");
        },
      },
    ],
    done() {
      tensor.release();
      for (const each of [buffer, staging, fresh]) each.destroy();
    },
  };
}
