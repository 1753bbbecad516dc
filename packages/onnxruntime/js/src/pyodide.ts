/** For pages without eval: `connect(pyodide, { packages: [onnxruntime] })`. */
import type { Package } from "dlpack-web";
import script from "./script.js";

/** The wheel beside this code in the npm package; bundlers recognise this form. */
const shipped = () =>
  new URL("../../dist/dlpack_web_onnxruntime-0.1.0-py3-none-any.whl", import.meta.url);

function wheel(): string | undefined {
  try {
    return shipped().href;
  } catch {
    return undefined; // a CommonJS bundle has no import.meta.url
  }
}

/** The Python package `dlpack_web_onnxruntime`, with its JavaScript. */
export const onnxruntime: Package = {
  name: "dlpack_web_onnxruntime",
  version: "0.1.0",
  wheel: wheel(),
  script,
};
