// Somebody else's library: it hands tensors out by the exchange protocol, as its writer happened to
// understand it.

const EXCHANGE = Symbol.for("dlpack.exchange");
const CODES = {
  bool: [6, 8],
  bfloat16: [4, 16],
  complex64: [5, 64],
  complex128: [5, 128],
};

function codeOf(dtype) {
  const [code, bits] = CODES[dtype] ?? [
    { int: 0, uint: 1, float: 2 }[dtype.replace(/\d+$/, "")],
    Number(/\d+$/.exec(dtype)[0]),
  ];
  return { code, bits, lanes: 1 };
}

/** What it says wrongly: it must be refused, and its hold be given back. */
export const LIES = {
  shape_too_large: (made) => ({ shape: [...made.shape, 1000] }),
  shape_of_nothing: () => ({ shape: [Number.NaN] }),
  shape_negative: () => ({ shape: [-1] }),
  shape_that_overflows: () => ({ shape: [2 ** 31, 2 ** 31] }),
  strides_that_leave: (made) => ({ shape: [3, 3], strides: [1000, made.data.byteLength] }),
  strides_that_go_back: () => ({ shape: [2], strides: [-1] }),
  strides_too_few: () => ({ shape: [2, 2], strides: [1] }),
  offset_beyond: (made) => ({ byteOffset: made.data.byteLength + 8 }),
  offset_negative: () => ({ byteOffset: -8 }),
  offset_broken: () => ({ byteOffset: 0.5 }),
  dtype_unknown: () => ({ dtype: { code: 77, bits: 32, lanes: 1 } }),
  dtype_broken: () => ({ dtype: { code: 2, bits: 32.5, lanes: 1 } }),
  device_elsewhere: () => ({ device: { type: 2, id: 0, gpu: null } }),
  flags_missing: () => ({ flags: undefined }),
  no_data: () => ({ data: null }),
  capacity_beyond: () => ({ capacity: 1e9 }),
  throws_at_flush: () => ({
    flush() {
      throw new Error("the fake library cannot flush");
    },
  }),
};

/** What it does wrongly, but says rightly: what comes of it is right. */
export const SLOPS = ["release_throws", "copy_ignored", "says_more"];

/** A tensor of that library over an array. `released` counts how often its hold came back. */
export class FakeTensor {
  released = 0;
  handed = 0;

  /** @param how - one of LIES or SLOPS, or "honest" */
  constructor(array, dtype, shape, how) {
    Object.assign(this, { array, dtype, shape, how });
  }

  [EXCHANGE]() {
    const { array, dtype, shape, how } = this;
    this.handed++;
    const made = {
      version: [1, 0],
      device: { type: 1, id: 0, gpu: null },
      dtype: codeOf(dtype),
      shape,
      strides: null,
      byteOffset: 0,
      data: array,
      capacity: array.byteLength,
      flags: 0,
      flush() {},
      release: () => {
        this.released++;
        if (how === "release_throws") throw new Error("the fake library cannot release");
      },
    };
    if (how === "says_more") Object.assign(made, { colour: "green", version: [1, 7] });
    return Object.assign(made, LIES[how]?.(made));
  }
}
