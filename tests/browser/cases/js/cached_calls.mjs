// Kernels that cache their calls, beside kernels that cache none: the same random program in two
// worlds, each with a device. In one of them each call has a fresh kernel, which checks and watches all,
// and each run of a batch a fresh batch. What throws, what reads give and what the devices report must
// be the same, in JavaScript and in Python. cache_cases.mjs plays a few programs, tests/fuzz/js/calls.mjs
// many.
import { Random } from "../../../fuzz/js/random.mjs";

const kernel = (bindings, body, size = 4) => {
  const declared = bindings.map((text, i) => `@group(0) @binding(${i}) var<${text};`).join("\n");
  return `${declared}
@compute @workgroup_size(${size}) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x; ${body} }`;
};
const read = (type) => `storage> x: array<${type}>`;
const write = (type, name = "y") => `storage, read_write> ${name}: array<${type}>`;
const each = (statement) => `if (i < arrayLength(&y)) { ${statement} }`;
const mixed = (type) => [
  kernel([read(type), write(type)], each("y[i] += x[i % arrayLength(&x)];")),
];

/** Sources, and options. Their arguments are of the dtypes of `READ_AS`, by the types of elements. */
const SHADERS = {
  add: [kernel([read("f32"), write("f32")], each("y[i] += x[0] + 1;"))],
  double: [kernel([write("f32")], each("y[i] *= 2;"))],
  scale: [kernel([write("f32"), "uniform> k: f32"], each("y[i] = y[i] * 0.5 + k;"))],
  shift: [
    kernel(
      [read("f32"), "uniform> n: u32", write("f32"), "uniform> k: i32"],
      each("y[i] = x[0] + f32(n) - f32(k);"),
    ),
  ],
  both: [
    kernel(
      [write("f32"), write("f32", "z")],
      "if (i < min(arrayLength(&y), arrayLength(&z))) { y[i] += 1; z[i] -= 1; }",
    ),
  ],
  pairs: mixed("vec2f"),
  triples: mixed("vec3f"),
  quads: mixed("vec4f"),
  quad: [kernel([write("vec4f")], each("y[i] += vec4f(1);"))],
  words: [kernel([read("u32"), write("u32")], each("y[i] = y[i] * 3 + x[i % arrayLength(&x)];"))],
  halves: [`enable f16;\n${mixed("f16")[0]}`],
  broken: [kernel([read("f32"), write("f32")], "y[i] = nothing;")],
  // Its least size is known to the GPU alone.
  unchecked: [
    kernel([read("f32"), "storage, read_write> y: array<f32, 64>"], "y[i % 64] += x[0];"),
    { check: false },
  ],
};
const READ_AS = {
  f32: ["float32"],
  u32: ["uint8", "uint16", "float16", "uint32"],
  f16: ["float16"],
};

const FORMULAS = {
  axpy: { inputs: "f32 x, f32 k", outputs: "f32 y", operation: "y = 0.5 * x + k" },
  pair: { inputs: "f32 x", outputs: "f32 y, f32 z", operation: "y = x + 1; z = y + x" },
  count: { inputs: "raw f32 x, i32 k", outputs: "f32 y", operation: "y = x[0] + f32(k)" },
  half: { inputs: "f16 x, f16 k", outputs: "f16 y", operation: "y = x + k" },
  total: {
    inputs: "f32 x, f32 k",
    outputs: "f32 y",
    map: "x * k",
    reduce: "a + b",
    postMap: "y = a",
    identity: 0,
  },
};

/** What is run more often. */
const OFTEN = ["quad", "words", "total", "total", "total"];

/** Bytes of an element. */
const DTYPES = { float32: 4, uint32: 4, float16: 2, uint16: 2, uint8: 1 };
/** Bytes of what is uploaded: buffers of few sizes are pooled; the larger ones are watched when made. */
const SIZES = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 256, 512, 80_000];
const WORKGROUPS = [null, null, 1, [1, 1], 0, [0, 0, 0], [1, 1, 1, 1], [2]];
const AXES = [null, null, 0, 1, -1, [0], [0, 1], [], 2];
const NUMBERS = [0, 1, 2.5, -1, 70_000, 2 ** 33, 1e40, Number.NaN];

