import { textOf } from "../../core/errors.js";
import type { GPUDevice } from "../../core/globals.js";
import { checkOptions } from "../../core/options.js";
import { sizeOf } from "../../core/shape.js";
import type { Tensor } from "../../core/tensor.js";
import { Words } from "../buffers/pool.js";
import { type Argument, readArguments } from "../kernels/checks.js";
import { kernelOf } from "../kernels/kernels.js";
import {
  formula,
  grid,
  identityOf,
  type ParamType,
  type Pass,
  parse,
  type Reduction,
  reduction,
  scalarOf,
  sizes,
} from "./formulas.js";
import { IN_REDUCTIONS } from "./generated.js";
import type { Results } from "./results.js";
import { DEFINITION, type Given, resultsOf, Signature, typeOf } from "./signature.js";

/** Types that can be reduced: those of parameters, and vectors. */
export type ReduceType = ParamType | "vec2f" | "vec4f" | "vec2i" | "vec4i" | "vec2u" | "vec4u";

/** The computation of a {@link ReductionKernel}. */
export interface ReductionOptions<O extends string = string> {
  /** Types and names, as for an `ElementwiseKernel`. */
  inputs: string;
  outputs: O;
  /**
   * An expression of the inputs, for each element; `i` is its index in row-major order, and `_J` that
   * among the elements that are reduced to one.
   */
  map: string;
  /** An expression of `a` and `b`, two such values; associative and commutative. */
  reduce: string;
  /**
   * Statements that set the outputs from the result `a`; `i` is the index of the output. In `map`
   * and here `n` is the number of elements that are reduced to one.
   */
  postMap: string;
  /** The value that changes nothing, a number or WGSL; also the result without elements. */
  identity: number | string;
  /** The kernel's label in messages; default "reduce_kernel". */
  name?: string | undefined;
  /** Values are converted to this type; default: that of the first output. */
  reduceType?: ReduceType | undefined;
}

/** Options of {@link ReductionKernel.run}. */
export interface ReductionRunOptions {
  /** The axis that is reduced, or several; from the end if negative; default all axes. */
  axis?: number | readonly number[] | null | undefined;
  /** Whether the result has extents of 1 in their place; default false. */
  keepdims?: boolean | undefined;
}

const TYPES = "f32, i32, u32, f16, vec2f, vec4f, vec2i, vec4i, vec2u, vec4u";
const KEPT = 8;

/** A shader with its sizes. */
interface OnePass {
  /** Of the partial results. */
  readonly elements: number;
  readonly run: (args: readonly Argument[], given: Given, options: readonly number[]) => void;
}
type Passes = readonly [first: OnePass, last?: OnePass];

/**
 * A reduction of all elements or along axes, as CuPy's `ReductionKernel` has it.
 *
 * ```js
 * const norm = new webgpu.ReductionKernel(device, {
 *   inputs: "f32 x", outputs: "f32 y",
 *   map: "x * x", reduce: "a + b", postMap: "y = sqrt(a)", identity: 0,
 * });
 * const y = norm.run([x], { axis: 1 }); // a new tensor, which you release
 * ```
 *
 * Floats are summed in another order than one by one, so results may differ in the last digits: each
 * of 10 million elements goes through at most 100 operations.
 */
export class ReductionKernel<O extends string = string> {
  readonly #signature: Signature;
  readonly #what: Reduction;
  /** Of the last shapes and axes, whose sizes stay on the device. */
  readonly #passes = new Map<string, Passes>();

