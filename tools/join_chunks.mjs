/**
 * join_chunks.mjs DIST: what bundlers of the npm package put into one chunk.
 *
 * They merge modules that the same entries reach. A module that is loaded later gets imports of what is
 * loaded anyway, so it brings no chunks of parts of that: 2 KB of all that a page loads at once.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const JOINED = {
  "pyodide/load.js": 'export * as webgpu from "../webgpu/index.js";',
  "webgpu/late.js": 'import "./transfer.js";',
  "adapters/all.js": 'import "../exchange/index.js";\nimport "../webgpu/transfer.js";',
};

for (const [name, line] of Object.entries(JOINED)) {
  const file = join(process.argv[2], name);
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace(/(?=\/\/# sourceMappingURL=.*\n?$)/, `${line}\n`));
}
