// What Node lacks of what the cases find in a page: scope.mjs, modules by paths from the site's root,
// and WebGPU, which is Dawn's. `node --import`, with the environment of runtime.py;
// tests/js/webgpu/webgpu.test.mjs imports it into `node --test`.
import * as nodeModule from "node:module";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { resolve } from "./paths.mjs";
import "./scope.mjs";

// Node 20 has only the hooks of threads, which newer Nodes give up.
if (nodeModule.registerHooks) nodeModule.registerHooks({ resolve });
else nodeModule.register("./paths.mjs", import.meta.url);

const { create, globals } = await import(pathToFileURL(process.env.PAGE_WEBGPU).href);
Object.assign(globalThis, globals);
globalThis.navigator ??= { userAgent: `Node.js/${process.versions.node.split(".")[0]}` }; // Node 20
Object.defineProperty(navigator, "gpu", { value: create([]), configurable: true });
