// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * jax-js: GPU tensors share the `GPUBuffer` both ways. On the CPU jax-js copies what it takes and
 * what it gives.
 */

import { type DTypeName, dtypeNamed } from "../core/dtype.js";
import { DeviceError, quietly, ReleasedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { keeping, releasing } from "../core/releasing.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import { copyInto } from "../webgpu/buffers/copies.js";
import { slotOf } from "../webgpu/buffers/table.js";
import * as common from "./common.js";
import { flushed, handed } from "./faults.js";

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
const MODULE = "the module @jax-js/jax";

/**
 * Makes WebGPU, on this device, the default of jax-js, which must not have asked for one before.
 *
 * @param jax - the module `@jax-js/jax`
 * @param device - the one to run on
 * @throws DeviceError if jax-js runs on another device already; DeviceLostError
 */
export async function useDevice(jax: Jax, device: GPUDevice): Promise<void> {
  common.checkLibrary(jax, "init", MODULE);
  return common.inTurn(jax.Array ?? jax, async () => {
    await common.checkUsable(device);
    if (deviceOf(jax) === undefined) {
      await common.withDevice("jax-js", device, () => jax.init("webgpu"));
    }
    const known = deviceOf(jax);
    if (known !== device) {
      throw new DeviceError(
        known && !(await common.isUsable(known))
          ? "jax-js ran on a GPUDevice that was lost and takes no other: reload the page"
          : "jax-js already runs on another GPUDevice and supports only one: call useDevice() before " +
              "its init(), or share jax.getWebGPUDevice() with the other libraries",
      );
    }
    jax.defaultDevice("webgpu");
    install(jax);
  });
}

function deviceOf(jax: Jax): GPUDevice | undefined {
  try {
    return jax.getWebGPUDevice();
  } catch {
    return undefined;
  }
}

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the memory of a `jax.Array` on WebGPU, which stays the caller's (nothing is
 * consumed): without a copy, read-only, its pending work submitted. bool is int32, as jax-js stores
 * it. Arrays on other devices are copied, by jax-js.
 *
 * @param jax - the module that made the array
 * @param value - a `jax.Array`, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws ReleasedError for an array that was disposed of or consumed; CopyError
 */
export function fromJax(
  jax: Jax,
  value: JaxArray | Exchangeable,
  options: common.TakeOptions = {},
): Tensor {
  if (!isJaxArray(value)) return common.takeOther(value, "a jax.Array", options);
  let kept: any;
  try {
    kept = (value as any).ref;
  } catch (cause) {
    throw new ReleasedError("this jax.Array was disposed of, or consumed by a call without .ref", {
      cause,
    });
  }
  return common.lending(
    () => kept.dispose(),
    (release) => common.copiedIf(options.copy, take(jax, value, kept, options, release)),
  );
}

function isJaxArray(x: JaxArray | Exchangeable): x is JaxArray {
  // Reading `ref` would take one. Arguments of a traced function have no device.
  return typeof x === "object" && x !== null && "ref" in x && "device" in x;
}

