// What run.sh is told.
import { parseArgs } from "node:util";
import { IMPLEMENTATIONS } from "./runtime.mjs";

export const USAGE = `usage: run.sh OUT [options]

OUT is the folder for bench.json and tests.txt; it is made where there is none.
  --software       adapters made of software (llvmpipe, SwiftShader) will do as well
  --only PART      tests or bench; without it both, the tests first
  --webgpu NAME    wgpu-core or Dawn; without it both
  --cases NAMES    of the tests only these, such as gpu_cases.mjs,gpu_kernels.py
  --sizes SIZES    what is measured, such as 64,4K,1M,1G (bytes)
  --quick          few rounds: figures that mean nothing, to see that all works
  --minutes N      measuring ends after so many (60)
`;

/** It was told what it does not know. */
export class UsageError extends Error {}

const UNITS = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };
export const LARGEST = 2 ** 30; // Python has 32-bit memory, for this and what it is packed to

function bytesOf(text) {
  const [, number, unit] = /^(\d{1,10})([KMG]?)$/.exec(text) ?? [];
  const bytes = Number(number) * UNITS[unit];
  if (bytes >= 64 && bytes <= LARGEST && Number.isInteger(Math.log2(bytes))) return bytes;
  throw new UsageError(`--sizes: ${text} is no power of two from 64 to 1G`);
}

function oneOf(option, given, known) {
  if (given === undefined || known.includes(given)) return;
  throw new UsageError(`--${option}: ${given} is none of ${known.join(", ")}`);
}

function parse(args) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        software: { type: "boolean", default: false },
        quick: { type: "boolean", default: false },
        only: { type: "string" },
        webgpu: { type: "string" },
        cases: { type: "string" },
        sizes: { type: "string" },
        minutes: { type: "string", default: "60" },
      },
    });
  } catch (error) {
    throw new UsageError(error.message);
  }
}

/** `{out, software, quick, only, webgpu, cases, sizes, minutes}`; `suite`: of suite.json. */
export function readOptions(args, suite) {
  const { values, positionals } = parse(args);
  if (positionals.length !== 1) {
    throw new UsageError(`one folder OUT is needed, ${positionals.length} were given`);
  }
  const webgpu = Object.keys(IMPLEMENTATIONS);
  oneOf("only", values.only, ["tests", "bench"]);
  oneOf("webgpu", values.webgpu, webgpu);
  const all = [...suite.javascript, ...suite.python];
  const known = all.filter((name) => name !== "kernels_cases.mjs"); // needs another Pyodide
  const cases = values.cases?.split(",") ?? known;
  for (const each of cases) oneOf("cases", each, known);
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 1440)) {
    throw new UsageError(`--minutes: ${values.minutes} is no number from 0 to 1440`);
  }
  return {
    ...values,
    out: positionals[0],
    webgpu: values.webgpu ? [values.webgpu] : webgpu,
    cases,
    sizes: values.sizes?.split(",").map(bytesOf) ?? null,
    minutes,
  };
}
