/** Tensors over parts of a tensor's buffer, as another process describes them. */

import { type DTypeName, dtypeNamed } from "../../core/dtype.js";
import { releasing } from "../../core/releasing.js";
import { checkShape, checkStrides, checkSubByte, spanOf } from "../../core/shape.js";
import { Tensor } from "../../core/tensor.js";
import { tensorOn } from "./buffers.js";
import { retainSlot, slotOf } from "./table.js";

/** Elements in a buffer. `offset` is in bytes, and `strides` count elements. */
export interface Described {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly padded: boolean;
  readonly offset?: number | undefined;
  readonly strides?: readonly number[] | null | undefined;
  readonly readOnly?: boolean | undefined;
}

/**
 * A view of the elements of a tensor on a GPU, of any part of its buffer that the tensor uses.
 *
 * @param tensor - on a GPU
 * @param described - the elements
 * @returns yours to release
 * @throws RangeError for elements that are not all within it; TypeError, UnsupportedError for
 * another form
 */
export function viewOf(
  tensor: Tensor,
  { shape, dtype, padded, offset = 0, strides, readOnly }: Described,
): Tensor {
  const type = dtypeNamed(dtype as DTypeName, padded);
  const dims = checkShape(shape);
  const steps = checkStrides(dims, strides ?? undefined);
  checkSubByte(type, steps, `a view of ${type.name}`);
  const { handle } = tensor._managed;
  const { used } = slotOf(handle);
  const { start, bytes } = spanOf(type, dims, steps, offset);
  if (!Number.isSafeInteger(offset) || start < 0 || start + bytes > Math.ceil(used)) {
    const what = `${type.name}[${dims}]${steps ? ` with strides [${steps}]` : ""}`;
    throw new RangeError(`${what} from byte ${offset} is not within a tensor of ${used} bytes`);
  }
  return new Tensor(tensorOn(retainSlot(handle), offset, type, dims, readOnly === true, steps));
}

/**
 * A copy of the bytes of a tensor on a GPU, in a buffer of their own.
 *
 * @param tensor - on a GPU
 * @returns yours to release; undefined for strided elements
 */
export function copyBytes({ _managed: managed }: Tensor): Tensor | undefined {
  const { handle, start, nbytes, strides } = managed;
  if (strides !== null) return undefined;
  const [uint8, skip] = [dtypeNamed("uint8"), start % 4]; // copies begin at whole words
  const view = (handle: number, from: number, length: number) =>
    tensorOn(retainSlot(handle), from, uint8, [length], true);
  return releasing(view(handle, start - skip, skip + nbytes), (words) =>
    releasing(words.pack(), (copy) => new Tensor(view(copy.handle, skip, nbytes))),
  );
}
