/**
 * Checks of a kernel's call, with their messages, each stated once. Python's are in
 * py/dlpack_web/_backends.
 */
import { type DType, laneName } from "../../core/dtype.js";
import { cut, tagOf, textOf, UnsupportedError } from "../../core/errors.js";
import { NARROWER } from "../../core/generated.js";
import type { TimestampWrites } from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { isTensor, managedOf, type Tensor } from "../../core/tensor.js";
import type { Words } from "../buffers/pool.js";
import { roundUp } from "../buffers/slot.js";
import { slotOn } from "../buffers/table.js";
import type { DeviceRecord } from "../device/device.js";
import type { Param } from "../formulas/formulas.js";
import * as messages from "../messages.js";
import { type Binding, DTYPES, type Scalar, type Shader } from "./wgsl.js";

/** An argument for a binding: a number where the shader declares a uniform f32, i32 or u32. */
export type Argument = Tensor | number;

/** The same, or a tensor's inside, or words of ours. */
export type Given = Argument | ManagedTensor | Words;

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

/** The scalars of WGSL by DLPack's code and bits of a lane. */
const SCALARS: Record<string, Scalar> = {
  "2 32": "f32",
  "2 16": "f16",
  "0 32": "i32",
  "1 32": "u32",
  "5 64": "f32", // complex: pairs
  "5 32": "f16",
};

/** Throws for what is surely no shader with that entry point; the compiler checks the rest. */
export function checkSource(wgsl: unknown, entry: string): void {
  if (typeof wgsl !== "string") {
    throw new TypeError(
      `a kernel's source is a string of WGSL, not ${tagOf(wgsl)}: new Kernel(device, wgsl)`,
    );
  }
  const declares = /\bfn\b/.test(wgsl);
  if (declares && wgsl.includes(entry)) return;
  throw new RangeError(
    `"${cut(wgsl, 40)}" ` +
      (declares
        ? `has no function "${entry}": name one of its functions, { entry }`
        : "declares no function of WGSL, @compute @workgroup_size(64) fn main() { … }"),
  );
}

/** Throws UnsupportedError if a shader would misread the elements. */
export function checkDType({ packed, name }: DType, binding: Binding, what: string): void {
  const { scalar, atomic, value } = binding;
  const [code, bits] = [packed & 255, (packed >>> 8) & 255];
  if (scalar === null) return; // a structure: its size is checked
  if (SCALARS[`${code} ${bits}`] === scalar) return;
  // Narrower elements come as words of several each; WGSL has no type for them.
  if (scalar === "u32" && (bits < 32 || (bits === 32 && atomic && code < 2))) return;
  if (scalar === "i32" && atomic && code < 2 && bits === 32) return;
  const to = narrowed(name);
  const way = to ? wide(to) : messages.otherType(DTYPES[scalar]);
  throw new UnsupportedError(messages.misread(what, name, value, scalar, way), {
    given: name,
    needed: scalar,
  });
}

/** The dtype that an upload converts one of 64 bits to. */
export function narrowed(dtype: string): string | undefined {
  return NARROWER[laneName(dtype)];
}

export const wide = (narrower: string) =>
  `WGSL has no 64-bit types; upload it with dtype "${narrower}"`;

/** Throws UnsupportedError for more bytes than can be bound. */
export function checkLimit(
  device: DeviceRecord,
  size: number,
  type: Binding["type"] | undefined,
  what: string,
): void {
  const limit = `max${type === "uniform" ? "Uniform" : "Storage"}BufferBindingSize` as const;
  const most = device.gpu.limits[limit];
  if (size <= most) return;
  throw new UnsupportedError(messages.tooLargeToBind(what, size, most, limit), {
    given: size,
    needed: most,
    device: device.named,
  });
}

/** The end of a message: how to make a tensor of the value. */
export function tensorOf(x: unknown): string {
  if (ArrayBuffer.isView(x)) return ": Tensor.from(array).to(device) makes one";
  const isBuffer = tagOf(x) === "[object GPUBuffer]";
  return isBuffer ? ": Tensor.fromGPUBuffer(buffer, { device, shape, dtype }) makes one" : "";
}

