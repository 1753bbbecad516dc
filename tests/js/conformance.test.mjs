// The suite of dlpack-web/conformance: right ones pass, and whoever breaks one rule is found by it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { conformance, consumerConformance } from "../../js/dist/conformance/index.js";
import { ASYNC, EXCHANGE, fakeDevice, Reader, Right, refuse } from "./conformance_parts.mjs";

const WHOLE = /^(u?int(8|16|32|64)|b?float\d+|complex\d+|bool)$/;
const idsOf = ({ rules }, which) => rules.filter(which).map((rule) => rule.id);
const broken = (report) => idsOf(report, (rule) => !rule.ok);
const skipped = (report) => idsOf(report, (rule) => rule.skipped);
const messageOf = ({ rules }, id) => rules.find((rule) => rule.id === id).message;

/** What is found out about producers of a class. */
function producers(Class, { device = null, dtypes = ["float32", "int16"], ...options } = {}) {
  const make = (wanted) => (WHOLE.test(wanted.dtype) ? new Class(wanted) : undefined);
  return conformance({ make, device, dtypes, ...options });
}

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

/** Refuses, copies and lends as those do who can do everything. */
class Able extends Right {
  check({ copy, ...request } = {}) {
    super.check(request);
  }

  [EXCHANGE](request = {}) {
    const exchange = super[EXCHANGE](request);
    const { data, device } = this;
    if (request.copy) {
      exchange.flags |= 2;
      if (device) {
        exchange.data = device.createBuffer({ size: data.size, usage: 128 | 4 | 8 });
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(data, 0, exchange.data, 0, data.size);
        device.queue.submit([encoder.finish()]);
      } else {
        exchange.data = data.slice();
      }
    }
    return exchange;
  }
}

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

/** Buffers that are used again, with what was in them behind the elements. */
class Pooled extends Right {
  static pool = [];

  constructor(wanted) {
    super(wanted);
    const padded = new Uint8Array(Math.max(256, wanted.bytes.length));
    this.data = this.constructor.pool.pop() ?? padded;
    this.capacity = this.data.length;
    this.fill(wanted.bytes);
  }

  fill(bytes) {
    this.data.fill(0);
    this.data.set(bytes);
  }

  drop() {
    if (--this.holds === 0) this.constructor.pool.push(this.data);
  }
}

const ON_CPU = ["Moving", "Pooled"];
const RIGHT = { Right, Able, Exclusive, Moving, Batched, Pooled };
for (const [name, Class] of Object.entries(RIGHT)) {
  for (const device of ON_CPU.includes(name) ? [null] : [null, fakeDevice()]) {
    test(`a right producer breaks nothing: ${name} on ${device ? "a GPU" : "the CPU"}`, async () => {
      const report = await producers(Class, { device, dtypes: undefined });
      assert.deepEqual(
        report.rules.filter((rule) => !rule.ok),
        [],
      );
      assert.ok(report.ok);
    });
  }
}

