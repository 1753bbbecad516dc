import type { GPUDevice } from "../core/globals.js";

/**
 * Whether a device is lost. It may have been a moment ago: an error scope is answered after that,
 * and `lost` resolves before the task of the answer is over.
 */
export async function isLost(gpu: GPUDevice): Promise<boolean> {
  gpu.pushErrorScope("validation");
  const answered = gpu.popErrorScope().catch(() => {}); // rejected where it is lost
  await Promise.race([gpu.lost, answered]);
  const soon = new Promise<null>((resolve) => setTimeout(resolve, 0, null));
  return (await Promise.race([gpu.lost, soon])) !== null;
}
