// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * onnxruntime-web: CPU tensors share memory with `ort.Tensor`s (ORT itself copies at `run()`), GPU
 * tensors share the `GPUBuffer`.
 */

import type { DTypeName, TypedArray } from "../core/dtype.js";
import { DeviceError, ReleasedError, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { keeping } from "../core/releasing.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import { realDevice } from "../webgpu/device/device.js";
import * as common from "./common.js";
import { handed, joined } from "./faults.js";
import { ON_CPU, ON_GPU } from "./generated.js";
import { watchSession } from "./ortruns.js";
import { WatchedDevice } from "./watched.js";

/** The part of `onnxruntime-web` that is used here. */
export interface Ort {
  Tensor: {
    new (type: any, data: any, dims: readonly number[]): any;
    fromGpuBuffer(buffer: any, options: any): any;
  };
  InferenceSession?: { create(...args: any[]): Promise<any> };
  env: { webgpu?: any; versions?: { web?: string } };
}

/** An `ort.Tensor`, as far as it is used here. */
export interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly location: string;
  readonly data: unknown;
  readonly gpuBuffer: unknown;
}

/** The result of {@link useDevice}: the execution provider for a session's options. */
export interface Provider {
  name: "webgpu";
  device: GPUDevice;
}

const LIBRARY = "onnxruntime-web";
const MODULE = "the module onnxruntime-web";

// --- devices ----------------------------------------------------------------------------------------

/** The device of a copy of onnxruntime-web; every copy has its own `webgpu`. */
interface Told {
  device: GPUDevice;
  /** What its sessions get in the place of `device`. */
  watch: WatchedDevice;
  /** Whether sessions get the device by their options. */
  watched: boolean;
  /** A session of a version that destroys its device with the last one; see {@link asksItself}. */
  keeper?: unknown;
}

const told = new WeakMap<object, Told>();

/**
 * Makes all sessions created from now on run on a device: ORT takes a device only in a session's
 * options, and its older WebGPU backend requests its own.
 *
 * @param ort - the module `onnxruntime-web`
 * @param device - the one to run on
 * @returns the execution provider `{ name: "webgpu", device }`
 * @throws DeviceError if ORT already runs on another device, unless that was lost and ORT can take
 * another; DeviceLostError
 */
export async function useDevice(ort: Ort, device: GPUDevice): Promise<Provider> {
  common.checkLibrary(ort, "env", MODULE);
  const { webgpu } = ort.env;
  if (!webgpu) throw new DeviceError("this build of onnxruntime-web has no WebGPU");
  return common.inTurn(webgpu, async () => {
    await common.checkUsable(device);
    await checkFree(webgpu, device);
    const before = told.get(webgpu);
    const state = before ?? { device, watch: new WatchedDevice(device), watched: false };
    if (state.device !== device) state.watch = new WatchedDevice(device);
    if (ort.InferenceSession && !state.watched) {
      watch(ort, ort.InferenceSession, state);
      state.watched = true;
    }
    if (before?.device !== device) {
      webgpu.adapter = common.adapterFor(seenOf(state), await navigator.gpu.requestAdapter());
    }
    // Later versions take it from here (onnxruntime#32227); these say here what they chose.
    Reflect.set(webgpu, "device", device);
    if (asksItself(ort)) {
      state.keeper ??= await common.inTurn(navigator.gpu, () =>
        starting(seenOf(state), () =>
          ort.InferenceSession?.create(IDENTITY, { executionProviders: ["webgpu"] }),
        ),
      );
    }
    state.device = device;
    told.set(webgpu, state);
    install(ort);
    return { name: "webgpu", device };
  });
}

/** The device for a copy of the library; where its runs are not watched, the device itself. */
function seenOf({ device, watch, watched }: Told): GPUDevice {
  return watched ? watch.seen : device;
}

/** Throws DeviceError if sessions run on another device, since they cannot be moved. */
async function checkFree(webgpu: any, device: GPUDevice): Promise<void> {
  const known = told.get(webgpu)?.device ?? realDevice<GPUDevice | undefined>(await webgpu.device);
  if (!known || known === device) return;
  if (await common.isUsable(known)) {
    throw new DeviceError(
      "onnxruntime-web already uses another GPUDevice: call useDevice() once, " +
        "before the first session",
    );
  }
  // The older backend requests a device once, and keeps it.
  if (Object.getOwnPropertyDescriptor(webgpu, "device")?.writable === false) {
    throw new DeviceError(
      "onnxruntime-web ran on a GPUDevice that was lost and this build takes no other: reload " +
        "the page, or import onnxruntime-web/webgpu",
    );
  }
}

