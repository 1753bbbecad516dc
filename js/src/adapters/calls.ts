import type { GPUDevice } from "../core/globals.js";
import { isTensor, type Tensor } from "../core/tensor.js";
import type { Address, DeviceId, Handle } from "../pyodide/numbers.js";
import { deviceOf, type Python } from "../pyodide/python.js";
import { useDevice } from "../webgpu/device/device.js";
import type { Masked } from "./arrow.js";
import type { Libraries } from "./devices.js";

/** An adapter of `all.ts`. */
interface Functions {
  give(library: unknown, tensor: Tensor, options: object): unknown;
  take(library: unknown, value: unknown, options: object): Tensor | Masked;
  use?(library: unknown, device: GPUDevice): Promise<unknown>;
  install?(library: unknown): void;
}

const all = () => import("./all.js");

/** Python's calls about other libraries. */
export class Adapters {
  constructor(private readonly python: Python) {}

  /** The adapter for a library; the library's tensors become exchangeable. */
  async adapter(name: string, library: unknown): Promise<Adapter> {
    const { adapters } = await all();
    if (!Object.hasOwn(adapters, name)) {
      throw new TypeError(
        `no adapter "${name}"; supported are ${Object.keys(adapters).join(", ")}`,
      );
    }
    const functions = adapters[name as keyof typeof adapters] as Functions;
    // DuckDB-wasm does not export its Arrow: then nothing is passed.
    if (library) functions.install?.(library);
    return new Adapter(this.python, name, library, functions);
  }

  /** Puts libraries on one device, and resolves to its id. */
  async shareDevice(libraries: Libraries): Promise<DeviceId> {
    const { id } = useDevice(await (await all()).shareDevice(libraries)).named;
    return id;
  }
}

/** Python's calls about tensors of one library. */
export class Adapter {
  constructor(
    private readonly python: Python,
    private readonly name: string,
    private readonly library: unknown,
    private readonly functions: Functions,
  ) {}

  give(address: Address, options: object): unknown {
    return this.python.during(address, (tensor) =>
      this.functions.give(this.library, tensor, options),
    );
  }

  take(value: unknown, options: object): Handle {
    return this.python.give(this.functions.take(this.library, value, options) as Tensor);
  }

  /** Python takes over each tensor by `fromJs`. */
  takeMasked(value: unknown, options: object) {
    const taken = this.functions.take(this.library, value, options);
    if (isTensor(taken)) {
      taken.release();
      throw new TypeError(`${this.name} has no nulls, so no option nulls: "mask"`);
    }
    const { values, valid } = taken;
    const release = () => {
      values.release();
      valid.release();
    };
    return { values, valid, release };
  }

  async useDevice(id: DeviceId, renderer: unknown): Promise<void> {
    const { use } = this.functions;
    if (use === undefined) throw new TypeError(`${this.name} has no device to share`);
    await use(renderer ?? this.library, deviceOf(id));
  }
}
