import { DeviceError, textOf, UnsupportedError } from "../../core/errors.js";
import type { GPUDevice } from "../../core/globals.js";
import { checkOptions } from "../../core/options.js";
import { shared } from "../../core/realm.js";
import { registered, useDevice } from "./device.js";
import {
  DEFAULT_FEATURES,
  DEFAULT_LIMITS,
  type LimitName,
  OF_ADAPTER,
  OPTIONS,
  type Options,
  REQUEST,
} from "./generated.js";
import * as messages from "./messages.js";

/**
 * Needed limits, e.g. `maxBufferSize: 2 ** 30` (bytes). Infinity: the adapter's maximum, which is
 * the default of maxBufferSize and maxStorageBufferBindingSize.
 */
export type Limits = { [name in LimitName]?: number | undefined };

/** Options of `webgpu.requestDevice`: limits by their WebGPU names, and a few more. */
export interface RequestDeviceOptions extends Limits, Options {}

async function requestAdapter(given: Options) {
  const gpu = (globalThis.navigator as Navigator | undefined)?.gpu;
  if (!gpu) {
    throw new DeviceError(
      "no WebGPU here (navigator.gpu is missing): use a browser that has it, on https:// or " +
        "localhost; Chrome on Linux may need chrome://flags/#enable-unsafe-webgpu",
    );
  }
  // Others fail only for their caller, later, and not for all who share the page's device.
  const read = OF_ADAPTER.map((name) => [name, given[name as keyof Options]] as const);
  const options = read.filter(([name, value]) => value != null && isFit(name, value));
  const adapter = await gpu.requestAdapter(Object.fromEntries(options));
  if (!adapter) {
    throw new DeviceError(
      "WebGPU found no adapter: the driver may be blocked or missing; see " +
        "chrome://gpu or about:support",
    );
  }
  return adapter;
}

/** A device with every feature and limit of its adapter: its users cannot add any later. */
export async function requestAll(options: RequestDeviceOptions): Promise<GPUDevice> {
  const adapter = await requestAdapter(options);
  const requiredLimits: Record<string, number> = {};
  for (const name in adapter.limits) {
    const limit = limitOf(adapter, name);
    if (typeof limit === "number") requiredLimits[name] = limit;
  }
  const requiredFeatures = [...adapter.features] as GPUFeatureName[];
  return make(adapter, { requiredFeatures, requiredLimits });
}

/** The page's device, registered, or one of the caller's own if that lacks an option. */
export async function fitting(device: GPUDevice, given: RequestDeviceOptions): Promise<GPUDevice> {
  const request = readRequest(given);
  if (!(await suffices(device, request))) {
    return requestDevice({ ...request.options, ...request.limits });
  }
  useDevice(device);
  return device;
}

/** The same; undefined if the page's device is lost or invalid. */
export async function fittingIfAlive(
  device: GPUDevice,
  options: RequestDeviceOptions,
): Promise<GPUDevice | undefined> {
  const lost = await isLost(device).catch(() => true);
  return lost ? undefined : fitting(device, options);
}

async function suffices(device: GPUDevice, { options, limits }: Request): Promise<boolean> {
  const { features, forceFallbackAdapter } = options;
  if (forceFallbackAdapter && !device.adapterInfo?.isFallbackAdapter) return false;
  if (!(features ?? []).every((name) => device.features.has(name))) return false;
  for (const [name, asked] of Object.entries(limits)) {
    if (asked === undefined) continue;
    const most = asked === Number.POSITIVE_INFINITY;
    const wanted = most ? limitOf(await requestAdapter(options), name) : asked;
    const has = limitOf(device, name);
    // requestDevice() refuses what is no limit.
    if (typeof has !== "number" || typeof wanted !== "number" || wanted < 0) return false;
    if (!(name.startsWith("min") ? has <= wanted : has >= wanted)) return false;
  }
  return true;
}

const limitOf = ({ limits }: { limits: unknown }, name: string) =>
  (limits as Record<string, unknown>)[name];

async function make(adapter: GPUAdapter, descriptor: GPUDeviceDescriptor): Promise<GPUDevice> {
  let device: GPUDevice;
  try {
    device = await adapter.requestDevice(descriptor);
  } catch (cause) {
    throw new DeviceError(`the adapter gave no device: ${(cause as Error).message}`, { cause });
  }
  useDevice(device, adapter.limits);
  return device;
}

interface Request {
  readonly options: Options & { features?: readonly string[] };
  /** The rest, which are checked against the adapter's. */
  readonly limits: Readonly<Record<string, unknown>>;
}

