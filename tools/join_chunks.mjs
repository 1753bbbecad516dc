/**
 * join_chunks.mjs DIST: what bundlers of the npm package put into one chunk.
 *
 * They merge modules that the same entries reach. Each module that the package loads lazily is loaded after
 * all of the index, and gets imports of that: so the index is one chunk, 2 KB smaller than two.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const LAZY = [
  "adapters/all.js",
  "open/library.js",
  "pyodide/load.js",
  "pyodide/names.js",
  "webgpu/lazy.js",
];
const INDEX =
  'import "../webgpu/buffers/transfer.js";\nexport * as webgpu from "../webgpu/index.js";\n';

for (const name of LAZY) {
  const file = join(process.argv[2], name);
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace(/(?=\/\/# sourceMappingURL=.*\n?$)/, INDEX));
}
