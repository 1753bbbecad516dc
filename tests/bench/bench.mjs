// The page of `make bench`: starts Python and a device, then measures the rows one by one.
import { boot } from "/boot.mjs";
import * as library from "/js/index.js";
import { poolOf } from "/js/webgpu/buffers/pool.js";
import { useDevice } from "/js/webgpu/device/device.js";
import { files, handoverToLibraries, sessions, training, trainingModule } from "./packages.mjs";
import { download, pictures, small } from "./rows/downloads.mjs";
import { requestDevice } from "./rows/gpu.mjs";
import { handover } from "./rows/handover.mjs";
import { calls, elementwise, reduction, replay } from "./rows/kernels.mjs";
import { measureRow, sizesOf } from "./rows/measure.mjs";
import { data, pack, view } from "./rows/memory.mjs";
import { loadPython } from "./rows/python.mjs";
import { columns, empty, upload } from "./rows/uploads.mjs";

const MB = 2 ** 20;
const ROWS = [
  view,
  data,
  pack,
  calls,
  replay,
  reduction,
  elementwise,
  training,
  upload,
  columns,
  empty,
  download,
  small,
  pictures,
  files,
  sessions,
  handover,
  handoverToLibraries,
];
const BUDGET_MS = 12_000; // of one size of a row

/** The rows of exchange.py, which bench.py measures natively as well. */
async function pythonRows(pyodide, quick) {
  const wire = (await (await fetch("/wheel/packages.json")).json())["dlpack-web-page"];
  await pyodide.loadPackage(`/wheel/${wire}`, { messageCallback() {} });
  const source = await (await fetch(new URL("exchange.py", import.meta.url))).text();
  pyodide.FS.writeFile("exchange.py", source);
  return JSON.parse(pyodide.pyimport("exchange").measure("page", quick));
}

function options(bytes, quick) {
  if (quick) return { rounds: 2, warmUpMs: 0 };
  return { rounds: bytes >= 128 * MB ? 7 : bytes >= 16 * MB ? 15 : 50, budgetMs: BUDGET_MS };
}

/** Whether a device is lost, or will be within a second. */
const isLost = ({ lost }) =>
  Promise.race([lost.then(() => true), new Promise((done) => setTimeout(done, 1000))]);

async function start() {
  const { pyodide, bridge } = await boot((text) => console.log(text));
  const python = await loadPython(pyodide);
  const device = await requestDevice();
  useDevice(device); // the first is Python's default
  return { pyodide, bridge, python, device, library };
}

/**
 * Measures the rows of one path, or all. `failed` has the rows whose device was lost; the next ones get a new
 * device. Progress goes to the console.
 */
async function bench({ quick, only }) {
  const context = await start();
  const [rows, failed] = [[], []];
  if ([null, "python", "wire"].includes(only)) {
    console.log("python, in the page");
    rows.push(...(await pythonRows(context.pyodide, quick)));
  }
  const chosen = ROWS.filter(({ path }) => only === null || only === path);
  for (const { row, layout, bytes } of sizesOf(chosen, quick ? MB : Infinity)) {
    const name = `${row.path}, ${layout}, ${bytes} bytes`;
    console.log(name);
    context.pool = poolOf(useDevice(context.device)); // a private part, for what is cold
    try {
      const measured = await measureRow(row, context, { bytes, layout, ...options(bytes, quick) });
      rows.push(...measured.map((each) => ({ ...each, where: "page" })));
    } catch (error) {
      if (!(await isLost(context.device)))
        throw new Error(`${name}: ${error.message}`, { cause: error });
      failed.push(`${name}: ${error}`);
      context.device = await requestDevice();
    }
  }
  const { vendor, architecture, description } = context.device.adapterInfo;
  const machine = {
    browser: navigator.userAgent,
    adapter: [vendor, architecture, description].filter(Boolean).join(" "),
    cores: navigator.hardwareConcurrency,
    pyodide: context.pyodide.version,
    cross_origin_isolated: crossOriginIsolated,
  };
  return { machine, rows, failed };
}

/** What first_step of training.py returns, in a page that has trained no network yet. */
async function firstStep() {
  const { pyodide } = await start();
  const module = await trainingModule(pyodide);
  return (await module.first_step.callPromising()).toJs();
}

const paths = [...new Set(["python", ...ROWS.map(({ path }) => path), "first step"])];

Object.assign(globalThis, { bench, firstStep, paths });
