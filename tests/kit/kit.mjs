// The kit, once run.sh has found it a Deno: sees which implementations of WebGPU start, and runs the
// suite and the measurements in them. Status: 0 all is well, 1 something failed, 2 it was called
// wrongly, 3 there is no GPU, 130 it was interrupted.
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { advice, isSoftware, machine, refusal } from "./adapters.mjs";
import { runBench } from "./figures.mjs";
import { readOptions, USAGE, UsageError } from "./options.mjs";
import { Runtime } from "./runtime.mjs";
import { serve } from "./serve.mjs";
import { runTests } from "./tests.mjs";

const SITE = fileURLToPath(new URL("../..", import.meta.url));
const json = (path) => JSON.parse(readFileSync(join(SITE, path), "utf8"));
const SECONDS = 120; // for an implementation to start

function leave(status) {
  Runtime.stopAll();
  rmSync(process.env.DENO_DIR, { recursive: true, force: true });
  process.exit(status);
}

/** Runs `what`; instead of an error the words, and the end. */
function orLeave(what, words) {
  try {
    return what();
  } catch (error) {
    console.error(words(error));
    return leave(2);
  }
}

/** By name: what an implementation says of itself, or the reason why it is not run. */
async function look(implementation, url, words, software) {
  const runtime = new Runtime(implementation, url, "tests/runtimes/main.mjs");
  try {
    const where = await runtime.call(SECONDS, "where");
    const { compiler, ...told } = where;
    const reason = refusal(where, words, software);
    const known = where.adapter ? { ...told, software: isSoftware(where) } : {};
    return reason ? { started: false, reason, ...known } : { started: true, ...known };
  } catch (error) {
    return { started: false, reason: error.message };
  } finally {
    runtime.stop();
  }
}

const suite = json("tests/runtimes/suite.json");
const options = orLeave(
  () => readOptions(process.argv.slice(2), suite),
  (error) => (error instanceof UsageError ? `${error.message}\n${USAGE}` : error.stack),
);
const [benchFile, testsFile] = ["bench.json", "tests.txt"].map((name) => join(options.out, name));
orLeave(
  () => {
    mkdirSync(options.out, { recursive: true });
    writeFileSync(testsFile, "");
  },
  ({ message }) => `OUT cannot be written: ${message}. Name a folder that can be.`,
);

const kept = {
  kit: json("kit.json"),
  machine: machine(),
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
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => end("interrupted", 130));
}
process.on("uncaughtException", (error) => end(`failed: ${error.stack}`, 1));
process.on("unhandledRejection", (error) => end(`failed: ${error?.stack ?? error}`, 1));

const server = await serve(SITE);
for (const name of options.webgpu) {
  const words = suite.compilers[name];
  const found = await look(name, server.url, words, options.software);
  kept.implementations[name] = found;
  say(`${name}: ${found.started ? found.webgpu : `is not run: ${found.reason}`}`);
}
keep();
const started = options.webgpu.filter((name) => kept.implementations[name].started);
if (started.length === 0) {
  const software = Object.values(kept.implementations).some((each) => each.software);
  say(advice(software));
  end("no GPU", 3);
}

const { file } = json("wheel/wheel.json");
const start = { pyodideDir: "/pyodide/", wheel: `/wheel/${file}`, root: SITE.replace(/\/$/, "") };
let right = true;
if (options.only !== "bench") {
  for (const name of started) {
    say(`Tests in ${name}`);
    const passed = await runTests(name, { url: server.url, start, cases: options.cases, say });
    right = passed && right;
  }
}
let state = "whole";
if (options.only !== "tests") {
  console.log("Measurements");
  const bench = { url: server.url, start, options, kept, keep, say: console.log };
  state = await runBench(started, bench);
  for (const { webgpu, path, layout, bytes, way, reason } of kept.wrong) {
    say(`FAILED ${webgpu}, ${path}, ${layout}, ${bytes} bytes, ${way}: ${reason}`);
  }
  right = right && kept.wrong.length === 0;
}
end(state, right ? 0 : 1);
