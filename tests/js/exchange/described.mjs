/** An exchange of six float32 on the CPU, as version 1.0 has it; `fields` replace its own. */
export const described = (fields) => ({
  version: [1, 0],
  device: { type: 1, id: 0, gpu: null },
  dtype: { code: 2, bits: 32, lanes: 1 },
  shape: [2, 3],
  strides: null,
  byteOffset: 0,
  data: Float32Array.of(0, 1, 2, 3, 4, 5),
  capacity: 24,
  flags: 0,
  flush() {},
  release() {},
  ...fields,
});

const NONSENSE = [
  undefined,
  null,
  Number.NaN,
  -1,
  0.5,
  2 ** 53,
  "1",
  [],
  {},
  () => {},
  Symbol("x"),
];

/** Lies about each field, which no tensor is made of: what replaces fields of an exchange of float32. */
export const LIES = {
  "dtype.code": [...NONSENSE, 256, 300].map((code) => ({ dtype: { code, bits: 32, lanes: 1 } })),
  "dtype.bits": [...NONSENSE, 0, 33, 256].map((bits) => ({ dtype: { code: 2, bits, lanes: 1 } })),
  "dtype.lanes": [...NONSENSE, 0, 65536].map((lanes) => ({ dtype: { code: 2, bits: 32, lanes } })),
  dtype: [
    ...NONSENSE,
    { code: 3, bits: 32, lanes: 1 }, // an opaque handle
    { code: 6, bits: 32, lanes: 1 },
    { code: 7, bits: 32, lanes: 1 }, // float8_e3m4, but wide
    { code: 2, bits: 7, lanes: 1 },
  ].map((dtype) => ({ dtype })),
  shape: [
    ...NONSENSE.filter((x) => !Array.isArray(x)),
    [2, -3],
    [2, 0.5],
    ["2", 3],
    [7],
    [2 ** 31, 2 ** 31],
    [2 ** 52, 2 ** 52],
    [2 ** 62, 0],
    [Number.NaN],
    "3",
    Array(65).fill(1),
    { length: 2 ** 50 },
  ].map((shape) => ({ shape })),
  strides: [
    0,
    "3,1",
    {},
    [3],
    [3, 1, 1],
    [3, 0.5],
    [3, "1"],
    [3, 2],
    [-3, 1],
    [2 ** 53, 1],
    [-1],
    [2 ** 50],
  ].map((strides) => ({ strides })),
  byteOffset: [...NONSENSE, -4, 4, 2 ** 40].map((byteOffset) => ({ byteOffset })),
  capacity: NONSENSE.map((capacity) => ({ capacity })),
  flags: NONSENSE.map((flags) => ({ flags })),
  device: [
    ...NONSENSE,
    { type: 2, id: 0, gpu: null },
    { type: 15, id: 0, gpu: null },
    { type: 15, id: 0, gpu: {} },
    { type: 1, id: 0, gpu: {} },
  ].map((device) => ({ device })),
  data: [...NONSENSE, { memory: null, ptr: 0 }, { memory: {}, ptr: 0 }, new ArrayBuffer(12)].map(
    (data) => ({ data }),
  ),
  "data.ptr": [...NONSENSE, -8, 65536 - 20, 65536].map((ptr) => ({
    data: { memory: new WebAssembly.Memory({ initial: 1 }), ptr },
  })),
};
