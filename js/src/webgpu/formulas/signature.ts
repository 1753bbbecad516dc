/**
 * Arguments of an ElementwiseKernel or ReductionKernel: what each parameter is given, and errors
 * that name the parameter.
 */

import { type DType, dtypeNamed } from "../../core/dtype.js";
import { tagOf, UnsupportedError } from "../../core/errors.js";
import type { GPUDevice } from "../../core/globals.js";
import { sameShape } from "../../core/shape.js";
import { isTensor, type Tensor } from "../../core/tensor.js";
import { emptyOnDevice } from "../buffers/buffers.js";
import { recording } from "../buffers/checks.js";
import type { Words } from "../buffers/pool.js";
import { type DeviceRecord, nameOf, workingDevice } from "../device/device.js";
import { keyOf } from "../kernels/cache.js";
import { type Argument, checkParam } from "../kernels/checks.js";
import type { Kernel } from "../kernels/kernels.js";
import { DTYPES } from "../kernels/wgsl.js";
import { type Param, typesOf } from "./formulas.js";

/** kinds: see `elementwise`. shape: that of the tensors; null without tensors. */
export interface Given {
  readonly kinds: string[];
  readonly shape: readonly number[] | null;
  readonly inputs: readonly Argument[];
  readonly outputs: readonly Tensor[];
}

const shapeText = ({ shape }: Tensor) => `[${shape.join(", ")}]`;

/** A kernel with named parameters on a device. */
export class Signature {
  readonly device: DeviceRecord;
  readonly #kernels = new Map<string, Kernel>();
  /** The kernel that cached the last call. */
  #last: Kernel | null = null;
  readonly #isHalf: boolean;

  constructor(
    gpu: GPUDevice,
    readonly name: string,
    readonly inputs: readonly Param[],
    readonly outputs: readonly Param[],
    type?: string,
  ) {
    if (typeof name !== "string") throw new TypeError(`name must be a string, not ${tagOf(name)}`);
    this.device = workingDevice(gpu);
    this.#isHalf = [type, ...typesOf(...inputs, ...outputs)].includes("f16");
    if (this.#isHalf && !gpu.features.has("shader-f16")) {
      throw new UnsupportedError(
        `kernel "${name}" is of f16, and ${nameOf(this.device)} lacks the feature "shader-f16", ` +
          "which requestDevice() asks for where the adapter has it: use f32",
        { needed: "shader-f16", device: this.device.named },
      );
    }
  }

