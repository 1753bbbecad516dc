import { DeviceError, DeviceLostError, UnsupportedError } from "../errors.js";
import { WEBGPU } from "../layout.js";
import { type DeviceRecord, shared } from "../shared.js";

/** Options of {@link requestDevice}: limits by their WebGPU names, and the few below. */
export interface RequestDeviceOptions {
  /** Needed limits, e.g. `maxBufferSize: 2 ** 30` (bytes). Infinity: all that the adapter has. */
  [limit: string]: unknown;
  /** `GPUFeatureName`s that the device must have, e.g. ["shader-f16"]. */
  features?: Iterable<string>;
  powerPreference?: GPUPowerPreference;
  /** Shown in error messages. */
  label?: string;
}

/**
 * Asks for a WebGPU device with limits by name and registers it. The device is the caller's: this
 * library never destroys one.
 *
 * @throws DeviceError without WebGPU or an adapter, UnsupportedError if the adapter cannot do what
 * is asked for, TypeError for an unknown limit
 */
export async function requestDevice(options: RequestDeviceOptions = {}): Promise<GPUDevice> {
  const { features = [], powerPreference, label = "", ...limits } = options;
  const gpu = (globalThis.navigator as Navigator | undefined)?.gpu;
  if (!gpu) {
    throw new DeviceError(
      "no WebGPU here (navigator.gpu is missing): use a browser that has it, on https:// or " +
        "localhost; on Linux it may have to be switched on (chrome://flags/#enable-unsafe-webgpu)",
    );
  }
  const adapter = await gpu.requestAdapter(powerPreference ? { powerPreference } : {});
  if (!adapter) {
    throw new DeviceError(
      "WebGPU found no adapter: the graphics driver may be blocked or missing; see " +
        "chrome://gpu or about:support, and keep to CPU tensors meanwhile",
    );
  }
  const requiredLimits: Record<string, number> = {};
  for (const [name, asked] of Object.entries(limits)) {
    const limit = (adapter.limits as unknown as Record<string, unknown>)[name];
    if (typeof limit !== "number" || typeof asked !== "number") {
      throw new TypeError(
        typeof limit === "number"
          ? `${name} must be a number, not ${String(asked)}`
          : `"${name}" is neither a WebGPU limit nor one of features, powerPreference, label`,
      );
    }
    // Alignments are better when smaller; the browser checks those itself.
    if (asked > limit && asked !== Number.POSITIVE_INFINITY && !name.startsWith("min")) {
      throw new UnsupportedError(
        `${name}: ${asked} is more than this adapter has (${limit}); ask for less, or for ` +
          "Infinity to get what there is",
        { given: asked, needed: limit },
      );
    }
    requiredLimits[name] = asked === Number.POSITIVE_INFINITY ? limit : asked;
  }
  let device: GPUDevice;
  try {
    device = await adapter.requestDevice({
      label,
      requiredFeatures: [...features] as GPUFeatureName[],
      requiredLimits,
    });
  } catch (cause) {
    throw new DeviceError(`the adapter gave no device: ${(cause as Error).message}`, { cause });
  }
  useDevice(device, adapter.limits);
  return device;
}

/** The record of a device, registered at its first use. The same object has the same id. */
export function useDevice(
  gpu: GPUDevice,
  adapterLimits: GPUSupportedLimits | null = null,
): DeviceRecord {
  const known = shared.devices.find((record) => record.device.gpu === gpu);
  if (known) return known;
  if (typeof gpu?.createBuffer !== "function") {
    throw new TypeError(`a GPUDevice is needed, not ${String(gpu)}`);
  }
  const id = shared.devices.length;
  const record: DeviceRecord = {
    device: { type: WEBGPU, id, gpu, toString: () => `webgpu:${id}` },
    lost: null,
    adapterLimits,
    errors: [],
    pending: new Set(),
    staging: [],
  };
  shared.devices.push(record);
  gpu.lost.then((info) => {
    record.lost = `${info.reason}${info.message && `: ${info.message}`}`;
    record.staging = [];
  });
  return record;
}

/** The record with this id; throws DeviceError listing what is registered. */
export function deviceWithId(id: number): DeviceRecord {
  const record = shared.devices[id];
  if (record) return record;
  throw new DeviceError(
    shared.devices.length === 0
      ? "no WebGPU device is registered: await requestDevice() first"
      : `webgpu:${id} is not registered; there are ${shared.devices.map((r) => r.device)}`,
    { given: id, device: `webgpu:${id}` },
  );
}

/** Throws DeviceLostError unless the device works. */
export function checkAlive({ lost, device }: DeviceRecord): void {
  if (lost === null) return;
  throw new DeviceLostError(
    `${device} is lost (${lost}): its tensors are gone; request a new device and upload again`,
    { device: `${device}` },
  );
}

/** "webgpu:0" with the device's label, for messages. */
export function nameOf({ device }: DeviceRecord): string {
  return device.gpu.label ? `${device} ("${device.gpu.label}")` : `${device}`;
}

/**
 * Runs WebGPU calls and watches for the errors that they report later. Those wait in
 * `record.errors` for the next read (see {@link settled}), and are logged in case none comes.
 */
export function watched<R>(record: DeviceRecord, what: string, calls: () => R): R {
  const { gpu } = record.device;
  gpu.pushErrorScope("out-of-memory");
  gpu.pushErrorScope("validation");
  try {
    return calls();
  } finally {
    collect(record, what, gpu.popErrorScope());
    collect(record, what, gpu.popErrorScope());
  }
}

function collect(record: DeviceRecord, what: string, scope: Promise<GPUError | null>): void {
  const answer = scope.then(
    (cause) => {
      if (cause !== null) report(record, what, cause.message, cause);
    },
    () => {}, // The device was lost, which record.lost tells.
  );
  later(record, answer);
}

/** Makes the next read wait for `answer`, which must not reject. */
export function later(record: DeviceRecord, answer: Promise<unknown>): void {
  const done = answer.finally(() => record.pending.delete(done));
  record.pending.add(done);
}

/** Keeps an error of earlier work for the next read. */
export function report(
  record: DeviceRecord,
  what: string,
  message: string,
  cause?: unknown,
): Error {
  const error = new DeviceError(`${what} failed on ${nameOf(record)}: ${message}`, {
    device: `${record.device}`,
    cause,
  });
  record.errors.push(error);
  console.error(error);
  return error;
}

/** Waits for what {@link watched} still waits for; throws the first error of earlier work. */
export async function settled(record: DeviceRecord): Promise<void> {
  await Promise.all(record.pending);
  checkAlive(record);
  const [first] = record.errors;
  record.errors = [];
  if (first) throw first;
}
