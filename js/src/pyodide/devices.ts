import type { GPUDevice } from "../core/globals.js";
import { stats } from "../webgpu/buffers/stats.js";
import { checkAlive, registered, useDevice } from "../webgpu/device/device.js";
import { features, featuresAtOnce } from "../webgpu/device/features.js";
import type { RequestDeviceOptions } from "../webgpu/device/request.js";
import { sites } from "../webgpu/errors/errors.js";
import type { DeviceId, Site } from "./numbers.js";
import { deviceOf, recordOf } from "./python.js";

/** Python's calls about devices, and errors of their work. */
export class Devices {
  /** Features of this host. */
  readonly features = features;

  /** Those that are known without waiting. */
  readonly featuresAtOnce = featuresAtOnce;

  /** The id of the device that was requested with these options before, else of a new one. */
  async request(options: RequestDeviceOptions): Promise<DeviceId> {
    return this.use(await (await import("../webgpu/lazy.js")).requestOnce(options));
  }

  /** The id of a device made elsewhere, which keeps it for ever. */
  use(gpu: GPUDevice): DeviceId {
    return useDevice(gpu).named.id;
  }

  /** The `GPUDevice` with an id. */
  readonly device = deviceOf;

  /** Ids of the registered devices that are not lost. */
  ids(): DeviceId[] {
    return registered.devices.flatMap(({ lost, named }) => (lost === null ? [named.id] : []));
  }

  /** Number of errors of a device, after which buffers may be invalid. */
  errorCount(deviceId: DeviceId): number {
    return recordOf(deviceId).errors;
  }

  /** Waits until what was written to a device has arrived. */
  async settle(deviceId: DeviceId): Promise<void> {
    const device = recordOf(deviceId);
    const { queue, lost } = device.gpu;
    queue.submit([]);
    await Promise.race([queue.onSubmittedWorkDone(), lost]);
    checkAlive(device);
  }

  readonly stats = stats;

  /**
   * Reports unread faults of Python's calls to Python, with the message and the number of the call.
   */
  onFault(listener: (message: string, site: Site) => void): void {
    registered.listeners.add((error, site) => {
      if (site === undefined) return false;
      listener(error.message, site);
      return true;
    });
  }

  /** The number of the Python call that caused an error; 0: none. */
  siteOf(error: object): Site {
    return sites.get(error) ?? 0;
  }
}