/** The options, each read once; TypeError for values that are none. */
function readRequest(given: RequestDeviceOptions): Request {
  const limits: Record<string, unknown> = { ...given };
  const options: Record<string, unknown> = {};
  for (const name in OPTIONS) {
    options[name] = readOption(name, limits[name]);
    delete limits[name];
  }
  return { options, limits };
}

function readOption(name: string, given: unknown): unknown {
  const [kind, needed] = OPTIONS[name] as (typeof OPTIONS)[string];
  const isIterable = typeof given === "object" && Symbol.iterator in Object(given);
  const value = kind === "names" && isIterable ? [...(given as Iterable<unknown>)] : given;
  if (value == null || isFit(name, value)) return value;
  const shown = typeof value === "string" ? `"${value.slice(0, 100)}"` : textOf(value);
  throw new TypeError(`${name} must be ${needed}, not ${shown}`);
}

/** Whether an option may have that value. */
function isFit(name: string, value: unknown): boolean {
  const [kind] = OPTIONS[name] as (typeof OPTIONS)[string];
  if (kind === "text") return typeof value === "string";
  if (kind === "flag") return typeof value === "boolean";
  if (kind !== "names") return kind.includes(value as string);
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

/** The pairs of neighbouring letters of a name, in whichever style it is written. */
const pairsOf = (name: string) => {
  const letters = name.toLowerCase().replace(/[^a-z0-9]/g, "");
  return new Set([...letters].slice(1).map((letter, i) => letters[i] + letter));
};

/** What to write for an option that there is not: the name that shares most pairs with it, and half of all at least. */
function nearest(name: string, limits: object): string {
  const options = [...Object.keys(OPTIONS), ...Object.keys(REQUEST)];
  for (const limit in limits) options.push(limit);
  const pairs = pairsOf(name);
  const shares = options.map((each) => {
    const own = pairsOf(each);
    return (2 * [...own].filter((pair) => pairs.has(pair)).length) / (own.size + pairs.size);
  });
  const most = Math.max(...shares);
  const near = options[shares.indexOf(most)] as string;
  return most < 0.5
    ? messages.anyOption(Object.keys(OPTIONS).join(", "))
    : messages.useOption(REQUEST[near] ?? near);
}

/** Implements `webgpu.requestDevice`. */
export async function requestDevice(options: RequestDeviceOptions): Promise<GPUDevice> {
  const example = 'maxBufferSize: 2 ** 30, powerPreference: "high-performance"';
  checkOptions(options, "requestDevice()", null, example);
  const { options: read, limits } = readRequest(options);
  const { features, label } = read;
  const adapter = await requestAdapter(read);
  const requiredLimits: Record<string, number> = {};
  const said = Object.entries(limits).filter(([, asked]) => asked !== undefined);
  for (const [name, asked] of Object.entries({ ...DEFAULT_LIMITS, ...Object.fromEntries(said) })) {
    const limit = limitOf(adapter, name);
    if (typeof limit !== "number") {
      const way = nearest(name, adapter.limits);
      throw new TypeError(messages.noOption(name, way));
    }
    if (typeof asked !== "number") {
      throw new TypeError(messages.noLimit(name, textOf(asked)));
    }
    if (!(asked >= 0)) {
      throw new TypeError(messages.negativeLimit(name, asked));
    }
    const wanted = asked === Number.POSITIVE_INFINITY ? limit : Math.floor(asked);
    // Alignments are better when smaller; the browser checks those itself.
    if (wanted > limit && !name.startsWith("min")) {
      throw new UnsupportedError(messages.aboveAdapter(name, asked, limit), {
        given: asked,
        needed: limit,
      });
    }
    requiredLimits[name] = wanted;
  }
  const wanted = features ?? DEFAULT_FEATURES.filter((name) => adapter.features.has(name));
  const requiredFeatures = wanted as GPUFeatureName[]; // a list, as checked
  return make(adapter, { label: label ?? "", requiredFeatures, requiredLimits });
}

/** Requests of all copies of this library take turns: two at once find one device. */
const requests = shared("requests", () => ({ last: Promise.resolve<unknown>(undefined) }));

/**
 * Implements Python's `request_device`: a working device that the same options made is reused;
 * without options the first one, the default of "webgpu".
 */
export function requestOnce(options: RequestDeviceOptions): Promise<GPUDevice> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const asked = JSON.stringify(given.map(([name, value]) => [name, String(value)]).sort());
  const request = requests.last.then(async () => {
    for (const { lost, asked: before, gpu } of registered.devices) {
      const fits = lost === null && (given.length === 0 || before === asked);
      if (fits && !(await isLost(gpu))) return gpu;
    }
    const gpu = await requestDevice(options);
    useDevice(gpu).asked = asked;
    return gpu;
  });
  requests.last = request.catch(() => {});
  return request;
}

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
