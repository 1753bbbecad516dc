import { CPU } from "./dlpack.js";
import type { GPUDevice } from "./globals.js";

/** A tensor's device, as DLPack names it. */
export interface Device {
  /** `DLDeviceType`: 1 = CPU, 15 = WebGPU. */
  readonly type: 1 | 15;
  /** 0 on CPU; on WebGPU the index in the table of registered devices. */
  readonly id: number;
  /** The `GPUDevice`; null on CPU. */
  readonly gpu: GPUDevice | null;
  /** "cpu" or "webgpu:0". */
  toString(): string;
}

/** A device by its name. */
export class NamedDevice<G extends GPUDevice | null> implements Device {
  readonly #name: string;

  constructor(
    readonly type: 1 | 15,
    readonly id: number,
    readonly gpu: G,
    name: string,
  ) {
    this.#name = name;
  }

  toString(): string {
    return this.#name;
  }

  toJSON(): string {
    return this.#name;
  }
}

export const CPU_DEVICE: Device = Object.freeze(new NamedDevice(CPU, 0, null, "cpu"));