/** Puts the device into the options of all sessions, or lets them find it, and watches them. */
function watch(ort: Ort, sessions: NonNullable<Ort["InferenceSession"]>, state: Told): void {
  const { create } = sessions;
  const asks = asksItself(ort);
  sessions.create = async function (this: unknown, ...args: unknown[]) {
    const { watch, device } = state;
    const provider = { name: "webgpu", device: asks ? undefined : watch.seen };
    const given = args.map((arg) => withProvider(arg, provider)) as [unknown];
    try {
      return await watchSession(watch, args[0], () => create.apply(this, given));
    } finally {
      showDevice(ort.env.webgpu, watch.seen, device);
    }
  };
}

/** Returns the device itself where the library reports its stand-in. */
function showDevice(webgpu: any, seen: GPUDevice, device: GPUDevice): void {
  const said = Object.getOwnPropertyDescriptor(webgpu, "device");
  if (said?.value !== seen) return;
  // Some versions do not allow changing it: `realDevice` finds it anyway.
  if (said.configurable) Object.defineProperty(webgpu, "device", { ...said, value: device });
}

/**
 * Whether a version must request its device itself: before 1.30, runs on a device that was passed
 * in fail with "Failed to wait for the operation". It destroys the device that it requested with
 * its last session, so one extra session is kept.
 */
function asksItself({ env: { versions } }: Ort): boolean {
  const [major, minor] = `${versions?.web ?? ""}`.split(".").map(Number);
  return major === 1 && (minor as number) < 30;
}

/** The options with which only its WebAssembly requests an adapter. */
const ASKED_BY = "featureLevel,powerPreference,forceFallbackAdapter";

/** A model of ONNX, `y = Identity(x)` of one float32. */
const IDENTITY = Uint8Array.from(
  atob("CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCAhAR"),
  (byte) => byte.charCodeAt(0),
);

/** Runs `start`, and passes the device to the WebAssembly, which requests it later. */
async function starting(device: GPUDevice, start: () => unknown): Promise<unknown> {
  const restore = common.answering((adapter, options = {}) =>
    Object.keys(options).join() === ASKED_BY ? common.adapterFor(device, adapter) : adapter,
  );
  try {
    return await start();
  } finally {
    restore();
  }
}

function withProvider(arg: unknown, provider: object): unknown {
  const { executionProviders: given } = Object(arg) as { executionProviders?: unknown };
  if (!Array.isArray(given)) return arg;
  const executionProviders = given.map((one) =>
    (one?.name ?? one) === "webgpu" ? { ...Object(one.name && one), ...provider } : one,
  );
  return { ...(arg as object), executionProviders };
}

/**
 * The device that ORT runs on: the one of useDevice(), else the one that it reports.
 *
 * @throws DeviceError if it runs on another one than that of useDevice()
 */
function deviceOf({ env: { webgpu } }: Ort): GPUDevice | undefined {
  const known = webgpu && told.get(webgpu)?.device;
  // Some builds have a promise there.
  const own: GPUDevice | undefined = webgpu?.device?.queue ? realDevice(webgpu.device) : undefined;
  if (known && own && own !== known) {
    throw new DeviceError(
      "a session of onnxruntime-web runs on another GPUDevice than that of useDevice(): pass " +
        "its result to all sessions",
    );
  }
  return known ?? own;
}

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the memory of an `ort.Tensor`, or of the one in a tensor of transformers.js,
 * without a copy. It has a hold of its own: disposing of the value does not end it.
 *
 * @param ort - the copy of the library that made the value
 * @param given - an `ort.Tensor`, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws ReleasedError for a disposed value; UnsupportedError for strings, textures and MLTensors;
 * DeviceError for a GPU tensor if ORT's device is not known; CopyError
 */
export function fromOrt(
  ort: Ort,
  given: OrtTensor | Exchangeable,
  options: common.TakeOptions = {},
): Tensor {
  const value = ((Object(given) as any).ort_tensor ?? given) as OrtTensor;
  const { type, location } = Object(value) as OrtTensor;
  if (typeof location !== "string") return common.takeOther(given, "an ort.Tensor", options);
  const { dims } = value;
  if (location === "none") throw new ReleasedError(`this ort.Tensor ${type} was disposed`);
  if (location !== "gpu-buffer" && !location.startsWith("cpu")) {
    throw new UnsupportedError(
      `an ort.Tensor with its data as ${location} cannot be shared: use preferredOutputLocation ` +
        '"gpu-buffer" or "cpu"',
      { given: location },
    );
  }
  common.checkDType("DLPack", type, ON_CPU);
  const onGPU = location === "gpu-buffer";
  const ours = common.shareOf(value, dims);
  if (ours && (ours.device.gpu !== null) === onGPU) return common.copiedIf(options.copy, ours);
  ours?.release(); // it was downloaded meanwhile
  if (onGPU) return fromGPU(ort, value, options);
  const made = Tensor.fromTypedArray(value.data as TypedArray, {
    shape: dims,
    dtype: type as DTypeName,
  });
  return common.copiedIf(options.copy, made);
}

