import type { TypedArray } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import { extentOf } from "./shape.js";
import type { Tensor } from "./tensor.js";

/** Checks that `out` can take the elements of `source`, before anything is started. */
export function checkTarget(source: Tensor, out: TypedArray | Tensor): void {
  const isArray = ArrayBuffer.isView(out);
  if (!isArray) out._check();
  if (!isArray && (out.device.type !== 1 || out._strides !== null || out.readOnly)) {
    throw new UnsupportedError(
      `out must be a writable, row-major CPU tensor, not ${out.readOnly ? "read-only " : ""}` +
        `${out} with strides [${out.strides}]`,
    );
  }
  const nbytes = isArray ? out.byteLength : out.nbytes;
  if (nbytes !== source.nbytes) {
    throw new RangeError(`out has ${nbytes} bytes (0: detached); ${source} needs ${source.nbytes}`);
  }
}

/** The bytes of a target. Asked for at the moment of copying: wasm memory may have grown. */
export function targetBytes(out: TypedArray | Tensor): Uint8Array {
  if (!ArrayBuffer.isView(out)) return out._bytes();
  return new Uint8Array(out.buffer, out.byteOffset, out.byteLength);
}

/** Copies strided elements of `step` bytes, whose lowest one is at the start of `source`. */
export function gather(
  target: Uint8Array,
  source: Uint8Array,
  { shape, size }: Tensor,
  strides: readonly number[],
  step: number,
): void {
  const index = shape.map(() => 0);
  let from = -extentOf(shape, strides).low * step;
  for (let to = 0; to < size * step; to += step) {
    for (let byte = 0; byte < step; byte++) target[to + byte] = source[from + byte] as number;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const stride = (strides[axis] as number) * step;
      from += stride;
      index[axis] = (index[axis] as number) + 1;
      if ((index[axis] as number) < (shape[axis] as number)) break;
      from -= stride * (shape[axis] as number);
      index[axis] = 0;
    }
  }
}
