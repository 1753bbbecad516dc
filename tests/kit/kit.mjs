// The kit, once run.sh has found it a Deno: looks which implementations of WebGPU start, and runs the suite of
// tests/runtimes and rows of the benchmark in them. Status: 0 all is well, 1 something failed, 2 it was called
// wrongly, 3 there is no GPU, 130 it was interrupted.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { extname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { IMPLEMENTATIONS, Runtime } from "./runtime.mjs";

const USAGE = `usage: run.sh OUT [options]

OUT is the folder for bench.json and tests.txt; it is made where there is none.
  --software       adapters made of software (llvmpipe, SwiftShader) will do as well
  --only PART      tests or bench; without it both, the tests first
  --webgpu NAME    wgpu-core or Dawn; without it both
  --cases NAMES    of the tests only these, such as gpu_cases.mjs,gpu_kernels.py
  --quick          few rounds of small sizes: figures that mean nothing, to see that all works
  --minutes N      measuring ends after so many (60)
`;
const ADVICE = `Needed is a GPU whose driver speaks Vulkan: for NVIDIA's the distribution's package of the driver
with its OpenGL and Vulkan part (Debian: nvidia-driver, nvidia-vulkan-icd; Ubuntu: libnvidia-gl-NNN),
in a container also NVIDIA_DRIVER_CAPABILITIES=all; for AMD's and Intel's mesa-vulkan-drivers;
and permission to open /dev/nvidia* or /dev/dri/render*. VK_DRIVER_FILES=FILE.json names a driver
by hand.`;
const SOFTWARE = /llvmpipe|lavapipe|swiftshader|softpipe|software|subzero|microsoft basic/i;
const START_S = 120; // for an implementation to start
const STEP_S = 600; // for a file of cases, or a size of a row; minutes only where the GPU is software
const CASES = "tests/browser/cases";
// The kit has no onnxruntime-web, which these examples load.
const WITHOUT = { "docstring_cases.py": ["-k", "not adapter and not share_device"] };
const TYPES = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

const SITE = fileURLToPath(new URL("../../", import.meta.url));
const json = (path) => JSON.parse(readFileSync(join(SITE, path), "utf8"));
const suite = json("tests/runtimes/suite.json");

function leave(status, ...lines) {
  for (const line of lines) console.error(line);
  Runtime.stopAll();
  rmSync(process.env.DENO_DIR, { recursive: true, force: true });
  process.exit(status);
}

function readOptions() {
  const [text, flag] = [{ type: "string" }, { type: "boolean", default: false }];
  const options = { software: flag, quick: flag, only: text, webgpu: text, cases: text };
  options.minutes = { type: "string", default: "60" };
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  if (positionals.length !== 1) {
    throw new Error(`one folder OUT is needed, ${positionals.length} were given`);
  }
  // kernels_cases.mjs needs another Pyodide.
  const files = [...suite.javascript, ...suite.python].filter(
    (name) => name !== "kernels_cases.mjs",
  );
  const known = { only: ["tests", "bench"], webgpu: Object.keys(IMPLEMENTATIONS), cases: files };
  const chosen = { out: positionals[0], ...values, minutes: Number(values.minutes) };
  for (const [option, names] of Object.entries(known)) {
    chosen[option] = values[option]?.split(",") ?? names;
    const wrong = chosen[option].find((name) => !names.includes(name));
    if (wrong !== undefined)
      throw new Error(`--${option}: ${wrong} is none of ${names.join(", ")}`);
  }
  if (!(chosen.minutes > 0)) throw new Error(`--minutes: ${values.minutes} is not more than 0`);
  return chosen;
}

/** The site on 127.0.0.1, as pages find ours: Deno's modules come by URLs. */
function serve() {
  const answer = async (request) => {
    const path = decodeURIComponent(new URL(request.url).pathname);
    try {
      if (path.includes("..")) throw new Error("outside of the site");
      const { readable } = await Deno.open(join(SITE, path));
      const type = TYPES[extname(path)] ?? "application/octet-stream";
      return new Response(readable, { headers: { "content-type": type } });
    } catch {
      return new Response("There is no such file\n", { status: 404 });
    }
  };
  const { addr } = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, answer);
  return `http://127.0.0.1:${addr.port}/`;
}

