// The paths that need no GPU, in Node: prints the rows as JSON. Usage: node node.mjs [--quick] [PATH]
import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { connect } from "../../js/dist/index.js";
import { compare } from "./measure.mjs";
import { convertWays, PACKED, packWays } from "./pack.mjs";

const MB = 1 << 20;
const options = process.argv.slice(2);
const quick = options.includes("--quick");
const only = options.find((option) => !option.startsWith("--"));

const base = new URL("../../build/site/pyodide/", import.meta.url);
const { loadPyodide } = await import(new URL("pyodide.mjs", base));
const pyodide = await loadPyodide();
const numpy = readdirSync(base).find((name) => name.startsWith("numpy-"));
const quiet = { messageCallback() {} };
await pyodide.loadPackage(pathToFileURL(new URL(numpy, base).pathname).href, quiet);
const bridge = await connect(pyodide);

const plan = [
  ...PACKED.map((layout) => ["pack", layout, packWays, [quick ? MB : 64 * MB]]),
  ["convert", "f16", convertWays, [quick ? MB : 8 * MB]],
  ["convert", "bf16", convertWays, [quick ? MB : 8 * MB]],
];
const rows = [];
for (const [path, layout, waysFor, sizes] of plan) {
  if (only && only !== path) continue;
  for (const bytes of sizes) {
    const { ways, done } = waysFor({ pyodide, bridge }, bytes, layout);
    const rounds = quick ? 2 : bytes >= 16 * MB ? 15 : 50;
    const measured = await compare(ways, { rounds, ...(quick && { warmUpMs: 0 }) });
    done();
    for (const row of measured) rows.push({ path, layout, bytes, where: "node", ...row });
  }
}
console.log(JSON.stringify(rows));
