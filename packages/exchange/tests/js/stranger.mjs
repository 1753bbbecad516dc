// A right producer and a right consumer, as somebody would write them who knows EXCHANGE.md and no
// library: CPU and GPU, pooled and padded memory, copies, reading back, faults. The rows of
// stranger_faults.mjs change one line of this text, which imports nothing and runs in every host.
const EXCHANGE = Symbol.for("dlpack.exchange");
const ASYNC = Symbol.for("dlpack.exchange.async");
const refuse = (name, text) => Object.assign(new Error(text), { name });
const DTYPES = {
  float32: [2, 32, "Float32"],
  int32: [0, 32, "Int32"],
  uint32: [1, 32, "Uint32"],
  int16: [0, 16, "Int16"],
  uint8: [1, 8, "Uint8"],
};
const up = (bytes, step) => Math.ceil(bytes / step) * step;
const [MAP, SRC, DST, STORAGE] = [1, 4, 8, 128];

/** Memory of one tensor, which is counted, cleared and used again. */
class Block {
  static pool = new Map();
  holds = 1;
  /** The error of its work, when it is known. */
  error = null;
  pending = null;

  constructor(device, size) {
    const pool = Block.poolOf(device, size);
    this.device = device;
    this.size = size;
    this.pool = pool;
    this.data = pool.pop() ?? this.create(device, size);
    this.clear();
    this.lostAs = null;
    device?.lost?.then(() => {
      this.lostAs = refuse("DeviceLostError", "the device is lost");
    });
  }

  static poolOf(device, size) {
    const key = device ?? "cpu";
    if (!Block.pool.has(key)) Block.pool.set(key, new Map());
    const sizes = Block.pool.get(key);
    if (!sizes.has(size)) sizes.set(size, []);
    return sizes.get(size);
  }

  create(device, size) {
    return device?.createBuffer({ size, usage: STORAGE | SRC | DST }) ?? new Uint8Array(size);
  }

  clear() {
    this.write(new Uint8Array(this.size));
  }

  write(bytes) {
    const { device, data } = this;
    if (!device) return data.set(bytes);
    const whole = new Uint8Array(up(bytes.length, 4));
    whole.set(bytes);
    return this.watch(() => device.queue.writeBuffer(data, 0, whole));
  }

  copyFrom({ data }, size, fault) {
    const { device } = this;
    if (!device) return this.data.set(data.subarray(0, size));
    this.pending = fault;
    return this.watch(() => {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(data, 0, this.data, 0, up(size, 4));
      device.queue.submit([encoder.finish()]);
    });
  }

  /** Runs GPU work, whose error is that of the elements. */
  watch(work) {
    this.device.pushErrorScope("validation");
    work();
    const failed = this.device.popErrorScope();
    const before = this.pending;
    const now = (async () => {
      const inherited = await before;
      const error = await failed.catch((lost) => lost);
      if (inherited) this.error ??= inherited;
      if (error) this.error ??= refuse("ShaderError", error.message);
      if (this.pending === now) this.pending = null;
      return this.error;
    })();
    this.pending = now;
  }

  fault() {
    if (this.lostAs) return Promise.resolve(this.lostAs);
    if (this.error) return Promise.resolve(this.error);
    return this.pending?.then((error) => this.lostAs ?? error) ?? null;
  }

  take() {
    if (this.holds <= 0) throw refuse("ReleasedError", "it was released");
    this.holds++;
  }

  drop() {
    if (--this.holds === 0) this.pool.push(this.data);
  }
}

/** Ends a hold once. */
function ending(block) {
  let held = true;
  return () => {
    if (!held) return;
    held = false;
    block.drop();
  };
}

/** Does nothing: work is submitted as soon as it is known. */
function flush() {}

export class Stranger {
  constructor({ dtype, shape, bytes, device }) {
    Object.assign(this, { dtype, shape: [...shape], bytes: bytes.length, device });
    this.block = new Block(device, up(bytes.length, 16) + 16);
    this.block.write(bytes);
    this.released = false;
  }