/** Python's world, as JavaScript's below. Numbers come as text, since JSON has no NaN. */
const PYTHON = `
import json
import numpy as np
import dlpack_web as dlw
from dlpack_web import webgpu

class World:
    def __init__(self, device, caches, shaders, formulas):
        self.device, self.caches = device, caches
        self.shaders, self.formulas = json.loads(shaders), json.loads(formulas)
        self.kernels, self.tensors = {}, []

    def kernel(self, name):
        if name in self.kernels and self.caches:
            return self.kernels[name]
        if name in self.formulas:
            ins, outs, *rest = self.formulas[name].values()
            made = webgpu.ReductionKernel if len(rest) > 1 else webgpu.ElementwiseKernel
            self.kernels[name] = made(ins, outs, *rest)
        else:
            wgsl, *options = self.shaders[name]
            self.kernels[name] = webgpu.Kernel(wgsl, label=name, **(options or [{}])[0])
        return self.kernels[name]

    async def upload(self, bytes, dtype, shape):
        array = np.frombuffer(bytearray(bytes), dtype).reshape(shape)
        self.tensors.append(dlw.from_dlpack(array, device=self.device))

    async def view(self, at, start, shape):
        tensor = self.tensors[at].reshape((-1,))[start:]
        self.tensors.append(tensor if shape is None else tensor.reshape(shape))

    async def release(self, at):
        self.tensors[at].release()

    async def write(self, at, bytes, dtype):
        self.tensors[at].write(np.frombuffer(bytearray(bytes), dtype))

    async def read(self, at):
        return (await self.tensors[at].to_host()).tobytes().hex()

    async def take(self, at, destroy):
        buffer = self.tensors[at].gpu_buffer
        if destroy:
            buffer.destroy()

    async def borrow(self, buffer):
        made = dlw.from_gpu_buffer(buffer, (128,), "float32", device=self.device)
        self.tensors.append(made)

    async def run(self, name, args, options, batched, times):
        given = [float(arg) if isinstance(arg, str) else self.tensors[arg] for arg in args]
        given = [int(arg) if isinstance(arg, float) and arg.is_integer() else arg for arg in given]
        options = {key: tuple(it) if isinstance(it, list) else it for key, it in options.items()}
        batch = None
        for _ in range(times):
            if batched:
                if batch is None or not self.caches:
                    with webgpu.batch() as batch:
                        self.kernel(name)(*given, **options)
                batch.run()
                continue
            made = self.kernel(name)(*given, **options)
            made = made if isinstance(made, tuple) else () if made is None else (made,)
            if new := [x for x in made if not any(x is arg for arg in given)]:
                return self.tensors.extend(new)

    async def outcome(self, kind, text, buffer):
        more = {} if buffer is None else {"buffer": buffer}
        before = len(self.tensors)
        try:
            result = {"value": await getattr(self, kind)(**json.loads(text), **more)}
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        made = [[str(x.dtype), x.shape] for x in self.tensors[before:]]
        return json.dumps(result | {"made": made})

    def end(self):
        for tensor in self.tensors:
            tensor.release()

World
`;

/** JavaScript's world: a method for each kind of step. */
class World {
  tensors = [];
  #kernels = new Map();

  constructor({ library, device }, caches) {
    Object.assign(this, { library, device, caches });
  }

  kernel(name) {
    const cached = this.#kernels.get(name);
    if (cached && this.caches) return cached;
    const { Kernel, ElementwiseKernel, ReductionKernel } = this.library.webgpu;
    const formula = FORMULAS[name];
    const [wgsl, options] = SHADERS[name] ?? [];
    const made = !formula
      ? new Kernel(this.device, wgsl, { label: name, ...options })
      : new (formula.map ? ReductionKernel : ElementwiseKernel)(this.device, formula);
    this.#kernels.set(name, made);
    return made;
  }