/** Arguments by their positions, for `batch.update`. */
export function byPosition(given: unknown): [at: number, value: Given][] {
  const refused = (what: string) =>
    new TypeError(`args of update() are the new arguments by position, { 0: tensor }, not ${what}`);
  if (typeof given !== "object" || isTensor(given)) throw refused(textOf(given));
  return Object.entries(given as object).map(([name, value]) => {
    if (/^(?:0|-?[1-9]\d{0,9})$/.test(name)) return [Number(name), value];
    throw refused(`"${name}"`);
  });
}

/** The arguments of a run, each read once: a getter may run any code. Throws TypeError for no array. */
export function readArguments<T>(args: readonly T[]): T[] {
  if (Array.isArray(args)) return [...args];
  const given = isTensor(args) ? textOf(args) : tagOf(args);
  throw new TypeError(`run() takes an array of arguments, not ${given}: run([x, y])`);
}

/** The workgroups, each read once, which {@link checkWorkgroups} checks. */
export function readCounts(given: RunOptions["workgroups"]): RunOptions["workgroups"] {
  return Array.isArray(given) ? [...given] : given;
}

export function checkWorkgroups(
  device: DeviceRecord,
  given: RunOptions["workgroups"],
): readonly [number, number, number] {
  const counts = typeof given === "number" ? [given] : given;
  const limit = device.gpu.limits.maxComputeWorkgroupsPerDimension;
  const valid = (n: number) => Number.isInteger(n) && n >= 1 && n <= limit;
  if (Array.isArray(counts) && counts.length >= 1 && counts.length <= 3 && counts.every(valid)) {
    const [x = 1, y = 1, z = 1] = counts;
    return [x, y, z];
  }
  throw new RangeError(messages.wrongWorkgroups(limit, textOf(given)));
}

/** One invocation for each element of the first argument that the shader may write to. */
export function usualWorkgroups(
  label: string,
  { bindings, workgroup }: Shader,
  args: readonly Given[],
): number[] {
  const refuse = (why: string) => new UnsupportedError(messages.needsWorkgroups(label, why));
  if (bindings === null) throw refuse(messages.unknownBindings());
  if (workgroup === null) throw refuse(messages.unknownWorkgroup());
  const [x, y, z] = workgroup;
  if (y !== 1 || z !== 1) throw refuse(messages.severalAxes(workgroup.join()));
  const index = bindings.findIndex(({ type }) => type === "storage");
  const binding = bindings[index];
  if (binding === undefined) throw refuse(messages.writesNothing());
  const arg = managedOf(args[index]);
  if (arg === undefined) return [1]; // it is refused as it is bound
  const { stride, runtime, value } = binding;
  if (stride === 0 || !runtime) throw refuse(messages.unknownElements(index, value));
  return [Math.max(1, Math.ceil(arg.nbytes / (stride * x)))];
}

/** Bytes that are bound for an argument; throws if the shader's type does not fit its size or shape. */
export function boundSize(
  arg: ManagedTensor,
  binding: Binding | undefined,
  check: boolean,
  what: string,
): number {
  const { nbytes } = arg;
  // No binding may be smaller than one element, and a uniform's size is a multiple of 16.
  const least = binding?.runtime ? Math.max(binding.stride, 4) : 4;
  const usual = Math.max(roundUp(nbytes, check && binding?.type === "uniform" ? 16 : 4), least);
  if (!check || binding === undefined || binding.stride === 0) return usual;
  const { stride, element, value, runtime } = binding;
  if (element) checkElements(arg, binding, what);
  if (!runtime && nbytes < stride) {
    throw new UnsupportedError(messages.tooFewBytes(what, nbytes, value, stride), {
      given: nbytes,
      needed: stride,
    });
  }
  // Zeros fill the last element: without them arrayLength would leave it out.
  const whole = element && stride + roundUp(nbytes - stride, element);
  return Math.max(usual, roundUp(whole, 4));
}

