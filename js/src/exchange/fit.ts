import { deviceLayer } from "../core/layers.js";
import type { ManagedTensor } from "../core/managed.js";
import { releasing } from "../core/releasing.js";
import { isTensor, Tensor } from "../core/tensor.js";
import { checkMove, needCopy } from "./produce.js";
import { sourceOf, taken } from "./take.js";
import type { Exchangeable, ExchangeRequest } from "./types.js";

/**
 * A tensor that a consumer can use: the same memory if it fits the request, otherwise one copy. On
 * a GPU that is one copy from buffer to buffer; nothing is ever read back.
 *
 * @param x - a tensor, or any object with the protocol
 * @param request - the device, and the needs of the memory: alignment, padding, usages
 * @returns a tensor with a hold of its own, which the caller releases
 * @throws CopyError if a copy is needed and `copy` is false; DeviceError for a tensor on another
 * device, as one copy cannot move it; UnsupportedError for a strided WebGPU tensor, and for needs
 * that no copy can meet
 */
export function fit(x: Exchangeable, request: ExchangeRequest = {}): Tensor {
  const { copy } = request;
  const asked = { ...request, copy: copy === false ? false : undefined };
  if (isTensor(sourceOf(x))) asked.device = undefined; // fitUpload() moves ours
  return new Tensor(releasing(taken(x, asked), (held) => fitted(held, request)));
}

function fitted(held: ManagedTensor, { device, copy, needs = {} }: ExchangeRequest): ManagedTensor {
  if (device !== undefined && device !== held.device.gpu) {
    checkMove(held, device, copy);
    return deviceLayer().fitUpload(held, device, needs);
  }
  if (held.device.gpu) return deviceLayer().fit(held, needs, copy);
  if (held.isPlain && !copy) return held.share();
  needCopy(held, copy, `is strided or not aligned (strides [${held.layout.strides}])`);
  return held.pack();
}
