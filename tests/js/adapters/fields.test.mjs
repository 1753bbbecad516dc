// A field of another library's object is honoured, refused, or says nothing about the elements: all
// fields that the libraries declare are listed here, so one that a new version adds fails.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as flechette from "../../../build/libraries/node_modules/@uwdata/flechette/dist/flechette.mjs";
import { dump, parse } from "../../../build/libraries/node_modules/npyjs/dist/index.js";
import * as np from "../../../build/libraries/node_modules/numpy-ts/dist/esm/index.js";
import * as THREE from "../../../build/libraries/node_modules/three/build/three.module.js";
import ts from "../../../build/libraries/node_modules/typescript/lib/typescript.js";
import * as arrow from "../../../build/libraries/site/arrow.mjs";
import ndarray from "../../../build/libraries/site/ndarray.mjs";
import { fromArrow, toArrow } from "../../../js/dist/adapters/arrow.js";
import { fromNdarray } from "../../../js/dist/adapters/ndarray.js";
import { Tensor } from "../../../js/dist/index.js";
import { random } from "../random.mjs";
import "../nothing_leaks.mjs";

// --- all fields -----------------------------------------------------------------------------------

const ORT = "onnxruntime-common/dist/esm/tensor.d.ts";
const CV = "dist/src/types/opencv/Mat.d.ts";
const FLECHETTE = "@uwdata/flechette/dist/types/";
const NUMPY = "numpy-ts/dist/types/common/";
/** Fields by the file and name of their declaration: those that are read, and the others. */
const DECLARED = [
  [ORT, "TypedTensorBase", "dims type data location gpuBuffer", "texture mlTensor"],
  [ORT, "Tensor", "", "extends:TypedTensorBase extends:TypedTensorUtils"],
  [
    "@tensorflow/tfjs-core/dist/tensor.d.ts",
    "Tensor",
    "dataId shape dtype isDisposed",
    "id size rankType kept scopeId kerasMask strides rank extends:TensorInfo",
  ],
  [
    "@huggingface/transformers/types/utils/tensor.d.ts",
    "Tensor",
    "ort_tensor",
    "dims type data size location",
  ],
  ["@jax-js/jax/dist/index.d.ts", "Array", "device ref", "aval refCount extends:Tracer"],
  ["@jax-js/jax/dist/index.d.ts", "Tracer", "shape dtype", "aval size weakType ndim ref"],
  [
    "@litertjs/core/dist/index.d.ts",
    "Tensor",
    "type environment accelerator deleted",
    "liteRtTensorBuffer bufferType extends:Deletable extends:WithEnvironment",
  ],
  ["@litertjs/core/dist/index.d.ts", "TensorType", "dtype layout", ""],
  ["apache-arrow/table.d.ts", "Table", "schema data nullCount", "batches numCols numRows"],
  [
    "apache-arrow/recordbatch.d.ts",
    "RecordBatch",
    "schema data nullCount",
    "numCols numRows metadata dictionaries",
  ],
  [
    "apache-arrow/vector.d.ts",
    "Vector",
    "type data nullCount",
    "length stride numChildren byteLength nullable ArrayType VectorName isMemoized",
  ],
  [
    "apache-arrow/data.d.ts",
    "Data",
    "type length offset children values nullBitmap nullCount",
    "stride dictionary typeIds valueOffsets variadicBuffers typeId ArrayType buffers nullable byteLength",
  ],
  ["apache-arrow/schema.d.ts", "Field", "type name metadata", "nullable typeId"],
  ["apache-arrow/schema.d.ts", "Schema", "fields", "metadata dictionaries metadataVersion names"],
  [
    `${FLECHETTE}table.d.ts`,
    "Table",
    "schema children",
    "names factory getFactory numCols numRows",
  ],
  [`${FLECHETTE}column.d.ts`, "Column", "type data nullCount", "length offsets"],
  [
    `${FLECHETTE}batch.d.ts`,
    "Batch",
    "length nullCount type validity values children",
    "offsets sizes",
  ],
  [`${FLECHETTE}types.d.ts`, "Field", "name type metadata", "nullable"],
  [`${FLECHETTE}types.d.ts`, "Schema", "endianness fields", "version metadata"],
  ...["@techstark/opencv-js/", "opencv-5/"].map((name) => [
    name + CV,
    "Mat",
    "data step",
    "allocator cols data8S data8U data16U data16S data32U data32S data32F data64F dataend " +
      "datalimit datastart dims flags rows size u extends:EmscriptenEmbindInstance",
  ]),
  ["zarrita/dist/src/metadata.d.ts", "Chunk", "data shape stride", ""],
  ["npyjs/dist/index.d.ts", "NpyArray", "data shape dtype fortranOrder", ""],
  [
    `${NUMPY}ndarray-core.d.ts`,
    "NDArrayCore",
    "storage shape dtype data strides flags",
    "ndim size base itemsize nbytes",
  ],
  [
    `${NUMPY}storage.d.ts`,
    "ArrayStorage",
    "offset wasmRegion",
    "shape ndim size dtype data strides isWasmBacked wasmPtr isCContiguous isFContiguous",
  ],
  ["typescript/lib/lib.dom.d.ts", "ImageData", "data width height colorSpace", ""],
];

