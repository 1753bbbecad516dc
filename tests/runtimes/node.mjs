// What Node lacks of what the cases find in a page: WebGPU, which is Dawn's, paths from the site's
// root, events of the global scope, and ImageData. `node --import`, with the environment of runtime.py.
import { existsSync, realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const { PAGE_URL, PAGE_ROOT, PAGE_WEBGPU } = process.env;

/** Where the server has a file; null for what is none of its. */
function fileOf(path) {
  const folder = path.startsWith("/tests/") ? PAGE_ROOT : join(PAGE_ROOT, "build", "site");
  const file = join(folder, path.replace(/[?#].*/, ""));
  return existsSync(file) ? realpathSync(file) : null;
}

registerHooks({
  resolve(specifier, context, next) {
    const path = specifier.startsWith(PAGE_URL) ? specifier.slice(PAGE_URL.length - 1) : specifier;
    const file = path.startsWith("/") ? fileOf(path) : null;
    if (file === null) return next(specifier, context);
    return { url: pathToFileURL(file).href, format: "module", shortCircuit: true };
  },
});

globalThis.location = new URL(PAGE_URL);
const { fetch } = globalThis;
globalThis.fetch = (what, options) =>
  fetch(typeof what === "string" ? new URL(what, PAGE_URL) : what, options);
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
Object.defineProperty(navigator, "gpu", { value: create([]), configurable: true });