test("all rules that can be tested are, one way or another", async () => {
  const device = fakeDevice();
  const reports = await Promise.all(
    Object.values(RIGHT).map((Class) =>
      producers(Class, { device: Class === Moving || Class === Pooled ? null : device }),
    ),
  );
  const never = reports.map(skipped).reduce((a, b) => a.filter((id) => b.includes(id)));
  assert.deepEqual(never, ["F13"]);
});

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
const BREAKS = [
  [
    "M1",
    "one object for all calls",
    class extends Right {
      [EXCHANGE](request) {
        this.only ??= super[EXCHANGE](request);
        return this.only;
      }
    },
  ],
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
    "M2",
    "a promise",
    class extends Right {
      async [EXCHANGE](request) {
        return super[EXCHANGE](request);
      }
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
    "no promise",
    class extends Right {
      [ASYNC](request) {
        return this[EXCHANGE](request);
      }
    },
  ],
  [
    "M3",
    "does not look at the signal",
    class extends Right {
      async [ASYNC](request) {
        return this[EXCHANGE](request);
      }
    },
  ],
  [
    "M3",
    "rejects with an error of its own",
    class extends Right {
      async [ASYNC](request) {
        if (request?.signal?.aborted) throw new Error("aborted");
        return this[EXCHANGE](request);
      }
    },
  ],
  [
    "M3",
    "never settles",
    class extends Right {
      [ASYNC] = () => new Promise(() => {});
    },
    { timeoutMs: 100 },
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
  ["R4", "a copy without flag 2", saying(({ flags }) => ({ flags: flags & ~2 }), Able)],
  [
    "R4",
    "flag 2 without a copy",
    saying((_, { copy }, { data }) => (copy ? { data, flags: 2 } : {}), Able),
  ],
  ["R4", "a copy in answer to copy: false", saying(({ data }) => ({ data: data.slice() }), Able)],
  [
    "R4",
    "an empty copy",
    saying(({ data }, { copy }) => (copy ? { data: data.slice().fill(0) } : {}), Able),
  ],
  ["R5", "read-only memory for who writes", said({ flags: 1 })],
  [
    "R5",
    "an error without a name",
    asking((request) => {
      if (request?.writes) throw new Error("no");
    }),
  ],
  [
    "R6",
    "needs are none of its business",
    asking((request) => {
      if (request?.needs?.padTo) throw refuse("UnsupportedError", "padTo");
    }),
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
    "any device",
    asking((request) => {
      const { device } = request ?? {};
      if (device !== undefined && typeof device !== "object")
        return { ...request, device: undefined };
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
  ["F1", "another version", said({ version: [2, 0] })],
  ["F2", "a type of its own", said({ device: { type: 2, id: 0, gpu: null } })],
  ["F2", "no id", said({ device: { type: 1, gpu: null } })],
  ["F2", "no gpu", said({ device: { type: 15, id: 0, gpu: null } })],
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
  ["F9", "a negative mask", said({ flags: -1 })],
  ["F9", "padded, and a word wide", said({ flags: 4 })],
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
  [
    "F14",
    "a shape that the tensor goes on with",
    saying((_, __, producer) => {
      producer.release = () => {
        producer.shape.length = 0;
        producer.drop();
      };
      return { shape: producer.shape };
    }),
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
  [
    "S5",
    "capacity with the neighbour's bytes",
    class Slab extends Right {
      static slab = new Uint8Array(65536);
      static used = 0;
      constructor(wanted) {
        super(wanted);
        this.data = Slab.slab;
        this.at = Slab.used;
        Slab.slab.set(wanted.bytes, this.at);
        Slab.used += wanted.bytes.length + (-wanted.bytes.length & 15);
      }
      drop() {}
      [EXCHANGE](request) {
        const place = { byteOffset: this.at, capacity: 65536 - this.at };
        return { ...super[EXCHANGE](request), ...place };
      }
    },
  ],
  [
    "S6",
    "padding that shows another tensor",
    class Dirty extends Pooled {
      static pool = [];
      fill(bytes) {
        this.data.set(bytes);
      }
    },
  ],
  [
    "S8",
    "big-endian",
    class extends Right {
      constructor(wanted) {
        super({ ...wanted, bytes: new DataView(wanted.bytes.buffer) && swapped(wanted) });
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
    "T1",
    "flush that is a promise",
    saying(() => ({ flush: async () => {} })),
    { device: fakeDevice(), on: "gpu" },
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
    "T5",
    "one memory for all exchanges",
    class Staged extends Right {
      static staging = new Uint8Array(1024);
      [EXCHANGE](request) {
        const data = Staged.staging.subarray(0, this.data.length);
        return { ...super[EXCHANGE](request), data, flush: () => data.set(this.data) };
      }
    },
  ],
  [
    "O1",
    "the user's release frees",
    class extends Right {
      release = () => {
        this.holds = 0;
        this.drop();
      };
    },
  ],
  [
    "O1",
    "any release frees",
    class extends Right {
      drop() {
        this.holds = 0;
        super.drop();
      }
    },
  ],
  [
    "O2",
    "release that counts every call",
    saying((_, __, producer) => ({ release: () => producer.drop() })),
  ],
  [
    "O2",
    "release that throws the second time",
    saying(({ release }) => {
      let calls = 0;
      return {
        release() {
          release();
          if (calls++) throw new Error("again?");
        },
      };
    }),
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
    "D1",
    "a device that is another object",
    saying((exchange, request, { device }) =>
      device && !request.device ? { device: { ...exchange.device, gpu: { ...device } } } : {},
    ),
    { device: fakeDevice(), on: "gpu" },
  ],
  [
    "X1",
    "an error without a name",
    asking((_, { holds }) => {
      if (holds <= 0) throw new Error("gone");
    }),
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

function swapped({ bytes, values }) {
  const size = bytes.length / (values.length || 1);
  return bytes.map((_, i) => bytes[i - (i % size) + size - 1 - (i % size)]);
}

for (const [id, what, Class, { on, all, dtypes = ["float32"], ...options } = {}] of BREAKS) {
  test(`a producer that breaks ${id}: ${what}`, async () => {
    const fits = ({ dtype, device }) =>
      (all || WHOLE.test(dtype)) && (on === "gpu" ? device : !device || options.device);
    const make = (wanted) => (fits(wanted) ? new Class(wanted) : undefined);
    const report = await conformance({ make, dtypes, ...options });
    assert.deepEqual(
      report.rules.filter((rule) => !rule.ok).map((rule) => [rule.id]),
      [[id]],
      JSON.stringify(report.rules.filter((rule) => !rule.ok)),
    );
    assert.equal(report.ok, false);
  });
}

test("there is a broken producer for each rule", async () => {
  const { rules } = await producers(Right);
  const seen = new Set(BREAKS.map(([id]) => id));
  assert.deepEqual(
    rules.map(({ id }) => id).filter((id) => !seen.has(id)),
    [],
  );
});

/** What is found out about a reader, of elements that are enough for most. */
const consumers = (reader, options = {}) =>
  consumerConformance({
    consume: (x, given) => reader.consume(x, given),
    dtypes: ["float32", "int16"],
    ...options,
  });

for (const device of [null, fakeDevice()]) {
  test(`a right consumer breaks nothing on ${device ? "a GPU" : "the CPU"}`, async () => {
    const report = await consumers(new Reader(), { device, dtypes: undefined });
    assert.deepEqual(
      report.rules.filter((rule) => !rule.ok),
      [],
    );
    assert.deepEqual(skipped(report), device ? [] : ["N1"]);
  });
}

/** A reader with other ways of doing this or that. */
const but = (ways) => Object.assign(new Reader(), ways);
const { check, read, elements } = Reader.prototype;
/** One that finds nothing wrong with what `right` makes of a field. */
const believing = (right) =>
  but({
    check(fields, ...rest) {
      return check.call(this, { ...fields, ...right(fields) }, ...rest);
    },
    read(fields, device) {
      return read.call(this, { ...fields, ...right(fields, true) }, device);
    },
  });

const BAD_READERS = [
  ["M1", "gives no elements", but({ elements: () => 5 })],
  [
    "R2",
    "asks for other versions",
    but({ ask: (x, { device }) => x[EXCHANGE]({ versions: [2], device }) }),
  ],
  [
    "R2",
    "asks for no list",
    but({ ask: (x, request) => x[EXCHANGE]({ ...request, versions: 1 }) }),
  ],
  [
    "R3",
    "asks for a device by name",
    but({ ask: (x, request) => x[EXCHANGE]({ ...request, device: "cpu" }) }),
  ],
  [
    "R4",
    "asks for a copy by another word",
    but({ ask: (x, request) => x[EXCHANGE]({ ...request, copy: "no" }) }),
  ],
  [
    "R5",
    "writes",
    but({
      elements(view, fields) {
        const got = elements.call(this, view, fields);
        if (got.length) view.setUint8(fields.byteOffset, 99);
        return got;
      },
    }),
  ],
  [
    "F2",
    "any device type without a gpu",
    but({
      check(fields, wanted, copy) {
        const { gpu } = fields.device;
        const device = gpu ? fields.device : { type: wanted ? 15 : 1, gpu: wanted };
        check.call(this, { ...fields, device }, wanted, copy);
      },
    }),
  ],
  [
    "F3",
    "what it does not know is float32",
    believing(({ dtype: { code, bits, lanes } }) => ({
      dtype:
        code === 99 || bits === 7 || lanes === 0
          ? { code: 2, bits: 32, lanes: 1 }
          : { code, bits, lanes },
    })),
  ],
  ["F4", "negative shapes", believing(({ shape }) => ({ shape: shape?.map?.(Math.abs) ?? shape }))],
  [
    "F5",
    "strides without a list",
    believing(({ strides, shape }) => ({
      strides: strides?.length === shape?.length ? strides : null,
    })),
  ],
  [
    "F5",
    "does not look at strides",
    but({
      elements(view, fields) {
        return elements.call(this, view, { ...fields, strides: null });
      },
    }),
  ],
  [
    "F6",
    "anything for data",
    but({
      sizeOf: (data) =>
        data?.size ??
        data?.byteLength ??
        (data?.memory ? data.memory.buffer.byteLength - data.ptr : 24),
      read(fields, device) {
        return fields.data?.buffer || fields.data?.memory || fields.data?.size
          ? read.call(this, fields, device)
          : [0];
      },
    }),
  ],
  [
    "F7",
    "does not look at the offset",
    but({
      elements(view, fields) {
        return elements.call(this, view, { ...fields, byteOffset: 0 });
      },
    }),
  ],
  [
    "F7",
    "a negative offset is none",
    believing(({ byteOffset }) => ({ byteOffset: byteOffset < 0 ? 0 : byteOffset })),
  ],
  [
    "F8",
    "all of the capacity is elements",
    but({
      elements(view, fields) {
        const { shape, strides, capacity, dtype } = fields;
        const more = strides === null && shape.length === 2 && capacity > 24 && !fields.byteOffset;
        return elements.call(
          this,
          view,
          more ? { ...fields, shape: [(capacity * 8) / dtype.bits] } : fields,
        );
      },
    }),
  ],
  [
    "F9",
    "no elements that may only be read",
    but({
      check(fields, ...rest) {
        if (fields.flags & 1) throw refuse("CopyError", "it is read-only");
        return check.call(this, fields, ...rest);
      },
    }),
  ],
  [
    "F12",
    "fractions are cut off",
    believing(({ shape, strides, byteOffset }) => ({
      shape: shape?.map?.((dim) => Math.min(Math.trunc(dim) || 0, 1e9)) ?? shape,
      strides: strides?.map?.(Math.trunc) ?? strides,
      byteOffset: Math.trunc(byteOffset) || 0,
    })),
  ],
  [
    "F13",
    "strided, and packed",
    but({
      check(fields, ...rest) {
        if (fields.dtype?.bits !== 4) check.call(this, fields, ...rest);
        else if (!fields.strides) throw refuse("UnsupportedError", "int4");
      },
      read(fields, device) {
        return fields.dtype.bits === 4 ? [0] : read.call(this, fields, device);
      },
    }),
  ],
  [
    "F14",
    "turns the shape round",
    but({
      read(fields, device) {
        const got = read.call(this, fields, device);
        fields.shape.push(1);
        return got;
      },
    }),
  ],
  [
    "S1",
    "does not look where elements are",
    but({
      sizeOf: (data, device) =>
        (device ? data?.size : (data?.byteLength ?? data?.memory?.buffer.byteLength)) === undefined
          ? new Reader().unsupported("data")
          : Number.MAX_SAFE_INTEGER,
      elements(view, fields) {
        try {
          return elements.call(this, view, fields);
        } catch {
          return [];
        }
      },
    }),
  ],
  [
    "S1",
    "looks twice",
    but({
      ask(x, request) {
        const exchange = x[EXCHANGE](request);
        if (exchange.version[0] === 1) void exchange.shape;
        return exchange;
      },
    }),
  ],
  [
    "S2",
    "keeps the view that it made before flush()",
    but({
      read(fields) {
        const { buffer } = fields.data.memory ?? fields.data;
        const view = new DataView(buffer, fields.data.ptr ?? fields.data.byteOffset);
        fields.flush();
        return this.elements(view, fields);
      },
    }),
  ],
  [
    "S4",
    "no shared memory",
    but({
      read(fields, device) {
        if (fields.data.buffer instanceof SharedArrayBuffer)
          throw refuse("CopyError", "it is shared");
        return read.call(this, fields, device);
      },
    }),
  ],
  [
    "S7",
    "writes next to the elements",
    but({
      elements(view, fields) {
        if (fields.byteOffset >= 4 && !fields.strides) view.setUint8(fields.byteOffset - 1, 0);
        return elements.call(this, view, fields);
      },
    }),
  ],
  [
    "T3",
    "reads before flush()",
    but({
      read(fields, device) {
        const got = read.call(this, { ...fields, flush() {} }, device);
        fields.flush();
        return got;
      },
    }),
  ],
  [
    "T3",
    "does not flush",
    but({
      read(fields, device) {
        return read.call(this, { ...fields, flush() {} }, device);
      },
    }),
  ],
  ["O2", "does not release what it read", but({ done() {} })],
  [
    "O2",
    "releases twice",
    but({
      done(exchange) {
        exchange.release();
        exchange.release();
      },
    }),
  ],
  [
    "O3",
    "reads after release()",
    but({
      read(fields, device) {
        fields.flush();
        fields.release();
        return read.call(this, { ...fields, flush() {} }, device);
      },
      done() {},
    }),
  ],
  ["O4", "says that it wrote", but({ done: (exchange) => exchange.release(true) })],
  ["O4", "passes something on", but({ done: (exchange) => exchange.release({}) })],
  [
    "O6",
    "reads any version",
    but({ ask: (x, request) => ({ ...x[EXCHANGE](request), version: [1, 0] }) }),
  ],
  [
    "O6",
    "releases any version",
    but({
      ask(x, request) {
        const exchange = x[EXCHANGE](request);
        if (exchange.version[0] !== 1) exchange.release();
        return exchange;
      },
    }),
  ],
  [
    "D1",
    "any device is the right one",
    but({
      check(fields, wanted, copy) {
        const { gpu } = fields.device;
        const device = gpu ? { type: wanted ? 15 : 1, gpu: wanted } : fields.device;
        check.call(this, { ...fields, device }, wanted, copy);
      },
    }),
  ],
  [
    "N1",
    "copies nothing",
    but({
      check(fields, ...rest) {
        check.call(this, fields, ...rest);
        if (fields.data.usage === 12) throw refuse("CopyError", "no STORAGE");
      },
    }),
    { device: fakeDevice() },
  ],
  [
    "N3",
    "takes copies",
    but({
      check(fields, wanted) {
        check.call(this, fields, wanted);
      },
    }),
  ],
  [
    "X1",
    "errors without a name",
    but({
      unsupported(text) {
        throw new Error(text);
      },
    }),
  ],
  [
    "X1",
    "a name of its own for others' errors",
    but({
      ask(x, request) {
        try {
          return x[EXCHANGE](request);
        } catch (cause) {
          throw refuse("UnsupportedError", cause.message);
        }
      },
    }),
  ],
  ["X2", "holds what it cannot use", but({ give() {} })],
  [
    "X2",
    "an error of release() instead of its own",
    but({ give: (exchange) => exchange.release() }),
  ],
  [
    "V1",
    "no newer minor version",
    but({
      check(fields, ...rest) {
        if (fields.version[1] > 0) this.unsupported("minor version");
        check.call(this, fields, ...rest);
      },
    }),
  ],
];

for (const [id, what, reader, options] of BAD_READERS) {
  test(`a consumer that breaks ${id}: ${what}`, async () => {
    const report = await consumers(reader, options);
    assert.deepEqual(broken(report), [id], JSON.stringify(report.rules.filter((rule) => !rule.ok)));
  });
}

test("there is a broken consumer for each rule", async () => {
  const { rules } = await consumers(new Reader());
  const seen = new Set(BAD_READERS.map(([id]) => id));
  assert.deepEqual(
    rules.map(({ id }) => id).filter((id) => !seen.has(id)),
    [],
  );
});

const UNFIT = [
  [
    "throws",
    () => {
      throw new Error("no factory today");
    },
    /threw Error: no factory today/,
  ],
  [
    "rejects",
    async () => {
      throw new Error("not now");
    },
    /threw Error: not now/,
  ],
  ["never settles", () => new Promise(() => {}), /did not end within 50 ms/],
  ["gives null", () => null, /gave null, without \[Symbol.for\("dlpack.exchange"\)\]/],
  ["gives a number", () => 5, /gave 5, without/],
  ["gives an empty object", () => ({}), /gave \[object Object\], without/],
  [
    "gives an exchange",
    (wanted) => new Right(wanted)[EXCHANGE](),
    /gave \[object Object\], without/,
  ],
  ["makes nothing", () => undefined, /make made nothing that could be tested/],
];
for (const [what, make, message] of UNFIT) {
  test(`a factory that ${what} is told of, and the suite ends`, async () => {
    const report = await conformance({ make, device: fakeDevice(), timeoutMs: 50 });
    assert.deepEqual(broken(report), ["M1"]);
    assert.match(messageOf(report, "M1"), message);
    assert.equal(skipped(report).length, report.rules.length - 1);
  });
}

test("a consumer that throws, hangs or gives nothing is told of", async () => {
  const throws = await consumerConformance({ consume: () => Promise.reject(new Error("never")) });
  assert.deepEqual(broken(throws), ["X1"]);
  const never = await consumerConformance({ consume: () => new Promise(() => {}), timeoutMs: 50 });
  assert.deepEqual(broken(never), ["M1"]);
  assert.match(messageOf(never, "M1"), /consume did not end within 50 ms/);
  const nothing = await consumerConformance({ consume() {} });
  assert.deepEqual(broken(nothing), ["M1"]);
});

test("options that make no sense are told of", async () => {
  for (const report of [
    await conformance(),
    await conformance({ make: 5 }),
    await consumerConformance({}),
  ]) {
    assert.deepEqual(broken(report), ["M1"]);
  }
  const report = await producers(Right, { dtypes: ["float32", "float31"] });
  assert.deepEqual(broken(report), ["F3"]);
  assert.match(messageOf(report, "F3"), /"float31"/);
});

test("hostile options do not reject the promise", async () => {
  const hostile = {
    get [EXCHANGE]() {
      throw new Error("a getter");
    },
  };
  const thrown = Object.defineProperty(new Error(), "name", {
    get() {
      throw new Error("a name");
    },
  });
  for (const make of [
    () => hostile,
    () => ({ [EXCHANGE]: () => ({ __proto__: null }) }),
    () => ({ [EXCHANGE]: () => new Proxy({}, { get: () => Symbol("?") }) }),
    () => ({
      [EXCHANGE]() {
        throw thrown;
      },
    }),
    () => ({
      [EXCHANGE]() {
        throw null;
      },
    }),
  ]) {
    assert.equal((await conformance({ make })).ok, false);
  }
});

test("one that never settles costs its own time, and others none", async () => {
  const began = performance.now();
  await Promise.all([producers(Right), consumers(new Reader())]);
  assert.ok(performance.now() - began < 10_000);
});