/** Fields of a declaration, but methods and what is private; and what it extends. */
function fieldsOf(file, name) {
  const path = new URL(`../../../build/libraries/node_modules/${file}`, import.meta.url);
  let text = readFileSync(path, "utf8");
  if (name === "ImageData") text = text.slice(text.indexOf(`interface ${name} `)).split("\n}\n")[0];
  const source = ts.createSourceFile(file, `${text}\n}`, ts.ScriptTarget.Latest);
  const found = new Set();
  for (const it of source.statements) {
    if (it.name?.text !== name) continue;
    for (const { types } of it.heritageClauses ?? []) {
      for (const { expression } of types) found.add(`extends:${expression.text}`);
    }
    for (const member of it.members ?? it.type?.members ?? []) {
      const hidden = ["Private", "Protected", "Static"].map((it) => ts.SyntaxKind[`${it}Keyword`]);
      const isHidden = member.modifiers?.some(({ kind }) => hidden.includes(kind));
      const isField = ["PropertyDeclaration", "PropertySignature", "GetAccessor"].some(
        (kind) => ts[`is${kind}`]?.(member) ?? ts.isGetAccessorDeclaration(member),
      );
      const text = member.name?.text;
      if (isField && !isHidden && /^(?!T[A-Z])[A-Za-z]\w*$/.test(text ?? "")) found.add(text);
    }
  }
  return found;
}

for (const [file, name, read, others] of DECLARED) {
  test(`${file}: all fields of ${name} are known`, () => {
    const known = `${read} ${others}`.trim().split(" ");
    assert.deepEqual([...fieldsOf(file, name)].sort(), known.sort());
  });
}

const TEXTURE =
  "image format type isDataTexture | isTexture id uuid name source mipmaps mapping channel wrapS wrapT magFilter " +
  "minFilter anisotropy internalFormat offset repeat center rotation matrixAutoUpdate matrix " +
  "generateMipmaps mipmapsAutoUpdate premultiplyAlpha flipY unpackAlignment colorSpace userData " +
  "updateRanges version onUpdate renderTarget isRenderTargetTexture isArrayTexture pmremVersion " +
  "isPMREMTexture normalized width height depth needsUpdate needsPMREMUpdate";
