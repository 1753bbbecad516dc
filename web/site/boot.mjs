// Starts Python in the page: Pyodide, NumPy and dlpack-web, all from this site.
import { connect } from "./js/index.js";
import { startPyodide } from "./start.mjs";

const here = (path) => new URL(path, import.meta.url).href;

/** Resolves to `{pyodide, bridge}`; it reports its progress to `say(text)`. `packages`: for connect(). */
export async function boot(say, packages = []) {
  say("Loading Python…");
  const [pyodide, { file }] = await Promise.all([
    startPyodide(here("./pyodide/")),
    fetch(here("./wheel/wheel.json")).then((response) => response.json()),
    import("./js/pyodide/load.js"), // what connect() loads when it is called
  ]);
  say("Loading NumPy…");
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  say("Loading dlpack-web…");
  const bridge = await connect(pyodide, { wheel: here(`./wheel/${file}`), packages });
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
