import type { GPUDevice } from "../core/globals.js";

/** `GPUBufferUsage.MAP_READ` and `GPUMapMode.READ`, which are globals only where WebGPU is. */
const MAP_READ = 1;
const READ = 1;

/**
 * Whether a device is lost. `lost` reports it late: in Chromium after the device's pending
 * requests, in Firefox a tenth of a second later. Failing to map a buffer reports it at once.
 */
export async function isLost(gpu: GPUDevice): Promise<boolean> {
  gpu.pushErrorScope("validation");
  const probe = gpu.createBuffer({ size: 4, usage: MAP_READ });
  const refused = probe.mapAsync(READ).then(
    () => false,
    () => true,
  );
  gpu.popErrorScope().catch(() => {}); // rejects if it is lost
  const lost = await refused;
  probe.destroy();
  return lost;
}
