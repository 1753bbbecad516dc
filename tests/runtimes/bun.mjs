// The same as node.mjs for Bun, whose WebGPU is npm's bun-webgpu: Dawn by foreign function calls.
// `bun --preload`, with the environment of runtime.py.

import process from "node:process";
import { fileURLToPath } from "node:url";
import { plugin } from "bun";
import { resolve } from "./paths.mjs";
import "./scope.mjs";

/** A module hook of Bun, which wants paths where Node wants URLs. */
function onResolve({ path, importer }) {
  const url = resolve(path, { parentURL: importer }, () => null)?.url;
  if (!url) return undefined;
  const [file, query = ""] = url.split(/(?=\?)/);
  return { path: fileURLToPath(file) + query };
}
plugin({ name: "paths", setup: (build) => build.onResolve({ filter: /^[/.]/ }, onResolve) });

const { setupGlobals } = await import(process.env.PAGE_WEBGPU);
await setupGlobals();
globalThis.gc ??= () => Bun.gc(true);

const { gpu } = navigator;
const requestAdapter = gpu.requestAdapter.bind(gpu);
gpu.requestAdapter = async (options) => withLimits(await requestAdapter(options));

/** bun-webgpu 0.1.7 asks for default limits that its adapters lack, unless all limits are named. */
function withLimits(adapter) {
  const names = Object.keys(adapter?.limits ?? {}).filter((name) => /^(max|min)[A-Z]/.test(name));
  const limits = Object.fromEntries(names.map((name) => [name, adapter.limits[name]]));
  const requestDevice = adapter?.requestDevice.bind(adapter);
  const request = ({ requiredLimits, ...rest } = {}) =>
    requestDevice({ ...rest, requiredLimits: { ...limits, ...requiredLimits } });
  return adapter && Object.assign(adapter, { requestDevice: request });
}

/** Classes that cases look for by name: bun-webgpu has them, and names only few of them. */
async function nameClasses() {
  const device = await (await gpu.requestAdapter()).requestDevice();
  const texture = { size: [1], format: "rgba8unorm", usage: GPUTextureUsage.COPY_DST };
  const GPUBuffer = device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST }).constructor;
  const GPUTexture = device.createTexture(texture).constructor;
  const GPUQuerySet = device.createQuerySet({ type: "occlusion", count: 1 }).constructor;
  const GPUQueue = device.queue.constructor;
  const GPUCommandEncoder = device.createCommandEncoder().constructor;
  const GPUShaderModule = device.createShaderModule({ code: " " }).constructor;
  const named = {
    GPUBuffer,
    GPUTexture,
    GPUQuerySet,
    GPUQueue,
    GPUCommandEncoder,
    GPUShaderModule,
  };
  Object.assign(globalThis, named);
  device.destroy();
}
await nameClasses();
