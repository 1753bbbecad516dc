// The page of `make bench`: starts Python and a device, then measures the rows one by one.
import { boot } from "/boot.mjs";
import * as packages from "./packages.mjs";
import { contextOf } from "./rows/context.mjs";
import * as downloads from "./rows/downloads.mjs";
import { requestDevice } from "./rows/gpu.mjs";
import { handover } from "./rows/handover.mjs";
import * as kernels from "./rows/kernels.mjs";
import { measureRow, sizesOf } from "./rows/measure.mjs";
import * as memory from "./rows/memory.mjs";
import * as uploads from "./rows/uploads.mjs";

const MB = 2 ** 20;
const ROWS = [memory, kernels, uploads, downloads, { handover }, packages]
  .flatMap(Object.values)
  .filter(({ make }) => make);
const BUDGET_MS = 12_000; // of one size of a row

function options(bytes, quick) {
  if (quick) return { rounds: 2, warmUpMs: 0 };
  return { rounds: bytes >= 128 * MB ? 7 : bytes >= 16 * MB ? 15 : 50, budgetMs: BUDGET_MS };
}

async function start() {
  const booted = await boot((text) => console.log(text));
  return contextOf({ ...booted, device: await requestDevice() });
}

/** Measures the rows of one path, or all; `failed` says why others are missing. Progress goes to the console. */
async function bench({ quick, only }) {
  const context = await start();
  const [rows, failed] = [[], []];
  if ([null, "python", "wire"].includes(only)) {
    console.log("python, in the page");
    rows.push(...(await packages.pythonRows(context.pyodide, quick)));
  }
  const chosen = ROWS.filter(({ path }) => only === null || only === path);
  for (const { row, layout, bytes } of sizesOf(chosen, quick ? MB : Infinity)) {
    const name = `${row.path}, ${layout}, ${bytes} bytes`;
    console.log(name);
    try {
      const found = await measureRow(row, context, { bytes, layout, ...options(bytes, quick) });
      rows.push(...found.rows.map((each) => ({ ...each, where: "page" })));
      failed.push(...found.failed.map(({ way, reason }) => `${name}, ${way}: ${reason}`));
    } catch (error) {
      failed.push(`${name}: ${error}`);
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
  const module = await packages.trainingModule(pyodide);
  return (await module.first_step.callPromising()).toJs();
}

const paths = [...new Set(["python", ...ROWS.map(({ path }) => path), "first step"])];

Object.assign(globalThis, { bench, firstStep, paths });