const buffer = () => new THREE.InterleavedBuffer(new Float32Array(4), 2);
/** The same of libraries without declarations, by their objects. */
const MADE = {
  BufferAttribute: [
    () => new THREE.BufferAttribute(new Float32Array(4), 2),
    "array itemSize count | isBufferAttribute id name normalized usage updateRanges gpuType version needsUpdate",
  ],
  InterleavedBufferAttribute: [
    () => new THREE.InterleavedBufferAttribute(buffer(), 1, 0),
    "isInterleavedBufferAttribute data itemSize offset count array | name normalized needsUpdate",
  ],
  InterleavedBuffer: [
    buffer,
    "array stride | isInterleavedBuffer count usage updateRanges version uuid needsUpdate",
  ],
  DataTexture: [() => new THREE.DataTexture(new Uint8Array(4), 1, 1), TEXTURE],
  "image of a DataTexture": [
    () => new THREE.DataTexture(new Uint8Array(4), 1, 1).image,
    "data width height |",
  ],
  ndarray: [
    () => ndarray(new Int8Array(4), [2, 2]),
    "data shape stride offset dtype | dimension size order",
  ],
};

for (const [name, [make, listed]] of Object.entries(MADE)) {
  test(`all fields of ${name} are known`, () => {
    const found = new Set();
    for (let it = make(); it && it !== Object.prototype; it = Object.getPrototypeOf(it)) {
      for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(it))) {
        if (typeof value !== "function" && !key.startsWith("_")) found.add(key);
      }
    }
    const known = listed.split(" ").filter((key) => key && key !== "|");
    assert.deepEqual([...found].sort(), known.sort());
  });
}

// --- arrays with a shape --------------------------------------------------------------------------

const at = (array, index) => {
  const value = array.get(index);
  return typeof value === "object" ? [value.re, value.im] : value;
};
const NUMPY_DTYPES =
  "float64 float32 float16 complex128 complex64 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool";

for (const dtype of NUMPY_DTYPES.split(" ")) {
  test(`numpy-ts: ${dtype} in any order, and parts of it`, () => {
    const whole = np.array([1, 0, 3, 4, 5, 6, 7, 8, 0, 10, 11, 12], dtype).reshape(3, 4);
    for (const array of [whole, whole.T, whole.slice("1:", "::2"), whole.slice("::-1", "1")]) {
      const tensor = fromNdarray(null, array);
      const halves = dtype === "float16" && !globalThis.Float16Array;
      assert.equal(tensor.dtype, halves ? "float32" : dtype);
      assert.deepEqual(tensor.shape, array.shape);
      const index = array.shape.map(() => 0);
      for (const element of tensor) {
        const expected = at(array, index);
        assert.deepEqual(element, dtype === "bool" ? Boolean(expected) : expected);
        for (let axis = index.length - 1; axis >= 0; axis--) {
          index[axis] = (index[axis] + 1) % array.shape[axis];
          if (index[axis] !== 0) break;
        }
      }
      tensor.release();
    }
  });
}

test("numpy-ts: an array that it has freed is not another array's yet", () => {
  const array = np.array([1, 2, 3, 4], "float32");
  const tensor = fromNdarray(null, array, { copy: false });
  const { wasmRegion } = array.storage;
  array.dispose();
  assert.equal(wasmRegion.refCount, 1);
  np.array([5, 6, 7, 8], "float32");
  assert.deepEqual([...tensor], [1, 2, 3, 4]);
  tensor.release();
  assert.equal(wasmRegion.refCount, 0);
});

test("npyjs: files in Fortran's order, and dtypes that no class of arrays has", () => {
  for (const [values, dtype, name, elements] of [
    [Float32Array.of(1, 2, 3, 4, 5, 6), "f4", "float32", [1, 3, 5, 2, 4, 6]],
    [
      Float64Array.of(1, 2, 3, 4, 5, 6),
      "c16",
      "complex128",
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
    ],
    [
      Float32Array.of(1, 2, 3, 4, 5, 6),
      "c8",
      "complex64",
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
    ],
    [Uint8Array.of(1, 0, 1, 0, 1, 0), "u1", "uint8", [1, 1, 1, 0, 0, 0]],
    [BigInt64Array.of(1n, 2n), "i8", "int64", [1n, 2n]],
  ]) {
    const shape = elements.length === 6 ? [2, 3] : [elements.length];
    const file = dump(values, shape, { dtype });
    const bytes = new Uint8Array(file);
    bytes.set(new TextEncoder().encode("True "), Buffer.from(file).indexOf("False"));
    const array = parse(file);
    assert.equal(array.fortranOrder, true);
    const tensor = fromNdarray(null, array);
    assert.deepEqual([tensor.dtype, tensor.shape, [...tensor]], [name, shape, elements]);
    tensor.release();
  }
});

