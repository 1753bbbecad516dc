// Rows of what stands on the bridge: JavaScript libraries, files, onnxruntime, tinygrad.
import { fromJax, toJax } from "/js/adapters/jax.js";
import { fromOrt, toOrt } from "/js/adapters/ort.js";
import { fromTfjs, toTfjs } from "/js/adapters/tfjs.js";
import { fromThree, toThree } from "/js/adapters/three.js";
import { connect } from "/js/index.js";
import { open } from "/js/open/index.js";
import { onnxruntime } from "/packages-js/onnxruntime/pyodide.js";
import { libraries } from "../browser/libraries/libraries.mjs";
import { pythonModule } from "./rows/context.mjs";
import { byHand, giveBack, holds, makeBuffer } from "./rows/gpu.mjs";
import { handoverTo } from "./rows/handover.mjs";

const MB = 2 ** 20;

const disposed = { drop: (value) => value.dispose() };

export const handoverToLibraries = handoverTo(
  {
    ort: ({ ort }) => ({
      give: (x) => toOrt(ort, x),
      take: (value) => fromOrt(ort, value),
      ...disposed,
    }),
    tfjs: ({ tf }) => ({
      give: (x) => toTfjs(tf, x),
      take: (value) => fromTfjs(tf, value),
      ...disposed,
    }),
    jax: ({ jax }) => ({
      give: (x) => toJax(jax, x),
      take: (value) => fromJax(jax, value),
      ...disposed,
    }),
    three: ({ THREE, renderer }) => ({
      give: (x) => toThree(THREE, x, { renderer }),
      take: (value) => fromThree(THREE, value, { renderer }),
      drop: (value) => renderer.backend.destroyAttribute(value),
    }),
  },
  libraries,
);

/** A file of a server on this machine to the GPU. */
export const files = {
  path: "open",
  sizes: [256 * MB],
  make({ device, python, settle }, bytes) {
    const count = bytes / 4;
    const url = `/made/bench.npy?count=${count}&keep=1`;
    const expected = Uint32Array.from({ length: count }, (_, i) => i);
    return {
      ways: {
        async "dlpack-web"() {
          const tensor = await open(url, { device });
          await settle();
          return tensor;
        },
        async "fetch alone"() {
          const { body } = await fetch(url, { cache: "no-store" });
          let length = 0;
          for await (const piece of body) length += piece.length;
          return length;
        },
        async "fetch, bytes, NumPy, getBuffer()+writeBuffer"() {
          const array = await python.load(url);
          const view = array.getBuffer("u32");
          const buffer = makeBuffer(device, bytes);
          device.queue.writeBuffer(buffer, 0, view.data);
          view.release();
          array.destroy();
          await settle();
          return buffer;
        },
      },
      check: (made, name) =>
        name === "fetch alone"
          ? made === 128 + bytes // and the header
          : holds(device, made, expected),
      free: (made) => typeof made === "object" && giveBack(made),
    };
  },
};

const ourModule = (pyodide, path) => pythonModule(pyodide, new URL(path, import.meta.url));

/** Loads the wheel of one of our packages, and others. */
async function loadWheels(pyodide, name, ...others) {
  const names = await (await fetch("/wheel/packages.json")).json();
  const wheels = [...others, `/wheel/${names[name]}`];
  await pyodide.loadPackage(wheels, { messageCallback() {} });
}

const RUNS = 20; // as in sessions.py
// Until then browsers run the WebAssembly of both that they compiled first, which is slower.
const WARM = 150;

/** Runs of Python's sessions: small ones on the CPU, and one with a large input on the GPU. */
export const sessions = {
  path: "onnxruntime",
  layouts: ["small", "large"],
  sizes: [16 * MB],
  sizesOf: { small: [64] },
  async make({ pyodide, keep }, bytes, layout) {
    await connect(pyodide, { packages: [onnxruntime] });
    await ourModule(pyodide, "../models/onnx_models.py");
    const module = await ourModule(pyodide, "sessions.py");
    const { ort } = await libraries();
    const made = keep(await module[layout].callPromising(ort, bytes / 4));
    const found = made.toJs({ depth: 1, dict_converter: Object.fromEntries });
    const ways = Object.entries(found).map(([name, run]) => [name, () => run.callPromising()]);
    if (layout === "small") {
      const ownRun = await ownSession(ort, module.doubling().toJs());
      ways.push(["own run", ownRun]);
      for (const [, run] of ways) for (let i = 0; i < WARM; i++) await run();
    }
    return { ways: Object.fromEntries(ways), check: (result) => result === 2 };
  },
};

/** RUNS runs of onnxruntime-web's own session; resolves to an element. */
async function ownSession(ort, model) {
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const numbers = Float32Array.from({ length: 16 }, (_, i) => i);
  const x = new ort.Tensor("float32", numbers, [16]);
  return async () => {
    let y;
    for (let i = 0; i < RUNS; i++) ({ y } = await session.run({ x }));
    return y.data[1];
  };
}

/** The rows of exchange.py, which bench.py measures natively as well. */
export async function pythonRows(pyodide, quick) {
  await loadWheels(pyodide, "dlpack-web-page");
  const exchange = await ourModule(pyodide, "exchange.py");
  return JSON.parse(exchange.measure("page", quick));
}

/** Python's module that trains with tinygrad. */
export async function trainingModule(pyodide) {
  const { tinygrad } = await (await fetch("/wheels/wheels.json")).json();
  await loadWheels(pyodide, "dlpack-web-tinygrad", `/wheels/${tinygrad}`);
  return ourModule(pyodide, "training.py");
}

/** A training step of tinygrad after its JIT; and the same kernels over the same buffers by hand. */
export const training = {
  path: "training step",
  sizes: [2048],
  async make({ pyodide, device, keep, settle }) {
    const module = keep(await trainingModule(pyodide));
    const captured = async () => {
      const training = keep(await module.Training.callPromising());
      for (let i = 0; i < 3; i++) await training.loss.callPromising(); // TinyJit has captured it
      return training;
    };
    const ours = await captured();
    const other = await captured(); // a batch watches runs on buffers that a page has
    const kernels = module.kernels(other).toJs({ dict_converter: Object.fromEntries });
    const replay = byHand(device, kernels);
    return {
      sampleMs: 20,
      ways: { "dlpack-web": { loop: (count) => ours.steps(count) }, floor: replay },
      settle,
      async check(_, name) {
        if (name === "dlpack-web") {
          const loss = await ours.loss.callPromising();
          return loss > 0 && loss < 2;
        }
        device.pushErrorScope("validation");
        replay();
        return (await device.popErrorScope()) === null;
      },
    };
  },
};
