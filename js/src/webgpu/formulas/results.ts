/** The types of what kernels return: public, so nothing here may need the types of a whole WebGPU. */

import type { Tensor } from "../../core/tensor.js";
import type { DTYPES } from "../kernels/wgsl.js";
import type { ParamType } from "./formulas.js";

/** The tensor for one output: of "f32 y", a `Tensor<"float32">`. */
type Result<P extends string> = P extends ` ${infer R}` | `raw ${infer R}`
  ? Result<R>
  : P extends `${infer T extends ParamType} ${string}`
    ? Tensor<(typeof DTYPES)[T]>
    : Tensor;

type ResultList<O extends string> = O extends `${infer First},${infer Rest}`
  ? [Result<First>, ...ResultList<Rest>]
  : [Result<O>];

/** What a kernel returns, by the text of its outputs, where that is known: one tensor or several. */
export type Results<O extends string> = string extends O
  ? // biome-ignore lint/suspicious/noExplicitAny: one tensor, or an array of them
    any
  : O extends `${string},${string}`
    ? ResultList<O>
    : Result<O>;
