import type { GPUDevice } from "../core/globals.js";
import { isLost } from "./lost.js";
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
      return suffices(device, options) ? device : (await late()).requestDevice(options);
    }
    const device = await settled(found);
    if (device === undefined) remove(found);
    else if (suffices(device, options)) return (await late()).registered(device);
    else return (await late()).requestDevice(options);
  }
}

function remove(found: unknown): void {
  if (page[PAGE] === found) delete page[PAGE];
}

/** The device; undefined if there is none, or it was lost. */
async function settled(found: GPUDevice | Promise<GPUDevice>): Promise<GPUDevice | undefined> {
  try {
    const device = await found;
    return (await isLost(device)) ? undefined : device;
  } catch {
    return undefined;
  }
}

function suffices(device: GPUDevice, options: RequestDeviceOptions): boolean {
  const { features = [], powerPreference, label, ...limits } = options;
  for (const name of features) if (!device.features.has(name)) return false;
  return Object.entries(limits).every(([name, asked]) => {
    const has = (device.limits as unknown as Record<string, number | undefined>)[name];
    if (asked === undefined || asked === Number.POSITIVE_INFINITY) return true;
    return has !== undefined && (name.startsWith("min") ? has <= asked : has >= asked);
  });
}
