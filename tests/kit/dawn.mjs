// Dawn in the place of Deno's own WebGPU, which is wgpu-core: `deno --preload`.
import process from "node:process";

const { create, globals } = await import(process.env.KIT_DAWN);
Object.assign(globalThis, globals);
Object.defineProperty(navigator, "gpu", { value: create([]), configurable: true });
// Deno's know its own GPUDevice and no other; cases that ask for them are skipped.
for (const name of ["OffscreenCanvas", "ImageBitmap", "createImageBitmap"]) delete globalThis[name];
