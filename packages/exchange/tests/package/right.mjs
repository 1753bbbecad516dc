// A producer without any library: what users of `npx dlpack-web-exchange` write.
const EXCHANGE = Symbol.for("dlpack.exchange");
const KINDS = {
  float32: [2, 32, Float32Array],
  int32: [0, 32, Int32Array],
  uint8: [1, 8, Uint8Array],
};
const refuse = (name, text) => Object.assign(new Error(text), { name });

class Matrix {
  constructor(data, dtype, shape) {
    Object.assign(this, { data, dtype, shape });
  }

  [EXCHANGE](request = {}) {
    if (Object(request) !== request) throw new TypeError("no request");
    const { versions = [1], device = null, copy } = request;
    if (!Array.isArray(versions) || typeof device !== "object") {
      throw new TypeError("no request");
    }
    if (!versions.includes(1)) {
      throw refuse("UnsupportedError", "this is version 1");
    }
    if (device) throw refuse("DeviceError", "on the CPU");
    const [code, bits] = KINDS[this.dtype];
    const data = copy ? this.data.slice() : this.data;
    return {
      version: [1, 1],
      device: { type: 1, id: 0, gpu: null },
      dtype: { code, bits, lanes: 1 },
      shape: [...this.shape],
      strides: null,
      data,
      byteOffset: 0,
      capacity: data.byteLength,
      flags: copy ? 2 : 0,
      flush() {},
      release() {},
    };
  }
}

/** What the suite asks for; undefined: cannot make it. */
function make({ dtype, shape, values, device }) {
  if (device || !(dtype in KINDS)) return undefined;
  const data = KINDS[dtype][2].from(values);
  return new Matrix(data, dtype, shape);
}

export default make;