const F4 = Float32Array.of(1, 2, 3, 4, 5, 6);
const BYTES = Uint8Array.of(1, 0);
test("a field that says another dtype or order is honoured", () => {
  const flags = { READONLY: true };
  for (const [fields, dtype, elements] of [
    [{ data: F4, order: "column-major", dtype: "float32", flags }, "float32", [1, 3, 5, 2, 4, 6]],
    [{ data: F4, order: "row-major", flags: {} }, "float32", [1, 2, 3, 4, 5, 6]],
    [{ data: F4, fortranOrder: false, strides: [1, 2] }, "float32", [1, 3, 5, 2, 4, 6]],
    [{ data: F4, shape: [], offset: 2, strides: [0] }, "float32", [3]],
    [{ data: F4, dtype: "f2" }, "float32", [1, 2, 3, 4, 5, 6]],
    [{ data: BYTES, shape: [2], dtype: "|b1" }, "bool", [true, false]],
    [{ data: BYTES, shape: [2], dtype: "uint8c" }, "uint8", [1, 0]],
    [{ data: Uint16Array.of(0x3c00), shape: [1], dtype: "<f2" }, "float16", [1]],
    [{ data: BigUint64Array.of(7n), shape: [1], dtype: "biguint64" }, "uint64", [7n]],
    [{ data: F4, dtype: "generic", _own: 1, missing: undefined, get() {} }, "float32", [...F4]],
  ]) {
    const tensor = fromNdarray(null, { shape: [2, 3], ...fields });
    assert.deepEqual([tensor.dtype, [...tensor]], [dtype, elements], Object.keys(fields).join());
    assert.equal(tensor.readOnly, fields.flags === flags);
    tensor.release();
  }
});

test("a field that is not known, or cannot be honoured, is refused", () => {
  for (const [fields, name, message] of [
    [{ mask: BYTES }, "UnsupportedError", /field mask, which may change its elements/],
    [{ byteOrder: ">" }, "UnsupportedError", /field byteOrder/],
    [{ fortran_order: false }, "UnsupportedError", /field fortran_order/],
    [{ order: "K" }, "UnsupportedError", /order K and no strides/],
    [{ order: [1, 0] }, "UnsupportedError", /order 1,0 and no strides/],
    [{ dtype: ">f4" }, "UnsupportedError", /dtype ">f4" is unknown/],
    [{ dtype: "U5" }, "UnsupportedError", /dtype "U5" is unknown/],
    [{ dtype: "int32" }, "TypeError", /Float32Array does not hold int32/],
  ]) {
    const value = { data: F4, shape: [2, 3], ...fields };
    assert.throws(() => fromNdarray(null, value), { name, message });
  }
  fromNdarray(null, { data: F4, shape: [2, 3], dtype: ">f4" }, { dtype: "float32" }).release();
});

// --- Arrow's extension types, and flechette ---------------------------------------------------------

const extension = (name, metadata) =>
  new Map([
    ["ARROW:extension:name", `arrow.${name}`],
    ["ARROW:extension:metadata", metadata === undefined ? "" : JSON.stringify(metadata)],
  ]);

