// The page of `make bench`: starts Python and a device, then runs the paths one by one.
import { boot } from "/boot.mjs";
import { compare } from "./measure.mjs";
import { dataWays, downloadWays, uploadWays, viewWays } from "./paths.mjs";

const KB = 1024;
const MB = 1024 * KB;

/** `[path, ways, sizes]`; `quick` leaves the largest size out. */
function plan(quick) {
  const moved = [64, MB, 16 * MB, ...(quick ? [] : [64 * MB])];
  return [
    ["view", viewWays, [64, 4 * MB]],
    ["data", dataWays, [64]],
    ["upload", uploadWays, moved],
    ["download", downloadWays, moved],
  ];
}

/** The rows of exchange.py, which bench.py measures natively as well. */
async function pythonRows(pyodide, quick) {
  const module = await (await fetch(new URL("exchange.py", import.meta.url))).text();
  pyodide.FS.writeFile("exchange.py", module);
  const measure = pyodide.runPython("import exchange\nexchange.measure");
  const rows = JSON.parse(measure("page", quick));
  measure.destroy();
  return rows;
}

async function requestDevice() {
  const adapter = await navigator.gpu.requestAdapter();
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  const device = await adapter.requestDevice({
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
  });
  const { vendor, architecture, description } = adapter.info;
  return { device, adapter: [vendor, architecture, description].filter(Boolean).join(" ") };
}

/** Runs everything; `{machine, rows}`. Progress goes to the console. */
async function bench({ quick }) {
  const { pyodide, bridge } = await boot((text) => console.log(text));
  const { device, adapter } = await requestDevice();
  console.log("python, in the page");
  const rows = await pythonRows(pyodide, quick);
  for (const [path, waysFor, sizes] of plan(quick)) {
    for (const bytes of sizes) {
      console.log(`${path}, ${bytes} bytes`);
      const large = bytes >= 16 * MB;
      const { ways, done } = waysFor({ pyodide, bridge, device }, bytes);
      const measured = await compare(ways, { rounds: (large ? 11 : 25) * (quick ? 1 : 2) });
      done();
      for (const row of measured) {
        rows.push({ path, layout: "contiguous", bytes, where: "page", ...row });
      }
    }
  }
  const machine = {
    browser: navigator.userAgent,
    adapter,
    cores: navigator.hardwareConcurrency,
    pyodide: pyodide.version,
    cross_origin_isolated: crossOriginIsolated,
  };
  return { machine, rows };
}

globalThis.bench = bench;
dispatchEvent(new Event("bench"));
