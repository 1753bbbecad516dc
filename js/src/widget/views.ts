/** Tensors over parts of a tensor, as a kernel describes them. */

import { type DTypeName, dtypeNamed } from "../core/dtype.js";
import { releasing } from "../core/releasing.js";
import { checkShape, checkStrides, checkSubByte, spanOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { adoptSlot } from "../webgpu/buffers.js";
import { slotOf } from "../webgpu/references.js";
import { checkList, type Described, type View } from "./operations.js";

/**
 * A view of a tensor's elements; the caller releases it.
 *
 * @throws RangeError for elements that are not all within it; TypeError, UnsupportedError for
 * another form
 */
export function viewOf(
  tensor: Tensor,
  { shape, dtype, padded, offset = 0, strides, readOnly }: Described & Partial<View>,
): Tensor {
  const type = dtypeNamed(dtype as DTypeName, padded);
  const dims = checkShape(checkList(shape));
  const steps = checkStrides(dims, strides ? checkList(strides) : undefined);
  checkSubByte(type, steps, `a view of ${type.name}`);
  const { handle } = tensor._managed;
  const { used } = slotOf(handle);
  const { start, bytes } = spanOf(type, dims, steps, offset);
  if (!Number.isSafeInteger(offset) || start < 0 || start + bytes > Math.ceil(used)) {
    const what = `${type.name}[${dims}]${steps ? ` with strides [${steps}]` : ""}`;
    throw new RangeError(`${what} from byte ${offset} is not within a tensor of ${used} bytes`);
  }
  return new Tensor(adoptSlot(handle, offset, type, dims, readOnly === true, steps));
}

/** The bytes of a row-major tensor in a buffer of their own, which is read in pieces. */
export function copyOf({ _managed: { handle, start, nbytes } }: Tensor): Tensor {
  const [uint8, skip] = [dtypeNamed("uint8"), start % 4]; // copies begin at whole words
  return releasing(adoptSlot(handle, start - skip, uint8, [skip + nbytes], true), (words) => {
    const first = ({ handle }: typeof words) => adoptSlot(handle, skip, uint8, [nbytes], true);
    return releasing(words.pack(), (copy) => new Tensor(first(copy)));
  });
}
