// Real Pyodides in Node, with the real NumPy; and the real wheel.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const SITE = new URL("../../../build/site/", import.meta.url);
export const WHEEL = new URL(
  JSON.parse(readFileSync(new URL("wheel/wheel.json", SITE), "utf8")).file,
  new URL("wheel/", SITE),
);

export async function boot(folder) {
  const base = new URL(`${folder}/`, SITE);
  const { loadPyodide } = await import(new URL("pyodide.mjs", base));
  const pyodide = await loadPyodide({ indexURL: fileURLToPath(base) });
  const numpy = readdirSync(base).find((name) => name.startsWith("numpy-"));
  await pyodide.loadPackage(pathToFileURL(new URL(numpy, base).pathname).href, {
    messageCallback() {},
  });
  return pyodide;
}
