// The page of `make bench`: starts Python and a device, then runs the paths one by one.
import { boot } from "/boot.mjs";
import * as library from "/js/index.js";
import { poolOf } from "/js/webgpu/buffers/pool.js";
import { useDevice } from "/js/webgpu/device/device.js";
import { libraries as loadLibraries } from "../browser/libraries/libraries.mjs";
import { CALL_LAYOUTS, callWays, frameWays } from "./calls.mjs";
import { openWays, partWays } from "./files.mjs";
import { handoverWays } from "./handover.mjs";
import { compare } from "./measure.mjs";
import {
  bothWays,
  columnWays,
  dataWays,
  downloadWays,
  emptyWays,
  manyWays,
  pictureWays,
  requestDevice,
  uploadWays,
  viewWays,
} from "./paths.mjs";
import { reductionWays } from "./reduction.mjs";
import { replayWays } from "./replay.mjs";
import { sessionWays } from "./sessions.mjs";
import { cpuRow, trainingModule, trainingWays } from "./training.mjs";

const KB = 1024;
const MB = 1024 * KB;

/** `[path, layout, ways, sizes]`; `quick` is there to see that all of it works. */
function plan(quick) {
  const moved = quick ? [64, MB] : [64, MB, 16 * MB, 64 * MB, 256 * MB];
  const packed = quick ? [MB] : [64 * MB];
  return [
    ["view", "contiguous", viewWays, [64, 4 * MB]],
    ["data", "contiguous", dataWays, [64]],
    ["dispatch", "contiguous", callWays, [64]],
    ...CALL_LAYOUTS.map((layout) => ["calls", layout, callWays, [64]]),
    ["frame", "contiguous", frameWays, [MB]],
    ["replay", "contiguous", replayWays, [64]],
    ["reduction", "contiguous", reductionWays, [quick ? MB : 64 * MB]],
    ["training step", "Network", trainingWays, [2 * KB]],
    ["training step", "Convolutions", trainingWays, [8 * KB]],
    ["upload", "contiguous", uploadWays, moved],
    ["upload", "transposed", uploadWays, packed],
    ["upload", "strided", uploadWays, packed],
    ["upload", "f64", uploadWays, packed],
    ["upload", "in use", uploadWays, quick ? [MB] : [16 * MB, 64 * MB, 256 * MB]],
    ["columns", "f64", columnWays, [20 * 4 * (quick ? 1000 : 100_000)]],
    ["empty", "contiguous", emptyWays, moved],
    ["empty", "and a kernel", emptyWays, [MB]],
    ["download", "contiguous", downloadWays, moved],
    ["download of 32", "contiguous", manyWays, [4 * KB]],
    ["32 arrays", "up and down", bothWays, [4 * KB]],
    ["pictures", "16", pictureWays, [256 * KB]],
    ["open", "contiguous", openWays, quick ? [16 * MB] : [256 * MB]],
    ["open a part", "1 %", partWays, quick ? [16 * MB] : [256 * MB]],
    ["onnxruntime", "small", sessionWays, [64]],
    ["onnxruntime", "large", sessionWays, [quick ? MB : 16 * MB]],
    ...["ort", "tfjs", "jax", "three"].map((name) => ["handover", name, handoverWays, [4 * MB]]),
  ];
}

/** The rows of exchange.py, which bench.py measures natively as well. */
async function pythonRows(pyodide, quick) {
  const wire = (await (await fetch("/wheel/packages.json")).json())["dlpack-web-page"];
  await pyodide.loadPackage(`/wheel/${wire}`, { messageCallback() {} });
  const module = await (await fetch(new URL("exchange.py", import.meta.url))).text();
  pyodide.FS.writeFile("exchange.py", module);
  const measure = pyodide.runPython("import exchange\nexchange.measure");
  const rows = JSON.parse(measure("page", quick));
  measure.destroy();
  return rows;
}

function timing(bytes, quick) {
  if (quick) return { rounds: 2, warmUpMs: 0 };
  return { rounds: bytes >= 128 * MB ? 7 : bytes >= 16 * MB ? 15 : 50 };
}

/** Whether a device is lost, or will be within a second. */
const isLost = ({ lost }) =>
  Promise.race([lost.then(() => true), new Promise((done) => setTimeout(done, 1000))]);

/**
 * Runs everything; `{machine, rows, failed}`: the rows whose device was lost. Progress goes to the
 * console.
 */
async function bench({ quick, only }) {
  const { pyodide, bridge } = await boot((text) => console.log(text));
  let device = await requestDevice();
  useDevice(device); // the first is Python's default
  const [rows, failed] = [[], []];
  if ([null, "python", "wire"].includes(only)) {
    console.log("python, in the page");
    rows.push(...(await pythonRows(pyodide, quick)));
  }
  const chosen = plan(quick).filter(([path]) => only === null || only === path);
  const libraries = chosen.some(([path]) => path === "handover") ? await loadLibraries() : null;
  for (const [path, layout, waysFor, sizes] of chosen) {
    for (const bytes of sizes) {
      console.log(`${path}, ${layout}, ${bytes} bytes`);
      const pool = poolOf(useDevice(device)); // a private part, for what is cold
      const context = { pyodide, bridge, device, pool, library, libraries };
      let [ways, measured] = [];
      try {
        const made = await waysFor(context, bytes, layout);
        ways = made.ways;
        const options = { ...timing(bytes, quick), sampleMs: made.sampleMs, bytes };
        measured = await compare(ways, options);
        made.done();
      } catch (error) {
        if (!(await isLost(device))) throw error;
        failed.push(`${path}, ${layout}, ${bytes} bytes: ${error}`);
        device = await requestDevice();
        continue;
      }
      for (const row of measured) {
        const { facts } = ways.find(({ name }) => name === row.way);
        rows.push({ path, layout, bytes, where: "page", ...row, ...facts });
      }
      if (layout === "Network" && !quick) {
        rows.push({ path, layout, bytes, where: "page", ...(await cpuRow({ pyodide }, layout)) });
      }
    }
  }
  const { vendor, architecture, description } = device.adapterInfo;
  const machine = {
    browser: navigator.userAgent,
    adapter: [vendor, architecture, description].filter(Boolean).join(" "),
    cores: navigator.hardwareConcurrency,
    pyodide: pyodide.version,
    cross_origin_isolated: crossOriginIsolated,
  };
  return { machine, rows, failed };
}

/** What first_step of training.py returns, in a page that has trained no network yet. */
async function firstStep() {
  const { pyodide } = await boot((text) => console.log(text));
  const device = await requestDevice();
  useDevice(device);
  const module = await trainingModule(pyodide);
  return (await module.first_step.callPromising()).toJs();
}

/** Milliseconds that each of the first calls blocks, in a page that has called no kernel yet. */
async function firstCalls(way, count) {
  const { pyodide, bridge } = await boot((text) => console.log(text));
  const device = await requestDevice();
  const { ways, ready, done } = callWays({ pyodide, bridge, device, library }, 64, "3 tensors");
  await ready();
  const { run, loop, verify } = ways.find(({ name }) => name === way);
  const start = performance.now();
  if (loop) loop(count);
  else for (let i = 0; i < count; i++) run();
  const each = (performance.now() - start) / count;
  await verify();
  done();
  return each;
}

globalThis.bench = bench;
globalThis.firstCalls = firstCalls;
globalThis.firstStep = firstStep;
dispatchEvent(new Event("bench"));
