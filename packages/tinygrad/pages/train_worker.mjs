// Python and tinygrad in a worker: generating kernels takes seconds, and the page stays responsive.
import { boot, runScript } from "./boot.mjs";
import { madeBytes, textOf } from "./page.mjs";

const here = (path) => new URL(path, import.meta.url).href;
const say = (text) => postMessage({ say: text });

let started;
let training;
let stopped = false;

async function start() {
  const { pyodide } = await boot(say);
  say("Loading tinygrad…");
  const namesIn = async (file) =>
    JSON.parse(new TextDecoder().decode(await madeBytes(file, "train")));
  const { tinygrad } = await namesIn("wheels/wheels.json");
  const ours = (await namesIn("wheel/packages.json"))["dlpack-web-tinygrad"];
  const wheels = [here(`wheels/${tinygrad}`), here(`wheel/${ours}`)];
  await pyodide.loadPackage(wheels, { messageCallback() {} });
  const program = runScript(pyodide, "train_page.py", await textOf("train_page.py"));
  say("Starting the GPU…");
  const digits = await program.get("start")(here("model/handwriting.npz"));
  const pictures = pyodide.runPython(
    "import numpy as np\nlambda pixels: np.asarray(pixels.to_py()).reshape(-1, 1, 8, 8)",
  );
  return { Training: program.get("Training"), digits, pictures };
}

/** A Python object's value in JavaScript. */
function taken(proxy) {
  const value = proxy.toJs();
  proxy.destroy();
  return value;
}

function report(loss, seconds, of) {
  postMessage({ loss, seconds, of });
  return !stopped;
}

const ANSWERS = {
  async train({ Training, digits }) {
    training?.destroy();
    training = Training(digits);
    say("Generating the kernels…");
    await training.run(report);
    const result = await training.test();
    const [scores, accuracy] = taken(result);
    return { scores: [...scores].map((row) => Float32Array.from(row)), accuracy };
  },
  async read({ pictures }, { pixels }) {
    const array = pictures(pixels);
    const scores = await training.read(array).finally(() => array.destroy());
    return Float32Array.from(taken(scores)[0]);
  },
  async save() {
    return taken(await training.save());
  },
};

addEventListener("message", async ({ data: { ask, ...given } }) => {
  stopped = ask === "stop";
  if (stopped) return;
  try {
    started ??= start();
    postMessage({ answer: await ANSWERS[ask](await started, given) });
  } catch (error) {
    postMessage({ problem: error.message });
  }
});
