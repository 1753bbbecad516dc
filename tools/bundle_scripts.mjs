/**
 * bundle_scripts.mjs: the scripts of packages, js/src/calls.ts of each with everything that it imports.
 *
 * A script is a function of one argument, what `dlpack-web/internal` exports, and returns the class that
 * calls.ts exports: js/dist/script.js has it for pages, and _script.js in the wheel for Python to evaluate.
 */
import { existsSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { build } from "esbuild";

for (const name of readdirSync("packages")) {
  const folder = `packages/${name}`;
  if (!existsSync(`${folder}/js/src/calls.ts`)) continue;
  const { outputFiles } = await build({
    entryPoints: [`${folder}/js/src/calls.ts`],
    bundle: true,
    minify: true,
    write: false,
    format: "cjs",
    target: "es2022",
    external: ["dlpack-web/internal"],
    logLevel: "warning",
  });
  const code = outputFiles[0].text.trim();
  const script = `(internal=>{const module={},require=()=>internal;${code}return Object.values(module.exports)[0]})`;
  await writeFile(`${folder}/js/dist/script.js`, `export default ${script};\n`);
  await writeFile(`${folder}/py/dlpack_web_${name}/_script.js`, script);
}
