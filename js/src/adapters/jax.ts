// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * jax-js: GPU tensors share the `GPUBuffer` both ways. On the CPU jax-js copies what it takes and
 * what it gives.
 */
import { type DTypeName, dtypeNamed } from "../core/dtype.js";
import { CopyError, DeviceError, ReleasedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import { copyInto, slotOf } from "../webgpu/buffers.js";
import {
  checkDevice,
  checkDType,
  type GiveOptions,
  makeExchangeable,
  ownCopy,
  storedName,
  withDevice,
} from "./common.js";

/** The part of `@jax-js/jax` that is used here. */
export interface Jax {
  Array: { prototype: any };
  init(...devices: any[]): Promise<any>;
  defaultDevice(device?: any): any;
  getWebGPUDevice(): GPUDevice;
  numpy: { array(values: any, options?: any): any; zeros(shape: any, options?: any): any };
}

/** A `jax.Array`, as far as it is used here. */
export interface JaxArray {
  readonly dtype: string;
  readonly device: string;
  readonly shape: readonly number[];
}

const ON_GPU = ["float32", "int32", "uint32", "float16", "bool"];
const ON_CPU = [...ON_GPU, "float64"];

/**
 * Makes WebGPU, on this device, the default of jax-js, which must not have asked for one before.
 *
 * @throws DeviceError if jax-js runs on another device already
 */
export async function useDevice(jax: Jax, device: GPUDevice): Promise<void> {
  if (deviceOf(jax) === undefined) {
    await withDevice("jax-js", device, () => jax.init("webgpu"));
  }
  if (deviceOf(jax) !== device) {
    throw new DeviceError(
      "jax-js runs on another GPUDevice already, and has one only: call useDevice() before its " +
        "init(), or share jax.getWebGPUDevice() with the others",
    );
  }
  jax.defaultDevice("webgpu");
  install(jax);
}

function deviceOf(jax: Jax): GPUDevice | undefined {
  try {
    return jax.getWebGPUDevice();
  } catch {
    return undefined;
  }
}

/**
 * A tensor over the memory of a `jax.Array` on WebGPU, which stays the caller's (nothing is
 * consumed): without a copy, read-only, its pending work submitted. bool is int32, as jax-js stores
 * it. Arrays on other devices are copied, by jax-js.
 *
 * @throws ReleasedError for an array that was disposed of or consumed
 */
export function fromJax(jax: Jax, value: JaxArray): Tensor {
  let kept: any;
  try {
    kept = (value as any).ref;
  } catch (cause) {
    throw new ReleasedError("this jax.Array was disposed of, or consumed by a call without .ref", {
      cause,
    });
  }
  try {
    const { shape, dtype: name, device } = value;
    checkDType("DLPack", name, ON_CPU);
    const dtype = (name === "bool" ? "int32" : name) as DTypeName;
    // Both of these consume the reference that they are called on.
    if (device !== "webgpu") return Tensor.fromTypedArray(kept.ref.dataSync(), { dtype, shape });
    const buffer: GPUBuffer = kept.ref.gpuBufferSync();
    const held = kept;
    kept = null;
    return Tensor.fromGPUBuffer(buffer, {
      device: jax.getWebGPUDevice(),
      dtype,
      shape,
      capacity: buffer.size,
      readOnly: true,
      release: () => held.dispose(),
    });
  } finally {
    kept?.dispose();
  }
}

/**
 * A `jax.Array` of a tensor's elements. On WebGPU it shares the tensor's memory, which it holds
 * until jax-js lets go of it; a tensor whose buffer begins elsewhere is copied on the GPU. Elements
 * on the CPU are copied, by jax-js, to its default device.
 *
 * @param options - `dtype: "bool"`: take a GPU tensor of int32 for bool
 * @throws CopyError, UnsupportedError for other dtypes, DeviceError for another device's tensors
 */
export function toJax(
  jax: Jax,
  x: Exchangeable,
  { copy, dtype }: GiveOptions & { dtype?: "bool" } = {},
): any {
  const held = fit(x, { copy, needs: { offset: 0 } });
  try {
    const name = storedName("jax-js", held, dtype);
    const shape = [...held.shape];
    const { gpu } = held.device;
    if (!gpu) {
      const onGPU = jax.defaultDevice() === "webgpu";
      checkDType(`jax-js on ${jax.defaultDevice()}`, name, onGPU ? ON_GPU : ON_CPU);
      const data = ownCopy("jax-js", held, copy);
      // jax-js has 4 bytes for a bool.
      const values = name === "bool" ? Int32Array.from(data as Uint8Array) : data;
      return jax.numpy.array(values, { shape, dtype: name });
    }
    checkDevice("jax-js", held, deviceOf(jax));
    checkDType("jax-js on WebGPU", name, ON_GPU);
    const backend = backendOf(jax);
    if (backend) return share(jax, backend, held, name, shape);
    return copyToJax(jax, held, name, shape, copy);
  } catch (error) {
    held.release();
    throw error;
  }
}

/** An array over the tensor's buffer: jax-js is given it as the memory that it asks for. */
function share(jax: Jax, backend: any, held: Tensor, dtype: string, shape: number[]): any {
  const { buffer, nbytes } = held;
  backend.malloc = () => {
    const slot: number = backend.nextSlot++;
    let count = 1;
    backend.buffers.set(slot, {
      buffer,
      size: nbytes,
      allocatedSize: buffer.size,
      get ref() {
        return count;
      },
      set ref(value: number) {
        count = value;
        if (count > 0) return;
        // Gone before jax-js can take the buffer for one of its own, to use or destroy.
        backend.buffers.delete(slot);
        count = -1;
        held.release();
      },
    });
    return slot;
  };
  try {
    // Unequal elements, as equal ones would become a constant; nobody looks at them.
    const { View } = dtypeNamed(dtype === "bool" ? "int32" : dtype);
    const values = Object.assign(new View(2), { 1: 1 });
    return jax.numpy.array(values, { shape, dtype, device: "webgpu" });
  } finally {
    delete backend.malloc;
  }
}

/** Without its internals: one copy on the GPU, into an array of jax-js. */
function copyToJax(jax: Jax, held: Tensor, dtype: string, shape: number[], copy?: boolean): any {
  if (copy === false) {
    throw new CopyError(
      `this version of jax-js cannot share ${held}: a copy on the GPU is needed, which copy: false ` +
        "forbids",
    );
  }
  const made = jax.numpy.zeros(shape, { dtype, device: "webgpu" });
  const target = fromJax(jax, made);
  try {
    copyInto(held, slotOf(target._handle), 0);
  } finally {
    target.release();
    held.release();
  }
  return made;
}

/** The webgpu backend of jax-js, which it does not export: what it looks up on this call. */
function backendOf(jax: Jax): any {
  const { get } = Map.prototype;
  let found: any;
  Map.prototype.get = function (key) {
    const value = get.call(this, key);
    if (key === "webgpu") found = value;
    return value;
  };
  try {
    jax.getWebGPUDevice();
  } finally {
    Map.prototype.get = get;
  }
  const { buffers, nextSlot, malloc } = found ?? {};
  const known =
    buffers instanceof Map && typeof nextSlot === "number" && typeof malloc === "function";
  return known ? found : undefined;
}

/** Lets every consumer of the exchange protocol take `jax.Array`s, `bridge.tensor()` among them. */
export function install(jax: Jax): void {
  makeExchangeable<JaxArray>(jax.Array, (value) => fromJax(jax, value));
}
