// What the suite is tested with: a right producer, of which broken ones are made in
// conformance_producers.mjs, and a GPU that is all arrays.
export { fakeDevice } from "../../../../tests/js/array_device.mjs";

export const EXCHANGE = Symbol.for("dlpack.exchange");
export const ASYNC = Symbol.for("dlpack.exchange.async");
export const refuse = (name, text) => Object.assign(new Error(text), { name });
const CODES = { int: 0, uint: 1, float: 2, bfloat: 4, complex: 5, bool: 6 };
const partsOf = (dtype) => [CODES[dtype.replace(/\d+$/, "")], Number(/\d*$/.exec(dtype)[0]) || 8];

/** Elements in an array of its own, or in a GPUBuffer, which is overwritten once nobody holds it. */
export class Right {
  holds = 1;
  release = () => this.drop();

  constructor({ dtype, shape, bytes, device }) {
    Object.assign(this, { device, shape, parts: partsOf(dtype) });
    this.data = device?.createBuffer({ size: bytes.length + 16, usage: 128 | 4 | 8 }) ?? bytes;
    device?.queue.writeBuffer(this.data, 0, bytes);
    this.capacity = device ? this.data.size : bytes.length;
  }

  drop() {
    if (--this.holds > 0) return;
    if (this.device) this.data.destroy();
    else this.data.fill(0xee);
  }

  check(request = {}) {
    const { versions = [1], device = this.device, copy } = Object(request);
    if (Object(request) !== request) throw new TypeError("no request");
    if (!Array.isArray(versions) || typeof device !== "object") throw new TypeError("no request");
    if (!versions.includes(1)) throw refuse("UnsupportedError", "only version 1 is supported");
    if (this.holds <= 0) throw refuse("ReleasedError", "it was released");
    if (device !== this.device) throw refuse("DeviceError", "it is on its own device");
    if (copy) throw refuse("UnsupportedError", "no copies are made");
  }

  [EXCHANGE](request) {
    this.check(request);
    this.holds++;
    let held = true;
    const release = () => {
      if (held) this.drop();
      held = false;
    };
    const [code, bits] = this.parts;
    const device = { type: this.device ? 15 : 1, id: 0, gpu: this.device };
    const what = { version: [1, 0], device, dtype: { code, bits, lanes: 1 }, flags: 0 };
    const where = { strides: null, data: this.data, byteOffset: 0, capacity: this.capacity };
    return { ...what, ...where, shape: [...this.shape], flush() {}, release };
  }

  async [ASYNC](request = {}) {
    request.signal?.throwIfAborted();
    return this[EXCHANGE](request);
  }
}
