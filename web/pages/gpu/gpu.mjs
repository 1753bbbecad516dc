// The page "Your GPU": rows of the benchmark, in the reader's browser, within a minute.
import { boot, versionsOf } from "./boot.mjs";
import { PIECE } from "./js/webgpu/buffers/upload.js";
import { $, offer, say, Tasks } from "./page.mjs";
import { formatTime, showChecks } from "./steps.mjs";
import { contextOf } from "./tests/bench/rows/context.mjs";
import { download as downloads } from "./tests/bench/rows/downloads.mjs";
import { requestDevice } from "./tests/bench/rows/gpu.mjs";
import { calls } from "./tests/bench/rows/kernels.mjs";
import { measureRow } from "./tests/bench/rows/measure.mjs";
import { view } from "./tests/bench/rows/memory.mjs";
import { upload } from "./tests/bench/rows/uploads.mjs";

const MB = 1 << 20;
/** Of a run, in seconds; tests ask for fewer. A slow machine takes longer: each way runs a few times. */
const SECONDS = Number(new URLSearchParams(location.search).get("seconds") ?? 32);
const ROUNDS = 50;
const SLOW_WAIT_MS = 20; // Firefox checks every 100 ms whether a GPU has finished

const pieces = [1, 4, 8]; // MiB
/** What is measured, and its share of the time. */
const PLAN = [
  ["View of a NumPy array, 4 MiB", view, 4 * MB, { share: 1 }],
  ["Kernel call", calls, 64, { share: 2 }],
  ["Upload, 16 MiB, target idle", upload, 16 * MB, { share: 8, pieces }],
  ["Upload, 16 MiB, target in use", upload, 16 * MB, { share: 5, pieces, layout: "in use" }],
  ["Upload of a.T, 16 MiB", upload, 16 * MB, { share: 6, layout: "transposed" }],
  ["Download, 64 bytes", downloads, 64, { share: 1 }],
  ["Download, 16 MiB", downloads, 16 * MB, { share: 3 }],
].map(([title, row, bytes, more]) => ({ title, row, bytes, layout: "contiguous", ...more }));
const sharesOf = (plan) => plan.reduce((sum, { share }) => sum + share, 0);

const time = (ms) => (ms < 0.1 ? `${(1000 * ms).toPrecision(3)} µs` : formatTime(ms));

const SOFTWARE = "software that runs on the CPU, whose figures say nothing about a GPU";

let booted;
let ready; // of a device that is not lost
let result;

/** The adapter's facts, as far as the browser tells them. */
function factsOf(adapter) {
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info ?? {};
  const names = [vendor, architecture, device, description].filter(Boolean).join(" ");
  const isFallback = isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
  return {
    name: names || "not named by this browser",
    software: isFallback || /swiftshader|llvmpipe|lavapipe|basic render|software/i.test(names),
    features: [...adapter.features].sort(),
    max_buffer_size: adapter.limits.maxBufferSize,
  };
}

/** The figures of each way; of one that fails or is wrong, `{title, way, error}`. */
async function measure(context, { title, row, bytes, layout, pieces }, budgetMs) {
  const options = { bytes, layout, rounds: ROUNDS, budgetMs, isLong: true };
  const { rows, failed } = await measureRow(row, { ...context, pieces }, options);
  return [
    ...rows.map((each) => ({ title, ...each })),
    ...failed.map(({ way, reason }) => ({ title, way, error: reason })),
  ];
}

async function runOnce() {
  const start = performance.now();
  $("copy").disabled = $("download").disabled = true;
  const adapter = await navigator.gpu.requestAdapter();
  const facts = factsOf(adapter);
  showAdapter(facts);
  booted ??= await boot(say);
  if (!ready) {
    const made = await contextOf({ ...booted, device: await requestDevice(adapter) });
    ready = made;
    made.device.lost.then(() => {
      if (ready === made) ready = undefined;
    });
  }
  const context = ready;
  const { tick_ms, wait_ms } = context;
  const rows = [];
  for (const [i, row] of PLAN.entries()) {
    const left = sharesOf(PLAN.slice(i));
    say(`${row.title}…`);
    $("progress").value = 1 - left / sharesOf(PLAN);
    await new Promise((done) => setTimeout(done, 50)); // to show that
    const remainingMs = Math.max(0, start + 1000 * SECONDS - performance.now());
    rows.push(...(await measure(context, row, (remainingMs * row.share) / left)));
  }
  $("progress").removeAttribute("value");
  const seconds = (performance.now() - start) / 1000;
  result = {
    ok: !rows.some(({ error }) => error),
    date: new Date().toISOString(),
    adapter: facts,
    browser: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    cross_origin_isolated: crossOriginIsolated,
    versions: versionsOf(booted.pyodide),
    seconds,
    tick_ms,
    wait_ms,
    rows,
  };
  show(result);
  $("copy").disabled = $("download").disabled = false;
  say(`Done in ${seconds.toFixed(0)} s${result.ok ? "." : ", but a result is wrong."}`);
  return result;
}

