// A right consumer, as somebody would write it who knows EXCHANGE.md and no library. It takes
// elements of whole bytes from the CPU and the GPU. The faults of stranger_faults.mjs change a line of
// this text, which imports nothing.
const EXCHANGE = Symbol.for("dlpack.exchange");
const refuse = (name, text) => Object.assign(new Error(text), { name });
const unless = (met, text, name = "UnsupportedError") => {
  if (!met) throw refuse(name, text);
};
const READERS = {
  "0,8": "getInt8",
  "0,16": "getInt16",
  "0,32": "getInt32",
  "0,64": "getBigInt64",
  "1,8": "getUint8",
  "1,16": "getUint16",
  "1,32": "getUint32",
  "1,64": "getBigUint64",
  "2,32": "getFloat32",
  "2,64": "getFloat64",
  "6,8": "getUint8",
};
const isCount = (n) => Number.isSafeInteger(n) && n >= 0;
const isVersion = (x) => Array.isArray(x) && x.length === 2 && x.every(isCount);
const isShape = (x) => Array.isArray(x) && x.length <= 64 && x.every(isCount);

/** The fields, each read once and checked, and where the elements are. */
function checked(exchange, device, copy) {
  const { device: where, dtype, shape, strides, data, byteOffset, flags } = exchange;
  const { flush, fault, capacity } = exchange;
  unless(where?.type === (device ? 15 : 1), "it is on a device of another kind", "DeviceError");
  unless(where.gpu === device, "it is on another device", "DeviceError");
  const { code, bits, lanes } = Object(dtype);
  const reader = READERS[`${code},${bits}`];
  unless(reader && lanes === 1, "its dtype is not known");
  unless(isShape(shape), "its shape cannot be");
  unless(isCount(byteOffset), "its offset cannot be");
  unless(copy !== false || !(flags & 2), "it was copied", "CopyError");
  const size = bits / 8;
  const steps = strides ?? shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
  unless(Array.isArray(steps) && steps.length === shape.length, "its strides are not as many");
  unless(steps.every(Number.isSafeInteger), "its strides cannot be");
  const held = { shape, steps, reader, size, data, byteOffset, flush, fault, device };
  const { before, after } = roomOf(data, device);
  if (shape.includes(0)) return held;
  unless(isCount(capacity), "its capacity cannot be");
  let [low, high] = [0, 0];
  steps.forEach((step, axis) => {
    if (step < 0) low += step * (shape[axis] - 1);
    else high += step * (shape[axis] - 1);
  });
  unless(byteOffset + low * size >= -before, "elements are before its data");
  unless(byteOffset + (high + 1) * size <= after, "elements are after its data");
  unless(capacity >= (high + 1) * size, "its capacity is too small");
  unless(byteOffset + capacity <= after, "its capacity is too large");
  return held;
}

/** Bytes of data before and after where the offset counts from. */
function roomOf(data, device) {
  if (device) return { before: 0, after: known(data?.size) };
  if (ArrayBuffer.isView(data)) return { before: 0, after: data.byteLength };
  const ptr = known(data?.ptr);
  return { before: ptr, after: known(data?.memory?.buffer?.byteLength) - ptr };
}

function known(bytes) {
  unless(isCount(bytes), "its data is not memory");
  return bytes;
}

/** The elements of memory that the view shows, with element 0 at `first`. */
function elementsOf(view, { shape, steps, reader, size }, first) {
  const found = [];
  const walk = (axis, at) => {
    if (axis === shape.length) {
      found.push(view[reader](at, true));
      return;
    }
    for (let i = 0; i < shape[axis]; i++) walk(axis + 1, at + i * steps[axis] * size);
  };
  walk(0, first);
  return found;
}

function readCPU(held) {
  const { data, byteOffset, flush } = held;
  flush();
  const start = data.memory ? data.ptr : data.byteOffset;
  const view = new DataView(data.memory ? data.memory.buffer : data.buffer);
  return elementsOf(view, held, start + byteOffset);
}

/** Submits a copy; a promise of the elements comes later. */
function readGPU(held) {
  const { data, byteOffset, flush, fault, device } = held;
  flush();
  const failed = fault?.();
  const staging = device.createBuffer({ size: data.size, usage: 1 | 8 });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(data, 0, staging, 0, data.size);
  device.queue.submit([encoder.finish()]);
  return async () => {
    await staging.mapAsync(1).catch(({ message }) => {
      throw refuse("DeviceLostError", message);
    });
    const error = await failed;
    if (error) throw error;
    return elementsOf(new DataView(staging.getMappedRange()), held, byteOffset);
  };
}

export async function consume(x, { device, copy }) {
  const exchange = x[EXCHANGE]({ versions: [1], device, copy });
  const { version } = exchange;
  unless(isVersion(version) && version[0] === 1, "version 1 is what is read");
  let read;
  try {
    const held = checked(exchange, device, copy);
    read = device ? readGPU(held) : readCPU(held);
  } catch (error) {
    try {
      exchange.release();
    } catch {}
    throw error;
  }
  exchange.release();
  return device ? read() : read;
}
