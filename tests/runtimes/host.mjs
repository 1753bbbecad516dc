// What runs where no page is, and who started it: calls come by lines of JSON on standard input.
// Answers are lines that begin with a mark; what else is printed is the log.
import process from "node:process";
import { createInterface } from "node:readline";
import { where } from "./where.mjs";

const MARK = "@answer ";

/** Errors that nobody caught, as a page would show them on its console. */
const caught = [];
const complain = (error) => caught.push(`${error?.type ?? ""} ${error?.stack ?? error}`);
process.on("unhandledRejection", complain);
process.on("uncaughtException", complain);

/** Those since the last call of it. */
const complaints = () => caught.splice(0);

/** Answers calls of these functions, of `where` and of `complaints`, until nobody asks any more. */
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
