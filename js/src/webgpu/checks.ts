/**
 * Checks of tensors and arguments, with their messages, each stated once. Python's are in
 * py/dlpack_web/_backends.
 */
import { type DType, laneName } from "../core/dtype.js";
import { DeviceError, tagOf, textOf, UnsupportedError } from "../core/errors.js";
import type { TimestampWrites } from "../core/globals.js";
import type { ManagedTensor } from "../core/managed.js";
import { checkOptions } from "../core/options.js";
import { isTensor, type Tensor } from "../core/tensor.js";
import { nameOf } from "./device.js";
import { extentOf, type LiveSlot, roundUp, slotOf, Usage } from "./references.js";
import { type DeviceRecord, recording } from "./state.js";
import { type Binding, DTYPES, type Scalar } from "./wgsl.js";

/** What a binding may be given: a number where the shader declares a uniform f32, i32 or u32. */
export type Argument = Tensor | number;

/** The same, or a tensor's inside. */
export type Given = Argument | ManagedTensor;

/** One to three numbers; for an array of unknown length, TypeScript accepts any. */
export type Workgroups = readonly number[] & {
  readonly 0?: number;
  readonly 1?: number;
  readonly 2?: number;
  readonly 3?: never;
};

/** Options of {@link Kernel.run}. */
export interface RunOptions {
  /**
   * Workgroups along x, y, z; omitted ones are 1. A number is x. Default: one invocation for each
   * element of the array that the shader sees in the first argument that it may write to.
   */
  workgroups?: number | Workgroups | undefined;
  /** Where the pass writes its times: see `webgpu.timed`. */
  timestampWrites?: TimestampWrites | undefined;
}

/** The error for a buffer beyond the device's limit. */
export function tooLarge(record: DeviceRecord, size: number): UnsupportedError {
  const limit = record.device.gpu.limits.maxBufferSize;
  const most = record.adapterLimits?.maxBufferSize;
  const way =
    most !== undefined && size > most
      ? "no device of that has more: use several tensors"
      : `use a device from requestDevice({ maxBufferSize: ${size} })`;
  return new UnsupportedError(
    `${size} bytes are needed, ${nameOf(record)} allows ${limit} (maxBufferSize) in one buffer` +
      `${most === undefined ? "" : ` and its adapter ${most}`}: ${way}`,
    { given: size, needed: limit, device: record.device },
  );
}

/** The slot of a tensor that must be on this device; else DeviceError naming both. */
export function slotOn(record: DeviceRecord, tensor: ManagedTensor): LiveSlot {
  tensor.check();
  const slot = tensor.isOnGPU ? slotOf(tensor.handle) : null;
  if (slot?.record === record) return slot;
  throw new DeviceError(
    `${tensor.dtype.name}[${tensor.shape}] on ${slot ? nameOf(slot.record) : "cpu"} cannot be used on ` +
      `${nameOf(record)}: ${slot ? "devices do not share buffers; await read() it, then " : ""}` +
      "upload it with to(gpuDevice)",
    { device: record.device },
  );
}

/** Throws UnsupportedError naming the usage flag that the tensor's buffer lacks. */
export function checkUsage(tensor: ManagedTensor, flag: keyof typeof Usage, what: string): void {
  const { buffer, record } = slotOf(tensor.handle);
  const { usage } = buffer;
  if (usage & Usage[flag]) return;
  const has = Object.entries(Usage).flatMap(([name, bit]) => (usage & bit ? [name] : []));
  throw new UnsupportedError(
    `${what} needs a GPUBuffer with GPUBufferUsage.${flag}; that of ${tensor.toString()} has ` +
      `${has.join(" | ") || "none of the flags needed here"}: create it with ${flag} too`,
    { given: usage, needed: Usage[flag], device: record.device },
  );
}

/** Throws for a strided tensor, whose elements a kernel or copy would misread. */
export function checkRowMajor(tensor: ManagedTensor): void {
  if (tensor.strides === null) return;
  throw new UnsupportedError(
    `${tensor.toString()} has strides [${tensor.strides}]: on WebGPU it can be read, and nothing else; ` +
      "upload what read() gives",
    { device: slotOf(tensor.handle).record.device },
  );
}

/** Throws if a tensor is read or written now that a kernel is to use later, as the batch runs. */
export function refuseRecorded(tensor: ManagedTensor, writing: boolean): void {
  if (!recording.batch?._uses(extentOf(tensor), writing)) return;
  throw new UnsupportedError(
    `${tensor.toString()} cannot be ${writing ? "written" : "read"} here: a kernel that the batch has ` +
      `recorded ${writing ? "uses" : "writes to"} it, and runs only with run(): do this before the ` +
      "batch is recorded, or after run()",
  );
}

/** WebGPU copies whole groups of 4 bytes at offsets that are multiples of 4. */
export function checkCopySource(tensor: ManagedTensor, what: string): void {
  checkRowMajor(tensor);
  checkUsage(tensor, "COPY_SRC", what);
  const end = tensor.start + roundUp(tensor.nbytes, 4);
  const { buffer, record } = slotOf(tensor.handle);
  if (tensor.start % 4 === 0 && end <= buffer.size) return;
  throw new UnsupportedError(
    `${what} ${tensor.toString()} needs a byteOffset that is a multiple of 4 (it is ${tensor.start}) and ` +
      `${end} bytes in its GPUBuffer (it has ${buffer.size}): pad the buffer to a multiple of 16`,
    { given: buffer.size, needed: end, device: record.device },
  );
}

