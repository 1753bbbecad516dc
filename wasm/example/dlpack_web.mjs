/**
 * The exchange protocol (EXCHANGE.md, version 1.1) for any WebAssembly module that exports what dlpack_web.h
 * says, about its own linear memory. No view of that is kept, as it may grow in each call.
 */
const EXCHANGE = Symbol.for("dlpack.exchange");
const READ_ONLY = 1;
const COPIED = 2;
const PADDED = 4;
/** Bits that DLPack's dtypes have, by their code. */
const WIDTHS = new Map([
  ...[0, 1].map((code) => [code, [1, 2, 4, 8, 16, 32, 64]]), // int, uint
  [2, [16, 32, 64]], // float
  [4, [16]], // bfloat
  [5, [32, 64, 128]], // complex
  [6, [8]], // bool
  ...[7, 8, 9, 10, 11, 12, 13, 14].map((code) => [code, [8]]), // float8_e3m4 to float8_e8m0fnu
  ...[15, 16].map((code) => [code, [6]]), // float6
  [17, [4]], // float4_e2m1fn
]);

// --- layouts: { dtype, shape, strides, flags }, and what follows from that -----------------------

const productOf = (list) => list.reduce((a, b) => a * b, 1);
const rowMajor = (shape) => shape.map((_, axis) => productOf(shape.slice(axis + 1)));

/** Adds `step`, the bytes of one element, and the bytes that all take: `low` to `end` from element 0. */
function measured(layout) {
  const { dtype, shape, strides, flags } = layout;
  const exact = (dtype.bits * dtype.lanes) / 8;
  const step = flags & PADDED ? Math.ceil(exact) : exact;
  const size = productOf(shape);
  const reaches = size === 0 ? [] : strides.map((stride, axis) => (shape[axis] - 1) * stride);
  const low = reaches.filter((reach) => reach < 0).reduce((a, b) => a + b, 0) * step;
  const high = reaches.filter((reach) => reach > 0).reduce((a, b) => a + b, 0);
  const end = size === 0 ? 0 : Math.ceil((high + 1) * step);
  const exacts = [size, low, end, size * step].map(Math.abs);
  needs(Math.max(...exacts) < 2 ** 48, `shape [${shape}] is too large`);
  const even = `${strides}` === `${rowMajor(shape)}` || size === 0;
  return { ...layout, step, low, end, even, nbytes: Math.ceil(size * step) };
}

/** Calls `visit(from, count)` for all bytes of the elements, counted from element 0, in their order. */
function eachRun({ shape, strides, step, even, nbytes }, visit, axis = 0, from = 0) {
  if (even || axis === shape.length) visit(from, even ? nbytes : step);
  else {
    for (let i = 0; i < shape[axis]; i++) {
      const layout = { shape, strides, step, even, nbytes };
      eachRun(layout, visit, axis + 1, from + i * strides[axis] * step);
    }
  }
}

// --- what others say ----------------------------------------------------------------------------

/** An error of the protocol, which is known by its name (rule X1). */
const refuse = (name, text) => Object.assign(new Error(text), { name });

function needs(met, text) {
  if (!met) throw refuse("UnsupportedError", text);
}

const isCount = (n, least = 0, most = Number.MAX_SAFE_INTEGER) =>
  Number.isSafeInteger(n) && n >= least && n <= most;
const listOf = (given) => (Array.isArray(given) && given.length <= 64 ? [...given] : []);

/** What an exchange says, each field read once; `place()` looks where the elements are by now. */
function checked(exchange) {
  const { device, dtype, shape: extents, strides: steps, byteOffset, data, flags: mask } = exchange;
  const { type, gpu = null } = Object(device);
  needs(type === (gpu === null ? 1 : 15), "the device is neither CPU nor WebGPU");
  if (type !== 1) throw refuse("DeviceError", "only tensors on the CPU are taken");
  const { code, bits, lanes } = Object(dtype);
  const known = WIDTHS.get(code)?.includes(bits) && isCount(lanes, 1, 65535);
  needs(known, "the dtype is none of DLPack's");
  needs(isCount(mask) && isCount(byteOffset), "flags or byteOffset is no count");
  const flags = bits < 8 ? mask : mask & ~PADDED; // F13: it is about elements of less than a byte
  needs(!(flags & PADDED && lanes > 1), "padded vectors have no meaning");
  const shape = listOf(extents);
  needs(Array.isArray(extents) && shape.length === extents.length, "the shape is no list");
  needs(
    shape.every((dim) => isCount(dim)),
    `shape [${shape}] is none`,
  );
  const strides = steps === null ? rowMajor(shape) : listOf(steps);
  needs(strides.length === shape.length && strides.every(Number.isSafeInteger), "odd strides");
  const layout = measured({ dtype: { code, bits, lanes }, shape, strides, flags });
  needs(steps === null || layout.step % 1 === 0, "packed elements have no strides");
  const isView = ArrayBuffer.isView(data);
  const { memory, ptr } = isView ? { memory: data, ptr: data.byteOffset } : Object(data);
  needs(isCount(ptr) && isCount(memory?.buffer?.byteLength), "data is no view and no memory");
  const place = () => {
    const { buffer } = memory;
    const [first, last] = isView ? [ptr, ptr + data.byteLength] : [0, buffer.byteLength];
    const at = ptr + byteOffset;
    const inside = at + layout.low >= first && at + layout.end <= last;
    needs(inside || layout.nbytes === 0, "the elements are not inside the memory");
    return { buffer, at };
  };
  return { ...layout, place };
}

