/**
 * kernels/: compute shaders whose buffers are tensors. WGSL is read for the types of its bindings, arguments
 * are checked against them and bound, and calls are cached or recorded.
 *
 * Other folders use `Kernel`, `withWords` for shaders of their own, and the scalars and tokens of `wgsl.ts`.
 */
import type { GPUDevice, TimestampWrites } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { checkOptions } from "../../core/options.js";
import { recording } from "../buffers/checks.js";
import { isReusable, obtain } from "../buffers/pool.js";
import { DEFAULT_USAGE, type LiveSlot, roundUp } from "../buffers/slot.js";
import { checkAlive, count, type DeviceRecord, workingDevice } from "../device/device.js";
import { ask, type Operation, operate } from "../errors/errors.js";
import { explanations } from "../errors/explanations.js";
import { type BufferRecord, isOpen, markWritten, type Outcome } from "../errors/record.js";
import type { Source } from "../formulas/formulas.js";
import { type Bound, bindGroupLayout, type Prepared, prepare, releaseBound } from "./arguments.js";
import {
  type CachedCall,
  type CachedGroup,
  CallCache,
  hasPendingError,
  isValidated,
  keyOf,
  touchedBy,
} from "./cache.js";
import {
  type Argument,
  checkSource,
  type Given,
  packNumber,
  type RunOptions,
  readArguments,
  readCounts,
} from "./checks.js";
import { parseShader, type Shader, withLines } from "./wgsl.js";

const RUN_OPTIONS = { workgroups: 1, timestampWrites: 1 } as const;

/** Options of {@link Kernel}. */
export interface KernelOptions {
  /** Name of the entry point; default "main". */
  entry?: string | undefined;
  /** Names the kernel in messages; default the entry point. */
  label?: string | undefined;
  /**
   * Whether each argument's dtype and size must match its binding; default true. The
   * same scalar type; narrower types as words of u32; structures by their size.
   */
  check?: boolean | undefined;
}

/**
 * A compute shader whose buffers are tensors: argument `i` is bound at `@group(0) @binding(i)`.
 *
 * The source may declare `var<storage, read>`, `var<storage, read_write>` and `var<uniform>`; pass
 * a tensor for each declaration, also those that this entry point does not use.
 *
 * ```js
 * const double = new webgpu.Kernel(device, `
 *   @group(0) @binding(0) var<storage, read_write> x: array<f32>;
 *   @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
 *     if (id.x < arrayLength(&x)) { x[id.x] *= 2; }
 *   }`);
 * double.run([tensor]);
 * ```
 *
 * Buffers are padded with zeros: `arrayLength` counts up to 3 bytes beyond the tensor for dtypes of
 * fewer than 4 bytes, and up to a whole element for vectors.
 */
export class Kernel {
  /** @internal */
  readonly _device: DeviceRecord;
  /** @internal */
  readonly _label: string;
  /** @internal The parameters of a formula, by binding; null: its argument is ours. */
  readonly _params: Source["params"] | undefined;
  /** @internal Whether arguments are checked against the shader's types. */
  readonly _check: boolean;
  /** @internal */
  readonly _shader: Shader;
  /** @internal */
  readonly _pipeline: GPUComputePipeline;
  readonly #layout: GPUBindGroupLayout;
  readonly #compiled: Outcome;
  readonly #cache = new CallCache();
  /** Buffers of numbers, by position. Each run writes its own before it is submitted. */
  readonly #uniforms: (Uniform | undefined)[] = [];

  /**
   * @param device - where the kernel runs
   * @param wgsl - the source
   * @param options - `entry` point, `label` for messages, `check` of dtypes and sizes
   * @throws DeviceLostError; RangeError for no WGSL, or no such entry point. Errors in the source come later: from `await kernel.ready`, or from
   * reading the kernel's results
   */
  constructor(device: GPUDevice, wgsl: string, options?: KernelOptions);
  /** @internal */
  constructor(device: GPUDevice, wgsl: string, options?: KernelOptions, source?: Partial<Source>);
  constructor(
    gpu: GPUDevice,
    wgsl: string,
    options: KernelOptions = {},
    { parts = [], params }: Partial<Source> = {},
  ) {
    const names = { entry: 1, label: 1, check: 1 } as const;
    checkOptions<KernelOptions>(options, "a kernel", names, 'entry: "main"');
    const { entry = "main", label = entry, check = true } = options;
    checkSource(wgsl, entry);
    const device = workingDevice(gpu);
    this._device = device;
    this._label = label;
    this._check = check;
    this._params = params;
    this._shader = parseShader(wgsl, entry);
    const { bindings } = this._shader;
    const code = withLines(wgsl);
    let module: GPUShaderModule | undefined;
    const { result, outcome } = operate(
      device,
      {
        what: `compiling kernel "${label}"`,
        filters: ["validation"],
        explain: async (cause) =>
          (await explanations()).explain(
            device,
            label,
            code,
            parts,
            module as GPUShaderModule,
            cause,
          ),
      },
      () => {
        module = gpu.createShaderModule({ code, label });
        const layout = bindings && bindGroupLayout(gpu, bindings);
        const pipeline = gpu.createComputePipeline({
          label,
          layout: layout ? gpu.createPipelineLayout({ bindGroupLayouts: [layout] }) : "auto",
          compute: { module, entryPoint: entry },
        });
        return { pipeline, layout: layout ?? pipeline.getBindGroupLayout(0) };
      },
    );
    this._pipeline = result.pipeline;
    this.#layout = result.layout;
    this.#compiled = outcome as Outcome;
  }

