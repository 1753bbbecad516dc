// Random tensors through files: what is saved is what is opened, with the header that NumPy would
// write; and headers of safetensors in any order, with tensors without elements at the same places.
import assert from "node:assert/strict";
import { test } from "node:test";
import { liveTensors } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { random as randomFrom } from "../random.mjs";

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
