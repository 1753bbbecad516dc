/**
 * bundle_bridge.mjs OUT: the JavaScript of the wheel, js/src/pyodide/calls.ts with everything that it uses.
 *
 * In one file, `import()` loads nothing later, and esbuild wraps each module that one may reach in a
 * function: 1.7 KB of the wheel. So they are static imports here. Terser makes names that compress better than
 * esbuild's, and inlines more, a little of it in a second pass: 3 KB of the wheel.
 */
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";
import { minify } from "terser";

const LATER = /(?<!typeof )\bimport\("(\.[^"]+)"\)/g;

const atOnce = {
  name: "at-once",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const imports = [];
      const text = (await readFile(path, "utf8")).replace(LATER, (_, file) => {
        imports.push(`import * as later${imports.length} from "${file}";\n`);
        return `Promise.resolve(later${imports.length - 1})`;
      });
      return { contents: text + imports.join(""), loader: "ts" };
    });
  },
};

const { outputFiles } = await build({
  entryPoints: ["js/src/pyodide/calls.ts"],
  write: false,
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "__dlpackWeb",
  target: "es2022",
  logLevel: "warning",
  plugins: [atOnce],
});
const { code } = await minify(outputFiles[0].text, {
  ecma: 2022,
  compress: { passes: 2 },
});
await writeFile(process.argv[2], `${code}\n`);