/** Throws for a request that makes no sense, or is of another version, whatever the tensor (rule X3). */
function checkRequest(request) {
  if (typeof request !== "object" || request === null) throw new TypeError("no request");
  const { versions = [1], device = null, copy, writes } = request;
  const flags = [copy, writes].every((it) => it === undefined || typeof it === "boolean");
  if (!Array.isArray(versions) || typeof device !== "object" || !flags) {
    throw new TypeError(
      "versions is a list, device an object or null, copy and writes are boolean",
    );
  }
  needs(versions.includes(1), "only version 1 of the protocol is supported");
}

/** Whether a copy is needed for a request; throws where it cannot be met (rules R3 to R5). */
function needsCopy({ device, copy, writes }, readOnly) {
  if (device) throw refuse("DeviceError", "the tensor is in a module's memory, on the CPU");
  needs(!(writes && readOnly && copy === false), "the tensor is read-only");
  return copy === true || (writes === true && readOnly);
}

/** Ends a hold while another error is on its way, which an error of this must not hide (rule X2). */
function quietly(release) {
  try {
    release();
  } catch (error) {
    console.error(error);
  }
}

/** C is done when it returns: one function does for all exchanges (rule T4). */
function flush() {}

// --- tensors of a module --------------------------------------------------------------------------

/**
 * The JavaScript side of a module.
 *
 * @param source - the module's bytes
 * @returns `exports`, the module's own, and `Tensor`, the class of its tensors
 */