  /**
   * Resolves once the shader has compiled. Waiting is optional: a kernel may be run at once.
   *
   * @throws KernelError with line, position and message of an error in the source;
   * DeviceLostError
   */
  get ready(): Promise<void> {
    return ask(this._device, [this.#compiled]);
  }

  /**
   * Binds the arguments in order and submits one dispatch. The queue keeps the order of uploads,
   * kernels and reads: you need not wait, and may release the tensors right after.
   *
   * A tensor whose byteOffset cannot be bound (WebGPU wants multiples of 256), or that is read while
   * a neighbour in its buffer is written, is copied on the GPU and, from `read_write` bindings, back;
   * `webgpu.stats()` counts that.
   *
   * @param args - a tensor for each binding, or a number for a uniform of f32, i32 or u32
   * @param options - `workgroups` along x, y, z; `timestampWrites`
   * @throws DeviceError for tensors elsewhere, UnsupportedError for buffers that cannot be bound
   * and dtypes that the shader would misread, RangeError for wrong numbers of arguments or
   * workgroups. Later GPU errors are thrown by reading the kernel's results
   */
  run(args: readonly Argument[], options?: RunOptions): void;
  /** @internal */
  run(args: readonly Given[], options?: RunOptions): void;
  run(args: readonly Given[], options: RunOptions = {}): void {
    const given = readArguments(args);
    checkOptions<RunOptions>(options, "run()", RUN_OPTIONS, "workgroups: [4, 4]");
    const { timestampWrites } = options;
    const counts = readCounts(options.workgroups);
    const key = timestampWrites
      ? undefined
      : keyOf(given, counts === undefined ? [] : [counts].flat());
    if (!key || !this._again(key, given)) this._run(given, counts, key, timestampWrites);
  }

  /** @internal The checked way, of lists that are ours; without `key` {@link _again} does not find it. */
  _run(
    args: readonly Given[],
    workgroups: RunOptions["workgroups"],
    key?: readonly number[],
    timestampWrites?: TimestampWrites,
  ): void {
    if (recording.batch !== null) {
      recording.batch._record(this, args, { workgroups, timestampWrites });
      return;
    }
    checkAlive(this._device);
    const prepared = prepare(this, args, workgroups, (value, i) => this.#uniform(value, i));
    const { bound, groups } = prepared;
    try {
      const cached = this.#submit(prepared, timestampWrites);
      if (!key || !cached || bound.some(({ temporary }) => temporary !== 0)) return;
      cached.call = { key, groups, ...touchedBy(bound) };
    } finally {
      releaseBound(bound);
    }
  }

  /**
   * @internal Runs the cached call whose key begins at `at`, if it cannot fail, and returns whether it
   * ran: else it takes the checked way. Its numbers are asked for.
   */
  _again(key: ArrayLike<number>, args: Pick<readonly unknown[], "at">, at = 0): boolean {
    if (recording.batch !== null || this._device.lost !== null) return false;
    const cached = this.#cache.find(key, at);
    if (!cached || !isValidated(cached, this.#errors)) return false;
    const call = cached.call as CachedCall;
    const [, count = 0] = call.key;
    for (let i = 0; i < count; i++) {
      if (call.key[2 + i] !== 0) continue;
      if (this.#uniform(args.at(i) as number, i) !== call.reads[i]?.buffer) return false;
    }
    if (isOpen(cached.validation) || hasPendingError(call)) this.#follow(cached, call);
    else this.#encode(cached.group, call.groups);
    return true;
  }

  /** Runs a cached call that fails if the watched run does. A method: a closure costs each call. */
  #follow({ group, validation }: CachedGroup, { reads, writes, groups }: CachedCall): void {
    const operation = { what: "", reads, writes, after: [validation] };
    operate(this._device, operation, () => this.#encode(group, groups));
  }

  /** @internal Whether it has compiled, and its calls are checked in full. */
  get _isChecked(): boolean {
    return this._check && this._shader.bindings !== null && this.#compiled.fault === null;
  }

  /** Errors of the device by now; -1: the GPU may know more than our checks. */
  get #errors(): number {
    return this._isChecked ? this._device.errors : -1;
  }

  /** The buffer of a number, which the next run reads. */
  #uniform(value: number, index: number): BufferRecord {
    const device = this._device;
    let uniform = this.#uniforms[index];
    if (uniform && !isReusable(uniform.buffer, device.errors)) uniform = undefined;
    if (uniform && Object.is(uniform.value, value)) return uniform.buffer;
    const data = packNumber(value, index, this._shader.bindings?.[index]);
    uniform ??= { buffer: obtain(device, data.byteLength, DEFAULT_USAGE), value: undefined };
    this.#uniforms[index] = uniform;
    device.gpu.queue.writeBuffer(uniform.buffer.gpu, 0, data);
    uniform.value = value;
    return uniform.buffer;
  }

  /** @internal The work of a call, but for the bytes that it reads and writes. */
  _operation(): Pick<Operation, "what" | "after" | "filters" | "explain"> {
    return {
      what: `kernel "${this._label}"`,
      after: [this.#compiled],
      filters: ["validation"],
      explain: async (cause) => (await explanations()).runError(this._device, this._label, cause),
    };
  }

  #submit(
    { bound, groups }: Prepared,
    timestampWrites: TimestampWrites | undefined,
  ): CachedGroup | undefined {
    const cached = this.#cache.over(bound);
    const written = bound.filter((one) => one.written);
    const copiesOut = written.filter((one) => one.temporary !== 0);
    // A copy back goes to a buffer that the group does not bind.
    const plain = timestampWrites === undefined && copiesOut.length === 0;
    const validated = cached !== undefined && plain && isValidated(cached, this.#errors);
    // All bytes that are bound may be written.
    for (const { extent, resource: it } of written) markWritten(extent.buffer, it.offset + it.size);
    const touched = touchedBy(bound);
    const errors = hasPendingError(touched) ? -1 : this._device.errors;
    const operation = { ...this._operation(), ...touched };
    const { result: group, outcome } = operate(
      this._device,
      validated ? { ...operation, after: [cached.validation], filters: [] } : operation,
      () => {
        const made = cached?.group ?? this._group(bound);
        this.#encode(made, groups, timestampWrites, copiesOut);
        return made;
      },
    );
    const last = cached ?? this.#cache.add(group, bound);
    if (last && !validated) Object.assign(last, { validation: outcome, errors });
    return last;
  }

  #encode(
    group: GPUBindGroup,
    groups: Prepared["groups"],
    timestampWrites?: TimestampWrites,
    copiesOut?: readonly Bound[],
  ): void {
    const { gpu } = this._device;
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass(timestampWrites && { timestampWrites });
    pass.setPipeline(this._pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(groups[0], groups[1], groups[2]);
    pass.end();
    if (copiesOut) for (const copy of copiesOut) copyBack(this._device, encoder, copy);
    gpu.queue.submit([encoder.finish()]);
  }

  /** @internal */
  _group(bound: readonly Bound[]): GPUBindGroup {
    const entries = bound.map(({ resource }, binding) => ({ binding, resource }));
    return this._device.gpu.createBindGroup({ layout: this.#layout, entries });
  }
}

/** @internal The kernel of a formula, whose errors are shown as of its parts. */
export function kernelOf(gpu: GPUDevice, label: string, source: Source): Kernel {
  return new Kernel(gpu, source.wgsl, { label }, source);
}

/** A number's buffer, and the number in it. */
interface Uniform {
  readonly buffer: BufferRecord;
  value: number | undefined;
}

/** @internal Copies the shader's results in a copy back to its source. */
export function copyBack(
  device: DeviceRecord,
  encoder: GPUCommandEncoder,
  { resource, tensor, slot }: Bound,
): void {
  const { start, nbytes } = tensor as ManagedTensor;
  const { gpu } = (slot as LiveSlot).buffer;
  encoder.copyBufferToBuffer(resource.buffer, 0, gpu, start, roundUp(nbytes, 4));
  count(device, "copied", nbytes);
}