  /**
   * @param device - where the kernel runs
   * @param options - `inputs`, `outputs`, `map`, `reduce`, `postMap` and `identity`; `reduceType`, `name`
   * @throws as ElementwiseKernel
   */
  constructor(device: GPUDevice, options: ReductionOptions<O>) {
    const texts = { map: 1, reduce: 1, postMap: 1, identity: 1, reduceType: 1 } as const;
    const names = { inputs: 1, outputs: 1, ...texts, name: 1 } as const;
    checkOptions<ReductionOptions>(options, "a ReductionKernel", names, DEFINITION);
    const { name = "reduce_kernel" } = options;
    const [inputs, outputs] = parse(options.inputs, options.outputs, IN_REDUCTIONS);
    if (inputs.every(({ raw }) => raw)) {
      throw new RangeError("a reduction needs an input that is not raw");
    }
    const first = outputs[0]?.type as ParamType;
    const type = options.reduceType ?? first;
    if (!TYPES.split(", ").includes(type)) {
      throw new RangeError(`reduceType must be one of ${TYPES}, not ${type}`);
    }
    this.#what = {
      inputs,
      outputs,
      map: formula(options.map, "map"),
      reduce: formula(options.reduce, "reduce"),
      postMap: formula(options.postMap, "postMap"),
      identity: identityOf(options.identity, type),
      type,
      names: ["map", "reduce", "postMap"],
    };
    this.#signature = new Signature(device, name, inputs, outputs, type);
  }

  /**
   * Submits, and returns the outputs, as `ElementwiseKernel.run` does.
   *
   * @param args - the inputs, and the outputs if they exist
   * @param options - `axis`: one that is reduced, or several, from the end if negative; `keepdims`
   * @returns a tensor without the axes, or an array of several
   * @throws as ElementwiseKernel.run; RangeError for an axis that the inputs do not have, or that is
   * given twice
   */
  run(args: readonly Argument[], options: ReductionRunOptions = {}): Results<O> {
    const signature = this.#signature;
    checkOptions<ReductionRunOptions>(options, "run()", { axis: 1, keepdims: 1 }, "axis: 0");
    const { axis, keepdims } = options;
    const axes = axesOf(axis);
    const own = readArguments(args);
    const way = [keepdims ? 1 : 0, ...(axes ?? [Number.POSITIVE_INFINITY])];
    const again = signature.again(own, way);
    if (again) return resultsOf(again);
    const given = signature.sort(own);
    const { shape } = given;
    if (shape === null) {
      throw new RangeError(`kernel "${signature.name}" needs a tensor to reduce`);
    }
    const isReduced = reducedOf(axes, shape);
    const left = shape.flatMap((n, at) => (isReduced[at] ? (keepdims ? [1] : []) : [n]));
    signature.checkOutputs(given.outputs, left, "the result has");
    return signature.onto(given, left, (outputs) => {
      const count = sizeOf(left);
      if (count === 0) return;
      // After an error of the device, the buffers of the sizes may be invalid.
      const key = [given.kinds, shape, isReduced, signature.device.errors].join("|");
      const passes = this.#passes.get(key) ?? this.#prepare(given.kinds, shape, isReduced, count);
      this.#run(given, outputs, passes, way);
      if (this.#passes.size > KEPT) this.#passes.clear();
      this.#passes.set(key, passes);
    });
  }

  /** The shader for tensors, as it is generated for few elements; more take two passes. */
  get wgsl(): string {
    return reduction(this.#what, this.#signature.usual, "whole").wgsl;
  }

  /**
   * Resolves once the shaders for tensors have compiled. Waiting is optional.
   *
   * @throws KernelError, whose message names the formula; DeviceLostError
   */
  get ready(): Promise<void> {
    const ready = (pass: Pass) => this.#kernel(this.#signature.usual, pass).ready;
    return Promise.all([ready("whole"), ready("first"), ready("last")]).then(() => {});
  }

  #run(
    given: Given,
    outputs: readonly Tensor[],
    [first, last]: Passes,
    options: readonly number[],
  ): void {
    const { inputs, kinds } = given;
    if (!last) {
      first.run([...inputs, ...outputs], given, options);
      return;
    }
    const partial = this.#signature.empty([first.elements], typeOf(scalarOf(this.#what.type)));
    try {
      first.run([...inputs, partial], given, options);
      const raw = inputs.filter((_, i) => kinds[i] === "r");
      last.run([...raw, partial, ...outputs], given, options);
    } finally {
      partial.release();
    }
  }

  #prepare(
    kinds: readonly string[],
    shape: readonly number[],
    isReduced: readonly boolean[],
    outputs: number,
  ): Passes {
    const words = sizes(shape, isReduced, outputs);
    const [, , , chunks = 0, n] = words;
    if (chunks === 1) return [this.#pass("whole", kinds, words)];
    return [
      this.#pass("first", kinds, words),
      this.#pass("last", kinds, sizes([chunks, outputs], [true, false], outputs, n)),
    ];
  }

  #pass(pass: Pass, kinds: readonly string[], words: Uint32Array<ArrayBuffer>): OnePass {
    const [count = 0, lanes = 0, , chunks = 0] = words;
    const kernel = this.#kernel(kinds, pass, words[7] === 2);
    const workgroups = grid(count * chunks * lanes);
    const sizes = [new Words(this.#signature.device, words)];
    const components = Number(this.#what.type[3]) || 1; // of vec2f, of f32
    return {
      elements: count * chunks * components,
      run: (args, given, options) =>
        this.#signature.run(kernel, args, workgroups, given, options, sizes),
    };
  }

  #kernel(kinds: readonly string[], pass: Pass, isOneAxis = true) {
    const key = pass === "last" ? pass : [pass, isOneAxis, ...kinds].join("");
    return this.#signature.kernel(key, (gpu, name) =>
      kernelOf(gpu, name, reduction(this.#what, kinds, pass, isOneAxis)),
    );
  }
}

/** The axes that are given, each read once; null: all. */
function axesOf(given: ReductionRunOptions["axis"]): readonly number[] | null {
  if (given === undefined || given === null) return null;
  const axes = [given].flat();
  if (axes.every(Number.isInteger)) return axes;
  throw new TypeError(`axis must be integers or null, not ${textOf(given)}`);
}

/** Which axes are reduced. */
function reducedOf(axes: readonly number[] | null, shape: readonly number[]): boolean[] {
  const isReduced = shape.map(() => axes === null);
  const { length: ndim } = shape;
  for (const axis of axes ?? []) {
    const at = axis < 0 ? axis + ndim : axis;
    if (isReduced[at] !== false) {
      const why = isReduced[at] ? "given twice" : "out of bounds";
      throw new RangeError(`axis ${axis} is ${why} for shape [${shape.join(", ")}]`);
    }
    isReduced[at] = true;
  }
  return isReduced;
}
