// What a file or a foreign object says is bounded before it is read, inflated or shown; and random
// tensors through files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { take } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { ENDLESS, isShort } from "../bounds.mjs";
import { random as randomFrom } from "../random.mjs";
import { archiveOf } from "./archives.mjs";

const MB = 1 << 20;
const LONG = "long ".repeat(MB / 5);
const text = (given) => new TextEncoder().encode(given);

/** How many bytes were inflated while it ran, and the longest chunk that was. */
async function inflatedBy(run) {
  const { DecompressionStream } = globalThis;
  const seen = { count: 0, longest: 0 };
  const noting = (note) =>
    new TransformStream({
      transform(chunk, controller) {
        note(chunk.length);
        controller.enqueue(chunk);
      },
    });
  globalThis.DecompressionStream = class {
    constructor(format) {
      const { readable, writable } = new DecompressionStream(format);
      const given = noting((length) => (seen.longest = Math.max(seen.longest, length)));
      given.readable.pipeTo(writable).catch(() => {});
      this.writable = given.writable;
      this.readable = readable.pipeThrough(noting((length) => (seen.count += length)));
    }
  };
  try {
    await run();
  } finally {
    globalThis.DecompressionStream = DecompressionStream;
  }
  return seen;
}

for (const major of [1, 2, 3])
  for (const length of [0, 1, 2, 10_000, 10_001])
    test(`a header of ${length} bytes of version ${major} is read, and no more`, async () => {
      const bytes = new Uint8Array(64 * MB);
      bytes.set([0x93, ...text("NUMPY"), major, 0, length & 255, length >> 8]);
      const archive = archiveOf([["bomb.npy", bytes]]);
      const { count } = await inflatedBy(async () => {
        const file = await open(archive);
        assert.deepEqual([...file.names], ["bomb"]);
        const message = /"bomb" of the array cannot be loaded: "bomb.npy": /;
        await assert.rejects(file.get("bomb"), { name: "UnsupportedError", message });
        file.close();
      });
      assert.ok(count < 20 * MB, `${count}`);
    });

test("browsers inflate a chunk at once: it is small", async () => {
  const random = new Uint8Array(3 * MB).map((_, i) => (i * i * 251) >> 7);
  const npy = new Uint8Array(await (await save(Tensor.fromTypedArray(random))).arrayBuffer());
  const { longest } = await inflatedBy(async () => {
    const file = await open(archiveOf([["a.npy", npy]]));
    await assert.rejects(file.get("a"), /CRC-32/);
    file.close();
  });
  assert.ok(longest > 0 && longest <= 1 << 14, `${longest}`);
});

test("elements are not allocated by a size that cannot be true", async () => {
  const header = `{'descr': '|u1', 'fortran_order': False, 'shape': (${2 ** 31}, ), }\n`;
  const npy = text(`\x93NUMPY\x01\x00${String.fromCharCode(header.length)}\x00${header}`);
  const file = await open(archiveOf([["a.npy", npy, npy.length + 2 ** 31]]));
  await assert.rejects(file.get("a"), { message: /bytes cannot be deflated to/ });
  file.close();
});

// --- messages -----------------------------------------------------------------------------------

function tensorsOf(facts, data = 8) {
  const header = text(typeof facts === "string" ? facts : JSON.stringify(facts));
  const bytes = new Uint8Array(8 + header.length + data);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 8);
  return bytes;
}

const fact = (dtype = "F32", shape = [2], begin = 0, end = 8, more = {}) => ({
  dtype,
  shape,
  data_offsets: [begin, end],
  ...more,
});

test("messages about tensors are short", async () => {
  const names = Array.from({ length: 30 }, (_, i) => `${i} ${LONG}`);
  const facts = Object.fromEntries(names.map((name, i) => [name, fact("F4", [2], i, i + 1)]));
  const file = await open(tensorsOf(facts, 30));
  for (const call of [
    () => file.get(names[0]),
    () => file.get(LONG),
    async () => file.info(LONG),
    () => file[Symbol.asyncIterator]().next(),
  ])
    await isShort(call);
  file.close();
  const name = LONG.slice(0, 60_000);
  const header = `{'descr': '${"x".repeat(9900)}', 'fortran_order': False, 'shape': (), }\n`;
  const npy = new Uint8Array([
    0x93,
    ...text("NUMPY"),
    1,
    0,
    header.length & 255,
    header.length >> 8,
    ...text(header),
  ]);
  const archive = await open(
    archiveOf([
      [`${name}.npy`, npy],
      ["b.npy", text("?")],
    ]),
  );
  for (const each of archive.names) await isShort(() => archive.get(each));
  archive.close();
  await isShort(open(npy));
});

