import type { GPUDevice } from "../../core/globals.js";
import { checkOptions } from "../../core/options.js";
import type { Tensor } from "../../core/tensor.js";
import { type Argument, readArguments } from "../kernels/checks.js";
import { kernelOf } from "../kernels/kernels.js";
import { countsElements, elementwise, formula, grid, parse } from "./formulas.js";
import { PER_INVOCATION } from "./generated.js";
import type { Results } from "./results.js";
import { DEFINITION, type Given, resultsOf, Signature } from "./signature.js";

/** The computation of an {@link ElementwiseKernel}. */
export interface ElementwiseOptions<O extends string = string> {
  /**
   * Types and names, "f32 x, f32 k": f32, i32, u32, and f16 if the device has it. A "raw f32 x" is
   * indexed by the formula: x[i].
   */
  inputs: string;
  /** Those of the outputs, "f32 y". */
  outputs: O;
  /**
   * Statements of WGSL that set the outputs, "y = k * x". `i` is the index of the element in
   * row-major order, `n` the number of elements. An output has its previous elements at first.
   * Compilers may assume that no number is NaN, and replace `x != x` by false: test the bits,
   * `(bitcast<u32>(x) & 0x7fffffff) > 0x7f800000`.
   */
  operation: string;
  /** The kernel's label in messages; default "kernel". */
  name?: string | undefined;
}

/** Options of {@link ElementwiseKernel.run}. */
export interface ElementwiseRunOptions {
  /** The number of elements, if all inputs are raw or numbers and no outputs are given. */
  size?: number | undefined;
}

/**
 * A formula that is applied to each element, as CuPy's `ElementwiseKernel` has it.
 *
 * ```js
 * const axpy = new webgpu.ElementwiseKernel(device, {
 *   inputs: "f32 x, f32 y, f32 k", outputs: "f32 z", operation: "z = k * x + y",
 * });
 * const z = axpy.run([x, y, 10]); // a new tensor, which you release
 * axpy.run([x, y, 10, y]);        // writes into y
 * ```
 *
 * Compiled once for each combination of tensors and numbers.
 */
export class ElementwiseKernel<O extends string = string> {
  readonly #signature: Signature;
  readonly #operation: string;

  /**
   * @param device - where the kernel runs
   * @param options - `inputs`, `outputs` and `operation`, the formula; `name`
   * @throws RangeError and TypeError for parameters and formulas that are none; UnsupportedError
   * for f16 on a device without "shader-f16". Errors in the formula come later, as those of
   * `Kernel`; their `line` counts from its first line
   */
  constructor(device: GPUDevice, options: ElementwiseOptions<O>) {
    const names = { inputs: 1, outputs: 1, operation: 1, name: 1 } as const;
    checkOptions<ElementwiseOptions>(options, "an ElementwiseKernel", names, DEFINITION);
    const { name = "kernel" } = options;
    const [inputs, outputs] = parse(options.inputs, options.outputs);
    this.#operation = formula(options.operation, "operation");
    this.#signature = new Signature(device, name, inputs, outputs);
  }

  /**
   * Submits, and returns the outputs: with the inputs alone they are new, and released by you; with
   * the outputs as further arguments, which may be inputs, too, it writes into those. Numbers and
   * tensors of shape [] are broadcast; other shapes must agree.
   *
   * @param args - the inputs, and the outputs if they exist
   * @param options - `size`: the number of elements, if nothing else says it
   * @returns a tensor, or an array of several
   * @throws UnsupportedError for tensors of another dtype, for strided and read-only ones,
   * DeviceError for tensors elsewhere, RangeError for shapes that do not agree and numbers that do
   * not fit, TypeError for other arguments
   */
  run(args: readonly Argument[], options: ElementwiseRunOptions = {}): Results<O> {
    checkOptions<ElementwiseRunOptions>(options, "run()", { size: 1 }, "size: 4");
    const { size } = options;
    const own = readArguments(args);
    const again = size === undefined && this.#signature.again(own, []);
    if (again) return resultsOf(again);
    const given = this.#signature.sort(own);
    const shape = this.#shape(given, size);
    return this.#signature.onto(given, shape, (outputs) => this.#run(given, outputs));
  }

  /** The shader for tensors, as it is generated. */
  get wgsl(): string {
    return this.#source(this.#signature.usual).wgsl;
  }

  /**
   * Resolves once the shader for tensors has compiled. Waiting is optional.
   *
   * @throws KernelError, DeviceLostError
   */
  get ready(): Promise<void> {
    return this.#kernel(this.#signature.usual).ready;
  }

  #shape({ shape: common, outputs }: Given, size: number | undefined): readonly number[] {
    const signature = this.#signature;
    let shape = common ?? outputs[0]?._managed.shape;
    if (size !== undefined) {
      if (shape) {
        throw new RangeError(
          `the tensors have shape [${shape.join(", ")}]: size is for kernels whose inputs are all ` +
            "raw or numbers, and that allocate their outputs",
        );
      }
      if (!Number.isSafeInteger(size) || size < 0) {
        throw new RangeError(`size must be an integer from 0 on, not ${size}`);
      }
      shape = [size];
    }
    if (!shape) {
      throw new RangeError(
        `kernel "${signature.name}" does not know how many elements to compute: give the ` +
          "outputs, or { size }",
      );
    }
    signature.checkOutputs(outputs, shape, common ? "the inputs have" : "another has");
    return shape;
  }

  #run(given: Given, outputs: readonly Tensor[]): void {
    const { size } = outputs[0] as Tensor;
    if (size === 0) return;
    // An input that is an output, too, is bound once.
    const kinds = given.kinds.map((kind, at) => {
      if (kind !== "t" || given.outputs.length === 0) return kind;
      const j = outputs.indexOf(given.inputs[at] as Tensor);
      return j < 0 ? kind : `=${j}`;
    });
    const isBound = (_: unknown, at: number) => !kinds[at]?.startsWith("=");
    const args: Argument[] = [...given.inputs.filter(isBound), ...outputs];
    if (countsElements(this.#signature.outputs)) args.push(size);
    const kernel = this.#kernel(kinds);
    const workgroups = grid(size / PER_INVOCATION);
    this.#signature.run(kernel, args, workgroups, given, []);
  }

  #source(kinds: readonly string[]) {
    const { inputs, outputs } = this.#signature;
    return elementwise(inputs, outputs, this.#operation, kinds);
  }

  #kernel(kinds: readonly string[]) {
    return this.#signature.kernel(kinds.join(""), (gpu, name) =>
      kernelOf(gpu, name, this.#source(kinds)),
    );
  }
}
