// Starts Python in the page: Pyodide, NumPy and dlpack-web, all from this site.
import { connect } from "./js/index.js";

const here = (path) => new URL(path, import.meta.url).href;

/** Resolves to `{pyodide, bridge}`; it reports its progress to `say(text)`. */
export async function boot(say) {
  say("Loading Python…");
  const { loadPyodide } = await import(here("./pyodide/pyodide.mjs"));
  const pyodide = await loadPyodide({ indexURL: here("./pyodide/") });
  say("Loading NumPy…");
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  say("Loading dlpack-web…");
  const { file } = await (await fetch(here("./wheel/wheel.json"))).json();
  const bridge = await connect(pyodide, { wheel: here(`./wheel/${file}`) });
  return { pyodide, bridge };
}

/** Runs a page's Python; returns its globals. */
export function runScript(pyodide, filename, source) {
  const globals = pyodide.toPy({ __name__: filename.replace(".py", "") });
  pyodide.runPython(source, { globals, filename });
  return globals;
}

/** The versions of what runs in Python, for results. */
export function versionsOf(pyodide) {
  const versions = pyodide.runPython(`
import json, platform, numpy, dlpack_web
json.dumps({"python": platform.python_version(), "numpy": numpy.__version__,
            "dlpack_web": dlpack_web.__version__})`);
  return { ...JSON.parse(versions), pyodide: pyodide.version };
}
