// What a test page is to a browser, for runtimes without pages: the same harness, which a host
// (runtime.py) calls by lines of JSON on standard input. Answers are lines that begin with a mark;
// what else is printed is the log.
import process from "node:process";
import { createInterface } from "node:readline";

const MARK = "@answer ";

/** Errors that nobody caught, as a page would show them on its console. */
const complaints = [];
const complain = (error) => complaints.push(`${error?.stack ?? error}`);
process.on("unhandledRejection", complain);
process.on("uncaughtException", complain);

/** What the compiler of shaders says of no shader: each implementation of WebGPU has its own. */
async function compiler(adapter) {
  const device = await adapter.requestDevice();
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: "nonsense" });
  const { messages } = await module.getCompilationInfo();
  await device.popErrorScope();
  device.destroy();
  return messages.map(({ message }) => message).join("\n");
}

/** The runtime and its WebGPU, by their own words. */
async function where() {
  const adapter = await navigator.gpu?.requestAdapter();
  const { vendor, architecture, description } = adapter?.info ?? {};
  return {
    agent: navigator.userAgent,
    webgpu: [vendor, architecture, description].filter(Boolean).join(" "),
    compiler: adapter ? await compiler(adapter) : "",
    features: [...(adapter?.features ?? [])],
  };
}

const own = { where, complaints: () => complaints.splice(0) };
await import("/tests/browser/pages/harness.mjs");

for await (const line of createInterface({ input: process.stdin })) {
  const { name, args } = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await (own[name] ?? globalThis.harness[name])(...args)) ?? null };
  } catch (error) {
    answer = { problem: `${error?.stack ?? error}` };
  }
  process.stdout.write(`\n${MARK}${JSON.stringify(answer)}\n`);
}
process.exit(0); // Deno and Dawn wait for their devices
