import type { DTypeName, TypedArray } from "../core/dtype.js";
import { DeviceError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import { releasing } from "../core/releasing.js";
import { Tensor } from "../core/tensor.js";
import { type DeviceRecord, registered } from "../webgpu/device/device.js";
import * as messages from "../webgpu/device/messages.js";
import { Bridge } from "./bridge.js";
import { HeapStorage } from "./heap.js";
import type { Pyodide, PyodideHost } from "./host.js";
import type { Address, DeviceId, Handle } from "./numbers.js";
import { Waits } from "./waits.js";

/** The record of a device; throws DeviceError listing what is registered. */
export function recordOf(id: DeviceId): DeviceRecord {
  const { devices } = registered;
  const device = devices[id];
  if (device) return device;
  throw new DeviceError(
    devices.length === 0
      ? "no WebGPU device is registered: await requestDevice() first"
      : messages.notRegistered(id, devices.map((each) => each.named).join()),
    { given: id, device: `webgpu:${id}` },
  );
}

/** The `GPUDevice` with an id. */
export const deviceOf = (id: DeviceId): GPUDevice => recordOf(id).gpu;

/**
 * What functions that Python calls have in common. Tensors cross as numbers, in one step each, so an
 * interrupt of Python never finds one between two owners: from Python as an {@link Address}, to
 * Python as a {@link Handle}.
 */
export class Python {
  readonly heap: HeapStorage;
  readonly waits: Waits;
  readonly bridge: Bridge;

  constructor(pyodide: Pyodide, host: PyodideHost) {
    this.heap = new HeapStorage(host);
    this.waits = new Waits(host);
    this.bridge = new Bridge(pyodide, host, this.heap);
  }

  /** The tensor for a Python one, with a hold of its own. */
  tensorAt(address: Address): Tensor {
    return new Tensor(this.heap.borrow(address));
  }

  /** The tensors for all addresses, or none. */
  tensorsAt(addresses: readonly Address[]): Tensor[] {
    const tensors: Tensor[] = [];
    try {
      for (const address of addresses) tensors.push(this.tensorAt(address));
      return tensors;
    } catch (error) {
      for (const tensor of tensors) tensor.release();
      throw error;
    }
  }

  /** Calls `use` with the tensor for a Python one, which has a hold for as long. */
  during<R>(address: Address, use: (tensor: Tensor) => R): R {
    return releasing(this.tensorAt(address), (tensor) => use(tensor));
  }

  /** Moves a tensor to Python: its hold in the C core, the JS tensor being released. */
  give(tensor: Tensor): Handle {
    const managed = tensor._managed;
    if (managed.storage === this.heap && managed.handle !== 0) return managed.detach();
    return releasing(tensor, () => this.bridge.hold(managed));
  }

  /** Fresh Python memory with the elements of an array. */
  filled(shape: readonly number[], dtype: DTypeName, elements: TypedArray): Tensor {
    const made = this.bridge.empty(shape, dtype);
    const { buffer, byteOffset, byteLength } = elements;
    if (byteLength === made.nbytes) {
      made._managed.bytes().set(new Uint8Array(buffer, byteOffset, byteLength));
      return made;
    }
    made.release();
    throw new RangeError(`${dtype} of shape [${shape}] cannot have ${byteLength} bytes`);
  }
}

/** A result for Python that is under way; release() ends that, or releases the result, then or later. */
export function resultOf<T extends { release(): void } | { close(): void } | undefined>(
  start: (signal: AbortSignal) => Promise<T>,
) {
  const controller = new AbortController();
  let found: T | undefined;
  const release = () => {
    if (found === undefined) return;
    if ("close" in found) found.close();
    else found.release();
    found = undefined;
  };
  const promise = start(controller.signal);
  promise.then(
    (arrived) => {
      found = arrived;
      if (controller.signal.aborted) release();
    },
    () => {},
  );
  return {
    promise,
    release() {
      controller.abort();
      release();
    },
  };
}
