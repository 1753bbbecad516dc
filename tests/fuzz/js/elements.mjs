// Elements of each dtype from small integers, encoded here anew, so that the library is not checked
// against itself. An element is an integer from 0 to `most`.

const put = (method) => (view, at, value) => view[method](at, value, true);
const putBig = (method) => (view, at, value) => view[method](at, BigInt(value), true);
const setInt8 = (view, at, value) => view.setInt8(at, value);

/** The bits of an integer below 2^11 as a float with so many bits of exponent and mantissa. */
function floatBits(value, exponents, mantissas) {
  if (value === 0) return 0;
  const exponent = 31 - Math.clz32(value);
  const bias = 2 ** (exponents - 1) - 1;
  return (exponent + bias) * 2 ** mantissas + (value - 2 ** exponent) * 2 ** (mantissas - exponent);
}

const put16 = (exponents, mantissas) => (view, at, value) =>
  view.setUint16(at, floatBits(value, exponents, mantissas), true);
const putPair = (method, step) => (view, at, value) => {
  view[method](at, value, true);
  view[method](at + step, value + 1, true);
};

const DTYPES = {
  uint8: { bytes: 1, most: 255, put: setInt8 },
  int8: { bytes: 1, most: 127, put: setInt8 },
  bool: { bytes: 1, most: 1, put: setInt8 },
  int16: { bytes: 2, most: 200, put: put("setInt16") },
  float16: { bytes: 2, most: 200, put: put16(5, 10) },
  bfloat16: { bytes: 2, most: 200, put: put16(8, 7) },
  int32: { bytes: 4, most: 200, put: put("setInt32") },
  uint32: { bytes: 4, most: 200, put: put("setUint32") },
  float32: { bytes: 4, most: 200, put: put("setFloat32") },
  float64: { bytes: 8, most: 200, put: put("setFloat64") },
  int64: { bytes: 8, most: 200, put: putBig("setBigInt64") },
  uint64: { bytes: 8, most: 200, put: putBig("setBigUint64") },
  complex64: { bytes: 8, most: 200, put: putPair("setFloat32", 4) },
  complex128: { bytes: 16, most: 200, put: putPair("setFloat64", 8) },
  uint4: { bytes: 0.5, most: 15 },
};

export const NAMES = Object.keys(DTYPES);

/** What elements may become on the way to a GPU, and by `write(…, { convert: true })`. */
export const CONVERSIONS = {
  float64: ["float32"],
  complex128: ["complex64"],
  float32: ["float16", "bfloat16"],
  float16: ["float32"],
  bfloat16: ["float32"],
  int64: ["int32"],
  uint64: ["uint32"],
};

/** The largest element; below it all integers are. */
export const mostOf = (dtype) => DTYPES[dtype].most;

/** Bytes of so many elements; those of less than a byte share bytes. */
export const bytesOf = (dtype, count) => Math.ceil(DTYPES[dtype].bytes * count);

/** The bytes of elements, packed. */
export function encode(dtype, values) {
  const { bytes, put } = DTYPES[dtype];
  const made = new Uint8Array(bytesOf(dtype, values.length));
  const view = new DataView(made.buffer);
  values.forEach((value, i) => {
    if (put) put(view, i * bytes, value);
    else made[i >> 1] |= value << (4 * (i % 2)); // from the lowest bit of a byte on
  });
  return made;
}

/** The bytes of an array. */
export const bytesIn = ({ buffer, byteOffset, byteLength }) =>
  new Uint8Array(buffer, byteOffset, byteLength);
