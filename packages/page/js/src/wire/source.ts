/** Bytes of a tensor in row-major order, read part by part. */
import type { Tensor } from "dlpack-web/core";
import { bytesOf } from "dlpack-web/internal";
import { isRowMajor, releasing, sizeOf } from "../common.js";

/** kDLWebGPU of `DLDeviceType`. */
const WEBGPU = 15;

const isContiguous = ({ shape, strides }: Tensor) => isRowMajor(shape, strides);

/**
 * The bytes from `first` to `last`, both at whole elements: a view if they are in memory and
 * contiguous, else a copy of these alone. A promise for a tensor on a GPU.
 */
export function bytesBetween(
  tensor: Tensor,
  first: number,
  last: number,
): Uint8Array | Promise<Uint8Array> {
  const isHost = tensor.device.type !== WEBGPU;
  if (isHost && isContiguous(tensor)) return bytesOf(tensor).subarray(first, last);
  const { itemsize } = tensor;
  const parts = [...between(tensor, first / itemsize, last / itemsize)];
  if (!isHost) return gathered(parts, last - first);
  const bytes = new Uint8Array(last - first);
  let at = 0;
  for (const part of parts) {
    releasing(part.contiguous(), (packed) => bytes.set(bytesOf(packed), at));
    at += part.nbytes;
    part.release();
  }
  return bytes;
}

async function gathered(parts: Tensor[], nbytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(nbytes);
  let at = 0;
  try {
    for (const part of parts) {
      await part.read(bytes.subarray(at, at + part.nbytes));
      at += part.nbytes;
    }
  } finally {
    for (const part of parts) part.release();
  }
  return bytes;
}

/** Views of consecutive elements from `first` to `last`; each is the caller's. */
function* between(tensor: Tensor, first: number, last: number): Generator<Tensor, void, undefined> {
  if (first >= last) return;
  if (isContiguous(tensor)) {
    const flat = tensor.reshape([tensor.size]);
    yield flat.slice([first, last]);
    flat.release();
    return;
  }
  const row = sizeOf(tensor.shape.slice(1));
  const [start, stop] = [Math.ceil(first / row), Math.floor(last / row)];
  if (start <= stop) {
    yield* inRow(tensor, start - 1, row, first, start * row);
    if (start < stop) yield tensor.slice([start, stop]);
    yield* inRow(tensor, stop, row, stop * row, last);
  } else yield* inRow(tensor, stop, row, first, last);
}

function* inRow(
  tensor: Tensor,
  index: number,
  row: number,
  first: number,
  last: number,
): Generator<Tensor, void, undefined> {
  if (first >= last) return;
  const inner = tensor.slice(index);
  yield* between(inner, first - index * row, last - index * row);
  inner.release();
}