function fromGPU(ort: Ort, value: OrtTensor, { copy }: common.TakeOptions): Tensor {
  checkOwner(ort, value);
  const device = deviceOf(ort);
  if (!device) {
    throw new DeviceError("the GPUDevice of onnxruntime-web is unknown: call useDevice() first");
  }
  // Without the field whose end is deferred, the buffer may be reused too soon.
  const known = "disposer" in value;
  if (!known) common.refuseCopy(copy, "this version of onnxruntime-web cannot share its tensors");
  const options = { device, shape: value.dims, dtype: value.type as DTypeName };
  const buffer = value.gpuBuffer as GPUBuffer;
  const made = common.overBuffer(buffer, options, common.holdOn(value, "disposer"));
  return common.copiedIf(copy || !known, isWatched(ort) ? made : joined(ort.env, LIBRARY, made));
}

/** Whether runs are observed, with their inputs and outputs. */
function isWatched({ env: { webgpu } }: Ort): boolean {
  return Boolean(webgpu && told.get(webgpu)?.watched);
}

/** Another copy of the library may run on another device, and a `GPUBuffer` does not tell. */
function checkOwner({ Tensor: Class }: Ort, value: object): void {
  if (value instanceof Class || value.constructor === Object) return;
  throw new DeviceError(
    "this ort.Tensor comes from another copy of onnxruntime-web than the module passed: pass " +
      "that copy, or for transformers.js use fromTransformers()",
  );
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * An `ort.Tensor` over a tensor's memory. It holds that until its `dispose()`; ORT reads it during
 * `run()`. Nothing is copied, but strided tensors, and GPU tensors whose buffer begins elsewhere or
 * lacks padding to 16 bytes, without which ORT computes wrong last elements.
 *
 * @param ort - the module `onnxruntime-web`
 * @param x - a tensor, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws CopyError, UnsupportedError for other dtypes, DeviceError for another device's tensors
 */
export function toOrt<L extends Ort>(
  ort: L,
  x: Exchangeable,
  { copy }: common.GiveOptions = {},
): InstanceType<L["Tensor"]> {
  common.checkLibrary(ort, "Tensor", MODULE);
  return keeping(fit(x, { copy, needs: { offset: 0, padTo: 16 } }), (held) => {
    if (held.padded) {
      throw new UnsupportedError(
        `onnxruntime-web packs ${held.dtype}; ${held.toString()} has bytes for it`,
      );
    }
    return held.device.gpu ? giveGPU(ort, held) : giveCPU(ort, held, copy);
  });
}

function giveGPU(ort: Ort, held: Tensor): any {
  common.checkDevice("onnxruntime-web", held, deviceOf(ort));
  common.checkDType("onnxruntime-web on WebGPU", held.dtype, ON_GPU);
  const made = ort.Tensor.fromGpuBuffer(held.buffer, {
    dataType: held.dtype,
    dims: [...held.shape],
    dispose: () => held.release(),
    download: () => held.read(),
  });
  common.releaseWith(made, held);
  if (!isWatched(ort)) handed(ort.env, LIBRARY, held);
  return made;
}

function giveCPU(ort: Ort, held: Tensor, copy: boolean | undefined): any {
  const { dtype, shape } = held;
  common.checkDType("onnxruntime-web", dtype, ON_CPU);
  const { data } = held;
  const made = new ort.Tensor(dtype, data, [...shape]);
  if (made.cpuData === data) {
    common.alias(made, "cpuData", held);
    return made;
  }
  // A version that keeps its elements elsewhere gets a copy.
  return new ort.Tensor(dtype, common.ownCopy("onnxruntime-web", held, copy), [...shape]);
}

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take `ort.Tensor`s.
 *
 * @param ort - the module `onnxruntime-web`
 */
export function install(ort: Ort): void {
  common.makeExchangeable(ort, ort.Tensor as any, fromOrt);
}