/** The scalars of WGSL by DLPack's code and bits of a lane. */
const SCALARS: Record<string, Scalar> = {
  "2 32": "f32",
  "2 16": "f16",
  "0 32": "i32",
  "1 32": "u32",
  "5 64": "f32", // complex: pairs
  "5 32": "f16",
};

/** Throws UnsupportedError if a shader would misread the elements. */
export function checkDType({ packed, name }: DType, binding: Binding, what: string): void {
  const { scalar, atomic, value } = binding;
  const [code, bits] = [packed & 255, (packed >>> 8) & 255];
  if (scalar === null) return; // a structure: its size is checked
  if (SCALARS[`${code} ${bits}`] === scalar) return;
  // Narrower elements come as words of several each; WGSL has no type for them.
  if (scalar === "u32" && (bits < 32 || (bits === 32 && atomic && code < 2))) return;
  if (scalar === "i32" && atomic && code < 2 && bits === 32) return;
  throw new UnsupportedError(
    `${what} is ${name}, the shader's ${value} is of ${scalar}: ${wayOut(name, scalar)}`,
    { given: name, needed: scalar },
  );
}

function wayOut(dtype: string, scalar: Scalar): string {
  const to = narrowed(dtype);
  if (to) return wide(to);
  return (
    `give a tensor of ${DTYPES[scalar]}, or declare the shader otherwise (narrower types come as ` +
    "words of u32); check: false binds the bytes as they are"
  );
}

/** The dtype that an upload converts one of 64 bits to. */
export function narrowed(dtype: string): string | undefined {
  const narrower: Record<string, string> = {
    float64: "float32",
    complex128: "complex64",
    int64: "int32",
    uint64: "uint32",
  };
  return narrower[laneName(dtype)];
}

export const wide = (narrower: string) =>
  `WGSL has no 64-bit types; upload it with dtype "${narrower}"`;

/** Throws UnsupportedError for more bytes than can be bound. */
export function checkLimit(
  record: DeviceRecord,
  size: number,
  type: GPUBufferBindingType | undefined,
  what: string,
): void {
  const limit = `max${type === "uniform" ? "Uniform" : "Storage"}BufferBindingSize` as const;
  const most = record.device.gpu.limits[limit];
  if (size <= most) return;
  const hint = `use a device from requestDevice({ ${limit}: ${size} })`;
  throw new UnsupportedError(
    `${what} needs ${size} bytes, of which ${most} can be bound: ${hint}`,
    { given: size, needed: most, device: record.device },
  );
}

/** The end of a message: how to make a tensor of the value. */
export function tensorOf(x: unknown): string {
  if (ArrayBuffer.isView(x)) return ": Tensor.from(array).to(device) makes one";
  const isBuffer = tagOf(x) === "[object GPUBuffer]";
  return isBuffer ? ": Tensor.fromGPUBuffer(buffer, { device, shape, dtype }) makes one" : "";
}

/** Arguments by their positions, for `batch.update`. */
export function byPosition(given: unknown): [at: number, value: Given][] {
  if (typeof given !== "object" || isTensor(given)) {
    throw new TypeError(
      `args of update() are the new arguments by position, { 0: tensor }, not ${textOf(given)}`,
    );
  }
  return Object.entries(given as object).map(([name, value]) => {
    if (/^(?:0|-?[1-9]\d{0,9})$/.test(name)) return [Number(name), value];
    throw new TypeError(`args of update() are by position, { 0: tensor }, and none is "${name}"`);
  });
}

/** Throws TypeError for arguments of a run that are no array. */
export function checkArguments(args: unknown): void {
  if (Array.isArray(args)) return;
  const given = isTensor(args) ? textOf(args) : tagOf(args);
  throw new TypeError(`run() takes an array of arguments, not ${given}: run([x, y])`);
}

/** Throws TypeError for arguments and options of a run that are none. */
export function checkRun(args: unknown, options: unknown): void {
  checkArguments(args);
  const names = { workgroups: 1, timestampWrites: 1 } as const;
  checkOptions<RunOptions>(options, "run()", names, "workgroups: [4, 4]");
}

export function checkWorkgroups(
  record: DeviceRecord,
  given: RunOptions["workgroups"],
): readonly [number, number, number] {
  const counts = typeof given === "number" ? [given] : given;
  const limit = record.device.gpu.limits.maxComputeWorkgroupsPerDimension;
  const valid = (n: number) => Number.isInteger(n) && n >= 1 && n <= limit;
  if (Array.isArray(counts) && counts.length >= 1 && counts.length <= 3 && counts.every(valid)) {
    const [x = 1, y = 1, z = 1] = counts;
    return [x, y, z];
  }
  throw new RangeError(
    `workgroups must be 1 to 3 integers from 1 to ${limit} (` +
      `maxComputeWorkgroupsPerDimension), not ${textOf(given)}`,
  );
}