/** An implementation's adapter; or also the reason why it is not run. What has no name may be software. */
async function look(implementation, url, isAllowed) {
  const runtime = new Runtime(implementation, url, "tests/runtimes/main.mjs");
  const facts = { started: false };
  try {
    const { compiler, ...told } = await runtime.call(START_S, "where");
    const { adapter, webgpu } = told;
    if (!adapter) throw new Error("no adapter");
    const named = `${webgpu} ${adapter.device}`;
    const software = SOFTWARE.test(named) || adapter.isFallbackAdapter || !webgpu;
    Object.assign(facts, told, { software });
    if (!compiler.includes(suite.compilers[implementation])) {
      throw new Error(
        `another implementation answers: its compiler says ${JSON.stringify(compiler)}`,
      );
    }
    if (software && !isAllowed) {
      throw new Error(`only a software adapter: ${webgpu || "one without a name"}`);
    }
    facts.started = true;
  } catch (error) {
    facts.reason = error.message;
  }
  runtime.stop();
  return facts;
}

/** The reports of one file of cases; what is no report of a case becomes one. */
async function reportsOf(runtime, start, file) {
  const failed = (detail) => ({ id: file, outcome: "failed", detail });
  try {
    if (!runtime.running) await runtime.call(STEP_S, "start", start);
    const args = [`${CASES}/py/${file}`, ...(WITHOUT[file] ?? [])];
    const { reports } = file.endsWith(".py")
      ? await runtime.call(STEP_S, "pytest", "/bundle/tests.zip", args)
      : await runtime.call(STEP_S, "cases", `/${CASES}/js/${file}`, null);
    // An interrupt in asyncio's code also rejects a promise that Pyodide's run_sync leaves.
    const complaints = (await runtime.call(STEP_S, "complaints")).filter(
      (text) => file !== "gpu_interrupts.py" || !text.includes("KeyboardInterrupt"),
    );
    if (reports.length === 0) return [failed("no case ran")];
    return [...reports, ...complaints.map(failed)];
  } catch (error) {
    runtime.stop(); // nothing is known of what is left in it
    return [failed(error.stack)];
  }
}

const by = (reports, outcome) => reports.filter((report) => report.outcome === outcome);
const counts = (reports) =>
  ["passed", "failed", "skipped"].map((each) => `${by(reports, each).length} ${each}`).join(", ");

/** Runs the files of cases; resolves to whether all passed. */
async function runTests(implementation, { url, start, cases, say }) {
  const runtime = new Runtime(implementation, url, "tests/runtimes/main.mjs");
  const all = [];
  for (const file of cases) {
    const begun = performance.now();
    const reports = await reportsOf(runtime, start, file);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    say(`  ${file}: ${counts(reports)} (${seconds} s)`);
    for (const { id, detail } of by(reports, "failed")) {
      say(`  FAILED ${id}\n${`${detail}`.replace(/^/gm, "    ")}`);
    }
    for (const { id, detail } of by(reports, "skipped")) say(`    skipped ${id}: ${detail}`);
    all.push(...reports);
    // JavaScript's cases keep their devices, of which a driver may give a process only some.
    if (file.endsWith(".mjs")) runtime.stop();
  }
  runtime.stop();
  say(`${implementation}: ${counts(all)}`);
  return by(all, "failed").length === 0;
}

/** Measures the small sizes first: a run that is cut short has something of every row. */
async function runBench(implementations, { url, start, options, kept, keep }) {
  const begin = async (runtime) => {
    const facts = kept.implementations[runtime.implementation];
    facts.wait_ms = await runtime.call(STEP_S, "start", start);
  };
  const runtimes = [];
  for (const name of implementations) {
    const runtime = new Runtime(name, url, "tests/kit/measuring.mjs");
    try {
      await begin(runtime);
      runtimes.push(runtime);
    } catch (error) {
      kept.left_out.push({ webgpu: name, reason: error.message });
    }
  }
  if (runtimes.length === 0) throw new Error(kept.left_out[0].reason);
  const plan = await runtimes[0].call(STEP_S, "plan", options.quick);
  const until = performance.now() + options.minutes * 60_000;
  for (const step of plan) {
    for (const runtime of runtimes) {
      if (performance.now() > until) return "out of time";
      const told = { webgpu: runtime.implementation, ...step };
      console.log(`  ${Object.values(told).join(", ")}`);
      const into = (list, entries) => list.push(...entries.map((each) => ({ ...told, ...each })));
      try {
        if (!runtime.running) await begin(runtime);
        const found = await runtime.call(STEP_S, "measure", step, options.quick);
        for (const list of ["rows", "left_out", "wrong"]) into(kept[list], found[list]);
      } catch (error) {
        into(kept.left_out, [{ reason: error.message }]);
        runtime.stop(); // what it still holds is given back, and its device may be lost
      }
      keep();
    }
  }
  return "whole";
}