  #host(bytes, dtype, shape) {
    return this.library.Tensor.from(Uint8Array.from(bytes), { dtype, shape });
  }

  upload({ bytes, dtype, shape }) {
    const host = this.#host(bytes, dtype, shape);
    this.tensors.push(host.to(this.device));
    host.release();
  }

  view({ at, start, shape }) {
    const flat = this.tensors[at].reshape([-1]);
    const part = flat.slice([start, null]);
    flat.release();
    if (shape === null) return void this.tensors.push(part);
    try {
      this.tensors.push(part.reshape(shape));
    } finally {
      part.release();
    }
  }

  release({ at }) {
    this.tensors[at].release();
  }

  write({ at, bytes, dtype }) {
    const host = this.#host(bytes, dtype, [bytes.length / DTYPES[dtype]]);
    try {
      this.tensors[at].write(host);
    } finally {
      host.release();
    }
  }

  async read({ at }) {
    const { buffer, byteOffset, byteLength } = await this.tensors[at].read();
    return `${new Uint8Array(buffer, byteOffset, byteLength)}`;
  }

  take({ at, destroy }) {
    const { buffer } = this.tensors[at];
    if (destroy) buffer.destroy();
  }

  borrow({ buffer }) {
    const over = { device: this.device, shape: [128], dtype: "float32" };
    this.tensors.push(this.library.Tensor.fromGPUBuffer(buffer, over));
  }

  run({ name, args, options, batched, times }) {
    const given = args.map((arg) => (typeof arg === "string" ? Number(arg) : this.tensors[arg]));
    let batch = null;
    try {
      // Some programs go on before the first outcome is known.
      for (let i = 0; i < times; i++) {
        const run = () => this.kernel(name).run(given, options);
        if (batched) {
          if (!this.caches) batch?.release();
          if (batch === null || !this.caches) {
            batch = this.library.webgpu.batch(this.device).record(run);
          }
          batch.run();
          continue;
        }
        const made = [run()].flat().filter((x) => x && !given.includes(x));
        this.tensors.push(...made);
        if (made.length > 0) break;
      }
    } finally {
      batch?.release();
    }
  }

  async outcome(kind, text, buffer) {
    const before = this.tensors.length;
    let result;
    try {
      result = { value: (await this[kind]({ ...JSON.parse(text), buffer })) ?? null };
    } catch (error) {
      result = { error: `${error.name}: ${error.message}` };
    }
    const made = this.tensors.slice(before).map(({ dtype, shape }) => [dtype, shape]);
    return JSON.stringify({ ...result, made });
  }

  end() {
    for (const tensor of this.tensors) tensor.release();
  }
}

/** Errors of these worlds, and those that no library should raise. */
const OF_THIS_FILE =
  /is not a function|of undefined|unexpected keyword|(Attribute|Name|System|Reference)Error/;

const sizeOf = (shape) => shape.reduce((size, n) => size * n, 1);