test("messages about what is saved are short", async () => {
  const tensor = Tensor.fromTypedArray(new Float32Array(3));
  const complex = Tensor.fromTypedArray(new Float64Array(2), { dtype: "complex128" });
  for (const [named, options] of [
    [{ [LONG]: 3 }],
    [{ [`${LONG}\ud800`]: tensor }],
    [{ [LONG]: complex }],
    [{ a: tensor }, { format: LONG }],
  ])
    await isShort(save(named, options));
  await isShort(open(new Uint8Array(0), { format: LONG }));
  await isShort(open(new Uint8Array(0), { dtype: LONG }));
  for (const each of [tensor, complex]) each.release();
});

// --- lengths of foreign objects -------------------------------------------------------------------

const bytes = new Uint8Array(8);
for (const [what, list] of Object.entries(ENDLESS)) {
  test(`a list of a billion is not copied: ${what}`, async () => {
    const before = liveTensors();
    const tensor = Tensor.fromTypedArray(bytes);
    for (const call of [
      () => open(bytes, { format: "raw", dtype: "uint8", shape: list }),
      () => Tensor.fromTypedArray(bytes, { shape: list }),
      () => Tensor.fromTypedArray(bytes, { shape: [8], strides: list }),
      () => Tensor.fromTypedArray(bytes, { shape: [8], strides: [1] }).reshape(list),
      () => tensor.reshape(list),
      () => tensor.permute(list),
    ])
      await isShort(async () => void (await call()));
    tensor.release();
    assert.ok(liveTensors() <= before + 1);
  });
}

test("an exchange that lists a billion extents is refused", async () => {
  const EXCHANGE = Symbol.for("dlpack.exchange");
  for (const list of Object.values(ENDLESS)) {
    for (const field of ["shape", "strides", "dtype", "byteOffset", "flags"]) {
      const exchange = {
        version: [1, 0],
        device: { type: 1, gpu: null },
        dtype: { code: 1, bits: 8, lanes: 1 },
        shape: [8],
        strides: null,
        byteOffset: 0,
        data: bytes.buffer,
        capacity: 8,
        flags: 0,
        flush() {},
        fault: null,
        release() {},
        [field]: list,
      };
      await isShort(async () => void (await take({ [EXCHANGE]: () => exchange })));
    }
  }
});

// Random tensors: what is saved is what is opened, with the header that NumPy would write; and headers
// of safetensors in any order, with tensors without elements at the same places.

const CODES = {
  bool: "|b1",
  int8: "|i1",
  int16: "<i2",
  int32: "<i4",
  int64: "<i8",
  uint8: "|u1",
  uint16: "<u2",
  uint32: "<u4",
  uint64: "<u8",
  float16: "<f2",
  float32: "<f4",
  float64: "<f8",
  complex64: "<c8",
  complex128: "<c16",
};

