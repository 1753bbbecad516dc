// Kernels: small ones, called in the ways that programs call them, and large ones.
import { Tensor, webgpu } from "../../../js/index.js";
import { byHand, clear, copyBuffer, holds, makeBuffer, read } from "./gpu.mjs";

const MB = 2 ** 20;

const wgsl = (count, hasNumber) => {
  const inputs = Array.from({ length: count - 1 }, (_, i) => `x${i}`);
  const bindings = [
    ...inputs.map((x) => `var<storage, read> ${x}: array<f32>;`),
    "var<storage, read_write> y: array<f32>;",
    ...(hasNumber ? ["var<uniform> k: f32;"] : []),
  ];
  const sum = [hasNumber ? "k" : "1", ...inputs.map((x) => `${x}[0]`)].join(" + ");
  return [
    ...bindings.map((binding, i) => `@group(0) @binding(${i}) ${binding}`),
    `@compute @workgroup_size(1) fn main() { y[0] = ${sum}; }`,
  ].join("\n");
};

/** Tensors of one number, as many buffers, and the tensors' proxies in Python. */
function operands({ bridge, device, keep }, count, elements, number) {
  const host = keep(Tensor.fromTypedArray(new Float32Array(elements).fill(number)));
  const tensors = Array.from({ length: count }, () => keep(host.to(device)));
  const raw = tensors.map(() => keep(makeBuffer(device, host.nbytes)));
  for (const buffer of raw) device.queue.writeBuffer(buffer, 0, host.data);
  return { tensors, raw, proxies: tensors.map((tensor) => keep(bridge.toPython(tensor))) };
}

/** A small kernel, called with so many tensors; the last layout has another number in each call. */
const CALLS = { contiguous: 2, "1 tensor": 1, "3 tensors": 3, "8 tensors": 8, "a number": 2 };

export const calls = {
  path: "calls",
  layouts: Object.keys(CALLS),
  sizes: [64],
  make(context, bytes, layout) {
    const { device, python, keep, settle } = context;
    const hasNumber = layout === "a number";
    const { tensors, raw, proxies } = operands(context, CALLS[layout], bytes / 4, 1);
    const code = wgsl(tensors.length, hasNumber);
    const kernel = new webgpu.Kernel(device, code);
    const uniform = keep(makeBuffer(device, 16));
    const numbers = new Float32Array(4);
    const dispatch = byHand(device, [{ code, bound: hasNumber ? [...raw, uniform] : raw }]);
    const run = keep(python.calls(code, hasNumber, ...proxies));
    let number = 0;
    const results = [tensors.at(-1).buffer, raw.at(-1)];
    return {
      ways: {
        "dlpack-web, from Python": { loop: run },
        "dlpack-web, from JavaScript"() {
          kernel.run(hasNumber ? [...tensors, ++number] : tensors, { workgroups: 1 });
        },
        floor() {
          if (hasNumber) {
            numbers[0] = ++number;
            device.queue.writeBuffer(uniform, 0, numbers);
          }
          dispatch();
        },
      },
      maxBatch: 32,
      settle,
      wipe() {
        number = 0;
        for (const buffer of results) clear(device, buffer);
      },
      async check(_, name) {
        const [found] = await read(device, name === "floor" ? raw.at(-1) : tensors.at(-1));
        return found === tensors.length;
      },
    };
  },
};

const STEP = 33; // kernels of a training step of a small network

/** A step of small kernels, each its own and over buffers of its own: replayed, and called one by one. */
export const replay = {
  path: "replay",
  sizes: [64],
  make(context, bytes) {
    const { device, python, keep, settle } = context;
    const { tensors, raw, proxies } = operands(context, STEP + 1, bytes / 4, 41);
    const sources = Array.from({ length: STEP }, (_, i) => `${wgsl(2, false)} // ${i}`);
    const kernels = sources.map((code) => new webgpu.Kernel(device, code));
    const batch = webgpu.batch(device).record(() => {
      kernels.forEach((kernel, i) => {
        kernel.run([tensors[i], tensors[i + 1]], { workgroups: 1 });
      });
    });
    keep(batch);
    const made = keep(python.replaying(sources, ...proxies));
    const [run, direct, release] = [0, 1, 2].map((i) => keep(made.get(i)));
    keep({ release });
    const floor = byHand(
      device,
      sources.map((code, i) => ({ code, bound: [raw[i], raw[i + 1]] })),
    );
    return {
      sampleMs: 20, // several replays: the first after a wait finds cold caches
      ways: {
        "dlpack-web, from Python": { loop: run },
        "dlpack-web, from JavaScript": () => batch.run(),
        "dlpack-web, each kernel called from Python": { loop: direct },
        floor,
      },
      settle,
      wipe() {
        clear(device, tensors[STEP].buffer);
        clear(device, raw[STEP]);
      },
      async check(_, name) {
        const [found] = await read(device, (name === "floor" ? raw : tensors)[STEP]);
        return found === 41 + STEP;
      },
    };
  },
};

