// The suite: the cases of tests/browser in each implementation, told in tests.txt as they end.
import { Runtime } from "./runtime.mjs";

const SECONDS = 600; // for a file of cases; minutes only where the GPU is software
const CASES = "tests/browser/cases";
// The kit has no onnxruntime-web, which these examples load.
const WITHOUT = { "docstring_cases.py": ["-k", "not adapter and not share_device"] };
const indented = (text) => `${text}`.replace(/^/gm, "    ");

/** One file's reports; what is no report of a case becomes one. */
async function reportsOf(runtime, start, file) {
  const failed = (error) => ({ id: file, outcome: "failed", detail: error.stack ?? `${error}` });
  try {
    if (!runtime.running) await runtime.call(SECONDS, "start", start);
    const { reports } = file.endsWith(".py")
      ? await runtime.call(SECONDS, "pytest", "/bundle/tests.zip", [
          `${CASES}/py/${file}`,
          ...(WITHOUT[file] ?? []),
        ])
      : await runtime.call(SECONDS, "cases", `/${CASES}/js/${file}`, null);
    // An interrupt in asyncio's code also rejects a promise that Pyodide's run_sync leaves.
    const complaints = (await runtime.call(SECONDS, "complaints")).filter(
      (text) => file !== "gpu_interrupts.py" || !text.includes("KeyboardInterrupt"),
    );
    if (reports.length === 0) return [failed(new Error("no case ran"))];
    return [...reports, ...complaints.map((text) => failed(new Error(text)))];
  } catch (error) {
    runtime.stop(); // nothing is known of what is left in it
    return [failed(error)];
  }
}

const by = (reports, outcome) => reports.filter((report) => report.outcome === outcome);
const counts = (reports) =>
  ["passed", "failed", "skipped"]
    .map((outcome) => `${by(reports, outcome).length} ${outcome}`)
    .join(", ");

/** Runs the files of cases; `say` gets lines. Resolves to whether all passed. */
export async function runTests(implementation, { url, start, cases, say }) {
  const runtime = new Runtime(implementation, url, "tests/runtimes/main.mjs");
  const all = [];
  try {
    for (const file of cases) {
      const begun = performance.now();
      const reports = await reportsOf(runtime, start, file);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      say(`  ${file}: ${counts(reports)} (${seconds} s)`);
      for (const { id, detail } of by(reports, "failed"))
        say(`  FAILED ${id}\n${indented(detail)}`);
      for (const { id, detail } of by(reports, "skipped")) say(`    skipped ${id}: ${detail}`);
      all.push(...reports);
      // JavaScript's cases keep their devices, of which a driver may give a process only some.
      if (file.endsWith(".mjs")) runtime.stop();
    }
  } finally {
    runtime.stop();
  }
  say(`${implementation}: ${counts(all)}`);
  return by(all, "failed").length === 0;
}
