import { IS_COPIED, READ_ONLY } from "../core/dlpack.js";
import { CopyError, DeviceError, UnsupportedError } from "../core/errors.js";
import { spanOf } from "../core/shape.js";
import { deviceLayer, type Tensor } from "../core/tensor.js";
import type { Exchange, ExchangeRequest } from "./types.js";

const VERSION = [1, 0] as const;

/** Implements `tensor[EXCHANGE]`. */
export function produce(tensor: Tensor, request: ExchangeRequest = {}): Exchange {
  tensor._check();
  const { maxVersion, device, copy } = request;
  if (maxVersion !== undefined && !(maxVersion?.[0] >= VERSION[0])) {
    throw new UnsupportedError(`version ${VERSION} of the exchange protocol is what there is`, {
      given: maxVersion,
      needed: VERSION,
    });
  }
  const { gpu } = tensor.device;
  const moves = device !== undefined && device !== gpu;
  if (moves && gpu !== null) {
    throw new DeviceError(
      `${tensor} cannot be used on ${device ? "that GPUDevice" : "the CPU"}: await read() it`,
      { device: tensor.device },
    );
  }
  if (moves && copy === false) {
    throw new CopyError(`${tensor} is not on that GPUDevice, which copy: false asks for`);
  }
  const held = moves ? tensor.to(device as GPUDevice) : copy ? tensor._packed() : tensor._share();
  try {
    return describe(held, moves || copy === true);
  } catch (error) {
    held.release();
    throw error;
  }
}

function describe(held: Tensor, copied: boolean): Exchange {
  const { type, id, gpu } = held.device;
  const { packed, flags } = held._type;
  return {
    version: VERSION,
    device: { type, id, gpu },
    dtype: { code: packed & 255, bits: (packed >>> 8) & 255, lanes: packed >>> 16 },
    shape: [...held._shape],
    strides: held._strides && [...held._strides],
    ...placeOf(held),
    flags: (held.readOnly ? READ_ONLY : 0) | (copied ? IS_COPIED : 0) | flags,
    flush() {},
    release: () => held.release(),
  };
}

function placeOf(tensor: Tensor): Pick<Exchange, "byteOffset" | "data" | "capacity"> {
  const { _storage, _start, _strides, _type, _shape } = tensor;
  if (tensor.device.gpu) {
    const capacity = deviceLayer().capacityOf(tensor);
    return { byteOffset: _start, data: tensor.buffer, capacity };
  }
  const { start, bytes } = spanOf(_type, _shape, _strides, _start);
  const capacity = bytes > 0 ? start + bytes - _start : 0;
  const { memory } = _storage;
  return memory
    ? { byteOffset: 0, data: { memory, ptr: _start }, capacity }
    : { byteOffset: tensor.dataOffset * _type.step, data: bytesOrData(tensor), capacity };
}

/** The elements as an array of their class; of misaligned memory its bytes. */
function bytesOrData(tensor: Tensor): ArrayBufferView {
  if (tensor._plain || tensor._start % tensor._type.View.BYTES_PER_ELEMENT === 0) {
    return tensor.data as ArrayBufferView;
  }
  const { start, bytes } = spanOf(tensor._type, tensor._shape, tensor._strides, tensor._start);
  return new Uint8Array(tensor._storage.bytes(tensor), start, bytes);
}