  /** Runs GPU work that fails, on which the elements depend from then on. */
  spoil() {
    const gone = this.device.createBuffer({ size: 16, usage: DST });
    gone.destroy();
    this.block.watch(() => {
      const encoder = this.device.createCommandEncoder();
      encoder.copyBufferToBuffer(gone, 0, this.block.data, 0, 16);
      this.device.queue.submit([encoder.finish()]);
    });
  }

  release() {
    if (this.released) return;
    this.released = true;
    this.block.drop();
  }

  /** Checks a request, in the order of X3. */
  read(request = {}) {
    if (typeof request !== "object" || request === null) throw new TypeError("no object");
    const { versions = [1], device = this.device, copy, writes, signal } = request;
    if (!Array.isArray(versions)) throw new TypeError("versions is no list");
    if (typeof device !== "object") throw new TypeError("device is no object");
    if (!versions.includes(1)) throw refuse("UnsupportedError", "only version 1 is supported");
    if (this.block.holds <= 0) throw refuse("ReleasedError", "it was released");
    if (this.block.lostAs) throw this.block.lostAs;
    if (this.block.error) throw this.block.error;
    return { device, copy, writes, signal };
  }

  [EXCHANGE](request) {
    const { device, copy } = this.read(request);
    if (device !== this.device) {
      if (this.device) throw refuse("DeviceError", "it has to be read back");
      if (copy === false) throw refuse("CopyError", "uploading is a copy");
      return this.moved(device);
    }
    return copy ? this.copied() : this.described(this.block, this.device, 0);
  }

  async [ASYNC](request) {
    const { device, copy, signal } = this.read(request);
    signal?.throwIfAborted();
    if (device === this.device || !this.device) return this[EXCHANGE](request);
    if (device) throw refuse("DeviceError", "it is on its own device");
    if (copy === false) throw refuse("CopyError", "reading back is a copy");
    return this.readBack(signal);
  }

  async readBack(signal) {
    const { block, device } = this;
    const size = up(this.bytes, 4) || 4;
    block.take();
    const staging = device.createBuffer({ size, usage: MAP | DST });
    try {
      const fault = block.fault();
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(block.data, 0, staging, 0, size);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(MAP).catch(async (error) => {
        // Only a loss unmaps it, and the browser may report it later.
        await Promise.race([device.lost, new Promise((done) => setTimeout(done, 10_000))]);
        throw block.lostAs ?? error;
      });
      const error = await fault;
      signal?.throwIfAborted();
      if (error) throw error;
      const host = new Block(null, up(this.bytes, 16) + 16);
      host.write(new Uint8Array(staging.getMappedRange(), 0, this.bytes));
      return this.owned(host, null);
    } finally {
      staging.destroy();
      block.drop();
    }
  }

  /** On a GPU, of elements on the CPU. */
  moved(device) {
    const there = new Block(device, this.block.size);
    there.write(this.block.data.subarray(0, this.bytes));
    return this.owned(there, device);
  }

  copied() {
    const { block, device } = this;
    const copy = new Block(device, block.size);
    try {
      copy.copyFrom(block, this.bytes, device && block.fault());
    } catch (error) {
      copy.drop();
      throw error;
    }
    return this.owned(copy, device);
  }

  /** An exchange that alone has its memory. */
  owned(block, device) {
    const exchange = this.described(block, device, 2);
    block.drop();
    return exchange;
  }

  described(block, device, flags) {
    block.take();
    const [code, bits] = DTYPES[this.dtype];
    return {
      version: [1, 1],
      device: { type: device ? 15 : 1, id: 0, gpu: device },
      dtype: { code, bits, lanes: 1 },
      shape: [...this.shape],
      strides: null,
      data: block.data,
      byteOffset: 0,
      capacity: block.size,
      flags,
      flush,
      fault: device ? () => block.fault() : null,
      release: ending(block),
    };
  }
}

export const make = (wanted) => (wanted.dtype in DTYPES ? new Stranger(wanted) : undefined);

export function makeFaulty(wanted) {
  const producer = make(wanted);
  producer?.spoil();
  return producer;
}
