// Kernels that know their calls, beside kernels that know none: the same random program on two
// devices, on one of which each call has a kernel of its own, which checks and watches all, and each
// run of a batch a batch of its own. What throws, what reads give and what the devices report must be the same.
import { equal } from "./expect.mjs";

const SEQUENCES = 25;
const STEPS = 40;
/** Elements; the larger ones are watched when they are made. */
const SIZES = [1, 5, 64, 128, 20_000];
const WORKGROUPS = [undefined, undefined, 1, [1, 1], 0, [1, 1, 1, 1]];
const NUMBERS = [0, 1, 2.5, -1, 2 ** 33, Number.NaN];

const kernel = (bindings, body) => {
  const declared = bindings.map((text, i) => `@group(0) @binding(${i}) var<${text};`).join("\n");
  return `${declared}
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x; ${body} }`;
};
const [READ, WRITE] = ["storage> x: array<f32>", "storage, read_write> y: array<f32>"];
const SHADERS = {
  add: [kernel([READ, WRITE], "if (i < arrayLength(&y)) { y[i] += x[0] + 1; }")],
  double: [kernel([WRITE], "if (i < arrayLength(&y)) { y[i] *= 2; }")],
  scale: [
    kernel([WRITE, "uniform> k: f32"], "if (i < arrayLength(&y)) { y[i] = y[i] * 0.5 + k; }"),
    1,
  ],
  shift: [
    kernel(
      [READ, "uniform> n: u32", WRITE, "uniform> k: i32"],
      "if (i < arrayLength(&y)) { y[i] = x[0] + f32(n) - f32(k); }",
    ),
    2,
  ],
  both: [
    kernel(
      [WRITE, "storage, read_write> z: array<f32>"],
      "if (i < min(arrayLength(&y), arrayLength(&z))) { y[i] += 1; z[i] -= 1; }",
    ),
  ],
  broken: [kernel([READ, WRITE], "y[i] = nothing;")],
  // Its least size is known to the GPU alone.
  unchecked: [
    kernel([READ, "storage, read_write> y: array<f32, 64>"], "y[i % 64] += x[0];"),
    0,
    { check: false },
  ],
};

const FORMULAS = {
  axpy: { inputs: "f32 x, f32 k", outputs: "f32 y", operation: "y = 0.5 * x + k" },
  pair: { inputs: "f32 x", outputs: "f32 y, f32 z", operation: "y = x + 1; z = y + x" },
  count: { inputs: "raw f32 x, i32 k", outputs: "f32 y", operation: "y = x[0] + f32(k)" },
};

/** Numbers below a limit, the same for the same seed. */
function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

class World {
  tensors = [];
  troubles = 0;
  #kernels = new Map();

  constructor(library, device, knows) {
    Object.assign(this, { library, device, knows });
    device.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      this.troubles++;
    });
  }

  kernel(name) {
    const known = this.#kernels.get(name);
    if (known && this.knows) return known;
    if (name in FORMULAS) {
      const made = new this.library.webgpu.ElementwiseKernel(this.device, FORMULAS[name]);
      this.#kernels.set(name, made);
      return made;
    }
    const [wgsl, , options] = SHADERS[name];
    const made = new this.library.webgpu.Kernel(this.device, wgsl, { label: name, ...options });
    this.#kernels.set(name, made);
    return made;
  }

  host(values) {
    return this.library.Tensor.fromTypedArray(Float32Array.from(values));
  }

  /** What a step gives, or throws. */
  async act({ kind, at, to, values, name, args, workgroups, seen, batched }) {
    const tensor = this.tensors[at];
    if (kind === "upload") {
      const host = this.host(values);
      this.tensors.push(host.to(this.device));
      host.release();
    } else if (kind === "view") this.tensors.push(tensor.slice([to, null]));
    else if (kind === "release") tensor.release();
    else if (kind === "write") {
      const host = this.host(values);
      try {
        tensor.write(host);
      } finally {
        host.release();
      }
    } else if (kind === "read") return Array.from(await tensor.read());
    else if (kind === "take") seen === "destroy" ? tensor.buffer.destroy() : tensor.buffer;
    else if (kind === "borrow") {
      const buffer = this.device.createBuffer({ size: 512, usage: 128 | 4 | 8 });
      const { Tensor } = this.library;
      this.tensors.push(
        Tensor.fromGPUBuffer(buffer, { device: this.device, shape: [128], dtype: "float32" }),
      );
    } else if (kind === "settle") await this.device.queue.onSubmittedWorkDone();
    else if (kind === "run") {
      const given = args.map((arg) => ("tensor" in arg ? this.tensors[arg.tensor] : arg.number));
      const kernel = this.kernel(name);
      if (batched) return this.runBatch(() => kernel.run(given, { workgroups }), to);
      // Some programs go on before the first outcome is known.
      const options = name in FORMULAS ? {} : { workgroups };
      for (let i = 0; i < to; i++) {
        const made = [kernel.run(given, options)].flat();
        const { length } = this.tensors;
        for (const tensor of made) if (tensor && !given.includes(tensor)) this.tensors.push(tensor);
        if (this.tensors.length > length) break;
      }
    }
    return null;
  }

  runBatch(block, count) {
    let batch = null;
    try {
      for (let i = 0; i < count; i++) {
        if (batch === null || !this.knows) {
          batch?.release();
          batch = this.library.webgpu.batch(this.device).record(block);
        }
        batch.run();
      }
    } finally {
      batch?.release();
    }
    return null;
  }

  async outcome(step) {
    try {
      return { value: await this.act(step) };
    } catch (error) {
      return { error: `${error.name}: ${error.message}`.replaceAll(/webgpu:\d+/g, "webgpu") };
    }
  }
}

