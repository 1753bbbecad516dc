// biome-ignore-all lint/suspicious/noExplicitAny: WebGPU's calls are handed on as they come
/**
 * A `GPUDevice` as one library sees it: errors there are attributed to the library.
 *
 * Error scopes are a stack that all code on a device shares. A scope that stays open while a
 * library waits gets the errors of other code, and the next `popErrorScope()` of other code gets
 * that scope. So each call of the library has scopes of its own, which close before the call
 * returns. The most frequent calls have none while no error is known: what they depend on is
 * checked before.
 */

import type { GPUDevice, GPUError } from "../core/globals.js";
import { WATCHED } from "../webgpu/buffers/pool.js";
import { REAL } from "../webgpu/device/device.js";
import type { ErrorFilter } from "../webgpu/errors/errors.js";

/** The GPU's later report on the calls that a library made during one operation. */
export interface Watched {
  /** The library's operation; several, if they ran at once. */
  readonly what: string;
  readonly scopes: readonly Promise<GPUError | null>[];
  /** The words for an error, with those of an earlier one that it comes from. */
  explain(error: GPUError): string;
  /** Ends watching: later calls do not belong to it. */
  end(): void;
}

/** What a {@link Watched} reports. */
interface Active {
  names: readonly string[];
  readonly scopes: Promise<GPUError | null>[];
}

const VALIDATION: readonly ErrorFilter[] = ["validation"];
const MAKING: readonly ErrorFilter[] = ["validation", "out-of-memory"];

export class WatchedDevice {
  /** The device to give to the library. */
  readonly seen: GPUDevice;
  readonly #active = new Set<Active>();
  /** Number of shaders and pipelines that are not known to be valid. */
  #doubtful = 0;
  /** Errors of shaders and pipelines that the library may keep, by their labels. */
  readonly #wrong = new Map<string, string>();
  /** The scopes that the library has opened: whether they are scopes of the device. */
  readonly #theirs: boolean[] = [];

  constructor(private readonly gpu: GPUDevice) {
    this.seen = forwarding(gpu, {
      [REAL]: gpu,
      queue: forwarding(gpu.queue, {
        submit: (commands: any) => this.#scoped(VALIDATION, () => gpu.queue.submit(commands)),
      }),
      createBuffer: (wanted: GPUBufferDescriptor) =>
        this.#scoped(wanted.size < WATCHED ? [] : MAKING, () => gpu.createBuffer(wanted)),
      createShaderModule: (wanted: any) => this.#compiled(wanted, "createShaderModule"),
      createComputePipeline: (wanted: any) => this.#compiled(wanted, "createComputePipeline"),
      createBindGroup: (wanted: any) =>
        this.#scoped(this.#isSuspect(wanted) ? VALIDATION : [], () => gpu.createBindGroup(wanted)),
      createCommandEncoder: (wanted: any) => {
        const encoder = gpu.createCommandEncoder(wanted);
        this.#watch(encoder, "finish", () => VALIDATION);
        return encoder;
      },
      pushErrorScope: (filter: ErrorFilter) => this.#push(filter),
      popErrorScope: () => this.#pop(),
    });
  }

  /** Begins to watch what the library does. */
  begin(name: string): Watched {
    const made: Active = { names: [name], scopes: [] };
    this.#active.add(made);
    // Where there are several, the caller cannot be identified: the errors of each name all.
    const names = [...new Set([...this.#active].flatMap((one) => one.names))];
    for (const one of this.#active) one.names = names;
    return {
      get what() {
        return made.names.join(" or ");
      },
      scopes: made.scopes,
      explain: ({ message }) => {
        for (const [label, earlier] of this.#wrong) {
          if (message.includes(`"${label}"`) && message !== earlier)
            return `${message}: ${earlier}`;
        }
        return message;
      },
      end: () => void this.#active.delete(made),
    };
  }

  #scoped<R>(filters: readonly ErrorFilter[], call: () => R): R {
    if (this.#active.size === 0 || filters.length === 0) return call();
    const gpu = this.gpu;
    for (const filter of filters) gpu.pushErrorScope(filter);
    try {
      return call();
    } finally {
      // Running out of memory comes before the invalid buffer that it causes.
      for (const _ of filters) this.#keep(gpu.popErrorScope());
    }
  }

  #keep(scope: Promise<GPUError | null>): void {
    const heard = scope.catch(() => null); // it rejects where the device was lost
    for (const { scopes } of this.#active) scopes.push(heard);
  }

  /** A shader or pipeline. The library may keep it, and find it wrong again in a later run. */
  #compiled(wanted: any, method: "createShaderModule" | "createComputePipeline"): any {
    const gpu = this.gpu;
    if (this.#active.size === 0) return gpu[method](wanted);
    gpu.pushErrorScope("validation");
    try {
      const made = gpu[method](wanted);
      if ("getBindGroupLayout" in made) {
        this.#watch(made, "getBindGroupLayout", () => (this.#doubtful > 0 ? VALIDATION : []));
      }
      return made;
    } finally {
      const scope = gpu.popErrorScope();
      this.#doubtful++;
      this.#keep(scope);
      scope.then((error) => this.#isKnown(error, wanted.label), noop);
    }
  }

  #isKnown(error: GPUError | null, label: string | undefined): void {
    if (error === null) this.#doubtful--;
    else if (label && !this.#wrong.has(label)) this.#wrong.set(label, error.message);
  }

  /** Lets a method of an object have scopes. */
  #watch(object: any, name: string, filters: () => readonly ErrorFilter[]): void {
    const method = object[name];
    object[name] = (...args: unknown[]) =>
      this.#scoped(filters(), () => method.apply(object, args));
  }

  /** Whether a bind group may be wrong: its pipeline is, or a buffer is too large to be bound. */
  #isSuspect({ entries }: GPUBindGroupDescriptor): boolean {
    if (this.#doubtful > 0) return true;
    const limit = this.gpu.limits.maxStorageBufferBindingSize;
    for (const { resource } of entries) {
      const { buffer, size } = resource as GPUBufferBinding;
      if ((size ?? buffer?.size ?? 0) > limit) return true;
    }
    return false;
  }

  /**
   * onnxruntime-web opens a scope before a run and waits for it after that, which would mix up the
   * device's scopes, and cost a trip to the GPU. What it looks for is in `scopes`.
   */
  #push(filter: ErrorFilter): void {
    const isReal = this.#active.size === 0;
    if (isReal) this.gpu.pushErrorScope(filter);
    this.#theirs.push(isReal);
  }

  #pop(): Promise<GPUError | null> {
    return this.#theirs.pop() ? this.gpu.popErrorScope() : Promise.resolve(null);
  }
}

const noop = () => {};

/** An object that does what `target` does, but for some properties. */
function forwarding<T extends object>(target: T, own: Record<PropertyKey, unknown>): T {
  const methods = new Map<PropertyKey, unknown>();
  return new Proxy(target, {
    get(_, key) {
      if (Object.hasOwn(own, key)) return own[key];
      const value = Reflect.get(target, key, target);
      if (typeof value !== "function" || key === "constructor") return value;
      if (!methods.has(key)) {
        methods.set(key, (...args: unknown[]) => (target as any)[key](...args));
      }
      return methods.get(key);
    },
    set: (_, key, value) => Reflect.set(target, key, value, target),
  });
}