const GROUPS = 64;
/** 256 invocations and as wide loads as there are; then one invocation for the sums of the groups. */
const MEAN = [
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

/** Mean and standard deviation in one read. */
export const reduction = {
  path: "reduction",
  sizes: [64 * MB],
  make({ device, keep, settle }, bytes) {
    const n = bytes / 4;
    const values = new Float32Array(n);
    const sums = [0, 0];
    for (let i = 0; i < n; i++) {
      values[i] = (i % 1000) / 1000;
      sums[0] += values[i];
      sums[1] += values[i] ** 2;
    }
    const expected = [sums[0] / n, Math.sqrt(sums[1] / n - (sums[0] / n) ** 2)];
    const x = keep(Tensor.fromTypedArray(values).to(device));
    const kernel = new webgpu.ReductionKernel(device, {
      inputs: "f32 x",
      outputs: "f32 mean, f32 deviation",
      reduceType: "vec2f",
      identity: 0,
      map: "vec2f(x, x * x)",
      reduce: "a + b",
      postMap: "mean = a.x / f32(n); deviation = sqrt(a.y / f32(n) - mean * mean)",
    });
    const outputs = kernel.run([x]).map(keep);
    const y = keep(makeBuffer(device, 8 * GROUPS));
    const bound = [{ buffer: x.buffer, offset: x.byteOffset, size: bytes }, y];
    const floor = byHand(
      device,
      MEAN.map((code, i) => ({ code, bound, groups: [i === 0 ? GROUPS : 1] })),
    );
    return {
      ways: { "dlpack-web": () => kernel.run([x, ...outputs]), floor },
      maxBatch: 8,
      settle,
      wipe: () => [y, ...outputs.map(({ buffer }) => buffer)].map((each) => clear(device, each)),
      async check(_, name) {
        const made = name === "floor" ? [y] : outputs;
        const read_ = await Promise.all(made.map((each) => read(device, each)));
        const found = read_.flatMap((each) => [...each.subarray(0, 2)]);
        return expected.every((value, i) => Math.abs(value - found[i]) < 1e-4);
      },
    };
  },
};

// 256 invocations per workgroup, four floats each.
const TWICE = `
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 256 + id.x;
  if (i < arrayLength(&y)) { y[i] = 2 * x[i]; }
}`;
const MOST_GROUPS = 32768; // in one dimension; a power of two, as all sizes are

/** Twice each element; and a copy between two buffers, the speed of the device's memory. */
export const elementwise = {
  path: "elementwise",
  sizes: [64 * MB],
  make({ device, keep, settle }, bytes) {
    const values = Float32Array.from({ length: bytes / 4 }, (_, i) => i % 1000);
    const expected = values.map((value) => 2 * value);
    const x = keep(Tensor.fromTypedArray(values).to(device));
    const kernel = new webgpu.ElementwiseKernel(device, {
      inputs: "f32 x",
      outputs: "f32 y",
      operation: "y = 2 * x",
    });
    const y = keep(kernel.run([x]));
    const copy = keep(makeBuffer(device, bytes));
    const groups = Math.ceil(bytes / 4096);
    const across = Math.min(groups, MOST_GROUPS);
    const [from, to] = [x, y].map(({ buffer }) => ({ buffer, size: bytes }));
    const size = [across, Math.ceil(groups / across)];
    return {
      ways: {
        "dlpack-web": () => kernel.run([x, y]),
        floor: byHand(device, [{ code: TWICE, bound: [from, to], groups: size }]),
        "floor, device to device": () => copyBuffer(device, x.buffer, copy, bytes),
      },
      settle,
      wipe: () => [y.buffer, copy].map((buffer) => clear(device, buffer)),
      check: (_, name) =>
        name.includes("device") ? holds(device, copy, values) : holds(device, y, expected),
    };
  },
};