function stepOf(rng, count) {
  const values = () => Array.from({ length: SIZES[rng(SIZES.length)] }, () => rng(100));
  const at = count - 1 - rng(Math.min(count, 6));
  const draw = rng(100);
  if (count < 2 || draw < 10) return { kind: "upload", values: values() };
  if (draw < 13) return { kind: "view", at, to: rng(3) * 32 };
  if (draw < 18) return { kind: "release", at };
  if (draw < 24) return { kind: "write", at, values: values() };
  if (draw < 32) return { kind: "read", at };
  if (draw < 35) return { kind: "take", at, seen: rng(2) ? "destroy" : "look" };
  if (draw < 37) return { kind: "borrow" };
  if (draw < 42) return { kind: "settle" };
  const names = [...Object.keys(SHADERS), ...Object.keys(FORMULAS)];
  const name = names[rng(names.length)];
  const { inputs, outputs } = FORMULAS[name] ?? {};
  const declared = inputs
    ? [...inputs.split(", "), ...(rng(4) ? outputs.split(", ") : [])]
    : SHADERS[name][0].match(/var<[^;]*/g);
  const args = declared.map((text) =>
    /^var<uniform| k$/.test(text) && rng(20)
      ? { number: NUMBERS[rng(NUMBERS.length)] }
      : { tensor: count - 1 - rng(Math.min(count, 6)) },
  );
  if (rng(30) === 0) args.pop();
  const workgroups = WORKGROUPS[rng(WORKGROUPS.length)];
  const batched = inputs === undefined && rng(4) === 0;
  return { kind: "run", name, args, workgroups, batched, to: 1 + rng(3) };
}

async function compare(library, devices, seed) {
  const rng = random(seed);
  const worlds = devices.map((device, i) => new World(library, device, i === 0));
  const steps = [];
  let last = null;
  for (let i = 0; i < STEPS; i++) {
    const { length } = worlds[0].tensors;
    // Calls come again, some much later.
    const step = last !== null && rng(3) === 0 ? last : stepOf(rng, length);
    if (step.kind === "run" && rng(2)) last = step;
    steps.push(step);
    const [known, watched] = await Promise.all(worlds.map((world) => world.outcome(step)));
    equal(known, watched, `seed ${seed}, step ${i}, ${JSON.stringify(steps.slice(-6))}`);
  }
  for (let at = 0; at < worlds[0].tensors.length; at++) {
    const all = await Promise.all(worlds.map((world) => world.outcome({ kind: "read", at })));
    equal(all[0], all[1], `seed ${seed}, tensor ${at} at the end`);
  }
  for (const world of worlds) for (const tensor of world.tensors) tensor.release();
  return worlds.map(({ troubles }) => troubles);
}

export async function known_calls_do_what_checked_ones_do({ library }) {
  const [first, second] = [
    await library.webgpu.requestDevice(),
    await library.webgpu.requestDevice(),
  ];
  const errors = console.error;
  console.error = () => {}; // faults that nobody reads
  try {
    for (let seed = 1; seed <= SEQUENCES; seed++) {
      const [known, watched] = await compare(library, [first, second], seed);
      equal(known, watched, `errors outside of scopes, seed ${seed}`);
    }
  } finally {
    console.error = errors;
    first.destroy();
    second.destroy();
  }
}
