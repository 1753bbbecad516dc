import { type DTypeName, dtypeNamed, type TypedArray } from "../core/dtype.js";
import type { GPUBuffer } from "../core/globals.js";
import { checkShape } from "../core/shape.js";
import { isTensor, Tensor } from "../core/tensor.js";
import { watchOver } from "../core/watch.js";
import type { Exchangeable } from "../exchange/types.js";
import { emptyOnDevice } from "../webgpu/buffers/buffers.js";
import { slotOf } from "../webgpu/buffers/table.js";
import { read } from "../webgpu/buffers/transfer.js";
import { calledAt } from "../webgpu/errors/errors.js";
import type { Address, DeviceId, Handle, Site, Wait, Work } from "./numbers.js";
import { deviceOf, type Python, recordOf } from "./python.js";

/** Python's calls about tensors. */
export class Tensors {
  constructor(private readonly python: Python) {}

  /** The tensor for a Python one, with a hold of its own. */
  tensorAt(address: Address): Tensor {
    return this.python.tensorAt(address);
  }

  /** Anything that `bridge.tensor` takes; arrays of JS are copied once, into Python's memory. */
  fromJs(value: Exchangeable | TypedArray): Handle {
    // Nothing else can release the hold of a tensor that was made only for this call.
    if (isTensor(value)) watchOver(value._managed);
    return this.python.give(this.python.bridge.tensor(value as Exchangeable));
  }

  /** A CPU tensor's elements, on a device; converted to `dtype`. */
  upload(site: Site, address: Address, deviceId: DeviceId, dtype: DTypeName): Handle {
    return this.python.during(address, (source) => {
      const device = deviceOf(deviceId);
      return this.python.give(calledAt(site, () => source.to(device, { dtype })));
    });
  }

  /** Writes a tensor's elements over those of another. */
  write(site: Site, target: Address, source: Address, convert: boolean): void {
    this.python.during(target, (to) =>
      this.python.during(source, (from) => calledAt(site, () => to.write(from, { convert }))),
    );
  }

  /** A tensor of zeros on a device, which a recorded kernel may be about to compute. */
  empty(shape: ArrayLike<number>, dtype: string, deviceId: DeviceId, recorded: boolean): Handle {
    const device = recordOf(deviceId);
    return this.python.give(emptyOnDevice(device, checkShape(shape), dtypeNamed(dtype), recorded));
  }

  /** A tensor over a foreign buffer; `release` is called at its end. */
  fromGPUBuffer(
    buffer: GPUBuffer,
    shape: ArrayLike<number>,
    dtype: DTypeName,
    deviceId: DeviceId,
    byteOffset: number,
    release?: () => void,
  ): Handle {
    const options = { device: deviceOf(deviceId), shape, dtype, byteOffset };
    return this.python.give(
      Tensor.fromGPUBuffer(buffer, release ? { ...options, release } : options),
    );
  }

  /** Reads the first half of the tensors into the second: row-major CPU ones of as many bytes. */
  read(work: Work, ...addresses: Address[]): Promise<void> {
    return this.python.waits.until(work, (signal) => this.#read(addresses, signal));
  }

  /** The same, as the number with which Python waits for it. */
  reading(...addresses: Address[]): Wait {
    return this.python.waits.add(this.#read(addresses));
  }

  async #read(addresses: readonly Address[], signal?: AbortSignal): Promise<void> {
    const tensors = this.python.tensorsAt(addresses).map((tensor) => tensor._managed);
    const half = tensors.length / 2;
    let done: Promise<unknown>;
    try {
      done = read(tensors.slice(0, half), tensors.slice(half), signal); // has holds of its own
    } finally {
      for (const tensor of tensors) tensor.release();
    }
    await done;
  }

  /** Whether a WebGPU tensor's buffer was made here and returns to the pool. */
  isPooled(address: Address): boolean {
    return this.python.during(address, (tensor) => {
      const { origin, escaped } = slotOf(tensor._managed.handle).buffer;
      return origin === "tensors" && !escaped;
    });
  }
}