/** A table of one column "x" over an array, whose elements are lists of these sizes. */
function tableOf(values, sizes, metadata, isTensor = false) {
  let [data] = (values.data ? values : arrow.makeVector(values)).data;
  let field = new arrow.Field("item", data.type, false, isTensor ? undefined : metadata);
  for (const [i, size] of [...sizes.entries()].reverse()) {
    const type = new arrow.FixedSizeList(size, field);
    data = arrow.makeData({ type, length: data.length / size, nullCount: 0, child: data });
    const isInner = i === sizes.length - 1;
    field = new arrow.Field("item", type, false, isTensor && isInner ? metadata : undefined);
  }
  field = new arrow.Field("x", field.type, false, field.metadata);
  const schema = new arrow.Schema([field]);
  const type = new arrow.Struct([field]);
  const struct = arrow.makeData({ type, length: data.length, nullCount: 0, children: [data] });
  return new arrow.Table(schema, new arrow.RecordBatch(schema, struct));
}
const inFlechette = (table) => flechette.tableFromIPC(arrow.tableToIPC(table));

test("fixed_shape_tensor keeps its shape and permutation, also within lists", () => {
  const below = random(7);
  for (let i = 0; i < 60; i++) {
    const shape = Array.from({ length: 1 + below(4) }, () => 1 + below(3));
    const permutation = [...shape.keys()];
    for (const axis of shape.keys()) {
      const other = below(axis + 1);
      [permutation[axis], permutation[other]] = [permutation[other], permutation[axis]];
    }
    const size = shape.reduce((a, b) => a * b, 1);
    const outer = below(2) ? [2] : [];
    const values = Int32Array.from({ length: 6 * size }, (_, k) => k);
    const said = { shape, [below(2) ? "permutation" : "permutations"]: permutation };
    const table = tableOf(values, [...outer, size], extension("fixed_shape_tensor", said), true);
    const whole = [6 / (outer[0] ?? 1), ...outer, ...shape];
    const first = whole.length - shape.length;
    const order = [...whole.keys()].map((axis) =>
      axis < first ? axis : first + permutation[axis - first],
    );
    const plain = fromNdarray(null, { data: values, shape: whole });
    const expected = plain.permute(order);
    for (const given of [table, table.batches[0], inFlechette(table)]) {
      const tensor = fromArrow(null, given, { column: "x" });
      assert.deepEqual([tensor.shape, [...tensor]], [expected.shape, [...expected]]);
      tensor.release();
    }
    const copied = fromArrow(null, table, { copy: true });
    assert.deepEqual([copied.shape, [...copied]], [expected.shape, [...expected]]);
    for (const each of [copied, plain, expected]) each.release();
  }
});

test("bool8 is bool, also within lists and in chunks", () => {
  for (const [bytes, isShared] of [
    [[1, 0, 0, 1], true],
    [[1, 0, 2, -1], false],
  ]) {
    const expected = bytes.map(Boolean);
    for (const sizes of [[], [2]]) {
      const table = tableOf(Int8Array.from(bytes), sizes, extension("bool8"));
      const tensor = fromArrow(null, table);
      assert.deepEqual([tensor.dtype, [...tensor]], ["bool", expected]);
      const joined = fromArrow(null, table.concat(table));
      assert.deepEqual([...joined], [...expected, ...expected]);
      const again = fromArrow(null, inFlechette(table));
      assert.deepEqual([again.dtype, [...again]], ["bool", expected]);
      const lent = Tensor.fromTypedArray(Int8Array.from(bytes));
      const vector = toArrow(arrow, lent);
      const ours = tableOf(vector, sizes, extension("bool8"));
      const back = fromArrow(null, ours);
      assert.deepEqual([back.dtype, [...back]], ["bool", expected]);
      assert.throws(() => fromArrow(null, ours, { copy: false }), { name: "CopyError" });
      vector.data[0].values = null;
      for (const each of [tensor, joined, again, lent, back]) each.release();
      if (isShared) fromArrow(null, table, { copy: false }).release();
      else assert.throws(() => fromArrow(null, table, { copy: false }), { name: "CopyError" });
    }
  }
});

