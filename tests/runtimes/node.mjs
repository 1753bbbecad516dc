// What Node lacks of what the cases find in a page: WebGPU, which is Dawn's, paths from the site's
// root, events of the global scope, and ImageData. `node --import`, with the environment of
// runtime.py; tests/js/webgpu.test.mjs imports it into `node --test`.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import * as nodeModule from "node:module";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fileOf, resolve } from "./paths.mjs";

const { PAGE_URL, PAGE_WEBGPU } = process.env;

// Node 20 has only the hooks of threads, which newer Nodes give up.
if (nodeModule.registerHooks) nodeModule.registerHooks({ resolve });
else nodeModule.register("./paths.mjs", import.meta.url);

globalThis.location = new URL(PAGE_URL);
const { fetch } = globalThis;

/** Files come without the server, where there is one; modules look for their own by file: URLs. */
globalThis.fetch = async (what, options) => {
  if (typeof what !== "string" && !(what instanceof URL)) return fetch(what, options);
  const url = new URL(what, PAGE_URL);
  const file =
    url.protocol === "file:" && existsSync(url)
      ? fileURLToPath(url)
      : fileOf(url.href.replace("file://", ""));
  if (file === null) return fetch(url, options);
  const type = file.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(await readFile(file), { headers: { "Content-Type": type } });
};
const events = new EventTarget();
for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"]) {
  globalThis[name] = events[name].bind(events);
}

globalThis.ImageData = class ImageData {
  colorSpace = "srgb";
  constructor(...args) {
    const given = typeof args[0] === "object" ? args.shift() : null;
    const [width, height = given.length / 4 / width] = args;
    this.data = given ?? new Uint8ClampedArray(4 * width * height);
    Object.assign(this, { width, height });
  }
  get [Symbol.toStringTag]() {
    return "ImageData";
  }
};

const { create, globals } = await import(pathToFileURL(PAGE_WEBGPU).href);
Object.assign(globalThis, globals);
globalThis.navigator ??= { userAgent: `Node.js/${process.versions.node.split(".")[0]}` }; // Node 20
Object.defineProperty(navigator, "gpu", { value: create([]), configurable: true });
