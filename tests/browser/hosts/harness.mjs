import * as counters from "/counters.mjs"; // first: it must see what the library copies
import { needsPage } from "../cases/js/expect.mjs";
import { releaseKept } from "../cases/js/gpu.mjs";

// Runs inside the test pages: starts a Pyodide and runs Python tests (real pytest) and
// JavaScript cases in it. The host (tests/browser/conftest.py) calls `harness.*`.

// CDP lifts the eval ban for the code it calls itself; a task of our own is under it again.
const ownTask = () => new Promise((resolve) => setTimeout(resolve));

/** What cases work with: {counters, pyodide, bridge, library}. */
const context = { counters };

/** Where a Pyodide has its files. */
const indexURL = (dir) => (context.root ? context.root + dir : new URL(dir, location).href);

/**
 * `pyodideDir` and `wheel` are URL paths, `packages` those of modules for connect(); without the first there is no Python; `notebook`: Python
 * imports dlpack_web by itself; `numpy`: false leaves it out; `snapshot`: Python starts from the memory snapshot of the site;
 * `root`: the site's folder, where Pyodide reads files and no URLs.
 */
async function start({ pyodideDir, wheel, packages = [], notebook, numpy, snapshot, root }) {
  context.root = root;
  await ownTask();
  if (pyodideDir === null) {
    context.library = await import("/js/index.js");
    return;
  }
  const startPyodide = snapshot
    ? (await import("/start.mjs")).startPyodide
    : async (indexURL) => (await import(`${pyodideDir}pyodide.mjs`)).loadPyodide({ indexURL });
  const pyodide = await startPyodide(indexURL(pyodideDir));
  const quiet = { messageCallback() {} };
  if (numpy ?? true) await pyodide.loadPackage("numpy", quiet);
  Object.assign(context, { pyodide });
  if (notebook) {
    await pyodide.loadPackage(new URL(wheel, location).href, quiet);
    await pyodide.runPythonAsync("import dlpack_web");
    return;
  }
  const library = await import("/js/index.js");
  const modules = await Promise.all(packages.map((url) => import(url)));
  const options = { packages: modules.flatMap(Object.values) };
  const bridge = await library.connect(pyodide, {
    wheel: new URL(wheel, location).href,
    ...options,
  });
  Object.assign(context, { bridge, library });
}

/** Runs Python source, with top-level await, and resolves to its value. */
async function python(source) {
  await ownTask();
  return context.pyodide.runPythonAsync(source);
}

/** The same by the synchronous door, where Python cannot block on a promise. */
async function pythonSync(source) {
  await ownTask();
  return context.pyodide.runPython(source);
}

/** Unpacks pytest and the tests, runs `files` and resolves to one report for each test; with `whole`, all. */
async function pytest(bundle, files, whole = "") {
  await ownTask();
  const { pyodide } = context;
  if (!context.unpacked) {
    const archive = await (await fetch(bundle)).arrayBuffer();
    pyodide.unpackArchive(archive, "zip", { extractDir: "/bundle" });
    const ours = ["browser/hosts", "browser/cases/py", "models"].map(
      (name) => `/bundle/repo/tests/${name}`,
    );
    const paths = JSON.stringify(["/bundle/site", ...ours]);
    const packages =
      "sorted(map(str, pathlib.Path('/bundle/repo/packages').glob('*/tests/cases')))";
    pyodide.runPython(`import pathlib, sys; sys.path[:0] = [*${paths}, *${packages}]`);
    context.unpacked = true;
  }
  const log = [];
  const keep = { batched: (line) => log.push(line) };
  pyodide.setStdout(keep);
  pyodide.setStderr(keep);
  const names = pyodide.toPy(files);
  pyodide.globals.set("test_files", names);
  names.destroy();
  const reports = await pyodide.runPythonAsync(
    `import in_page\nin_page.run_pytest('/bundle/repo', test_files, ${JSON.stringify(whole)})`,
  );
  return { reports: JSON.parse(reports), log: log.join("\n") };
}

const liveTensors = () =>
  `${context.library.liveTensors()}, ${context.pyodide?.runPython(
    "import gc, dlpack_web; gc.collect(); dlpack_web.live_tensors()",
  )}`;

/**
 * Runs the exported functions of a module one by one, as tests of the same name.
 *
 * @param only - the name of the one to run; default all
 */
async function cases(url, only) {
  await ownTask();
  const tests = await import(url);
  const reports = [];
  for (const [name, test] of Object.entries(tests)) {
    if (only && name !== only) continue;
    const report = { id: `${url.split("/").pop()}::${name}`, outcome: "passed", detail: "" };
    const before = liveTensors();
    try {
      await test(context).finally(releaseKept);
      const after = liveTensors();
      if (after !== before) throw new Error(`tensors alive (JS, C): ${before} -> ${after}`);
    } catch (error) {
      const skip = needsPage(error);
      report.outcome = skip ? "skipped" : "failed";
      // The stack begins with the message in some browsers only.
      report.detail = skip ? skip.message : `${error}\n${error.stack}`;
    }
    reports.push(report);
  }
  return { reports, log: "" };
}

/** The bytes of a CPU tensor; a PyProxy of a Float16Array is more than Pyodide can make. */
function bytes(tensor) {
  const { buffer, byteOffset, byteLength } = tensor.data;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** `import()`, for Python. */
const load = (url) => import(url);

globalThis.harness = {
  start,
  indexURL,
  python,
  pythonSync,
  pytest,
  cases,
  bytes,
  load,
  context,
  counters,
};
dispatchEvent(new Event("harness"));
