// The chain itself, for the page and for its worker: Python, three libraries, one GPU device.
import "./counters.mjs"; // first, to see what the libraries copy
import { boot, runScript } from "./boot.mjs";
import { madeBytes, textOf } from "./page.mjs";
import { Steps } from "./steps.mjs";

const ORT = new URL("./libraries/ort/", import.meta.url).href;

/** Steps in which tensors change hands, and what our side copies in each. */
const PROMISED = {
  "photo to NumPy": 1,
  "NumPy to GPU": 1,
  "hand to onnxruntime-web": 0,
  "take from onnxruntime-web": 0,
  "hand to TensorFlow.js": 0,
  "take from TensorFlow.js": 0,
  "hand to jax-js": 0,
  "take from jax-js": 0,
  "GPU to NumPy": 1,
};

const bytesOf = (path) => madeBytes(path, "chain");

/** Loads everything; resolves to a function that reads one photograph. */
export async function start(say) {
  const { pyodide } = await boot(say);
  say("Loading onnxruntime-web, TensorFlow.js and jax-js…");
  const [ort, tf, jax] = await Promise.all([
    import(`${ORT}ort.webgpu.bundle.min.mjs`),
    import("./libraries/tfjs.mjs"),
    import("./libraries/jax.mjs"),
  ]);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = ORT;
  ort.env.logLevel = "error";

  let steps;
  let checks;
  const check = (name, held) => checks.push({ name, held });
  pyodide.registerJsModule("page", {
    begin: (name, bytes) => steps.begin(name, bytes),
    end: () => steps.end(),
    check,
  });
  const script = runScript(pyodide, "chain_page.py", await textOf("chain_page.py"));
  say("Putting them on one device…");
  const tools = await script.get("start")(ort, tf, jax);
  const model = await bytesOf("./model/digits.onnx");
  const session = await ort.InferenceSession.create(model, {
    executionProviders: ["webgpu"],
    preferredOutputLocation: "gpu-buffer",
  });
  pyodide.FS.writeFile("digits.npz", await bytesOf("./model/digits.npz"));
  const weights = pyodide.runPython("import numpy; dict(numpy.load('digits.npz'))");

  const ops = {
    network: async (session, pixels) => (await session.run({ pixels })).logits,
    softmax: (logits) => tf.softmax(logits),
    sharpen(p) {
      const squares = jax.numpy.square(p.ref); // jax-js consumes what it is given
      return jax.numpy.divide(squares.ref, jax.numpy.sum(squares, -1, { keepdims: true }));
    },
  };
  const run = script.get("run");
  let result;

  /** Reads the digits in RGBA pixels; `sheet` tells how they lie. */
  return async function read({ pixels, width, height }, sheet) {
    const args = [tools, session, ops, pixels, height, width, sheet, weights];
    // The first of these compiles shaders and uploads the network's weights.
    for (let runs = steps ? 1 : 2; runs > 0; runs--) {
      result?.destroy();
      steps = new Steps();
      checks = [];
      result = await run(...args);
    }
    const [labels, scores, error] = result;
    for (const [name, copies] of Object.entries(PROMISED)) {
      const { copies: ours, gpu_copies, copied_bytes, bytes } = steps.find(name);
      const held =
        ours === copies && gpu_copies <= copies && (copies === 0 || copied_bytes === bytes);
      check(`${copies === 1 ? "1 copy" : "0 copies"}: ${name}`, held);
    }
    // Uniforms and the like are theirs; the tensors are larger.
    const smallest = Math.min(...steps.rows.filter((row) => row.bytes).map((row) => row.bytes));
    const inside = steps.rows.filter((row) => row.bytes === 0);
    check(
      "the libraries copy no tensor",
      inside.every((row) => row.copied_bytes < smallest && row.gpu_copies === 0),
    );
    check("nothing is read back in between", steps.mapAsync === 1);
    const found = { labels: labels.toJs(), scores: scores.toJs() };
    for (const proxy of [labels, scores]) proxy.destroy();
    const right = sheet.labels && rightly(found.labels, sheet.labels);
    return { ...found, error, right, steps: steps.rows, mapAsync: steps.mapAsync, checks };
  };
}

/** The part of the labels that are right. */
function rightly(labels, truth) {
  return labels.reduce((sum, label, i) => sum + (label === truth[i]), 0) / truth.length;
}

/** The pixels of the photograph that the model came with, and how its digits lie. */
export async function photograph() {
  const [image, facts] = await Promise.all([
    bytesOf("./model/digits.png").then((png) =>
      createImageBitmap(new Blob([png], { type: "image/png" }), { colorSpaceConversion: "none" }),
    ),
    bytesOf("./model/digits.json").then((text) => JSON.parse(new TextDecoder().decode(text))),
  ]);
  const { width, height } = image;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  return { picture: { pixels: new Uint8Array(data.buffer), width, height }, facts };
}
