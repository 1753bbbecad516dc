/** One `GPUDevice` for several libraries. */

import type { GPUDevice } from "../core/globals.js";
import { realDevice } from "../webgpu/device/device.js";
import { requestDevice } from "../webgpu/device/request.js";
import { type Jax, useDevice as useJax } from "./jax.js";
import { type LiteRT, useDevice as useLiteRT } from "./litert.js";
import { type Ort, useDevice as useOrt } from "./ort.js";
import { type Tf, useDevice as useTfjs } from "./tfjs.js";
import { type Renderer, useDevice as useThree } from "./three.js";

/** The libraries that can share a device: namespaces of modules, and a renderer of three.js. */
export interface Libraries {
  ort?: Ort;
  tf?: Tf;
  jax?: Jax;
  /** LiteRT.js, after its `loadLiteRt()`. */
  litert?: LiteRT;
  /** A `WebGPURenderer` whose `init()` was not called. */
  three?: Renderer;
}

/** Features that the libraries use, where the adapter has them. */
const LIMITS = {
  maxComputeInvocationsPerWorkgroup: Infinity,
  maxComputeWorkgroupSizeX: Infinity,
  maxComputeWorkgroupSizeY: Infinity,
  maxComputeWorkgroupSizeZ: Infinity,
  maxComputeWorkgroupStorageSize: Infinity,
  maxComputeWorkgroupsPerDimension: Infinity,
  maxStorageBuffersPerShaderStage: Infinity,
  maxStorageTexturesPerShaderStage: Infinity,
};

/**
 * Puts all given libraries on one device, and lets consumers of the exchange protocol take their
 * tensors. Each library is asked once, in an order that works: jax-js and TensorFlow.js take a
 * device only as they start.
 *
 * @param libraries - the modules, by their names here
 * @param options - `device`: default that of a library that has started already, or else a new one
 * with everything that the adapter allows
 * @returns the device, which stays the caller's
 * @throws DeviceError if a library runs on another device already, or there is no WebGPU
 */
export async function shareDevice(
  libraries: Libraries,
  options: { device?: GPUDevice | undefined } = {},
): Promise<GPUDevice> {
  const { ort, tf, jax, litert, three } = libraries;
  const device = options.device ?? (await startedOn(libraries)) ?? (await requestDevice(LIMITS));
  if (jax) await useJax(jax, device);
  if (tf) await useTfjs(tf, device);
  if (ort) await useOrt(ort, device);
  if (litert) await useLiteRT(litert, device);
  if (three) await useThree(three, device);
  return device;
}

async function startedOn({ ort, tf, jax, three }: Libraries): Promise<GPUDevice | undefined> {
  let device: GPUDevice | undefined;
  try {
    device = jax?.getWebGPUDevice();
  } catch {
    // It has not started.
  }
  device ??= tf?.engine().registry?.webgpu?.device;
  device ??= three?.backend.device ?? undefined;
  return device ?? realDevice<GPUDevice | undefined>(await ort?.env.webgpu?.device);
}
