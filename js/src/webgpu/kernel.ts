import { UnsupportedError } from "../core/errors.js";
import type { DeviceRecord } from "../core/realm.js";
import type { Tensor } from "../core/tensor.js";
import {
  allocate,
  checkCopySource,
  checkRowMajor,
  checkUsage,
  DEFAULT_USAGE,
  releaseSlot,
  roundUp,
  slotOf,
  slotOn,
} from "./buffers.js";
import { checkAlive, count, later, useDevice, watched } from "./device.js";
import { type Binding, parseBindings } from "./wgsl.js";

/** Options of {@link Kernel.run}. */
export interface RunOptions {
  /** Workgroups along x, y, z; what is left out is 1. A number is x. */
  workgroups: number | readonly number[];
  /** Where the pass writes its times: see {@link timed}. */
  timestampWrites?: GPUComputePassTimestampWrites;
}

/** What a binding may be given: a number where the shader declares a uniform f32, i32 or u32. */
export type Argument = Tensor | number;

/** Bind groups that a kernel keeps, since making one costs as much as all the rest of a run. */
const KEPT_GROUPS = 8;

/** Numbers for buffers, to recognise those of an earlier run. */
const numbers = new WeakMap<GPUBuffer, number>();
let lastNumber = 0;

/**
 * A compute shader whose buffers are tensors: argument `i` is bound at `@group(0) @binding(i)`.
 *
 * The source may declare `var<storage, read>`, `var<storage, read_write>` and `var<uniform>`;
 * all that it declares must be passed, also what this entry point does not use.
 *
 * ```js
 * const double = new webgpu.Kernel(device, `
 *   @group(0) @binding(0) var<storage, read_write> x: array<f32>;
 *   @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
 *     if (id.x < arrayLength(&x)) { x[id.x] *= 2; }
 *   }`);
 * double.run([tensor], { workgroups: Math.ceil(tensor.size / 64) });
 * ```
 *
 * Buffers are padded, so that `arrayLength` counts up to 3 bytes beyond the tensor for dtypes
 * of fewer than 4 bytes.
 */
export class Kernel {
  readonly #record: DeviceRecord;
  readonly #entry: string;
  /** What the source declares; null where only the browser knows. */
  readonly #bindings: Binding[] | null;
  readonly #pipeline: GPUComputePipeline;
  readonly #layout: GPUBindGroupLayout;
  readonly #compiled: Promise<Error | null>;
  readonly #groups = new Map<string, GPUBindGroup>();

