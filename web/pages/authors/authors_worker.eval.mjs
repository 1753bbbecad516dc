// Runs the suite on a reader's text, in a worker: what hangs is ended from outside.
import { conformance } from "./js/conformance/index.js";

addEventListener("message", async ({ data: source }) => {
  try {
    // The file for `npx dlpack-web conformance`, too, which exports what it defines.
    const text = source.replace(/^export (default )?(?=async |function|class |const |let )/gm, "");
    const make = new Function(`${text}\nreturn make;`)();
    if (typeof make !== "function") throw new TypeError("make is not a function");
    postMessage(await conformance({ make }));
  } catch (error) {
    postMessage({ ok: false, rules: [], error: `${error}` });
  }
});
