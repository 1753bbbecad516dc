// What a file or a foreign object says is bounded before it is read, inflated or shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { take } from "../../../js/dist/exchange/index.js";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { ENDLESS, isShort } from "../bounds.mjs";
import { described } from "../exchange/described.mjs";
import { archiveOf, saved } from "./made_files.mjs";

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
  const npy = await saved(random);
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
      const exchange = described({ [field]: list });
      await isShort(async () => void (await take({ [EXCHANGE]: () => exchange })));
    }
  }
});
