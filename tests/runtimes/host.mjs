// What runs where no page is, and who started it: calls come by lines of JSON on standard input.
// Answers are lines that begin with a mark; what else is printed is the log.
import process from "node:process";
import { createInterface } from "node:readline";

const MARK = "@answer ";

/** Errors that nobody caught, as a page would show them on its console. */
const caught = [];
const complain = (error) => caught.push(`${error?.stack ?? error}`);
process.on("unhandledRejection", complain);
process.on("uncaughtException", complain);

/** Those since the last call of it. */
const complaints = () => caught.splice(0);

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
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter?.info ?? {};
  const limits = {};
  for (const name in adapter?.limits) limits[name] = adapter.limits[name];
  return {
    agent: navigator.userAgent,
    webgpu: [vendor, architecture, description].filter(Boolean).join(" "),
    compiler: adapter ? await compiler(adapter) : "",
    features: [...(adapter?.features ?? [])],
    limits,
    adapter: adapter ? { vendor, architecture, device, description, isFallbackAdapter } : null,
  };
}

/** Answers calls of these functions, and of the two above, until nobody asks any more. */
export async function answer(functions) {
  const offered = { ...functions, where, complaints };
  for await (const line of createInterface({ input: process.stdin })) {
    const { name, args } = JSON.parse(line);
    let told;
    try {
      told = { result: (await offered[name](...args)) ?? null };
    } catch (error) {
      told = { problem: `${error?.stack ?? error}` };
    }
    process.stdout.write(`\n${MARK}${JSON.stringify(told)}\n`);
  }
  process.exit(0); // Deno and Dawn wait for their devices
}
