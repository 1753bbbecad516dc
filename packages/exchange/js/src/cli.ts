#!/usr/bin/env node
/**
 * `npx dlpack-web-exchange FILE.mjs`: runs the suite on the default export of a file, and on its
 * export `consume` where there is one. Its exports `device` (a `GPUDevice`, or a promise of one),
 * `dtypes`, `makeFaulty` and `requestDevice` are passed on; without a device, the runtime is asked
 * for one. Exits with 1 if a rule is broken, and with 2 if there is nothing to test.
 */
import process from "node:process";
import { pathToFileURL } from "node:url";
import {
  type ConsumerOptions,
  conformance,
  consumerConformance,
  type ProducerOptions,
  type Report,
} from "./index.js";
import type { DeviceLike } from "./types.js";

const USAGE = `usage: dlpack-web-exchange FILE.mjs

FILE.mjs exports what is tested by the rules of EXCHANGE.md:
  export default function make({ dtype, shape, values, bytes, device }) -> a producer, or undefined
  export function consume(producer, { device, copy }) -> the elements in row-major order
  export const device: a GPUDevice, to test on; dtypes: names of those to test
  export function makeFaulty(wanted) -> as make, with GPU work that fails
  export function requestDevice() -> another GPUDevice, which the suite destroys`;

type Exports = Record<string, unknown>;

async function main([file, ...more]: readonly string[]): Promise<number> {
  if (file === "--help" || file === "-h") {
    console.log(USAGE);
    return 0;
  }
  if (file === undefined || more.length > 0) return misused(USAGE);
  let exports: Exports;
  try {
    exports = (await import(pathToFileURL(file).href)) as Exports;
  } catch (error) {
    return misused(`${file} cannot be imported: ${error}`);
  }
  const { default: make, consume } = exports;
  const { makeFaulty, requestDevice } = exports as Partial<ProducerOptions>;
  if (typeof make !== "function" && typeof consume !== "function") {
    return misused(`${file} exports no function, as default or as \`consume\`\n\n${USAGE}`);
  }
  const dtypes = exports.dtypes as readonly string[] | undefined;
  const device = await deviceOf(exports);
  let ok = true;
  if (typeof make === "function") {
    const hooks = { makeFaulty, requestDevice };
    const report = await conformance({ make: make as () => unknown, device, dtypes, ...hooks });
    ok = print("producer", report) && ok;
  }
  if (typeof consume === "function") {
    const take = consume as ConsumerOptions["consume"];
    const report = await consumerConformance({ consume: take, device, dtypes, requestDevice });
    ok = print("consumer", report) && ok;
  }
  return ok ? 0 : 1;
}

async function deviceOf(exports: Exports): Promise<DeviceLike | undefined> {
  if ("device" in exports) return ((await exports.device) ?? undefined) as DeviceLike | undefined;
  const { navigator } = globalThis as { navigator?: { gpu?: unknown } };
  const gpu = navigator?.gpu as { requestAdapter(): Promise<Adapter | null> } | undefined;
  const adapter = await gpu?.requestAdapter();
  return await adapter?.requestDevice();
}

interface Adapter {
  requestDevice(): Promise<DeviceLike>;
}

function print(what: string, { ok, rules }: Report): boolean {
  for (const { id, ok, skipped, message = "" } of rules) {
    const word = skipped ? "skipped" : ok ? "ok" : "FAILED";
    console.log(`  ${id.padEnd(4)} ${word.padEnd(8)} ${message}`.trimEnd());
  }
  // Last, where a terminal shows it.
  const broken = rules.filter(({ ok }) => !ok).map(({ id }) => id);
  const verdict = ok
    ? "no rule of EXCHANGE.md is broken"
    : `breaks rules of EXCHANGE.md: ${broken}`;
  console.log(`${what}: ${verdict}`);
  return ok;
}

function misused(message: string): number {
  console.error(message);
  return 2;
}

// Anything that a producer left running, such as a device, must not keep the process alive.
process.exit(await main(process.argv.slice(2)));