  /**
   * @param options - `entry`: name of the entry point, default "main"
   * @throws DeviceLostError. Errors in the source come later: from `await kernel.ready`, or from
   * the next read on this device
   */
  constructor(device: GPUDevice, wgsl: string, { entry = "main" }: { entry?: string } = {}) {
    const record = useDevice(device);
    checkAlive(record);
    if (typeof wgsl !== "string") throw new TypeError("a kernel's source is a string of WGSL");
    this.#record = record;
    this.#entry = entry;
    this.#bindings = parseBindings(wgsl);
    device.pushErrorScope("validation");
    try {
      const module = device.createShaderModule({ code: wgsl, label: entry });
      const layout = this.#bindings && bindGroupLayout(device, this.#bindings);
      this.#pipeline = device.createComputePipeline({
        label: entry,
        layout: layout ? device.createPipelineLayout({ bindGroupLayouts: [layout] }) : "auto",
        compute: { module, entryPoint: entry },
      });
      this.#layout = layout ?? this.#pipeline.getBindGroupLayout(0);
      this.#compiled = compileError(record, entry, wgsl, module, device.popErrorScope());
    } catch (error) {
      device.popErrorScope().catch(() => {});
      throw error;
    }
    later(record, this.#compiled);
  }

  /**
   * Resolves once the shader has compiled. Waiting is optional: a kernel may be run at once.
   *
   * @throws DeviceError with line, position and message of what is wrong in the source
   */
  get ready(): Promise<void> {
    return this.#compiled.then((error) => {
      if (error === null) return;
      // Told here, it need not be told by the next read as well.
      this.#record.answers.delete(this.#compiled);
      throw error;
    });
  }

  /**
   * Binds the arguments in order and submits one dispatch. The queue keeps the order of uploads,
   * kernels and reads; there is nothing to wait for, and the tensors may be released right after.
   *
   * A tensor whose byteOffset cannot be bound (WebGPU wants multiples of 256) is copied on the GPU
   * and, from `read_write` bindings, back; `webgpu.stats()` counts that.
   *
   * @throws DeviceError for tensors elsewhere, UnsupportedError for buffers that cannot be bound,
   * RangeError for wrong numbers of arguments or workgroups. What the GPU finds wrong later is
   * thrown by the next read on this device
   */
  run(args: readonly Argument[], { workgroups, ...pass }: RunOptions): void {
    const record = this.#record;
    checkAlive(record);
    const { gpu } = record.device;
    const [x = 1, y = 1, z = 1] = checkWorkgroups(gpu, workgroups);
    const declared = this.#bindings?.length ?? args.length;
    if (args.length !== declared) {
      const names = this.#bindings?.map(({ name }) => name);
      throw new RangeError(
        `kernel "${this.#entry}" declares ${declared} bindings (${names}); ` +
          `${args.length} arguments were given`,
      );
    }
    const bound: Bound[] = [];
    try {
      args.forEach((arg, i) => {
        bound.push(bind(record, arg, i, this.#bindings?.[i]));
      });
      const submit = () => {
        const encoder = gpu.createCommandEncoder();
        for (const { copies } of bound) copies[0]?.(encoder);
        const compute = encoder.beginComputePass(pass);
        compute.setPipeline(this.#pipeline);
        compute.setBindGroup(0, this.#group(bound));
        compute.dispatchWorkgroups(x, y, z);
        compute.end();
        for (const { copies } of bound) copies[1]?.(encoder);
        gpu.queue.submit([encoder.finish()]);
      };
      watched(record, `kernel "${this.#entry}"`, submit, ["validation"]);
    } finally {
      for (const { temporary } of bound) if (temporary) releaseSlot(temporary);
    }
  }

  #group(bound: readonly Bound[]): GPUBindGroup {
    const key = bound
      .map(({ resource }) => {
        const { buffer, offset, size } = resource;
        const number = numbers.get(buffer) ?? ++lastNumber;
        numbers.set(buffer, number);
        return `${number}:${offset}:${size}`;
      })
      .join();
    const kept = this.#groups.get(key);
    if (kept) return kept;
    const entries = bound.map(({ resource }, binding) => ({ binding, resource }));
    const group = this.#record.device.gpu.createBindGroup({ layout: this.#layout, entries });
    // A borrowed buffer is its lender's to free, and a group would keep it.
    if (bound.every(({ ours }) => ours)) this.#groups.set(key, group);
    for (const oldest of this.#groups.keys()) {
      if (this.#groups.size <= KEPT_GROUPS) break;
      this.#groups.delete(oldest);
    }
    return group;
  }
}

const COMPUTE = 4; // GPUShaderStage.COMPUTE

function bindGroupLayout(device: GPUDevice, bindings: Binding[]): GPUBindGroupLayout {
  return device.createBindGroupLayout({
    entries: bindings.map(({ index, type }) => ({
      binding: index,
      visibility: COMPUTE,
      buffer: { type },
    })),
  });
}

/** What went wrong in compiling; null if nothing did. */
async function compileError(
  record: DeviceRecord,
  entry: string,
  wgsl: string,
  module: GPUShaderModule,
  scope: Promise<GPUError | null>,
): Promise<Error | null> {
  const cause = await scope.catch(() => null); // The device was lost, which record.lost tells.
  return cause && (await import("./late.js")).explain(record, entry, wgsl, module, cause);
}

function checkWorkgroups(gpu: GPUDevice, given: RunOptions["workgroups"]): readonly number[] {
  const counts = typeof given === "number" ? [given] : given;
  const limit = gpu.limits.maxComputeWorkgroupsPerDimension;
  const valid = (n: number) => Number.isInteger(n) && n >= 1 && n <= limit;
  if (Array.isArray(counts) && counts.length >= 1 && counts.length <= 3 && counts.every(valid)) {
    return counts;
  }
  throw new RangeError(
    `workgroups must be 1 to 3 integers from 1 to ${limit} (` +
      `maxComputeWorkgroupsPerDimension), not ${String(given)}`,
  );
}

/** One argument, ready to be bound. */
export interface Bound {
  readonly resource: Required<GPUBufferBinding>;
  /** Whether the buffer is ours to free. */
  readonly ours: boolean;
  /** A slot to give back after the submit, 0 if there is none. */
  readonly temporary: number;
  /** Into the temporary buffer before the pass, and back after it. */
  readonly copies: readonly ((encoder: GPUCommandEncoder) => void)[];
}

/** The buffer range to bind for an argument, after all checks that give better errors here. */
export function bind(
  record: DeviceRecord,
  arg: Argument,
  index: number,
  declared: Binding | undefined,
): Bound {
  if (typeof arg === "number") return bindNumber(record, arg, index, declared);
  const type = declared?.type;
  const { buffer, own } = slotOn(record, arg);
  checkRowMajor(arg);
  const { limits } = record.device.gpu;
  const { byteOffset, nbytes } = arg;
  const kind = type === "uniform" ? "Uniform" : "Storage";
  const what = `binding ${index}: ${arg}`;
  const refuse = (why: string, given: number, needed: number) => {
    return new UnsupportedError(`${what} ${why}`, { given, needed, device: record.device });
  };
  // Without a parsed declaration it may be either; then WebGPU itself says what is missing.
  if (type) checkUsage(arg, type === "uniform" ? "UNIFORM" : "STORAGE", `binding ${index}`);
  if (arg.readOnly && type === "storage") {
    throw new UnsupportedError(`${what} is read-only, the shader's binding is read_write`);
  }
  // A uniform's size is a multiple of 16 in WGSL; no binding may be empty.
  const size = Math.max(roundUp(nbytes, type === "uniform" ? 16 : 4), 4);
  const limit = `max${kind}BufferBindingSize` as const;
  if (size > limits[limit]) {
    const hint = `use a device from requestDevice({ ${limit}: ${size} })`;
    const why = `needs ${size} bytes, of which ${limits[limit]} can be bound: ${hint}`;
    throw refuse(why, size, limits[limit]);
  }
  if (byteOffset % limits[`min${kind}BufferOffsetAlignment`] !== 0) {
    checkCopySource(arg, "binding");
    if (type === "storage") checkUsage(arg, "COPY_DST", `binding ${index}`);
    const temporary = allocate(record, nbytes, DEFAULT_USAGE, false);
    const aside = slotOf(temporary).buffer;
    const bytes = roundUp(nbytes, 4);
    const copies = [
      (encoder: GPUCommandEncoder) => {
        encoder.copyBufferToBuffer(buffer, byteOffset, aside, 0, bytes);
      },
      (encoder: GPUCommandEncoder) => {
        encoder.copyBufferToBuffer(aside, 0, buffer, byteOffset, bytes);
      },
    ].slice(0, type === "storage" ? 2 : 1);
    count(record, "copied", nbytes, copies.length);
    return { resource: { buffer: aside, offset: 0, size }, ours: true, temporary, copies };
  }
  const room = buffer.size - byteOffset;
  if (size > room) {
    const why = `needs ${size} bytes, its GPUBuffer has ${room}: pad it to a multiple of 16`;
    throw refuse(why, room, size);
  }
  const resource = { buffer, offset: byteOffset, size };
  return { resource, ours: own, temporary: 0, copies: [] };
}

/** A number for the uniform that the shader declares, in a buffer until the submit. */
function bindNumber(
  record: DeviceRecord,
  value: number,
  index: number,
  declared: Binding | undefined,
): Bound {
  const kinds = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };
  const Kind = declared?.type === "uniform" && kinds[declared.value as keyof typeof kinds];
  if (!Kind) {
    throw new TypeError(
      `binding ${index} takes a tensor: numbers are for var<uniform> of f32, i32 and u32`,
    );
  }
  const data = new Kind(4);
  data[0] = value;
  if (Kind !== Float32Array && data[0] !== value) {
    throw new RangeError(`binding ${index}: ${value} is no ${declared.value}`);
  }
  const temporary = allocate(record, data.byteLength, DEFAULT_USAGE, false);
  const { buffer } = slotOf(temporary);
  record.device.gpu.queue.writeBuffer(buffer, 0, data);
  return { resource: { buffer, offset: 0, size: 16 }, ours: true, temporary, copies: [] };
}
