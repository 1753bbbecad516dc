import type { GPUDevice } from "../../core/globals.js";
import { checkOptions } from "../../core/options.js";
import type { RequestDeviceOptions } from "./request.js";

/**
 * The device that a page's libraries share: rules D3 to D5 of EXCHANGE.md. The first library
 * must register its request synchronously, so only the rest is loaded lazily.
 */
const PAGE = Symbol.for("dlpack.device");
const page = globalThis as { [PAGE]?: GPUDevice | Promise<GPUDevice> };

const lazy = () => import("../lazy.js");

/**
 * The page's device, which all libraries share; if there is none yet, it is requested with
 * everything that the adapter has. Do not destroy it.
 *
 * @param options - required features, and limits by name. If the page's device lacks any, you get a
 * device of your own
 * @throws as {@link requestDevice}
 */
export async function pageDevice(options: RequestDeviceOptions = {}): Promise<GPUDevice> {
  checkOptions(options, "pageDevice()", null, 'powerPreference: "low-power"');
  for (;;) {
    const found = page[PAGE];
    if (found === undefined) {
      const made = lazy().then(({ requestAll }) => requestAll(options));
      page[PAGE] = made;
      made.catch(() => remove(made)); // libraries that wait for it get the error too
      const device = await made;
      return (await lazy()).fitting(device, options);
    }
    const device = await Promise.resolve(found).catch(() => undefined); // its request failed
    const chosen = device && (await (await lazy()).fittingIfAlive(device, options));
    if (chosen) return chosen;
    remove(found);
  }
}

function remove(found: unknown): void {
  if (page[PAGE] === found) delete page[PAGE];
}