/** A view of random memory, in any order, and its elements' bytes in row-major order. */
async function randomTensor(random, dtypes) {
  const dtype = dtypes[random(dtypes.length)];
  const base = Array.from({ length: random(5) }, () => [0, 1, 1, 2, 3, 5][random(6)]);
  const count = base.reduce((a, b) => a * b, 1);
  const bytes = new Uint8Array(count * CODES[dtype].slice(2));
  for (let i = 0; i < bytes.length; i++) bytes[i] = dtype === "bool" ? random(2) : random(256);
  const made = await open(bytes, { format: "raw", dtype, shape: base });
  const order = base.map((_, axis) => axis);
  for (let i = order.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  const ranges = order.map(() => (random(4) === 0 ? [null, null, 2] : [null, null]));
  const turned = made.permute(order);
  const view = turned.slice(...ranges);
  const { itemsize } = made;
  const strides = base.map((_, axis) => base.slice(axis + 1).reduce((a, b) => a * b, 1));
  const parts = [];
  const walk = (axis, at) => {
    if (axis === view.shape.length) {
      parts.push(Buffer.from(bytes.slice(at * itemsize, (at + 1) * itemsize)));
      return;
    }
    const step = strides[order[axis]] * (ranges[axis].length === 3 ? 2 : 1);
    for (let i = 0; i < view.shape[axis]; i++) walk(axis + 1, at + i * step);
  };
  if (count > 0 && view.size > 0) walk(0, 0);
  made.release();
  turned.release();
  return { view, values: Buffer.concat(parts) };
}

/** Whether NumPy would say fortran_order: by columns, and not by rows. */
function isByColumns({ shape, strides }) {
  const runs = (axes) => {
    let next = 1;
    for (const axis of axes) {
      if (shape[axis] !== 1 && strides[axis] !== next) return false;
      next *= shape[axis];
    }
    return true;
  };
  const axes = shape.map((_, axis) => axis);
  return !shape.includes(0) && runs(axes) && !runs(axes.reverse());
}

const bytesOf = async (blob) => Buffer.from(await blob.arrayBuffer());
const valuesOf = (tensor) => {
  const packed = tensor._managed.as(tensor._managed.dtype);
  return Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
};

for (let seed = 0; seed < 20; seed++) {
  test(`npy, ${seed}`, async () => {
    const random = randomFrom(seed);
    const before = liveTensors();
    for (let i = 0; i < 40; i++) {
      const { view, values } = await randomTensor(random, Object.keys(CODES));
      const data = await bytesOf(await save(view));
      const header = data.subarray(10, 10 + data.readUInt16LE(8)).toString();
      const sizes = view.shape.length === 1 ? `${view.shape},` : view.shape.join(", ");
      const columns = isByColumns(view) ? "True" : "False";
      const text = `{'descr': '${CODES[view.dtype]}', 'fortran_order': ${columns}, 'shape': (${sizes}), }`;
      assert.equal(header.trimEnd(), text);
      assert.equal((10 + header.length) % 64, 0);
      const opened = await open(new Uint8Array(data));
      assert.deepEqual([opened.dtype, opened.shape], [view.dtype, view.shape]);
      assert.ok(valuesOf(opened).equals(values));
      opened.release();
      view.release();
    }
    assert.equal(liveTensors(), before);
  });

  test(`safetensors, ${seed}`, async () => {
    const random = randomFrom(seed);
    const dtypes = Object.keys(CODES).filter((each) => each !== "complex128");
    const made = [];
    for (let count = random(12); count >= 0; count--) made.push(await randomTensor(random, dtypes));
    const named = made.map(({ view }, i) => [`${random(99)} ${i}`, view]);
    const file = await open(await save(named));
    assert.deepEqual([...file.names].sort(), named.map(([name]) => name).sort());
    for (const [i, [name, view]] of named.entries()) {
      const tensor = await file.get(name);
      assert.deepEqual([tensor.dtype, tensor.shape], [view.dtype, view.shape]);
      assert.ok(valuesOf(tensor).equals(made[i].values));
      tensor.release();
      view.release();
    }
    file.close();
  });

  test(`a header of safetensors in any order, ${seed}`, async () => {
    const random = randomFrom(seed);
    for (let i = 0; i < 20; i++) {
      const facts = [];
      let at = 0;
      for (let count = 1 + random(8); count > 0; count--) {
        const size = [0, 0, 1, 3][random(4)];
        const place = { dtype: "U8", shape: [size], data_offsets: [at, at + size] };
        facts.splice(random(facts.length + 1), 0, [`t${count}`, place]);
        at += size;
      }
      const header = JSON.stringify(Object.fromEntries(facts));
      const data = new Uint8Array(8 + header.length + at);
      new DataView(data.buffer).setUint32(0, header.length, true);
      new TextEncoder().encodeInto(header, data.subarray(8));
      for (let j = 0; j < at; j++) data[8 + header.length + j] = j;
      const file = await open(data);
      const order = facts.toSorted(
        ([, a], [, b]) =>
          a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1],
      );
      assert.deepEqual(
        [...file.names],
        order.map(([name]) => name),
      );
      for (const [name, { data_offsets: offsets }] of order) {
        const tensor = await file.get(name);
        assert.deepEqual(
          [...tensor.data],
          Array.from({ length: offsets[1] - offsets[0] }, (_, j) => offsets[0] + j),
        );
        tensor.release();
      }
      file.close();
    }
  });
}
