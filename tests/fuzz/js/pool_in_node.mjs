// The pool's model on Dawn in Node: node tests/fuzz/js/pool_in_node.mjs [--seed N] [--seconds N]
// [--first N] [--only STEPS]
import process from "node:process";
import { parseArgs } from "node:util";
import { openPage } from "../../runtimes/page.mjs";

const string = { type: "string" };
const { values } = parseArgs({
  options: { seed: string, seconds: string, only: string, first: string },
});
const page = await openPage();
if (page.missing) throw new Error(page.missing);
const { run } = await import("./pool.mjs");
const result = await run(page.context, {
  seed: Number(values.seed ?? 1),
  first: Number(values.first ?? 0),
  seconds: Number(values.seconds ?? 10),
  only: values.only && JSON.parse(values.only),
});
const { failed, problem, sequences, steps } = result;
console.log(`${sequences} sequences of ${steps} operations`);
if (problem) console.log(problem);
if (failed)
  console.log(
    `sequence ${failed.number}: ${failed.problem}\n${JSON.stringify({ steps: failed.steps })}`,
  );
process.exit(failed || problem ? 1 : 0);