  /** Runs a cached call again; its outputs, undefined if there is none. */
  again(args: readonly Argument[], options: readonly unknown[]): readonly Argument[] | undefined {
    const { length } = this.inputs;
    if (this.#last === null || args.length === length) return undefined;
    const kernel = this.#last;
    const ran = named(kernel, () => kernel._again(keyOf(args, options), args));
    return ran ? args.slice(length) : undefined;
  }

  /**
   * Runs a kernel for a call. The call is cached if the kernel takes its arguments as they are, and
   * checks the same: all but halves.
   */
  run(
    kernel: Kernel,
    args: readonly Argument[],
    workgroups: readonly number[],
    { inputs, outputs }: Given,
    options: readonly unknown[],
    words: readonly Words[] = [],
  ): void {
    const own = [...inputs, ...outputs];
    const isCached =
      !this.#isHalf && args.length === own.length && args.every((arg, i) => arg === own[i]);
    const key = isCached ? keyOf(own, options) : undefined;
    named(kernel, () => kernel._run([...args, ...words], workgroups, key));
    if (isCached) this.#last = kernel;
  }

  /** Each argument with its parameter; throws if one does not fit it. */
  sort(args: readonly Argument[]): Given {
    const { inputs, outputs } = this;
    const params = [...inputs, ...outputs];
    if (args.length !== inputs.length && args.length !== params.length) {
      throw new TypeError(
        `kernel "${this.name}" takes ${inputs.length} arguments ${this.toString()}, or ${params.length} with its ` +
          `outputs, not ${args.length}`,
      );
    }
    const kinds: string[] = [];
    let shape: readonly number[] | null = null;
    for (const [i, arg] of args.entries()) {
      const param = params[i] as Param;
      checkParam(this.device, arg, param);
      if (!isTensor(arg)) {
        kinds.push("n");
        continue;
      }
      if (param.output) continue;
      if (param.raw) kinds.push("r");
      else if (arg.ndim === 0) {
        kinds.push("s");
        shape ??= [];
      } else {
        kinds.push("t");
        if (shape !== null && shape.length > 0 && !sameShape(shape, arg._managed.shape)) {
          throw new RangeError(this.#disagreement(args));
        }
        shape = arg._managed.shape;
      }
    }
    const given = args.slice(inputs.length) as unknown as Tensor[];
    return { kinds, shape, inputs: args.slice(0, inputs.length), outputs: given };
  }

  #disagreement(args: readonly Argument[]): string {
    const shapes = this.inputs.flatMap(({ name, raw }, i) => {
      const arg = args[i];
      return isTensor(arg) && !raw ? `${name} ${shapeText(arg)}` : [];
    });
    return (
      `the shapes of kernel "${this.name}" must agree: ${shapes.join(", ")}; only numbers and ` +
      "tensors of shape [] are broadcast"
    );
  }

  checkOutputs(given: readonly Tensor[], shape: readonly number[], of: string): void {
    for (const [i, tensor] of given.entries()) {
      if (sameShape(tensor._managed.shape, shape)) continue;
      throw new RangeError(
        `${this.outputs[i]?.name} has shape ${shapeText(tensor)}, ${of} [${shape.join(", ")}]: ` +
          "outputs are not broadcast",
      );
    }
  }

  /** Runs `block` with the outputs: those given, or fresh ones, which are released if it throws. */
  onto(given: Given, shape: readonly number[], block: (outputs: readonly Tensor[]) => void) {
    const made: Tensor[] = [];
    try {
      if (given.outputs.length === 0) {
        for (const { type } of this.outputs) made.push(this.empty(shape, typeOf(type)));
      }
      const outputs = made.length > 0 ? made : given.outputs;
      block(outputs);
      return resultsOf(outputs);
    } catch (error) {
      for (const tensor of made) tensor.release();
      throw error;
    }
  }

  empty(shape: readonly number[], type: DType): Tensor {
    return emptyOnDevice(this.device, shape, type, recording.batch !== null);
  }

  /** Kinds of inputs that are tensors. */
  get usual(): string[] {
    return this.inputs.map(({ raw }) => (raw ? "r" : "t"));
  }

  /** The kernel for some kinds of arguments, which `compile` makes at the first call. */
  kernel(key: string, compile: (gpu: GPUDevice, label: string) => Kernel): Kernel {
    const found = this.#kernels.get(key) ?? compile(this.device.gpu, this.name);
    this.#kernels.set(key, found);
    return found;
  }

  toString(): string {
    const list = (params: readonly Param[]) => params.map(({ text }) => text).join(", ");
    return `(${list(this.inputs)}) -> (${list(this.outputs)})`;
  }
}

/** What a kernel returns for its outputs. */
export const resultsOf = (outputs: readonly Argument[]) =>
  (outputs.length === 1 ? outputs[0] : outputs) as never;

export const typeOf = (type: keyof typeof DTYPES): DType => dtypeNamed(DTYPES[type]);

/** Runs `block`; its errors name parameters instead of positions: that of the binding `_x_` is x. */
function named<R>(kernel: Kernel, block: () => R): R {
  const { bindings } = kernel._shader;
  const name = (at: string) => bindings?.[Number(at)]?.name.replace(/^_(.*?)_?$/, "$1") ?? at;
  try {
    return block();
  } catch (error) {
    const found = error as Error;
    const place = /\bbinding \d+|\barguments \d+ and \d+/g;
    found.message = found.message.replace(place, (text) =>
      text.replace(/^\D+/, "").replace(/\d+/g, name),
    );
    throw found;
  }
}

/** Options of a kernel, as an error shows them. */
export const DEFINITION = 'inputs: "f32 x", outputs: "f32 y", …';
