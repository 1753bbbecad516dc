/** Generated from tools/tables by `make generate`: do not edit. */

/** The version of this JavaScript and of its wheel. */
export const VERSION = "0.1.0";

/** The ABIs of Pyodide for which the wheel is built, as its name lists them. */
export const ABIS: readonly string[] = ["2025_0", "2026_0", "2026_5"];

/** The wheel beside this code in the npm package; bundlers recognise this form. */
export const shippedWheel = () =>
  new URL(
    "../../../dist/dlpack_web-0.1.0-cp312-abi3-pyemscripten_2025_0_wasm32.pyemscripten_2026_0_wasm32.pyemscripten_2026_5_wasm32.whl",
    import.meta.url,
  );
