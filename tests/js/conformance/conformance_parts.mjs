// What dlpack-web/conformance is tested with: a right producer and a right consumer, and a GPU that
// is all arrays. Broken ones are made of these in conformance.test.mjs.
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
    if (!versions.includes(1)) throw refuse("UnsupportedError", "version 1 is what there is");
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

/** A GPUDevice as far as exchanges go: work is done when it is submitted, and mapping takes a while. */
export function fakeDevice() {
  const scopes = [];
  const fail = (message) => scopes.at(-1)?.push({ message });
  const use = (buffer) => {
    if (buffer.destroyed) fail("the buffer was destroyed");
    return buffer.destroyed ? undefined : buffer.bytes;
  };
  let lose;
  const lost = new Promise((resolve) => {
    lose = resolve;
  });
  return {
    lost,
    destroy: () => lose({ reason: "destroyed" }),
    createBuffer: ({ size, usage }) => ({
      size,
      usage,
      bytes: new Uint8Array(size),
      destroyed: false,
      mapAsync: () => new Promise((resolve) => setTimeout(resolve, 0)),
      getMappedRange() {
        return this.bytes.buffer;
      },
      destroy() {
        this.destroyed = true;
      },
    }),
    createCommandEncoder() {
      const work = [];
      return {
        copyBufferToBuffer: (from, at, to, start, size) =>
          work.push(() => {
            const [source, target] = [use(from), use(to)];
            if (source && target) target.set(source.subarray(at, at + size), start);
          }),
        finish: () => work,
      };
    },
    pushErrorScope: () => scopes.push([]),
    popErrorScope: async () => scopes.pop()[0] ?? null,
    queue: {
      submit: (lists) => {
        for (const run of lists.flat()) run();
      },
      writeBuffer: (buffer, at, data) =>
        use(buffer)?.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at),
    },
  };
}

const READERS = {
  ...{ "0,8": "getInt8", "0,16": "getInt16", "0,32": "getInt32", "0,64": "getBigInt64" },
  ...{ "1,8": "getUint8", "1,16": "getUint16", "1,32": "getUint32", "1,64": "getBigUint64" },
  ...{ "2,32": "getFloat32", "2,64": "getFloat64", "6,8": "getUint8" },
};
const whole = (n, least) => Number.isSafeInteger(n) && n >= least;
const list = (x, least) => Array.isArray(x) && x.length <= 64 && x.every((n) => whole(n, least));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** Reads elements of whole bytes. */
export class Reader {
  consume(x, { device, copy }) {
    const exchange = this.ask(x, { versions: [1], device, copy });
    if (!this.knows(exchange.version)) {
      throw refuse("UnsupportedError", "version 1 is what is read");
    }
    try {
      const fields = { ...exchange }; // reads each once
      this.check(fields, device, copy);
      const read = this.read(fields, device);
      this.done(exchange);
      return read;
    } catch (error) {
      this.give(exchange);
      throw error;
    }
  }

  knows = (version) => list(version, 0) && version.length === 2 && version[0] === 1;
  ask = (x, request) => x[EXCHANGE](request);
  /** The fault, as an error or a promise of one. */
  faultOf = ({ fault }) => fault?.();
  failed = (error) => error;
  done = (exchange) => exchange.release();

  give(exchange) {
    try {
      exchange.release();
    } catch {}
  }

  unsupported(text) {
    throw refuse("UnsupportedError", text);
  }

  check({ device, dtype, shape, strides, data, byteOffset, flags }, wanted, copy) {
    if ((device?.gpu ?? null) !== wanted || device.type !== (wanted ? 15 : 1))
      this.unsupported("device");
    if (!READERS[`${dtype?.code},${dtype?.bits}`] || dtype.lanes !== 1) this.unsupported("dtype");
    if (!list(shape, 0)) this.unsupported("shape");
    if (strides !== null && !(list(strides, -Infinity) && strides.length === shape.length)) {
      this.unsupported("strides");
    }
    if (!whole(byteOffset, 0)) this.unsupported("byteOffset");
    const size = this.sizeOf(data, wanted);
    const steps = (strides ?? this.rowMajor(shape)).map((step, i) => step * (shape[i] - 1));
    const [low, high] = [Math.min, Math.max].map((to) => sum(steps.map((step) => to(step, 0))));
    const at = (index) => byteOffset + (index * dtype.bits) / 8;
    const some = !shape.includes(0);
    const before = data?.memory ? data.ptr : 0;
    if (some && !(at(low) >= -before && at(high + 1) <= size)) this.unsupported("elements");
    if (copy === false && flags & 2) throw refuse("CopyError", "it was copied");
  }

  sizeOf(data, device) {
    const size = device
      ? data?.size
      : (data?.byteLength ?? data?.memory?.buffer?.byteLength - data?.ptr);
    return whole(size, 0) ? size : this.unsupported("data");
  }

  rowMajor = (shape) => shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));

  read(fields, device) {
    const { data, flush } = fields;
    flush();
    if (device) return this.readBuffer(fields, device, this.faultOf(fields));
    const { buffer } = data.memory ?? data;
    if (!data.memory) return this.elements(new DataView(buffer, data.byteOffset), fields);
    const byteOffset = data.ptr + fields.byteOffset; // from the start, as elements may be below ptr
    return this.elements(new DataView(buffer), { ...fields, byteOffset });
  }

  async readBuffer(fields, device, fault) {
    const { size } = fields.data;
    const copy = device.createBuffer({ size, usage: 1 | 8 });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(fields.data, 0, copy, 0, size);
    device.queue.submit([encoder.finish()]);
    await copy.mapAsync(1);
    const error = await fault;
    if (error) throw this.failed(error);
    return this.elements(new DataView(copy.getMappedRange()), fields);
  }

  elements(view, { dtype, shape, strides, byteOffset }) {
    const steps = strides ?? this.rowMajor(shape);
    const walk = (axis, index) =>
      axis === shape.length
        ? [
            view[READERS[`${dtype.code},${dtype.bits}`]](
              byteOffset + (index * dtype.bits) / 8,
              true,
            ),
          ]
        : Array.from({ length: shape[axis] }, (_, i) =>
            walk(axis + 1, index + i * steps[axis]),
          ).flat();
    return walk(0, 0);
  }
}
