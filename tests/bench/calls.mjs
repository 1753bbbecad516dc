// One small kernel, called in the ways that programs call them: with few and many tensors, with a
// number, with two lists of tensors in turn, as a formula, on a tensor that was just made.
import { dispatch, expect, readBuffer, TENSOR_USAGE } from "./paths.mjs";

const wgsl = (count, number) => `
${Array.from({ length: count - 1 }, (_, i) => `@group(0) @binding(${i}) var<storage, read> x${i}: array<f32>;`).join("\n")}
@group(0) @binding(${count - 1}) var<storage, read_write> y: array<f32>;
${number ? `@group(0) @binding(${count}) var<uniform> k: f32;` : ""}
@compute @workgroup_size(1) fn main() { y[0] = ${number ? "k" : "1"}${Array.from({ length: count - 1 }, (_, i) => ` + x${i}[0]`).join("")}; }`;

/**
 * Of each layout: how many tensors, whether a number comes with them, another one in each call, and how
 * many lists there are.
 */
const LAYOUTS = {
  contiguous: { count: 2 }, // the path "dispatch"
  "1 tensor": { count: 1 },
  "3 tensors": { count: 3 },
  "8 tensors": { count: 8 },
  "a number": { count: 2, number: true },
  "two lists in turn": { count: 2, lists: 2 },
  "a formula": { count: 2, formula: true },
};

const PYTHON = `
import dlpack_web as dlw
def make(wgsl, formula, number, count, *tensors):
    kernel = dlw.webgpu.Kernel(wgsl)
    options = {"workgroups": 1}
    if formula:
        kernel = dlw.webgpu.ElementwiseKernel("f32 x", "f32 y", "y = x + 1")
        options = {}
    lists = [tensors[i : i + count] for i in range(0, len(tensors), count)]
    def run(count):
        for i in range(count):
            kernel(*lists[i % len(lists)], **options)
    def run_with_number(count):
        for i in range(count):
            kernel(*tensors, 1.0 + i, **options)
    async def ready():
        await kernel.ready("webgpu")
    return run_with_number if number else run, ready
make`;

export function callWays({ pyodide, bridge, device, library }, bytes, layout) {
  const { count, number = false, lists = 1, formula = false } = LAYOUTS[layout];
  const host = bridge.empty([bytes / 4], "float32");
  host.data.fill(1);
  const given = Array.from({ length: lists }, () =>
    Array.from({ length: count }, () => host.to(device)),
  );
  const { ElementwiseKernel, Kernel } = library.webgpu;
  const source = wgsl(count, number);
  const kernel = new Kernel(device, source);
  const elementwise = new ElementwiseKernel(device, {
    inputs: "f32 x",
    outputs: "f32 y",
    operation: "y = x + 1",
  });
  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module: device.createShaderModule({ code: source }) },
  });
  const make = (size) => device.createBuffer({ size, usage: TENSOR_USAGE });
  const uniform = make(16);
  const numbers = new Float32Array(4);
  const raw = given.map((tensors) => tensors.map(() => make(bytes)));
  for (const buffer of raw.flat()) device.queue.writeBuffer(buffer, 0, host.data);
  const groups = raw.map((buffers) => {
    const bound = number ? [...buffers, uniform] : buffers;
    const entries = bound.map((buffer, binding) => ({ binding, resource: { buffer } }));
    return device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  });
  const tensors = given.flat();
  const proxies = tensors.map((tensor) => bridge.toPython(tensor));
  const made = pyodide.runPython(PYTHON);
  const functions = made(source, formula, number, count, ...proxies);
  const [run, ready] = [functions.get(0), functions.get(1)];
  made.destroy();
  functions.destroy();
  let at = 0;
  const next = () => (at = (at + 1) % lists);
  let calls = 0; // each has another number
  const way = (name, call, loop) => ({
    name,
    run: call,
    loop,
    settle: () => device.queue.onSubmittedWorkDone(),
    maxBatch: 32,
    async verify() {
      calls = 0;
      for (let i = 0; i < lists; i++) call();
      for (const list of name === "floor" ? raw : given) {
        expect((await readBuffer(device, list.at(-1), bytes))[0] === count, layout);
      }
    },
  });
  return {
    ways: [
      way("dlpack-web", () => run(lists), run),
      way("dlpack-web, from JavaScript", () => {
        const list = given[next()];
        if (formula) elementwise.run(list);
        else kernel.run(number ? [...list, ++calls] : list, { workgroups: 1 });
      }),
      way("floor", () => {
        if (number) {
          numbers[0] = ++calls;
          device.queue.writeBuffer(uniform, 0, numbers);
        }
        dispatch(device, pipeline, groups[next()]);
      }),
    ],
    /** Resolves when all have compiled. */
    async ready() {
      await ready();
      await kernel.ready;
      await device.queue.onSubmittedWorkDone();
    },
    done() {
      for (const tensor of [host, ...tensors]) tensor.release();
      for (const proxy of proxies) proxy.release();
      for (const buffer of [uniform, ...raw.flat()]) buffer.destroy();
      run.destroy();
      ready.destroy();
    },
  };
}

const INVERT = `
@group(0) @binding(0) var<storage, read> image: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4f>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&result)) { result[id.x] = vec4f(1 - image[id.x].rgb, 1); }
}`;

const FRAME = `
import dlpack_web as dlw
def make(wgsl, result):
    kernel = dlw.webgpu.Kernel(wgsl)
    async def frame(source, canvas):
        with await dlw.webgpu.from_image(source, result.device, "float32") as image:
            kernel(image, result)
        await dlw.webgpu.to_canvas(result, canvas)
    return frame
make`;

/** A frame of the landing page: a picture becomes a tensor, a kernel inverts it, a canvas shows it. */
export async function frameWays({ pyodide, bridge, device, library }, bytes) {
  const side = Math.sqrt(bytes / 16);
  const [source, canvas] = [new OffscreenCanvas(side, side), new OffscreenCanvas(side, side)];
  const context = source.getContext("2d");
  context.fillStyle = "rgb(255, 51, 0)";
  context.fillRect(0, 0, side, side);
  const { Kernel, fromImage, toCanvas } = library.webgpu;
  const result = bridge.empty([side, side, 4], "float32", { device });
  const kernel = new Kernel(device, INVERT);
  const proxy = bridge.toPython(result);
  const make = pyodide.runPython(FRAME);
  const frame = make(INVERT, proxy);
  make.destroy();
  const settle = () => device.queue.onSubmittedWorkDone();
  const way = (name, each) => ({
    name,
    each,
    settle,
    async verify() {
      await each();
      const [r, g, b] = await readBuffer(device, result, bytes);
      expect(r === 0 && Math.abs(g - 0.8) < 0.01 && b === 1, `frame, ${name}`);
    },
  });
  return {
    ways: [
      way("dlpack-web", () => frame(source, canvas)),
      way("dlpack-web, from JavaScript", async () => {
        const image = await fromImage(device, source, { dtype: "float32" });
        kernel.run([image, result]);
        image.release();
        await toCanvas(result, canvas);
      }),
    ],
    done() {
      proxy.release();
      result.release();
      frame.destroy();
    },
  };
}

export const CALL_LAYOUTS = Object.keys(LAYOUTS).slice(1);