/** A step, of the tensors that there are, `[dtype, shape]` of each. */
function stepOf(r, tensors) {
  const recent = (fits = () => true) => {
    const all = [...tensors.keys()].slice(-7).filter((i) => fits(...tensors[i]));
    return all.length > 0 ? r.of(all) : Math.max(0, tensors.length - 1 - r.below(7));
  };
  const bytesOf = (count) => Array.from({ length: count }, () => r.below(60));
  const draw = tensors.length < 2 ? 0 : r.below(100);
  if (draw < 16) {
    const dtype = r.of(["float32", "float32", "float32", ...Object.keys(DTYPES)]);
    const size = r.of(SIZES);
    const count = Math.max(1, Math.floor(size / DTYPES[dtype]));
    const shapes = [[count], [count], [1, count], [count, 1]];
    if (count % 2 === 0) shapes.push([2, count / 2], [count / 2, 2]);
    return ["upload", { dtype, shape: r.of(shapes), bytes: bytesOf(count * DTYPES[dtype]) }];
  }
  const at = recent();
  const [dtype, shape] = tensors[at];
  const count = sizeOf(shape);
  if (draw < 23) {
    const start = r.of([0, 0, 1, 2, 3, 32, 64]);
    const left = count - start;
    return ["view", { at, start, shape: r.of([null, [1, left], [2, left / 2], [left, 1]]) }];
  }
  if (draw < 30) return ["release", { at }];
  if (draw < 35) {
    const given = r.oneIn(8) ? "float32" : dtype;
    return ["write", { at, dtype: given, bytes: bytesOf(count * DTYPES[given]) }];
  }
  if (draw < 43) return ["read", { at }];
  if (draw < 45) return ["take", { at, destroy: r.oneIn(2) }];
  if (draw < 47) return ["borrow", {}];
  if (draw < 52) return ["settle", {}];
  return runOf(r, tensors, recent);
}

/** A call of a kernel, whose arguments mostly fit. */
function runOf(r, tensors, recent) {
  const name = r.of([...Object.keys(SHADERS), ...Object.keys(FORMULAS), ...OFTEN]);
  const options = {};
  const number = () => `${r.of(NUMBERS)}`;
  const one = (type) => recent((dtype) => (READ_AS[type] ?? READ_AS.f32).includes(dtype));
  let args;
  if (name in FORMULAS) {
    const { inputs, outputs, map } = FORMULAS[name];
    args = inputs
      .split(", ")
      .map((text) => (/ k$/.test(text) ? number() : one(text.slice(-5, -2))));
    const [, shape] = tensors[args[0]];
    let result = name === "count" ? null : shape;
    if (map) {
      Object.assign(options, { axis: r.of(AXES), keepdims: r.oneIn(2) });
      const axes = [options.axis ?? [...shape.keys()]]
        .flat()
        .map((i) => (i < 0 ? i + shape.length : i));
      const kept = shape.map((n, i) => (axes.includes(i) ? 1 : n));
      result = options.keepdims ? kept : shape.filter((_, i) => !axes.includes(i));
    }
    const fits = (_, other) => result === null || r.oneIn(6) || `${other}` === `${result}`;
    if (!r.oneIn(4)) for (const _ of outputs.split(", ")) args.push(recent(fits));
    if (r.oneIn(8)) args[0] = one("f32");
  } else {
    const declared = SHADERS[name][0].match(/var<[^;]*/g);
    args = declared.map((text) => {
      if (/^var<uniform/.test(text) && !r.oneIn(20)) return number();
      const type = /array<(?:vec\d)?(\w+)/.exec(text)?.[1];
      return one(type === "f" ? "f32" : type);
    });
    options.workgroups = r.of(WORKGROUPS);
  }
  if (r.oneIn(30)) args.pop();
  return [
    "run",
    { name, args, options, batched: !(name in FORMULAS) && r.oneIn(4), times: 1 + r.below(3) },
  ];
}

/** A call with one thing changed. */
function changed(r, [kind, facts], tensors) {
  const { args, options } = facts;
  const other = { ...options };
  for (const name of Object.keys(options)) {
    if (r.oneIn(2))
      other[name] = r.of({ workgroups: WORKGROUPS, axis: AXES }[name] ?? [true, false]);
  }
  if (Object.keys(options).length > 0 && r.oneIn(2)) return [kind, { ...facts, options: other }];
  const at = r.below(args.length);
  const number = typeof args[at] === "string" ? !r.oneIn(8) : r.oneIn(8);
  const arg = number ? `${r.of(NUMBERS)}` : r.below(tensors.length);
  return [kind, { ...facts, args: args.with(at, arg) }];
}

