// More than 500 lines: one list of cases, each beside what it breaks.
// Consumers that break one rule each.
import { EXCHANGE, fakeDevice, Reader, refuse } from "./conformance_parts.mjs";

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

export const BAD_READERS = [
  ["M1", "gives no elements", but({ elements: () => 5 })],
  [
    "M1",
    "calls without this",
    but({
      ask(x, request) {
        const { [EXCHANGE]: method } = x;
        return method(request);
      },
    }),
  ],
  [
    "R2",
    "names 2, which it cannot read",
    but({ ask: (x, request) => x[EXCHANGE]({ ...request, versions: [2, 1] }) }),
  ],
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
    "F2",
    "any gpu on the CPU",
    but({
      check(fields, wanted, copy) {
        const device = fields.device.type === 1 ? { type: 1, gpu: null } : fields.device;
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
    "F13",
    "flag 4, whatever the width",
    but({
      check(fields, ...rest) {
        check.call(this, fields, ...rest);
        if (fields.flags & 4) this.unsupported("padded elements");
      },
    }),
  ],
  [
    "F13",
    "elements that flag 4 makes a byte wide, whatever the width",
    but({
      elements(view, fields) {
        const dtype = fields.flags & 4 ? { ...fields.dtype, bits: 8, code: 1 } : fields.dtype;
        return elements.call(this, view, { ...fields, dtype });
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
    "F15",
    "needs a fault() that is a function",
    but({ faultOf: ({ fault }) => (fault === null ? refuse("TypeError", "no fault") : fault?.()) }),
    { device: fakeDevice() },
  ],
  [
    "F15",
    "needs a promise of fault()",
    but({ faultOf: ({ fault }) => fault?.().then((error) => error) }),
    { device: fakeDevice() },
  ],
  [
    "S1",
    "nothing below ptr",
    but({
      read(fields, device) {
        const { data, strides } = fields;
        const below = data.memory && strides?.some((step) => step < 0);
        return read.call(this, below ? { ...fields, strides: [3, 1] } : fields, device);
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
        if (this.knows(exchange.version)) void exchange.shape;
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
        if (fields.byteOffset >= 4 && fields.byteOffset < 99 && !fields.strides)
          view.setUint8(fields.byteOffset - 1, 0);
        return elements.call(this, view, fields);
      },
    }),
  ],
  [
    "S9",
    "looks where elements begin that there are not",
    but({
      check(fields, wanted, copy) {
        check.call(this, fields, wanted, copy);
        if (fields.byteOffset > this.sizeOf(fields.data, wanted)) this.unsupported("byteOffset");
      },
    }),
  ],
  [
    "T3",
    "reads though flush() failed",
    but({
      read(fields, device) {
        const flush = () => {
          try {
            fields.flush();
          } catch {}
        };
        return read.call(this, { ...fields, flush }, device);
      },
    }),
  ],
  [
    "T3",
    "another error for that of flush()",
    but({
      read(fields, device) {
        const flush = () => {
          try {
            fields.flush();
          } catch {
            this.unsupported("flush() failed");
          }
        };
        return read.call(this, { ...fields, flush }, device);
      },
    }),
  ],
  ["E3", "does not look at faults", but({ faultOf: () => null }), { device: fakeDevice() }],
  [
    "E3",
    "does not wait for faults",
    but({ faultOf: ({ fault }) => void fault?.() }),
    { device: fakeDevice() },
  ],
  [
    "E3",
    "asks before flush()",
    but({
      check(fields, ...rest) {
        check.call(this, fields, ...rest);
        fields.fault?.();
      },
    }),
    { device: fakeDevice() },
  ],
  [
    "E3",
    "asks after release()",
    but({
      async readBuffer(fields, device) {
        const got = await Reader.prototype.readBuffer.call(this, fields, device);
        const error = await fields.fault?.();
        if (error) throw error;
        return got;
      },
      faultOf: () => null,
    }),
    { device: fakeDevice() },
  ],
  [
    "E3",
    "an error of its own for faults",
    but({
      failed: ({ name }) => refuse(name === "DeviceLostError" ? name : "DeviceError", "it failed"),
    }),
    { device: fakeDevice() },
  ],
  [
    "E4",
    "a name of its own for lost devices",
    but({
      failed: (cause) => Object.assign(refuse("DeviceError", "it failed"), { cause }),
    }),
    { device: fakeDevice() },
  ],
  [
    "X1",
    "a name of its own for lost devices that producers know of",
    but({
      ask(x, request) {
        try {
          return x[EXCHANGE](request);
        } catch (error) {
          throw error.name === "DeviceLostError" ? refuse("DeviceError", error.message) : error;
        }
      },
    }),
  ],
  [
    "O7",
    "one exchange at a time",
    but({
      ask(x, request) {
        this.exchange = x[EXCHANGE](request);
        return this.exchange;
      },
      done() {
        this.exchange.release();
      },
    }),
  ],
  [
    "O7",
    "one view for all",
    but({
      read(fields, device) {
        const { data } = fields;
        this.data = data;
        fields.flush();
        return read.call(this, { ...fields, data: this.data, flush() {} }, device);
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
  ["O6", "reads any version", but({ knows: () => true })],
  ["O6", "takes a version of one number", but({ knows: (version) => version?.[0] === 1 })],
  ["O6", "takes a version by its digits", but({ knows: (version) => `${version}`[0] === "1" })],
  [
    "O6",
    "releases any version",
    but({
      ask(x, request) {
        const exchange = x[EXCHANGE](request);
        if (!this.knows(exchange.version)) exchange.release();
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
        const other = gpu && fields.device.type === 15;
        const device = other ? { type: wanted ? 15 : 1, gpu: wanted } : fields.device;
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
    "no version 1.0 any more",
    but({
      check(fields, ...rest) {
        if (fields.version[1] < 1) this.unsupported("minor version");
        check.call(this, fields, ...rest);
      },
    }),
  ],
  [
    "V1",
    "no newer minor version",
    but({
      check(fields, ...rest) {
        if (fields.version[1] > 1) this.unsupported("minor version");
        check.call(this, fields, ...rest);
      },
    }),
  ],
];