function showAdapter({ name, software, features, max_buffer_size }) {
  $("adapter").textContent = `Adapter: ${name}. Buffers of up to ${max_buffer_size / MB} MiB.`;
  $("software").hidden = !software;
  $("software").textContent = `Adapter: ${name}; ${SOFTWARE}.`;
  const [summary, list] = $("features").children;
  summary.textContent = `${features.length} features`;
  list.textContent = features.join(", ");
  $("features").hidden = false;
}

/** A bar of SVG: the time until all was done, and the part of it that JavaScript was blocked. */
function bar({ way, median_ms, js_ms = 0 }, longest) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", way.split(/\W/)[0]); // "dlpack" and "floor" have their colours
  svg.setAttribute("aria-hidden", "true");
  for (const ms of [median_ms, js_ms]) {
    const rect = document.createElementNS(svg.namespaceURI, "rect");
    rect.setAttribute("width", `${(100 * Math.min(ms, longest)) / longest}%`);
    rect.setAttribute("height", "100%");
    svg.append(rect);
  }
  return svg;
}

/** Done, blocked and relative; or the error. */
const textsOf = ({ error, median_ms, js_ms, relative }) =>
  error
    ? [error]
    : [
        time(median_ms),
        js_ms === undefined ? "–" : time(js_ms),
        relative ? `${relative.toFixed(2)} ×` : "–",
      ];

function show({ rows, wait_ms }) {
  for (const body of [...$("figures").tBodies]) body.remove();
  for (const { title } of PLAN) {
    const body = $("figures").createTBody();
    const head = Object.assign(document.createElement("th"), { textContent: title, colSpan: 4 });
    head.scope = "rowgroup";
    body.insertRow().append(head);
    const group = rows.filter((row) => row.title === title);
    const longest = Math.max(...group.map(({ median_ms = 0 }) => median_ms));
    for (const row of group) {
      const line = body.insertRow();
      line.insertCell().append(row.way, row.error ? "" : bar(row, longest));
      for (const text of textsOf(row)) line.insertCell().textContent = text;
      if (row.error) Object.assign(line.cells[1], { colSpan: 3, className: "broken" });
    }
  }
  const pieces = rows.filter(
    ({ layout, way }) => layout === "in use" && /pieces|^floor$/.test(way),
  );
  const [best] = pieces.sort((a, b) => a.median_ms - b.median_ms);
  $("answer").textContent = best
    ? `The fastest hand-written upload to a target in use: ${best.way.match(/pieces of \d+ MiB/) ?? "whole"}, ` +
      `${time(best.median_ms)}. dlpack-web writes pieces of ${PIECE / MB} MiB.`
    : "";
  $("waits").textContent =
    wait_ms > SLOW_WAIT_MS
      ? `This browser takes ${time(wait_ms)} to report that the GPU has finished. Each download includes that time.`
      : "";
  showChecks(
    $("checks-box"),
    rows.map(({ title, way, error }) => ({ name: `${title}: ${error ?? way}`, held: !error })),
  );
}

function markdown({ adapter, browser, cores, date, versions, rows }) {
  const lines = rows.map((row) => {
    const [done, ...others] = textsOf(row);
    const spread = row.error ? "" : ` ± ${time(row.iqr_ms)}`;
    return `| ${[row.title, row.way, done + spread, ...others, row.n ?? ""].join(" | ")} |`;
  });
  return [
    `dlpack-web ${versions.dlpack_web}, ${date.slice(0, 10)}`,
    "",
    `- adapter: ${adapter.name}${adapter.software ? `; ${SOFTWARE}` : ""}`,
    `- browser: ${browser}, ${cores} cores`,
    `- features: ${adapter.features.join(", ")}`,
    "",
    "| what | way | done (median ± IQR) | JS blocked | relative | n |",
    "|---|---|--:|--:|--:|--:|",
    ...lines,
    "",
  ].join("\n");
}

async function copy() {
  const field = $("markdown");
  field.value = markdown(result);
  try {
    await navigator.clipboard.writeText(field.value);
    field.hidden = true;
    say("Copied.");
  } catch {
    field.hidden = false;
    field.select();
    say("The browser does not let this page copy: copy the selected text.");
  }
}

function download() {
  const url = URL.createObjectURL(
    new Blob([`${JSON.stringify(result, null, 2)}\n`], { type: "application/json" }),
  );
  Object.assign(document.createElement("a"), { href: url, download: "gpu.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const tasks = new Tasks("gpu");
$("copy").addEventListener("click", copy);
$("download").addEventListener("click", download);
offer(() => tasks.run(runOnce));