/** The worlds' devices, which are kept from program to program. */
async function prepare({ library }) {
  const errors = [0, 0];
  const devices = [];
  for (const i of [0, 1]) {
    const device = await library.webgpu
      .requestDevice({ features: ["shader-f16"] })
      .catch(() => library.webgpu.requestDevice());
    device.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      errors[i]++;
    });
    library.webgpu.listenForFaults(device, () => true); // not of those that nobody reads
    devices.push(device);
  }
  return { devices, errors };
}

/**
 * @param context - of a page: library, and bridge and pyodide for Python
 * @returns `play(steps, language)`, which resolves to what goes wrong with steps, null: nothing; and
 * `end`
 */
export async function twoWorlds(context) {
  const { library, bridge, pyodide } = context;
  const { devices, errors } = await prepare(context);
  const settle = (device) => device.queue.onSubmittedWorkDone();
  const make = (device, caches, language) => {
    if (language === "JavaScript") return new World({ library, device }, caches);
    const empty = bridge.empty([0], "int8", { device });
    const id = `${empty.device}`;
    empty.release();
    const type = pyodide.runPython(PYTHON);
    const world = type(id, caches, JSON.stringify(SHADERS), JSON.stringify(FORMULAS));
    type.destroy();
    return world;
  };

  /** Steps are seeds of their own, so that others can be left out. */
  async function play(steps, language) {
    const worlds = devices.map((device, i) => make(device, i === 0, language));
    const tensors = [];
    const shown = [];
    const calls = [];
    const both = async (kind, facts) => {
      const outcomes = await Promise.all(
        worlds.map(async (world, i) => {
          if (kind === "settle") await settle(devices[i]);
          if (kind === "settle") return '{"made":[]}';
          const usage = 128 | 4 | 8;
          const buffer =
            kind === "borrow" ? devices[i].createBuffer({ size: 512, usage }) : undefined;
          const text = JSON.stringify(facts);
          const outcome = await world.outcome(kind, text, buffer);
          // Firefox sees a destroyed buffer in the dispatch where the bind group is an older one.
          return outcome
            .replaceAll(/webgpu:\d+/g, "webgpu")
            .replaceAll(/<exec>:\d+/g, "")
            .replaceAll(/In a dispatch command, indirect:\w+, caused by: /g, "");
        }),
      );
      shown.push(`${kind} ${JSON.stringify(facts)}`.slice(0, 300));
      const [cached, fresh] = outcomes;
      if (cached === fresh && !OF_THIS_FILE.test(cached)) return cached;
      const differ = `${cached.slice(0, 500)} is not ${fresh.slice(0, 500)}`;
      throw new Error(`${language}: ${differ}, after\n${shown.slice(-12).join("\n")}`);
    };
    try {
      for (const seed of steps) {
        const r = new Random(seed);
        // Calls come again, some much later, and some with a change.
        const again = calls.length > 0 && r.oneIn(2) ? r.of(calls.slice(-4)) : null;
        const step = again ? (r.oneIn(3) ? changed(r, again, tensors) : again) : stepOf(r, tensors);
        const { made, error } = JSON.parse(await both(...step));
        tensors.push(...made);
        if (step[0] === "run" && !error && !again) calls.push(step);
      }
      for (const at of tensors.keys()) await both("read", { at });
      if (errors[0] !== errors[1]) throw new Error(`errors outside of scopes: ${errors}`);
      return null;
    } catch (error) {
      errors.fill(0);
      return error.message;
    } finally {
      for (const world of worlds) {
        world.end();
        world.destroy?.();
      }
    }
  }
  const end = () => {
    for (const device of devices) device.destroy();
  };
  return { play, end };
}

/** The seeds of the steps of a program. */
export function program(seed, number) {
  const r = new Random(seed * 7919 + number);
  return Array.from({ length: 40 + r.below(40) }, () => r.below(2 ** 30));
}