let options;
try {
  options = readOptions();
} catch ({ message }) {
  leave(2, message, USAGE);
}
const [benchFile, testsFile] = ["bench.json", "tests.txt"].map((name) => join(options.out, name));
try {
  mkdirSync(options.out, { recursive: true });
  writeFileSync(testsFile, "");
} catch ({ message }) {
  leave(2, `OUT cannot be written: ${message}. Name a folder that can be.`);
}

const contents = (file) => (existsSync(file) ? readFileSync(file, "utf8") : "");
const kept = {
  kit: json("kit.json"),
  machine: {
    system: `Linux ${release()}`,
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memory_bytes: totalmem(),
    nvidia: /NVRM version: *(.*)/.exec(contents("/proc/driver/nvidia/version"))?.[1] ?? null,
  },
  quick: options.quick,
  begun: new Date().toISOString(),
  ended: null,
  state: "running",
  implementations: {},
  rows: [],
  left_out: [],
  wrong: [],
};
/** What is read meanwhile is whole. */
function keep() {
  writeFileSync(`${benchFile}.new`, `${JSON.stringify(kept, null, 1)}\n`);
  renameSync(`${benchFile}.new`, benchFile);
}
const say = (line) => {
  console.log(line);
  appendFileSync(testsFile, `${line}\n`);
};
function end(state, status) {
  Object.assign(kept, { state, ended: new Date().toISOString() });
  keep();
  say(`Ended: ${state}, status ${status}`);
  leave(status);
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => end("interrupted", 130));
process.on("uncaughtException", (error) => end(`failed: ${error.stack}`, 1));
process.on("unhandledRejection", (error) => end(`failed: ${error?.stack ?? error}`, 1));

const url = serve();
for (const name of options.webgpu) {
  const found = await look(name, url, options.software);
  kept.implementations[name] = found;
  say(`${name}: ${found.started ? found.webgpu : `is not run: ${found.reason}`}`);
}
keep();
const started = options.webgpu.filter((name) => kept.implementations[name].started);
if (started.length === 0) {
  const named = process.env.VK_DRIVER_FILES ?? process.env.VK_ICD_FILENAMES;
  for (const file of named?.split(":") ?? []) {
    say(`VK_DRIVER_FILES: ${file}${existsSync(file) ? "" : " (missing)"}`);
  }
  say(ADVICE);
  if (Object.values(kept.implementations).some(({ software }) => software)) {
    say("With --software the kit runs on software, and its figures mean nothing.");
  }
  end("no GPU", 3);
}

const { file } = json("wheel/wheel.json");
const start = { pyodideDir: "/pyodide/", wheel: `/wheel/${file}`, root: SITE.replace(/\/$/, "") };
let isRight = true;
if (options.only.includes("tests")) {
  for (const name of started) {
    say(`Tests in ${name}`);
    const passed = await runTests(name, { url, start, cases: options.cases, say });
    isRight = passed && isRight;
  }
}
let state = "whole";
if (options.only.includes("bench")) {
  console.log("Measurements");
  state = await runBench(started, { url, start, options, kept, keep });
  for (const { webgpu, path, layout, bytes, way, reason } of kept.wrong) {
    say(`FAILED ${webgpu}, ${path}, ${layout}, ${bytes} bytes, ${way}: ${reason}`);
  }
  isRight = isRight && kept.wrong.length === 0;
}
end(state, isRight ? 0 : 1);
