// More than 500 lines: one list of cases, each beside what it breaks.
// Producers that are right in other ways than the plain one, and such that break one rule each.
import { ASYNC, EXCHANGE, fakeDevice, Right, refuse } from "./conformance_parts.mjs";

/** A class whose exchanges are changed by `change(exchange, request, producer)`. */
const saying = (change, Class = Right) =>
  class extends Class {
    [EXCHANGE](request = {}) {
      const exchange = super[EXCHANGE](request);
      return Object.assign(exchange, change(exchange, request, this));
    }
  };

/** A class whose requests are looked at by `check(request, producer)` before they are answered. */
const asking = (check, Class = Right) =>
  class extends Class {
    [EXCHANGE](request) {
      const { [EXCHANGE]: method } = Class.prototype;
      return method.call(this, check(request, this) ?? request);
    }
  };

/** Nobody else has it meanwhile. */
class Exclusive extends Right {
  held = false;

  [EXCHANGE](request) {
    this.check(request);
    if (this.held) throw refuse("BusyError", "somebody has it");
    const exchange = super[EXCHANGE](request);
    this.held = true;
    const { release } = exchange;
    exchange.release = () => {
      release();
      this.held = false;
    };
    exchange.flags |= 8;
    return exchange;
  }
}

/** In WebAssembly memory, which moves when it grows. */
class Moving extends Right {
  memory = new WebAssembly.Memory({ initial: 1 });
  grow = () => this.memory.grow(1);

  constructor(wanted) {
    super(wanted);
    const { memory } = this;
    new Uint8Array(memory.buffer).set(wanted.bytes, 64);
    this.place = { memory, ptr: 64 };
  }

  drop() {
    if (--this.holds === 0) new Uint8Array(this.memory.buffer, 64, this.capacity).fill(0);
  }

  [EXCHANGE](request) {
    return { ...super[EXCHANGE](request), data: this.place };
  }
}

/** In memory that grows whenever another tensor is made. */
class Growing extends Moving {
  static last;

  constructor(wanted) {
    super(wanted);
    Growing.last?.grow();
    Growing.last = this;
  }
}

/** Uploads with others, when it is asked to. */
class Batched extends Right {
  static todo = [];

  static flush = () => {
    for (const run of Batched.todo.splice(0)) run();
  };

  constructor(wanted) {
    super({ ...wanted, bytes: new Uint8Array(wanted.bytes.length) });
    const { device, data } = this;
    this.constructor.todo.push(() =>
      device ? device.queue.writeBuffer(data, 0, wanted.bytes) : data.set(wanted.bytes),
    );
  }

  [EXCHANGE](request) {
    return { ...super[EXCHANGE](request), flush: this.constructor.flush };
  }
}

/** Elements from the last one back, as memory of a module has them above and below `ptr`. */
class Reversed extends Moving {
  constructor(wanted) {
    const { bytes, values, shape } = wanted;
    const size = bytes.length / (values.length || 1);
    super({
      ...wanted,
      bytes: bytes.map((_, i) => bytes[bytes.length - size - i + 2 * (i % size)]),
    });
    this.place.ptr = 64 + Math.max(bytes.length - size, 0);
    const whole = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
    this.strides = whole.map((step) => -step);
    this.capacity = bytes.length ? size : 0;
  }

  drop() {
    this.holds--;
  }

  [EXCHANGE](request) {
    return { ...super[EXCHANGE](request), strides: this.strides };
  }
}

/** Those of which there is only one for the CPU. */
export const ON_CPU = ["Moving", "Growing", "Reversed"];
export const RIGHT = { Right, Exclusive, Moving, Growing, Batched, Reversed };

/** All tensors in one memory, `step` bytes at least apart. */
const slabbed = (step, place) =>
  class Slab extends Right {
    static slab = new Uint8Array(65536);
    static used = 0;
    constructor(wanted) {
      super(wanted);
      const { bytes } = wanted;
      this.data = Slab.slab;
      this.at = Slab.used;
      this.bytes = bytes.length;
      Slab.slab.set(bytes, this.at);
      Slab.used += Math.ceil(bytes.length / step) * step;
    }
    drop() {}
    [EXCHANGE](request = {}) {
      return { ...super[EXCHANGE](request), byteOffset: this.at, capacity: place(this, request) };
    }
  };
