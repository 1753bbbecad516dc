import { UnsupportedError } from "../errors.js";
import type { DeviceRecord } from "../shared.js";
import type { Tensor } from "../tensor.js";
import { checkUsage, roundUp, slotOn } from "./buffers.js";
import { checkAlive, failure, later, useDevice, watched } from "./device.js";
import { type Binding, parseBindings } from "./wgsl.js";

/** Options of {@link Kernel.run}. */
export interface RunOptions {
  /** Workgroups along x, y, z; what is left out is 1. A number is x. */
  workgroups: number | readonly number[];
}

/**
 * A compute shader whose buffers are tensors: tensor `i` is bound at `@group(0) @binding(i)`.
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
      this.#compiled = compileError(record, entry, module, device.popErrorScope());
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
   * Binds the tensors in order and submits one dispatch. The queue keeps the order of uploads,
   * kernels and reads; there is nothing to wait for, and the tensors may be released right after.
   *
   * @throws DeviceError for tensors elsewhere, UnsupportedError for buffers that cannot be bound,
   * RangeError for wrong numbers of tensors or workgroups. What the GPU finds wrong later is
   * thrown by the next read on this device
   */
  run(tensors: readonly Tensor[], { workgroups }: RunOptions): void {
    const record = this.#record;
    checkAlive(record);
    const { gpu } = record.device;
    const [x = 1, y = 1, z = 1] = checkWorkgroups(gpu, workgroups);
    const declared = this.#bindings?.length ?? tensors.length;
    if (tensors.length !== declared) {
      const names = this.#bindings?.map(({ name }) => name);
      throw new RangeError(
        `kernel "${this.#entry}" declares ${declared} bindings (${names}); ` +
          `${tensors.length} tensors were given`,
      );
    }
    const entries = tensors.map((tensor, binding) => ({
      binding,
      resource: bind(record, tensor, binding, this.#bindings?.[binding]?.type),
    }));
    const submit = () => {
      const group = gpu.createBindGroup({ layout: this.#layout, entries });
      const encoder = gpu.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(this.#pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(x, y, z);
      pass.end();
      gpu.queue.submit([encoder.finish()]);
    };
    watched(record, `kernel "${this.#entry}"`, submit, ["validation"]);
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

/** What went wrong in compiling, with the compiler's own messages; null if nothing did. */
async function compileError(
  record: DeviceRecord,
  entry: string,
  module: GPUShaderModule,
  scope: Promise<GPUError | null>,
): Promise<Error | null> {
  try {
    const cause = await scope;
    if (cause === null) return null;
    const { messages } = await module.getCompilationInfo();
    const lines = messages
      .filter(({ type }) => type === "error")
      .map(({ lineNum, linePos, message }) => `line ${lineNum}:${linePos}: ${message}`);
    const text = lines.length > 0 ? lines.join("\n") : cause.message;
    return failure(record, `compiling kernel "${entry}"`, text, cause);
  } catch {
    return null; // The device was lost, which record.lost tells.
  }
}

function checkWorkgroups(gpu: GPUDevice, given: RunOptions["workgroups"]): readonly number[] {
  const counts = typeof given === "number" ? [given] : given;
  const limit = gpu.limits.maxComputeWorkgroupsPerDimension;
  const valid = (n: number) => Number.isInteger(n) && n >= 1 && n <= limit;
  if (Array.isArray(counts) && counts.length >= 1 && counts.length <= 3 && counts.every(valid)) {
    return counts;
  }
  throw new RangeError(
    `workgroups must be 1 to 3 integers from 1 to ${limit} (this device's ` +
      `maxComputeWorkgroupsPerDimension), not ${String(given)}`,
  );
}

/** The buffer range to bind for a tensor, after all checks that give better errors here. */
function bind(
  record: DeviceRecord,
  tensor: Tensor,
  binding: number,
  type: GPUBufferBindingType | undefined,
): GPUBufferBinding {
  const { buffer } = slotOn(record, tensor);
  const { limits } = record.device.gpu;
  const { byteOffset, nbytes } = tensor;
  const kind = type === "uniform" ? "Uniform" : "Storage";
  const what = `binding ${binding}: ${tensor}`;
  const refuse = (why: string, given: number, needed: number) => {
    return new UnsupportedError(`${what} ${why}`, { given, needed, device: record.device });
  };
  // Without a parsed declaration it may be either; then WebGPU itself says what is missing.
  if (type) checkUsage(tensor, type === "uniform" ? "UNIFORM" : "STORAGE", `binding ${binding}`);
  if (tensor.readOnly && type === "storage") {
    throw new UnsupportedError(`${what} is read-only, the shader's binding is read_write`);
  }
  const step = limits[`min${kind}BufferOffsetAlignment`];
  if (byteOffset % step !== 0) {
    const why = `has byteOffset ${byteOffset}: only multiples of ${step} can be bound`;
    throw refuse(why, byteOffset, step);
  }
  // A uniform's size is a multiple of 16 in WGSL; no binding may be empty.
  const size = Math.max(roundUp(nbytes, type === "uniform" ? 16 : 4), 4);
  const limit = `max${kind}BufferBindingSize` as const;
  if (size > limits[limit]) {
    const hint = `use a device from requestDevice({ ${limit}: ${size} })`;
    const why = `needs ${size} bytes, of which ${limits[limit]} can be bound: ${hint}`;
    throw refuse(why, size, limits[limit]);
  }
  const room = buffer.size - byteOffset;
  if (size > room) {
    const why = `needs ${size} bytes, its GPUBuffer has ${room}: pad it to a multiple of 16`;
    throw refuse(why, room, size);
  }
  return { buffer, offset: byteOffset, size };
}
