/**
 * bundle_scripts.mjs: JavaScript of packages that is one file each.
 *
 * What Python calls is js/src/calls.ts with everything that it imports. Such a script is a function of one argument, what `dlpack-web/internal` exports, and returns the class that
 * calls.ts exports: js/dist/script.js has it for pages, and _script.js in the wheel for Python to evaluate.
 * What a notebook's page runs is js/src/widget/script.ts with the bridge: _widget.js in the wheel.
 * The site has no bundler: entry points in build/packages-js import the bridge from /js/.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { build } from "esbuild";

const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
const onSite = {
  name: "on the site",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^dlpack-web\// }, ({ path }) => ({
      path: exports[path.replace("dlpack-web", ".")].replace("./js/dist", "/js"),
      external: true,
    })),
};

for (const name of readdirSync("packages")) {
  const built = `packages/${name}/js/dist`;
  const options = {
    bundle: true,
    format: "esm",
    target: "es2022",
    logLevel: "warning",
    tsconfigRaw: {},
  };
  if (existsSync(`${built}/widget/script.js`)) {
    const outfile = `packages/${name}/py/dlpack_web_${name}/_widget.js`;
    await build({ ...options, entryPoints: [`${built}/widget/script.js`], minify: true, outfile });
    const entryPoints = ["widget", "wire"].map((entry) => `${built}/${entry}/index.js`);
    const outdir = `build/packages-js/${name}`;
    await build({
      ...options,
      entryPoints,
      outdir,
      outbase: built,
      splitting: true,
      plugins: [onSite],
    });
  }
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