function take(
  jax: Jax,
  value: JaxArray,
  kept: any,
  { copy }: common.TakeOptions,
  release: () => void,
): Tensor {
  const { shape, dtype: name, device } = value;
  common.checkDType("DLPack", name, ON_CPU);
  const dtype = (name === "bool" ? "int32" : name) as DTypeName;
  if (device !== "webgpu") {
    common.refuseCopy(copy, `jax-js copies arrays that are on its device "${device}"`);
    // This consumes the reference that it is called on, and so does the next.
    const made = Tensor.fromTypedArray(kept.ref.dataSync(), { dtype, shape });
    quietly(release);
    return made;
  }
  const ours = common.shareOf(value, shape, true);
  if (ours) {
    quietly(release);
    return ours;
  }
  const gpu = jax.getWebGPUDevice();
  // jax-js compiles and submits the elements' computation only now.
  return flushed(jax.Array, "jax-js", gpu, () => {
    const buffer: GPUBuffer = kept.ref.gpuBufferSync();
    const capacity = buffer.size;
    return Tensor.fromGPUBuffer(buffer, {
      device: gpu,
      dtype,
      shape,
      capacity,
      readOnly: true,
      release,
    });
  });
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * A `jax.Array` of a tensor's elements. On WebGPU it shares the tensor's memory, which it holds
 * until jax-js lets go of it; a tensor whose buffer begins elsewhere is copied on the GPU. Elements
 * on the CPU are copied, by jax-js, to its default device.
 *
 * @param jax - the module `@jax-js/jax`
 * @param x - a tensor, or another object with the exchange protocol
 * @param options - `dtype: "bool"`: take a tensor of int32 for bool
 * @throws CopyError, UnsupportedError for other dtypes, DeviceError for another device's tensors
 */
export function toJax<L extends Jax>(
  jax: L,
  x: Exchangeable,
  { copy, dtype }: common.GiveOptions & { dtype?: "bool" | undefined } = {},
): L["Array"]["prototype"] {
  common.checkLibrary(jax, "Array", MODULE);
  return keeping(fit(x, { copy, needs: { offset: 0, usage: common.STORAGE_COPY_SRC } }), (held) => {
    const name = common.storedName("jax-js", held, dtype);
    if (!held.device.gpu) return giveCPU(jax, held, name, copy);
    common.checkDevice("jax-js", held, deviceOf(jax));
    common.checkDType("jax-js on WebGPU", name, ON_GPU);
    handed(jax.Array, "jax-js", held);
    return giveGPU(jax, held, name, copy);
  });
}

function giveCPU(jax: Jax, held: Tensor, dtype: string, copy: boolean | undefined): any {
  const onGPU = jax.defaultDevice() === "webgpu";
  common.checkDType(`jax-js on ${jax.defaultDevice()}`, dtype, onGPU ? ON_GPU : ON_CPU);
  common.refuseCopy(copy, `jax-js copies ${held.toString()} on import`);
  const { shape, size } = held;
  // jax-js has 4 bytes for a bool.
  const values = common.ownCopy(
    "jax-js",
    held.dtype === "bool" ? common.widened(held) : held,
    copy,
  );
  held.release();
  if (size === 0) return jax.numpy.zeros([...shape], { dtype });
  return jax.numpy.array(values, { shape: [...shape], dtype });
}

function giveGPU(jax: Jax, held: Tensor, dtype: string, copy: boolean | undefined): any {
  const shape = [...held.shape];
  if (held.size === 0) {
    held.release();
    return jax.numpy.zeros(shape, { dtype, device: "webgpu" });
  }
  const backend = backendOf(jax);
  const made = backend && share(jax, backend, held, dtype, shape);
  if (made) return made;
  common.refuseCopy(
    copy,
    `this version of jax-js cannot share ${held.toString()}: it copies it on the GPU`,
  );
  return copyToJax(jax, held, dtype, shape);
}

/**
 * An array over the tensor's buffer, which is passed to jax-js as the memory that it allocates.
 * Undefined if it allocates none.
 */
function share(jax: Jax, backend: any, held: Tensor, dtype: string, shape: number[]): any {
  const { buffer, nbytes } = held;
  const slots: number[] = [];
  let shared = false;
  backend.malloc = () => {
    const slot: number = backend.nextSlot++;
    let count = 1;
    slots.push(slot);
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
        // Removed before jax-js can reuse or destroy the buffer as one of its own.
        backend.buffers.delete(slot);
        count = -1;
        if (shared) held.release();
      },
    });
    return slot;
  };
  try {
    // Unequal elements, as equal ones would become a constant; they are never read.
    const { View } = dtypeNamed(dtype === "bool" ? "int32" : dtype);
    const values = Object.assign(new View(2), { 1: 1 });
    const made = jax.numpy.array(values, { shape, dtype, device: "webgpu" });
    if (slots.length === 1) {
      shared = true;
      common.remember(made, held);
      return made;
    }
    quietly(() => made.dispose());
    return undefined;
  } catch (error) {
    for (const slot of slots) backend.buffers.delete(slot);
    throw error;
  } finally {
    delete backend.malloc;
  }
}

/** Without its internals: one copy on the GPU, into an array of jax-js. */
function copyToJax(jax: Jax, held: Tensor, dtype: string, shape: number[]): any {
  const made = jax.numpy.zeros(shape, { dtype, device: "webgpu" });
  common.keepingMade(made, () =>
    releasing(fromJax(jax, made), (target) => {
      const [from, to] = [slotOf(held._managed.handle), slotOf(target._managed.handle)];
      copyInto(held._managed, from, to.buffer, 0);
    }),
  );
  held.release();
  return made;
}

/** The webgpu backend of jax-js, which it does not export: the object that this call looks up. */
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

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take `jax.Array`s.
 *
 * @param jax - the module `@jax-js/jax`
 */
export function install(jax: Jax): void {
  common.makeExchangeable(jax, jax.Array, fromJax);
}