const roundedUp = (bytes, step) => Math.ceil(bytes / step) * step;

const said = (fields) => saying(() => fields);
/** Elements with as much before and behind them, which `data` has all of. */
class Wide extends Right {
  constructor(wanted) {
    const { bytes } = wanted;
    const wide = new Uint8Array(3 * bytes.length).fill(0x55);
    wide.set(bytes, bytes.length);
    super({ ...wanted, bytes: wide });
    this.at = bytes.length;
  }

  [EXCHANGE](request) {
    const { at: byteOffset } = this;
    return { ...super[EXCHANGE](request), byteOffset, capacity: byteOffset };
  }
}
/** Elements of the first axis next to each other. */
class Columns extends Right {
  constructor(wanted) {
    const { bytes, shape, dtype } = wanted;
    const [rows, columns] = [...shape, 1, 1];
    const size = bytes.length / (rows * columns || 1);
    const turned = bytes.slice();
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        turned.set(bytes.slice((i * columns + j) * size).slice(0, size), (j * rows + i) * size);
      }
    }
    super({ ...wanted, bytes: shape.length === 2 ? turned : bytes, dtype });
  }
}

/** A rule, what breaks it, whose producers do, and what else the suite is told. */
export const BREAKS = [
  [
    "M1",
    "no plain object",
    class extends Right {
      [EXCHANGE](request) {
        return Object.assign(new (class Exchange {})(), super[EXCHANGE](request));
      }
    },
  ],
  [
    "M1",
    "an array",
    class extends Right {
      [EXCHANGE] = () => [];
    },
  ],
  [
    "M3",
    "throws where it should reject",
    class extends Right {
      [ASYNC](request) {
        const exchange = this[EXCHANGE](request);
        request?.signal?.throwIfAborted();
        return Promise.resolve(exchange);
      }
    },
  ],
  [
    "M3",
    "a hold of a request that was given up, and goes on",
    class extends Right {
      async [ASYNC](request = {}) {
        const { signal } = request;
        signal?.throwIfAborted();
        const answer = (async () => {
          await null;
          return this[EXCHANGE](request);
        })();
        const aborted = new Promise((_, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason));
        });
        return Promise.race([answer, aborted]);
      }
    },
  ],
  [
    "M3",
    "exclusive for a request that was aborted",
    class extends Exclusive {
      async [ASYNC](request = {}) {
        const exchange = this[EXCHANGE](request);
        request.signal?.throwIfAborted();
        return exchange;
      }
    },
  ],
  [
    "M3",
    "exclusive for a request that was aborted meanwhile",
    class extends Exclusive {
      release = undefined;
      async [ASYNC](request = {}) {
        request.signal?.throwIfAborted();
        const exchange = this[EXCHANGE](request);
        await null;
        request.signal?.throwIfAborted();
        return exchange;
      }
    },
  ],
  ["R1", "needs an argument", asking((request) => void request.copy)],
  [
    "R1",
    "knows all fields",
    asking((request) => {
      if (request && "later" in request) throw new Error("what is later?");
    }),
  ],
  [
    "R1",
    "undefined is not absent",
    asking((request) => {
      if (request && "copy" in request && request.copy === undefined) throw new TypeError("copy?");
    }),
  ],
  [
    "R2",
    "does not look at versions",
    asking((request) =>
      Array.isArray(request?.versions) ? { ...request, versions: [1] } : request,
    ),
  ],
  [
    "R2",
    "looks at the first version",
    asking((request) => {
      if (request?.versions?.[0] === 99) throw refuse("UnsupportedError", "99");
    }),
  ],
  [
    "R2",
    "an error without a name",
    asking((request) => {
      if (Array.isArray(request?.versions) && !request.versions.includes(1)) throw new Error("no");
    }),
  ],
  [
    "R3",
    "does not look at the device",
    asking((request) => {
      if (typeof request?.device === "object") return { ...request, device: undefined };
    }),
    { device: fakeDevice() },
  ],
  [
    "R3",
    "an error without a name",
    asking((request, { device }) => {
      const { device: wanted = device } = request ?? {};
      if (typeof wanted === "object" && wanted !== device) throw new Error("not there");
    }),
    { device: fakeDevice() },
  ],
  [
    "R7",
    "any versions",
    asking((request) => {
      const { versions } = request ?? {};
      if (versions !== undefined && !Array.isArray(versions)) return { ...request, versions: [1] };
    }),
  ],
  [
    "R7",
    "another name",
    asking((request) => {
      if (typeof (request?.device ?? null) !== "object") throw refuse("DeviceError", "no device");
    }),
  ],
  ["F1", "no list", said({ version: "1.0" })],
  ["F1", "no pair", said({ version: [1] })],
  ["F1", "three numbers", said({ version: [1, 1, 0] })],
  ["F1", "another version", said({ version: [2, 0] })],
  ["F2", "a type of its own", said({ device: { type: 2, id: 0, gpu: null } })],
  ["F2", "no id", said({ device: { type: 1, gpu: null } })],
  ["F3", "a name", said({ dtype: "float32" })],
  ["F3", "another dtype", said({ dtype: { code: 1, bits: 32, lanes: 1 } })],
  ["F4", "a typed array", saying(({ shape }) => ({ shape: Int32Array.from(shape) }))],
  ["F4", "another shape", saying(({ shape }) => ({ shape: [...shape].reverse() }))],
  ["F4", "0-d is 1-d", saying(({ shape }) => ({ shape: shape.length ? shape : [1] }))],
  ["F5", "undefined", said({ strides: undefined })],
  ["F5", "not as many as dimensions", saying(({ shape }) => ({ strides: [...shape, 1] }))],
  ["F5", "columns, called rows", Columns],
  ["F6", "an ArrayBuffer", saying(({ data }) => ({ data: data.buffer }))],
  ["F6", "null", said({ data: null })],
  ["F7", "negative", said({ byteOffset: -4 })],
  ["F7", "as text", said({ byteOffset: "0" })],
  ["F7", "not where element 0 is", saying(() => ({ byteOffset: 0 }), Wide)],
  ["F8", "no capacity", said({ capacity: undefined })],
  ["F9", "a flag that there is not", said({ flags: 16 })],
  ["F9", "a flag that 1.1 has not either", said({ version: [1, 1], flags: 16 })],
  ["F9", "a negative mask", said({ flags: -1 })],
  ["F10", "no flush", said({ flush: undefined })],
  [
    "F10",
    "flush needs this",
    said({
      flush() {
        this.flags.toString();
      },
    }),
  ],
  ["F11", "no release", said({ release: null })],
  ["F12", "a fraction", saying(({ capacity }) => ({ capacity: capacity + 0.5 }))],
  ["F12", "NaN", said({ byteOffset: Number.NaN })],
  ["F12", "too large", said({ strides: [2 ** 53, 1] })],
  ["F13", "padded, and a word wide", said({ flags: 4 })],
  [
    "F13",
    "packed and strided",
    saying(({ shape }) => ({ strides: shape })),
    { dtypes: ["int4"], all: true },
  ],
  [
    "F14",
    "a getter that counts",
    saying((exchange) => {
      let looks = 0;
      const get = () => (looks++ === 0 ? 0 : 4);
      Object.defineProperty(exchange, "byteOffset", { get });
      return {};
    }),
  ],
  ["F15", "a fault that is no function", said({ fault: "none" })],
  ["F15", "a fault on the CPU", said({ fault: () => null })],
  [
    "E2",
    "a fault of elements that are well",
    said({ fault: async () => new Error("it failed") }),
    { device: fakeDevice(), on: "gpu" },
  ],
  ["S1", "elements behind the end", saying(({ capacity }) => ({ byteOffset: capacity }))],
  ["S1", "strides that leave the memory", saying(({ shape }) => ({ strides: shape.map(() => 9) }))],
  [
    "S2",
    "a buffer that is not the current one",
    class extends Moving {
      [EXCHANGE](request) {
        const { buffer } = this.memory;
        return { ...super[EXCHANGE](request), data: { memory: { buffer }, ptr: 64 } };
      }
    },
  ],
  [
    "S3",
    "a view of memory that grows",
    saying(
      (_, __, { memory, capacity }) => ({
        data: new Uint8Array(memory.buffer, 64, capacity),
      }),
      Moving,
    ),
  ],
  [
    "S3",
    "memory that is transferred",
    saying((_, __, producer) => {
      producer.release = () => structuredClone(producer.data, { transfer: [producer.data.buffer] });
      return {};
    }),
  ],
  ["S5", "too little capacity", saying(({ capacity }) => ({ capacity: capacity - 1 }))],
  ["S5", "capacity behind the end", saying(({ capacity }) => ({ capacity: capacity + 1 }))],
  ["S5", "capacity with the neighbour's bytes", slabbed(16, ({ at }) => 65536 - at)],
  [
    "S5",
    "capacity that is rounded up over the neighbour",
    slabbed(4, ({ bytes }) => roundedUp(bytes, 16)),
  ],
  [
    "S5",
    "a neighbour counted because padTo asks for padding",
    slabbed(16, ({ bytes }, { needs }) => roundedUp(bytes, needs?.padTo ?? 1)),
  ],
  [
    "S9",
    "capacity without elements behind the end",
    saying(({ capacity, shape }) =>
      shape.includes(0) ? { byteOffset: 99, capacity: 16 } : { capacity },
    ),
  ],
  [
    "S6",
    "dirty padding where padTo asks for some",
    class Grown extends Right {
      static old = [];
      constructor(wanted) {
        super(wanted);
        this.dirt = Grown.old.findLast((bytes) => bytes.length >= 64);
      }
      drop() {
        if (--this.holds === 0) Grown.old.push(this.data);
      }
      [EXCHANGE](request = {}) {
        const exchange = super[EXCHANGE](request);
        if (!request.needs?.padTo) return exchange;
        const capacity = roundedUp(this.data.length, request.needs.padTo);
        const data = new Uint8Array(capacity);
        if (this.dirt) data.set(this.dirt.subarray(0, capacity));
        data.set(this.data);
        return { ...exchange, data, capacity, flags: 2 };
      }
    },
  ],
  [
    "S8",
    "true is 255",
    class extends Right {
      constructor(wanted) {
        super({ ...wanted, bytes: wanted.bytes.map((byte) => (byte ? 255 : 0)) });
      }
    },
    { dtypes: ["bool"] },
  ],
  [
    "S8",
    "the last of an odd number of int4 is lost",
    class extends Right {
      constructor(wanted) {
        const { bytes, values } = wanted;
        if (wanted.dtype === "int4" && values.length % 2) bytes[bytes.length - 1] = 0;
        super(wanted);
      }
    },
    { dtypes: ["float32", "int4"], all: true },
  ],
  [
    "T1",
    "flush that does not submit",
    class extends Batched {
      static todo = [];
      static flush = () => {};
    },
    { device: fakeDevice(), on: "gpu" },
  ],
  ["T2", "flush that is a promise", said({ flush: async () => {} })],
  [
    "T2",
    "flush that does not write",
    class extends Batched {
      static todo = [];
      static flush = () => {};
    },
  ],
  [
    "T4",
    "a flush for all that does the last one's",
    class Last extends Batched {
      static todo = [];
      static flush = () => Last.todo.pop()?.();
    },
  ],
  [
    "O4",
    "elements that are kept and not read again",
    saying(({ data }, { writes }, producer) => {
      producer.kept ??= data.slice();
      return writes ? {} : { data: producer.kept };
    }),
  ],
  ["O5", "exclusive for several", said({ flags: 8 })],
  [
    "O5",
    "exclusive, refused by another name",
    asking((request, producer) => {
      producer.check(request);
      if (producer.held) throw refuse("ReleasedError", "it is away");
    }, Exclusive),
  ],
  [
    "O7",
    "a state that a second request overwrites",
    class extends Right {
      [EXCHANGE](request = {}) {
        if (Object(request) !== request) throw new TypeError("no request");
        const { versions, device } = request;
        this.now = super[EXCHANGE]({ versions, device });
        if (!request.copy) return this.now;
        this.now.release();
        throw refuse("UnsupportedError", "no copies are made");
      }
    },
  ],
  [
    "D1",
    "a device that is another object",
    saying((exchange, request, { device }) =>
      device && !request.device ? { device: { ...exchange.device, gpu: { ...device } } } : {},
    ),
    { device: fakeDevice(), on: "gpu" },
  ],
  [
    "X2",
    "a hold that remains after an error",
    class extends Exclusive {
      check(request) {
        const { held } = this;
        this.held = true;
        super.check(request);
        this.held = held;
      }
    },
  ],
];
