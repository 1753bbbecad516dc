import type { ManagedTensor } from "../core/managed.js";
import { extentOf } from "../webgpu/buffers/table.js";
import { calledAt } from "../webgpu/errors/errors.js";
import type { Part, Source } from "../webgpu/formulas/formulas.js";
import { Batch, type BatchChanges } from "../webgpu/kernels/batch.js";
import { Kernel } from "../webgpu/kernels/kernels.js";
import { CALL_ARGUMENTS, CALL_KEY } from "./layout.js";
import type { Address, DeviceId, KernelNumber, Site, Work } from "./numbers.js";
import { deviceOf, type Python } from "./python.js";

/** An argument of a call. */
type Given = ManagedTensor | number;

/** The kind of an argument whose value is the address of a `dlw_tensor` (wasm/bridge.c); 0: a number. */
const TENSOR = 1;

/**
 * Python's calls about kernels and batches of them. Workgroups, arguments and the number of a call
 * come in memory, where C describes them.
 */
export class Kernels {
  /** Python's kernels, by number. */
  readonly #kernels = new Map<KernelNumber, WeakRef<Kernel>>();
  #lastKernel = 0;
  #failure: unknown;

  constructor(private readonly python: Python) {}

  /** A compute shader compiled for a device; its errors are shown as of its parts. */
  kernel(
    site: Site,
    wgsl: string,
    entry: string,
    label: string,
    check: boolean,
    deviceId: DeviceId,
    parts: readonly Part[],
    params: Source["params"],
  ): Kernel {
    const device = deviceOf(deviceId);
    const options = { entry, label, check };
    return calledAt(site, () => new Kernel(device, wgsl, options, { parts, params }));
  }

  /** A number with which C runs a kernel, valid as long as Python holds it. */
  numberOf(kernel: Kernel): KernelNumber {
    for (const [number, ref] of this.#kernels) {
      if (ref.deref() === undefined) this.#kernels.delete(number);
    }
    this.#kernels.set(++this.#lastKernel, new WeakRef(kernel));
    return this.#lastKernel;
  }

  /** Throws the error of the last kernel that C ran. */
  failure(): never {
    const error = this.#failure;
    this.#failure = undefined;
    throw error;
  }

  /** Runs the kernel of a call, resolving to the GPU's time in ms, unless it was given up before. */
  time(work: Work, kernel: Kernel): Promise<number> {
    return this.python.waits.until(work, async (signal) => {
      const held: Given[] = [];
      try {
        const call = this.#call((args, workgroups, site) => {
          for (const arg of args) held.push(typeof arg === "number" ? arg : arg.share());
          return { workgroups, site };
        });
        const { timed } = await import("../webgpu/lazy.js");
        return await timed(kernel._device.gpu, (timestampWrites) => {
          signal.throwIfAborted();
          const { workgroups } = call;
          calledAt(call.site, () => kernel.run(held, { workgroups, timestampWrites }));
        });
      } finally {
        for (const arg of held) if (typeof arg !== "number") arg.release();
      }
    });
  }

  /** An empty batch on a device. */
  batch(deviceId: DeviceId): Batch {
    return new Batch(deviceOf(deviceId));
  }

  /** Records a call. */
  batchAdd(batch: Batch, kernel: Kernel): void {
    this.#call((args, workgroups, site) =>
      calledAt(site, () => batch._record(kernel, args, { workgroups })),
    );
  }

  /** Changes a recorded call; `places` are the positions of the arguments in it. */
  batchUpdate(batch: Batch, index: number, places: ArrayLike<number>): void {
    this.#call((given, workgroups) => {
      const args = Object.fromEntries(given.map((arg, i) => [places[i] as number, arg]));
      batch.update(index, { args: args as BatchChanges["args"], workgroups });
    });
  }

  /** Whether a batch will write to a tensor, or, for `writing`, use it. */
  batchUses(address: Address, batch: Batch, writing: boolean): boolean {
    return this.python.during(address, (tensor) => batch._uses(extentOf(tensor._managed), writing));
  }

  /**
   * @internal Called by C with the number of a kernel, and whether to run only a cached call. Returns 0
   * if nothing ran.
   */
  run(number: KernelNumber, again: number): number {
    try {
      const kernel = this.#kernels.get(number)?.deref();
      if (kernel === undefined) throw new TypeError(`there is no kernel ${number}`);
      const call = this.python.heap.kernelCall();
      if (again !== 0) return Number(kernel._again(call, this.#numbers, CALL_KEY));
      const length = call[CALL_KEY] as number;
      const key = length > 0 ? [...call.subarray(CALL_KEY, CALL_KEY + length)] : undefined;
      this.#call((args, workgroups, site) =>
        calledAt(site, () => kernel._run(args, workgroups, key)),
      );
      return 1;
    } catch (error) {
      this.#failure = error;
      return 0;
    }
  }

  /** The arguments of the call that C describes, if they are numbers. */
  readonly #numbers = {
    at: (index: number) => this.python.heap.kernelCall()[CALL_ARGUMENTS + 2 * index + 1],
  };

  /**
   * Calls `use` with the kernel call that C describes: its arguments, whose tensors have no hold;
   * the workgroups, undefined: the default; and Python's number of it.
   */
  #call<R>(use: (args: readonly Given[], workgroups: number[] | undefined, site: Site) => R): R {
    const call = this.python.heap.kernelCall();
    const at = (i: number) => call[i] as number;
    const site = at(0);
    const workgroups = at(1) === 0 ? undefined : [at(1), at(2), at(3)];
    const count = at(4);
    const args: Given[] = [];
    try {
      for (let i = CALL_ARGUMENTS; args.length < count; i += 2) {
        args.push(at(i) === TENSOR ? this.python.heap.peek(at(i + 1)) : at(i + 1));
      }
      return use(args, workgroups, site);
    } finally {
      for (const arg of args) if (typeof arg !== "number") arg.detach();
    }
  }
}
