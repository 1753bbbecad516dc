// What runtimes without pages lack of what the cases find in one, beside WebGPU: paths from the site's
// root, events of the global scope, and ImageData. bun.mjs and node.mjs begin with it.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { fileOf } from "./paths.mjs";

const { PAGE_URL } = process.env;

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
