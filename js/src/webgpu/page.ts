import type { GPUDevice } from "../core/globals.js";
import type { RequestDeviceOptions } from "./request.js";

/**
 * Where the libraries of a page agree on one device: rules D3 to D5 of js/EXCHANGE.md. Who comes first
 * has to say so before anything is waited for, so that only what follows is loaded late.
 */
const PAGE = Symbol.for("dlpack.device");
const page = globalThis as { [PAGE]?: GPUDevice | Promise<GPUDevice> };

const late = () => import("./late.js");

/**
 * The page's device, which all libraries that look for one use; asked for with all that the adapter
 * has if nobody did yet. It is everybody's: do not destroy it.
 *
 * @param options - what it must have: features, and limits by name. A device of your own is made where
 * the page's lacks any of them
 * @throws as {@link requestDevice}
 */
export async function pageDevice(options: RequestDeviceOptions = {}): Promise<GPUDevice> {
  for (;;) {
    const found = page[PAGE];
    if (found === undefined) {
      const made = late().then(({ requestAll }) => requestAll(options.powerPreference));
      page[PAGE] = made;
      made.catch(() => remove(made)); // whoever waits for it is told as well
      const device = await made;
      return (await late()).fitting(device, options);
    }
    const device = await settled(found);
    const chosen = device && (await (await late()).fittingIfAlive(device, options));
    if (chosen) return chosen;
    remove(found);
  }
}

function remove(found: unknown): void {
  if (page[PAGE] === found) delete page[PAGE];
}

/** The device; undefined where its request failed. */
async function settled(found: GPUDevice | Promise<GPUDevice>): Promise<GPUDevice | undefined> {
  try {
    return await found;
  } catch {
    return undefined;
  }
}
