// The chain in a module worker, with a device of its own; the answer goes back as tensors.
import { photograph, start } from "./chain_run.mjs";
import { Tensor } from "./js/index.js";

let reading;

addEventListener("message", async () => {
  try {
    reading ??= start((text) => postMessage({ say: text }));
    const read = await reading;
    const { picture, facts } = await photograph();
    const { labels, scores, ...rest } = await read(picture, facts);
    const [a, b] = [labels, scores].map((array) => Tensor.fromTypedArray(array).transfer());
    postMessage({ result: { ...rest, labels: a, scores: b } }, [a.buffer, b.buffer]);
  } catch (error) {
    reading = undefined;
    postMessage({ problem: error.message });
  }
});
