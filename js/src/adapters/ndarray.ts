// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * ndarray (scijs) and what has the same form, the chunks of zarrita among it: `{ data, shape,
 * stride, offset }`, strides in elements. They share memory both ways, of any strides.
 */
import { type DTypeName, dtypeOfArray, type TypedArray } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import { Tensor } from "../core/tensor.js";
import { take } from "../exchange/take.js";
import type { Exchangeable } from "../exchange/types.js";
import { alias, type GiveOptions, onCPU } from "./common.js";

/** Elements with a shape; zarrita has no `offset`, @stdlib/ndarray has `strides`. */
export interface Strided {
  readonly data: unknown;
  readonly shape: ArrayLike<number>;
  readonly stride?: ArrayLike<number>;
  readonly strides?: ArrayLike<number>;
  readonly offset?: number;
}

/** The function that `ndarray` is; without it, plain objects are made. */
export type Ndarray = (data: any, shape?: any, stride?: any, offset?: any) => any;

/**
 * A tensor over the array's elements, without a copy.
 *
 * @param options - `dtype` where the class of `data` does not tell, e.g. "bool" in a Uint8Array
 * @throws UnsupportedError for data in other forms than typed arrays; RangeError for strides that
 * reach out of them
 */
export function fromNdarray(
  _ndarray: Ndarray | null,
  value: Strided,
  options: { dtype?: DTypeName } = {},
): Tensor {
  const { data, shape, offset = 0 } = value;
  if (!ArrayBuffer.isView(data) || dtypeOfArray(data) === undefined) {
    throw new UnsupportedError(
      "the data of this array is no typed array: make one, e.g. ndarray(Float32Array.from(a.data), " +
        "a.shape)",
    );
  }
  const strides = value.stride ?? value.strides;
  return Tensor.fromTypedArray(data as TypedArray, {
    ...options,
    shape,
    offset,
    ...(strides && { strides }),
  });
}

/**
 * An array over a tensor's elements, of any strides, without a copy. It holds the memory until its
 * `data` is assigned to or it is garbage-collected; the arrays that are derived from it (`pick`, `transpose`, …) do not.
 *
 * @param ndarray - the library; null makes `{ data, shape, stride, offset }`, as zarrita has them
 * @throws UnsupportedError for a WebGPU tensor
 */
export function toNdarray(
  ndarray: Ndarray | null,
  x: Exchangeable,
  { copy }: GiveOptions = {},
): any {
  const held = onCPU("ndarray", take(x, { copy }));
  try {
    const { data, dataOffset: offset } = held;
    const shape = [...held.shape];
    const stride = [...held.strides];
    const made = ndarray ? ndarray(data, shape, stride, offset) : { data, shape, stride, offset };
    alias(made, "data", held);
    return made;
  } catch (error) {
    held.release();
    throw error;
  }
}
