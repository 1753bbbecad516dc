import type { GPUDevice } from "../../core/globals.js";
import { checkOptions } from "../../core/options.js";
import { sizeOf } from "../../core/shape.js";
import { Tensor } from "../../core/tensor.js";
import type { Argument } from "../checks/calls.js";
import {
  formula,
  grid,
  identityOf,
  type ParamType,
  type Pass,
  type Plan,
  parse,
  plan,
  planLast,
  type Reduction,
  reduction,
  scalarOf,
} from "./formulas.js";
import {
  DEFINITION,
  type Given,
  named,
  namesOf,
  type Results,
  Signature,
  typeOf,
} from "./given.js";
import { IN_REDUCTIONS } from "./words.js";

/** Types that can be reduced: those of parameters, and vectors. */
export type ReduceType = ParamType | "vec2f" | "vec4f" | "vec2i" | "vec4i" | "vec2u" | "vec4u";

/** What a {@link ReductionKernel} computes. */
export interface ReductionOptions<O extends string = string> {
  /** Types and names, as for an `ElementwiseKernel`. */
  inputs: string;
  outputs: O;
  /** An expression of the inputs, for each element; `i` is its index in row-major order. */
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
  /** The axis that is reduced, from the end if negative; default all axes. */
  axis?: number | null | undefined;
  /** Whether the result has an extent of 1 in its place; default false. */
  keepdims?: boolean | undefined;
}

/**
 * A reduction of all elements or along an axis, as CuPy's `ReductionKernel` has it.
 *
 * ```js
 * const norm = new webgpu.ReductionKernel(device, {
 *   inputs: "f32 x", outputs: "f32 y",
 *   map: "x * x", reduce: "a + b", postMap: "y = sqrt(a)", identity: 0,
 * });
 * const y = norm.run([x], { axis: 1 }); // a new tensor, which you release
 * ```
 *
 * Floats are summed in another order than one by one, so results may differ in the last digits.
 */
export class ReductionKernel<O extends string = string> {
  readonly #signature: Signature;
  readonly #what: Reduction;

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
    if (!/^([fiu]32|f16|vec[24][fiu])$/.test(type)) {
      throw new RangeError(
        "reduceType must be one of f32, i32, u32, f16, vec2f, vec4f, vec2i, vec4i, vec2u, vec4u, " +
          `not ${type}`,
      );
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
    const types = [...inputs.map((one) => one.type), ...outputs.map((one) => one.type), type];
    this.#signature = new Signature(device, name, inputs, outputs, types);
  }

  /**
   * Submits, and returns the outputs, as `ElementwiseKernel.run` does.
   *
   * @param args - the inputs, and the outputs if they exist
   * @param options - `axis` that is reduced, from the end if negative; `keepdims`
   * @returns a tensor without the axis, or an array of several
   * @throws as ElementwiseKernel.run; RangeError for an axis that the inputs do not have
   */
  run(args: readonly Argument[], options: ReductionRunOptions = {}): Results<O> {
    const signature = this.#signature;
    const given = signature.sort(args);
    checkOptions<ReductionRunOptions>(options, "run()", { axis: 1, keepdims: 1 }, "axis: 0");
    if (given.shape === null) {
      throw new RangeError(`kernel "${signature.name}" needs a tensor to reduce`);
    }
    const { axis = null, keepdims = false } = options;
    const { shape, outer, length, inner } = split(given.shape, axis, keepdims);
    signature.checkOutputs(given.outputs, shape, "the result has");
    return signature.onto(given, shape, (outputs) => {
      const count = outer * inner;
      if (count > 0) this.#run(given, outputs, count, inner, length);
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
    const passes = ["whole", "first", "last"] as const;
    const { usual } = this.#signature;
    return Promise.all(passes.map((pass) => this.#kernel(usual, pass).ready)).then(() => {});
  }

  #run(given: Given, outputs: readonly Tensor[], count: number, inner: number, length: number) {
    const sizes = [count, inner, length] as const;
    const first = plan(...sizes);
    const { inputs } = given;
    if (first.chunks === 1) {
      this.#pass("whole", given, [...inputs, ...outputs], sizes, first, length);
      return;
    }
    const { type } = this.#what;
    const [, lanes = "1"] = /^vec(\d)/.exec(type) ?? [];
    const shape = [count * first.chunks * Number(lanes)];
    const partial = this.#signature.empty(shape, typeOf(scalarOf(type)));
    try {
      this.#pass("first", given, [...inputs, partial], sizes, first, length);
      const last = [count, count, first.chunks] as const;
      const lastPlan = planLast(count, first.chunks);
      this.#pass("last", given, [partial, ...outputs], last, lastPlan, length);
    } finally {
      partial.release();
    }
  }

  #pass(
    pass: Pass,
    { kinds }: Given,
    args: readonly Argument[],
    sizes: readonly [number, number, number],
    { lanes, chunk, chunks }: Plan,
    n: number,
  ): void {
    const { device, inputs, outputs } = this.#signature;
    const words = Uint32Array.of(...sizes, lanes, chunk, chunks, n, 0);
    const uniform = uploadOf(words, device);
    const partial = ["the partial results"];
    const names = [
      ...(pass === "last" ? partial : namesOf(inputs)),
      ...(pass === "first" ? partial : namesOf(outputs)),
      "the sizes",
    ];
    try {
      named(names, () => {
        const workgroups = grid(sizes[0] * chunks * lanes);
        this.#kernel(kinds, pass).run([...args, uniform], { workgroups });
      });
    } finally {
      uniform.release();
    }
  }

  #kernel(kinds: readonly string[], pass: Pass) {
    const key = pass === "last" ? pass : `${pass}${kinds.join("")}`;
    return this.#signature.kernel(key, () => reduction(this.#what, kinds, pass));
  }
}

function uploadOf(words: Uint32Array<ArrayBuffer>, device: GPUDevice): Tensor {
  const host = Tensor.fromTypedArray(words);
  try {
    return host.to(device);
  } finally {
    host.release();
  }
}

/** The shape of the result, and the numbers of elements before, along and after the axis. */
function split(shape: readonly number[], axis: number | null, keepdims: boolean) {
  if (axis === null) {
    const ones = keepdims ? shape.map(() => 1) : [];
    return { shape: ones, outer: 1, length: sizeOf(shape), inner: 1 };
  }
  if (!Number.isInteger(axis)) throw new TypeError(`axis must be an integer or null, not ${axis}`);
  const { length: ndim } = shape;
  if (axis < -ndim || axis >= ndim) {
    throw new RangeError(`axis ${axis} is out of bounds for shape [${shape.join(", ")}]`);
  }
  const at = axis < 0 ? axis + ndim : axis;
  const [before, after] = [shape.slice(0, at), shape.slice(at + 1)];
  return {
    shape: keepdims ? [...before, 1, ...after] : [...before, ...after],
    outer: sizeOf(before),
    length: shape[at] as number,
    inner: sizeOf(after),
  };
}
