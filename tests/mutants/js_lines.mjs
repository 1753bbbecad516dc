// js_lines.mjs DIST FOLDER...: which lines of TypeScript ran, of what NODE_V8_COVERAGE wrote into each
// FOLDER: [{"core/tensor.ts": [1, 2]}] as JSON. Only of files below DIST, which have source maps.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [dist, ...folders] = process.argv.slice(2).map((path) => resolve(path));

/** For each character, whether it ran: of nested ranges the innermost one says so. */
function counts(length, functions) {
  const runs = new Uint8Array(length);
  const ranges = functions.flatMap((it) => it.ranges);
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const it of ranges) runs.fill(it.count > 0 ? 1 : 0, it.startOffset, it.endOffset);
  return runs;
}

const lines = new Map();

/** For each character the line of TypeScript that it is from, or 0. */
function linesOf(file) {
  const known = lines.get(file);
  if (known) return known;
  const text = readFileSync(file, "utf8");
  const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  const found = new Int32Array(text.length);
  let start = 0;
  text.split("\n").forEach((row, at) => {
    for (let column = 0; column < row.length; column++) {
      if (/[\s{}();,]/.test(row[column])) continue;
      const entry = map.findEntry(at, column);
      if (entry.originalLine !== undefined) found[start + column] = entry.originalLine + 1;
    }
    start += row.length + 1;
  });
  lines.set(file, found);
  return found;
}

function add(ran, file, functions) {
  const from = linesOf(file);
  const runs = counts(from.length, functions);
  const name = relative(dist, file).replace(/\.js$/, ".ts");
  ran[name] ??= new Set();
  for (let at = 0; at < from.length; at++) if (runs[at] && from[at]) ran[name].add(from[at]);
}

function ranIn(folder) {
  const ran = {};
  for (const name of readdirSync(folder).filter((it) => it.startsWith("coverage-"))) {
    for (const { url, functions } of JSON.parse(readFileSync(join(folder, name), "utf8")).result) {
      const file = url.startsWith("file:") ? fileURLToPath(url.split(/[?#]/)[0]) : "";
      if (file.startsWith(`${dist}/`) && existsSync(`${file}.map`)) add(ran, file, functions);
    }
  }
  for (const name in ran) ran[name] = [...ran[name]].sort((a, b) => a - b);
  return ran;
}

console.log(JSON.stringify(folders.map(ranIn)));
