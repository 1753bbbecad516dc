// Runs the suite on a reader's text, in a worker: what hangs is ended from outside.
import { conformance } from "./js/conformance/index.js";

addEventListener("message", async ({ data: source }) => {
  try {
    const make = new Function(`${source}\nreturn make;`)();
    if (typeof make !== "function") throw new TypeError("make is not a function");
    postMessage(await conformance({ make }));
  } catch (error) {
    postMessage({ ok: false, rules: [], error: `${error}` });
  }
});
