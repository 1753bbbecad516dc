import type { GPUDevice } from "../core/globals.js";

/** Whether a device is lost: one that is has told so before this task is over. */
export async function isLost(gpu: GPUDevice): Promise<boolean> {
  const soon = new Promise<null>((resolve) => setTimeout(resolve, 0, null));
  return (await Promise.race([gpu.lost, soon])) !== null;
}
