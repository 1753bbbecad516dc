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
        "localhost; Chrome on Linux may need chrome://flags/#enable-unsafe-webgpu",
    );
  }
  const adapter = await gpu.requestAdapter(powerPreference ? { powerPreference } : {});
  if (!adapter) {
    throw new DeviceError(
      "WebGPU found no adapter: the driver may be blocked or missing; see " +
        "chrome://gpu or about:support",
    );
  }
  const requiredLimits: Record<string, number> = {};
  for (const [name, asked] of Object.entries(limits)) {
    const limit = (adapter.limits as unknown as Record<string, unknown>)[name];
    if (typeof limit !== "number" || typeof asked !== "number") {
      throw new TypeError(
        `${name}: ${asked} is neither a WebGPU limit with a number, nor one of features, ` +
          "powerPreference, label",
      );
    }
    const wanted = asked === Number.POSITIVE_INFINITY ? limit : asked;
    // Alignments are better when smaller; the browser checks those itself.
    if (wanted > limit && !name.startsWith("min")) {
      throw new UnsupportedError(
        `${name}: ${asked} is more than this adapter has (${limit}); Infinity asks for that`,
        { given: asked, needed: limit },
      );
    }
    requiredLimits[name] = wanted;
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
    answers: new Set(),
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
    `${device} is lost (${lost}), with its tensors: request a new device and upload again`,
    { device },
  );
}

/** "webgpu:0" with the device's label, for messages. */
export function nameOf({ device }: DeviceRecord): string {
  return device.gpu.label ? `${device} ("${device.gpu.label}")` : `${device}`;
}

/**
 * Runs WebGPU calls and watches for the errors that they report later. Those wait in
 * `record.answers` for the next read (see {@link settled}), and are logged in case none comes.
 */
export function watched<R>(
  record: DeviceRecord,
  what: string,
  calls: () => R,
  // The last is asked first: want of memory comes before the invalid buffer that it left.
  filters: GPUErrorFilter[] = ["validation", "out-of-memory"],
): R {
  const { gpu } = record.device;
  for (const filter of filters) gpu.pushErrorScope(filter);
  try {
    return calls();
  } finally {
    for (const _ of filters) collect(record, what, gpu.popErrorScope());
  }
}

function collect(record: DeviceRecord, what: string, scope: Promise<GPUError | null>): void {
  later(
    record,
    scope.then(
      (cause) => (cause === null ? null : failure(record, what, cause.message, cause)),
      () => null, // The device was lost, which record.lost tells.
    ),
  );
}

/** Enters an answer to come; it must not reject. */
export function later(record: DeviceRecord, answer: Promise<Error | null>): void {
  record.answers.add(answer);
  answer.then((error) => error ?? record.answers.delete(answer));
}

/** The error for earlier work, logged as well in case no read asks for it. */
export function failure(
  record: DeviceRecord,
  what: string,
  message: string,
  cause?: unknown,
): Error {
  const error = new DeviceError(`${what} failed on ${nameOf(record)}: ${message}`, {
    device: record.device,
    cause,
  });
  console.error(error);
  return error;
}

/** Waits for the answers about earlier work and throws the first error, once. */
export async function settled(record: DeviceRecord): Promise<void> {
  const answers = [...record.answers];
  const found = await Promise.all(answers);
  checkAlive(record);
  // A read that ran at the same time may have thrown it already.
  const first = found.find((error, i) => error && record.answers.has(answers[i] as never));
  for (const answer of answers) record.answers.delete(answer);
  if (first) throw first;
}