/**
 * Throws UnsupportedError unless the last axes of a tensor are whole elements of the shader's array
 * (or columns of its matrix): the last axis is one or several, or the last axes are together one. The
 * only axis may be any numbers if they are flat, such as those of vec4f. Narrow elements in words of u32
 * have no axes for a shader.
 */
function checkElements(
  { nbytes, shape, dtype }: ManagedTensor,
  binding: Binding,
  what: string,
): void {
  const { value, scalar, stride, element, align } = binding;
  const { packed, step } = dtype;
  const [code, bits, lanes] = [packed & 255, (packed >>> 8) & 255, packed >>> 16];
  if (nbytes === 0 || (align === 0 && scalar === "u32" && bits < 32)) return;
  const axes = [...shape, lanes];
  while (axes.at(-1) === 1) axes.pop();
  const item = step / lanes;
  const row = item * (axes.pop() ?? 1);
  const inner = axes.length > 1;
  if (align === 0 || (nbytes - stride) % element === 0) {
    if (axes.length === 0 || row % element === 0) return;
    // Columns and members begin at multiples of the alignment.
    let bytes = row % align ? 0 : row;
    while (bytes < element && axes.length > 0) bytes *= axes.pop() as number;
    if (bytes === element) return;
  }
  const to = inner && row < align ? align : stride + roundUp(row - stride, element);
  const extent = Math.ceil(to / item);
  const own = SCALARS[`${code} ${bits}`] ?? "u32";
  throw new UnsupportedError(messages.noWholeElements(what, row, value, element, extent, own), {
    given: row,
    needed: element,
  });
}

/** @internal A number as the uniform that the shader declares, padded to 16 bytes. */
export function packNumber(
  value: number,
  index: number,
  declared: Binding | undefined,
): Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> {
  const kinds = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };
  const single = declared?.type === "uniform" && declared.stride === 4;
  const Kind = single && kinds[declared.scalar as keyof typeof kinds];
  if (!Kind) {
    throw new TypeError(messages.noNumber(`binding ${index}`));
  }
  const data = new Kind(4);
  data[0] = value;
  const rounded = Kind === Float32Array && Number.isFinite(data[0]) === Number.isFinite(value);
  if (rounded || data[0] === value) return data;
  throw new RangeError(messages.wrongNumber(index, value, `${declared.scalar}`));
}

/** Throws unless a formula's parameter takes the argument, in a call or in an update of one. */
export function checkParam(device: DeviceRecord, arg: unknown, param: Param): void {
  const { name, type, raw, output, text } = param;
  const tensor = managedOf(arg);
  if (tensor === undefined) {
    const what = output ? " is an output and" : raw ? " is raw and" : "";
    if (what || typeof arg !== "number") {
      const kind = what ? "a tensor" : "a tensor or a number";
      throw new TypeError(`${name}${what} takes ${kind}, not ${tagOf(arg)}${tensorOf(arg)}`);
    }
    // It comes as f32.
    if (type !== "f16" || !Number.isFinite(arg) || Math.abs(arg) <= 65504) return;
    throw new RangeError(`${name}: ${Number(arg)} is not a valid f16`);
  }
  slotOn(device, tensor); // throws if it was released, or is elsewhere
  const [given, needed] = [tensor.dtype.name, DTYPES[type]];
  if (given === needed) return;
  const hint =
    narrowed(given) === needed
      ? wide(needed)
      : `give a tensor of ${needed}, or declare the parameter otherwise`;
  throw new UnsupportedError(`${name} is ${given}, the parameter is "${text}": ${hint}`, {
    given,
    needed,
  });
}

/** Throws unless there is an argument for each binding, if those are known. */
export function checkArgumentCount(
  label: string,
  bindings: readonly Binding[] | null,
  count: number,
): void {
  if (bindings === null || count === bindings.length) return;
  const names = bindings.map(({ name }) => name).join(", ") || "none";
  throw new RangeError(messages.wrongCount(label, names, bindings.length, count));
}
