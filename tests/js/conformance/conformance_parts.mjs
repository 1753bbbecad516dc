// What dlpack-web/conformance is tested with: a right producer, of which broken ones are made in
// conformance_producers.mjs, and a GPU that is all arrays.
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
    lose,
    destroy: () => lose({ reason: "destroyed" }),
    createBuffer: ({ size, usage }) => ({
      size,
      usage,
      bytes: new Uint8Array(size),
      destroyed: false,
      mapAsync: () =>
        new Promise((resolve, reject) => {
          setTimeout(resolve, 0);
          lost.then(() => reject(refuse("AbortError", "the device is lost")));
        }),
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
