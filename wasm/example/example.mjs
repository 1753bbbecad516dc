// example.c for JavaScript: its tensors are dlpack-web's, over the module's memory, and tensors of others are
// passed to its functions where they are in that memory, or as copies.
const EXCHANGE = Symbol.for("dlpack.exchange");
const [READ_ONLY, PADDED] = [1, 4];
const KINDS = ["int", "uint", "float"]; // by DLPack's codes

const rowMajor = (shape) =>
  shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));

/**
 * @param source - the bytes of example.wasm
 * @param Tensor - dlpack-web's class
 */
export async function load(source, Tensor) {
  const env = { emscripten_notify_memory_growth() {} };
  const { exports } = (await WebAssembly.instantiate(source, { env })).instance;
  const { memory } = exports;
  exports._initialize?.();

  /**
   * A tensor over one that C made and gives to us (dlpack_web.h): its last holder calls the deleter.
   *
   * @param dtype - its name where that is known; default by C's numbers
   */
  function tensorAt(address, dtype) {
    if (address === 0) throw new RangeError("the module has no memory left");
    const view = new DataView(memory.buffer); // not kept, as the memory may grow in each call
    const word = (at) => view.getUint32((address >>> 0) + at, true);
    const list = (at) =>
      Array.from({ length: word(36) }, (_, i) => Number(view.getBigInt64(at + 8 * i, true)));
    const numbers = word(40);
    const ptr = word(24) + word(56); // of byte_offset the low half
    const end = () => exports.dlpack_web_delete(address);
    try {
      return Tensor.fromMemory(memory, ptr, {
        dtype: dtype ?? `${KINDS[numbers & 255]}${(numbers >>> 8) & 255}`,
        shape: list(word(44)),
        strides: word(48) === 0 ? undefined : list(word(48)), // DLPack before 1.2
        readOnly: (word(16) & READ_ONLY) !== 0,
        padded: (word(16) & PADDED) !== 0,
        release: end,
      });
    } catch (error) {
      end();
      throw error;
    }
  }

  /** The address of a new struct in C: with zeros in `nbytes` of fresh memory, or over the bytes at `ptr`. */
  function describe({ dtype, shape, strides, flags }, { nbytes = 0, ptr }) {
    const room = nbytes < 2 ** 31;
    const address = room ? exports.dlpack_web_new(shape.length, nbytes) >>> 0 : 0;
    if (address === 0) throw new RangeError(`the module has no memory for ${nbytes} bytes`);
    const view = new DataView(memory.buffer);
    const put = (at, list) => {
      for (const [i, n] of list.entries()) view.setBigInt64(at + 8 * i, BigInt(n), true);
    };
    view.setBigUint64(address + 16, BigInt(flags), true);
    if (ptr !== undefined) view.setUint32(address + 24, ptr, true);
    view.setUint32(address + 40, dtype.code | (dtype.bits << 8) | (dtype.lanes << 16), true);
    put(view.getUint32(address + 44, true), shape);
    put(view.getUint32(address + 48, true), strides ?? rowMajor(shape));
    return address;
  }

  /** A tensor in the module's memory with the elements of another one. */
  function copy(x) {
    const tensor = Tensor.from(x);
    try {
      const { dtype, shape, flags, release } = tensor[EXCHANGE]({ device: null, copy: false });
      release();
      const packed = { dtype, shape, strides: null, flags: flags & PADDED };
      const made = tensorAt(describe(packed, { nbytes: tensor.nbytes }), tensor.dtype);
      try {
        made.write(tensor);
        return made;
      } catch (error) {
        made.release();
        throw error;
      }
    } finally {
      tensor.release();
    }
  }

  /**
   * Calls a function with the address of a struct over a tensor's elements. With `writes` it may change them:
   * those that are not in the module's memory are copied there, and back to a contiguous tensor.
   */
  function pass(x, writes, use) {
    const tensor = Tensor.from(x);
    let made = tensor;
    let lent;
    try {
      lent = tensor[EXCHANGE]({ device: null, writes, copy: false });
      if (lent.data.memory !== memory) {
        made = copy(tensor);
        lent.release(false);
        lent = made[EXCHANGE]();
      }
      const { data, byteOffset, flags } = lent;
      const ptr = data.ptr + byteOffset;
      const address = describe({ ...lent, flags: writes ? flags : flags | READ_ONLY }, { ptr });
      try {
        const result = use(address);
        if (writes && made !== tensor) tensor.write(made);
        return result;
      } finally {
        exports.dlpack_web_delete(address);
      }
    } finally {
      lent?.release(writes);
      if (made !== tensor) made.release();
      tensor.release();
    }
  }

  return {
    memory,
    copy,

    /** How many tensors C has whose deleter was not called. */
    liveTensors: () => exports.live_tensors(),

    /** A tensor that C made: a strided uint8 picture. RangeError where there is no memory. */
    picture: (height, width) => tensorAt(exports.picture(height, width)),

    /** The sum of all elements; NaN for a dtype that C does not know. */
    sum: (x) => pass(x, false, (address) => exports.sum(address)),

    /** Multiplies float32 in place; TypeError for other dtypes. */
    scale(x, factor) {
      if (!pass(x, true, (address) => exports.scale(address, factor))) {
        throw new TypeError("scale() needs float32");
      }
    },
  };
}