test("extension types that contradict themselves are refused, and others are their storage", () => {
  const six = Float32Array.from({ length: 6 }, (_, i) => i);
  for (const metadata of [
    undefined,
    [],
    {},
    { shape: 6 },
    { shape: [2, 2] },
    { shape: [-2, -3] },
    { shape: ["2", 3] },
    { shape: [2, 3], permutation: [0] },
    { shape: [2, 3], permutation: [1, 1] },
    { shape: [2, 3], permutation: ["1", "0"] },
    { shape: [2, 3], permutation: 1 },
    { shape: [2, 3], dim_names: ["x"] },
    { shape: Array(70).fill(1).concat(6) },
  ]) {
    const table = tableOf(six, [6], extension("fixed_shape_tensor", metadata), true);
    assert.throws(() => fromArrow(null, table), {
      name: "UnsupportedError",
      message: /arrow.fixed_shape_tensor of Arrow is malformed/,
    });
  }
  for (const name of ["bool8", "fixed_shape_tensor"]) {
    const table = tableOf(six, [], extension(name, { shape: [] }));
    assert.throws(() => fromArrow(null, table), { message: /malformed: it is of Float32/ });
  }
  const tensor = fromArrow(null, tableOf(six, [], extension("opaque")));
  assert.deepEqual([...tensor], [...six]);
  tensor.release();
});

test("flechette: columns of numbers are shared, and its other types are refused by name", () => {
  const { columnFromArray: column, fixedSizeList, ...types } = flechette;
  for (const [dtype, type] of Object.entries({
    int8: "int8",
    int32: "int32",
    uint16: "uint16",
    float32: "float32",
    float64: "float64",
    float16: "float16",
    bool: "bool",
  })) {
    const of = types[type]();
    const [values, lists] = [
      column(
        [1, 0, 1, 1].map((n) => (dtype === "bool" ? Boolean(n) : n)),
        of,
      ),
      column(
        [
          [1, 0],
          [1, 1],
        ].map((row) => row.map((n) => (dtype === "bool" ? Boolean(n) : n))),
        fixedSizeList(of, 2),
      ),
    ];
    const expected = [...values];
    for (const [given, shape] of [
      [values, [4]],
      [lists, [2, 2]],
    ]) {
      const tensor = fromArrow(null, given, dtype === "bool" ? {} : { copy: false });
      assert.deepEqual([tensor.dtype, tensor.shape, [...tensor]], [dtype, shape, expected]);
      tensor.release();
    }
  }
  for (const type of ["dateDay", "timeSecond", "timeMicrosecond", "timestamp", "duration"]) {
    const given = column([1000, 86400000], types[type]());
    const tensor = fromArrow(null, given, { copy: false });
    const { values } = given.data[0];
    assert.ok(tensor.data === values || tensor.data.buffer === values.buffer);
    assert.deepEqual(
      [tensor.dtype, [...tensor]],
      [values instanceof Int32Array ? "int32" : "int64", [...values]],
    );
    tensor.release();
  }
  const table = flechette.tableFromArrays({ a: [1, 2, null], b: ["x", "y", "z"] });
  const { values, valid } = fromArrow(null, table, { column: "a", nulls: "mask" });
  assert.deepEqual([values.at(1), ...valid], [2, true, true, false]);
  for (const each of [values, valid]) each.release();
  const refused = [
    [table, { column: "a" }, /1 of 3 elements are null/],
    [table, { column: "b" }, /Arrow's type Dictionary: .*indices/s],
    [table, {}, /2 columns: \["a","b"\]; name one/],
    [column([[1], [2, 3]], flechette.list(flechette.int8())), {}, /type List: .*its values/s],
    [column([{ x: 1 }], flechette.struct({ x: flechette.int8() })), { column: "y" }, /no column/],
  ];
  for (const [value, options, message] of refused) {
    assert.throws(() => fromArrow(null, value, options), { name: "UnsupportedError", message });
  }
  const struct = column([{ x: 1 }, { x: 2 }], flechette.struct({ x: flechette.int8() }));
  const x = fromArrow(null, struct, { column: "x" });
  assert.deepEqual([...x], [1, 2]);
  x.release();
  table.schema.endianness = 1;
  assert.throws(() => fromArrow(null, table, { column: "a" }), { message: /big-endian/ });
});