export async function loadModule(source) {
  const ends = new Map(); // what is to be done when C lets go of a hold
  let last = 0;
  const { instance } = await WebAssembly.instantiate(source, {
    env: { emscripten_notify_memory_growth() {} },
    dlpack_web: {
      let_go(hold) {
        quietly(ends.get(hold)); // C must not be left halfway
        ends.delete(hold);
      },
    },
  });
  const { exports } = instance;
  const { memory } = exports;
  exports._initialize?.();

  /** A tensor of C's with what `layout` says: over the bytes from `ptr` on, or fresh memory. */
  function describe({ dtype, shape, strides, flags, nbytes }, { ptr, end } = {}) {
    const fresh = ptr === undefined ? nbytes : 0;
    const hold = end ? ++last : 0;
    const room = fresh < 2 ** 31;
    const address = room ? exports.dlpack_web_new(shape.length, fresh, hold) >>> 0 : 0;
    if (address === 0) throw new RangeError(`the module has no memory for ${fresh} bytes`);
    if (end) ends.set(hold, end);
    const view = new DataView(memory.buffer);
    const put = (at, list) => {
      for (const [i, n] of list.entries()) view.setBigInt64(at + 8 * i, BigInt(n), true);
    };
    view.setBigUint64(address + 16, BigInt(flags), true);
    if (ptr !== undefined) view.setUint32(address + 24, nbytes === 0 ? 0 : ptr, true);
    view.setUint32(address + 40, dtype.code | (dtype.bits << 8) | (dtype.lanes << 16), true);
    put(view.getUint32(address + 44, true), shape);
    put(view.getUint32(address + 48, true), strides);
    return new Tensor(address);
  }

  /** What C says of a tensor: the fields of its struct, and `place()` as exchanges have it. */
  function read(address) {
    const view = new DataView(memory.buffer);
    const word = (at) => view.getUint32(address + at, true);
    const entry = (at) => (_, i) => Number(view.getBigInt64(at + 8 * i, true));
    const list = (at) => Array.from({ length: word(36) }, entry(at));
    needs(word(0) === 1, `DLPack ${word(0)} is unknown`);
    const dtype = { code: word(40) & 255, bits: (word(40) >>> 8) & 255, lanes: word(40) >>> 16 };
    const shape = list(word(44));
    const strides = word(48) === 0 ? rowMajor(shape) : list(word(48)); // DLPack before 1.2
    const ptr = word(24) + Number(view.getBigUint64(address + 56, true));
    const place = () => ({ buffer: memory.buffer, at: ptr });
    return { ...measured({ dtype, shape, strides, flags: word(16) & 7 }), ptr, place };
  }

  /** Copies elements of a layout to row-major bytes of the module's, or with `back` from there. */
  function move(layout, ptr, back = false) {
    if (layout.nbytes === 0) return;
    const { buffer, at } = layout.place();
    let position = ptr;
    eachRun(layout, (from, count) => {
      const there = new Uint8Array(buffer, at + from, count);
      const here = new Uint8Array(memory.buffer, position, count);
      if (back) there.set(here);
      else here.set(there);
      position += count;
    });
  }

  /** The same in row-major order. */
  const packed = (layout) => {
    const { dtype, shape, flags } = layout;
    return measured({ dtype, shape, strides: rowMajor(shape), flags: flags & PADDED });
  };

  class Tensor {
    #address;
    #holds = 1; // ours, and one for each exchange
    #released = false;

    /** Called when elements were changed. */
    wrote = () => {};

    /** @param address - of a `DLManagedTensorVersioned`, whose hold this takes over */
    constructor(address) {
      if (address === 0) throw new RangeError("the module has no memory left");
      this.#address = address >>> 0;
    }

    /** A tensor of zeros in fresh memory. */
    static empty(dtype, shape) {
      const strides = rowMajor(shape);
      return describe(measured({ dtype, shape: [...shape], strides, flags: 0 }));
    }

    /**
     * A tensor with the elements of a producer's: those that lie in the module's memory already
     * are taken where they are, others are copied into it, once.
     *
     * @param options - `writes`: C changes the producer's elements; what was copied is put back at
     * the end. `copy`: true is fresh memory, false CopyError where a copy is needed
     */
    static fromExchange(x, { writes = false, copy } = {}) {
      if (typeof x?.[EXCHANGE] !== "function") throw new TypeError("no producer of tensors");
      const asked = copy === false ? false : undefined; // what is to be fresh is copied here, once
      const exchange = x[EXCHANGE]({ versions: [1], device: null, copy: asked, writes });
      const { version } = exchange;
      const pair =
        Array.isArray(version) && version.length === 2 && version.every((n) => isCount(n));
      needs(pair && version[0] === 1, `version ${version} is unknown`); // and not to be touched (O6)
      const { release } = exchange;
      needs(typeof release === "function", "release is no function");
      let [ended, changed] = [false, false];
      const end = () => {
        if (ended) return;
        ended = true;
        release(changed);
      };
      let made;
      try {
        const { flush: settle } = exchange;
        needs(typeof settle === "function", "flush is no function");
        const given = checked(exchange);
        settle();
        needs(!(writes && given.flags & READ_ONLY), "what the producer gave may not be written to");
        const { buffer, at: ptr } = given.place();
        if (buffer === memory.buffer && copy !== true) {
          const flags = (given.flags & PADDED) | (writes ? 0 : READ_ONLY);
          made = describe({ ...given, flags }, { ptr, end });
        } else {
          if (copy === false) throw refuse("CopyError", "the tensor lies in another memory");
          const putBack = () => {
            if (changed) move(given, made.ptr, true);
            end();
          };
          made = describe(packed(given), writes ? { end: putBack } : {});
          move(given, made.ptr);
          if (!writes) end();
        }
        made.wrote = () => {
          changed = true;
        };
        return made;
      } catch (error) {
        if (made) quietly(() => made.release());
        quietly(end);
        throw error;
      }
    }

    /** For the module's functions; what they return of it ends with the tensor. */
    get address() {
      if (this.#released) throw refuse("ReleasedError", "the tensor was released");
      return this.#address;
    }

    /** Where element 0 is in the module's memory. */
    get ptr() {
      return read(this.#address).ptr;
    }

    /** The producer's method (rules M1 to M3). */
    [EXCHANGE](request = {}) {
      checkRequest(request);
      const layout = read(this.address);
      if (!needsCopy(request, layout.flags & READ_ONLY)) return this.#lend(layout, request);
      const fresh = describe(packed(layout));
      move(read(this.address), fresh.ptr);
      try {
        return fresh.#lend(read(fresh.address), request, COPIED);
      } finally {
        fresh.release();
      }
    }

    #lend({ dtype, shape, strides, flags, even, end, ptr }, { writes }, copied = 0) {
      this.#holds++;
      let held = true;
      const release = (wrote = writes === true) => {
        if (!held) return;
        held = false;
        if (wrote) this.wrote();
        this.#drop();
      };
      return {
        version: [1, 1],
        device: { type: 1, id: 0, gpu: null },
        dtype,
        shape,
        strides: even ? null : strides,
        data: { memory, ptr },
        byteOffset: 0,
        capacity: end,
        flags: (flags & (READ_ONLY | PADDED)) | copied,
        flush,
        release,
      };
    }

    /** Ends our hold; the last one calls the deleter in C. Further calls do nothing. */
    release() {
      if (this.#released) return;
      this.#released = true;
      this.#drop();
    }

    #drop() {
      if (--this.#holds === 0) exports.dlpack_web_delete(this.#address);
    }
  }

  return { exports, Tensor };
}
