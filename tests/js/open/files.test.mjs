// Files of tensors, from memory: the vectors that all parsers share, and random damage to the good
// ones, which is told by an error of ours or changes nothing but elements.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save, TensorFile } from "../../../js/dist/open/index.js";
import { fakeDevice } from "../fake_device.mjs";
import { random as randomFrom } from "../random.mjs";
import { saved } from "./made_files.mjs";
import "../nothing_leaks.mjs";

const { files: VECTORS } = JSON.parse(
  readFileSync(new URL("../../../build/vectors.json", import.meta.url), "utf8"),
);
const bytesOf = (text) => new Uint8Array(Buffer.from(text, "base64"));

/** {name: {dtype, shape, values}} of all that is in a file, but for what it may not give. */
async function contents(bytes, options, refused = {}, names = undefined) {
  const opened = await open(bytes, options);
  if (!(opened instanceof TensorFile)) return { "": taken(opened) };
  const found = Object.create(null);
  try {
    if (names) assert.deepEqual([...opened.names], names);
    for (const [name, { error, ...info }] of Object.entries(refused)) {
      assert.deepEqual(opened.info(name), info);
      const isNamed = ({ name: kind, message }) =>
        kind === "UnsupportedError" &&
        message.includes(`"${name}"`) &&
        new RegExp(error).test(message);
      await assert.rejects(opened.get(name), isNamed);
    }
    if (Object.keys(refused).length > 0) {
      await assert.rejects(opened[Symbol.asyncIterator]().next(), isOurs);
    }
    for (const name of opened.names) {
      if (Object.hasOwn(refused, name)) continue;
      const { dtype, shape } = opened.info(name);
      const tensor = await opened.get(name);
      assert.deepEqual([tensor.dtype, tensor.shape], [dtype, shape]);
      found[name] = taken(tensor);
    }
  } finally {
    opened.close();
  }
  return found;
}

function taken(tensor) {
  const packed = tensor._managed.as(tensor._managed.dtype); // sub-byte elements, too
  const values = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  tensor.release();
  return { dtype: tensor.dtype, shape: [...tensor.shape], values: values.toString("base64") };
}

/** What an error must be that a bad file is told by. */
function isOurs(error) {
  assert.equal(error.name, "UnsupportedError", error.stack);
  const texts = Object.values({ ...error, message: error.message });
  assert.ok(texts.every((text) => typeof text !== "string" || text.length <= 2000));
  return true;
}

/** The header of `count` empty tensors, without its end. */
const entries = (count) =>
  Array.from({ length: count }, (_, i) => `"${i}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`);
for (const [name, header, error] of [
  ["no end", `{"${'\\"'.repeat(2_000_000)}`, /not JSON/],
  ["quotes", `{${'"a'.repeat(1_000_000)}`, /not JSON/],
  ["names", `{${entries(50_000)},"7":0}`, /"7" twice/],
  ["nested", `{${"[".repeat(4_000_000)}`, /not JSON/],
  ["digits", `{"a":${"9".repeat(4_000_000)}}`, /9 where a size is needed/],
])
  test(`a long header is read in linear time: ${name}`, { timeout: 60_000 }, async () => {
    // Looked at again from each of its characters, one of these would take hours.
    const data = new Uint8Array(8 + header.length);
    new DataView(data.buffer).setUint32(0, header.length, true);
    new TextEncoder().encodeInto(header, data.subarray(8));
    await assert.rejects(
      () => open(data, { format: "safetensors" }),
      (caught) => isOurs(caught) && error.test(caught.message) && caught.message.length < 400,
    );
  });

for (const { name, file, options, tensors, refused, names, error } of VECTORS) {
  test(name, async () => {
    const bytes = bytesOf(file);
    if (tensors) {
      const found = await contents(bytes, options, refused, names);
      assert.deepEqual({ ...found }, { ...tensors });
    } else {
      await assert.rejects(
        () => contents(bytes, options),
        (caught) =>
          isOurs(caught) && new RegExp(error.replace("(?i)", ""), "i").test(caught.message),
      );
    }
  });
}

function damaged(bytes, random) {
  const made = bytes.slice(0, random(8) === 0 ? random(bytes.length + 1) : bytes.length);
  for (let count = random(4) + 1; count > 0 && made.length > 0; count--) {
    // Headers are at the start, directories at the end.
    const near = Math.min(made.length, 300);
    const at = random(2) ? random(near) : made.length - 1 - random(near);
    made[at] = random(3) ? random(256) : made[at] ^ (1 << random(8));
  }
  return made;
}

test("random damage is told, or changes elements alone", async () => {
  const random = randomFrom(17);
  const good = VECTORS.filter(({ tensors, refused }) => tensors && !refused).map(
    ({ file, options }) => ({ bytes: bytesOf(file), options }),
  );
  let told = 0;
  for (let i = 0; i < 2000; i++) {
    const { bytes, options } = good[random(good.length)];
    try {
      const { dtype, ...rest } = options ?? {};
      await contents(damaged(bytes, random), rest.format === "raw" ? options : rest);
    } catch (error) {
      isOurs(error);
      told++;
    }
  }
  assert.ok(told > 500, `${told} were told`);
});

/** Bytes in pieces of any size, of a stream that is read into the reader's memory ("bytes") or not. */
function inPieces(bytes, type, random, largest) {
  let at = 0;
  return new ReadableStream({
    type,
    pull(controller) {
      const piece = bytes.slice(at, at + 1 + random(largest));
      at += piece.length;
      if (piece.length > 0) controller.enqueue(piece);
      if (at < bytes.length) return;
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
}

test("streams give the same files, in pieces of any size", async () => {
  const before = liveTensors();
  const random = randomFrom(3);
  for (const { name, file, options, tensors, refused, error } of VECTORS) {
    // Streams of these are read no further.
    if (name.startsWith("safetensors") && error?.includes("follow")) continue;
    const bytes = bytesOf(file);
    const least = Math.max(7, bytes.length >> 7); // of large files no more than some hundred pieces
    for (const type of ["bytes", undefined]) {
      const stream = inPieces(bytes, type, random, random(2) ? least : 700);
      if (refused) continue; // all of a stream is loaded in order
      if (tensors) assert.deepEqual({ ...(await contents(stream, options)) }, { ...tensors });
      else await assert.rejects(contents(stream, options), isOurs);
      assert.equal(liveTensors(), before);
    }
  }
});

test("a large stream in pieces that fit into nothing", async () => {
  const random = randomFrom(4);
  const values = Uint32Array.from({ length: 1 << 20 }, () => random(2 ** 32));
  const bytes = await saved(values);
  for (const type of ["bytes", undefined]) {
    const opened = await open(inPieces(bytes, type, random, 3_000_000));
    assert.deepEqual(opened.data, values);
    opened.release();
  }
});

/** As far as a file needs one on its way to the GPU. */
const largeDevice = () => ({
  ...fakeDevice(),
  [Symbol.toStringTag]: "GPUDevice",
  limits: { maxBufferSize: 2 ** 33, maxStorageBufferBindingSize: 2 ** 32 },
});

test("a tensor of more bytes than 31 bits count begins to come, and where it ends is told", async () => {
  for (const nbytes of [2 ** 31 + 4, 2 ** 32]) {
    const options = { format: "raw", dtype: "float32", shape: [nbytes / 4], device: largeDevice() };
    await assert.rejects(open(new Blob([new Uint8Array(64)]).stream(), options), {
      name: "UnsupportedError",
      message: new RegExp(`ends after 64 bytes.* needs ${nbytes - 64} more`),
    });
  }
});

test("memory that runs out between the pieces of a file is an error of the elements", async () => {
  const scopes = [];
  let full = false;
  const device = Object.assign(largeDevice(), {
    queue: {
      ...fakeDevice().queue,
      writeBuffer: (_buffer, offset) => {
        if (offset === 8 << 20) full = true;
      },
    },
    pushErrorScope: (filter) => void scopes.push(filter),
    popErrorScope: async () => {
      if (scopes.pop() !== "out-of-memory" || !full) return null;
      full = false;
      return { message: "no memory" };
    },
  });
  const shape = [3 << 20];
  const options = { format: "raw", dtype: "float32", shape, device };
  const tensor = await open(new Uint8Array(12 << 20), options);
  await assert.rejects(tensor.read(), {
    name: "DeviceError",
    message: /uploading a file.*no memory/,
  });
  tensor.release();
});

/** What .npy files lack. */
const LACKED = /^(uint4|bfloat16|float8)/;

test("what is saved is what is opened", async () => {
  for (const { name, file, options, tensors, refused, numpys } of VECTORS) {
    const kept = Object.entries(tensors ?? {});
    if (!tensors || refused || kept.some(([, { dtype }]) => LACKED.test(dtype) && !options))
      continue;
    const opened = await open(bytesOf(file), options);
    if (opened instanceof TensorFile) {
      const held = await Promise.all(
        opened.names.map(async (name) => [name, await opened.get(name)]),
      );
      const blob = await save(held, { metadata: opened.metadata });
      const again = await open(blob);
      assert.deepEqual(again.metadata, opened.metadata);
      again.close();
      assert.deepEqual({ ...(await contents(blob)) }, { ...tensors });
      for (const [, tensor] of held) tensor.release();
      opened.close();
    } else {
      if (LACKED.test(opened.dtype)) {
        await assert.rejects(save(opened), { name: "UnsupportedError" });
      } else {
        const blob = await save(opened);
        assert.deepEqual(await contents(blob), tensors);
        const bytes = new Uint8Array(await blob.arrayBuffer());
        if (numpys) assert.deepEqual(bytes, bytesOf(file), name);
      }
      opened.release();
    }
  }
});

test("views are saved by their elements, in the order that their memory has", async () => {
  const whole = Tensor.fromTypedArray(
    Int16Array.from({ length: 60 }, (_, i) => i),
    {
      shape: [3, 4, 5],
    },
  );
  for (const [view, columns] of [
    [whole.permute([2, 1, 0]), "True"],
    [whole.permute([1, 0, 2]), "False"],
    [whole.slice([null, null, 2], null, [null, null, -1]), "False"],
    [whole.slice(null, [1, 2], [2, 2]), "False"],
    [whole.slice(1, [1, 3]), "False"],
    [whole.slice(null, 2, 3), "False"],
  ]) {
    const blob = await save(view);
    assert.ok((await blob.text()).includes(`'fortran_order': ${columns},`), `${view.shape}`);
    const file = await open(await save({ a: whole, view }));
    for (const again of [await open(blob), await file.get("view")]) {
      assert.deepEqual([again.shape, [...again]], [view.shape, [...view]]);
      again.release();
    }
    file.close();
    view.release();
  }
  whole.release();
});

test("one tensor of a dtype that this library lacks is refused alone", async () => {
  const facts = {
    a: { dtype: "F4", shape: [4], data_offsets: [0, 2] },
    b: { dtype: "U8", shape: [3], data_offsets: [2, 5] },
  };
  const header = new TextEncoder().encode(JSON.stringify(facts));
  const bytes = new Uint8Array(8 + header.length + 5);
  bytes.set([header.length & 255, header.length >> 8]);
  bytes.set(header, 8);
  bytes.set([7, 8, 9], 8 + header.length + 2);
  for (const source of [bytes, new Blob([bytes]), new Blob([bytes]).stream()]) {
    const file = await open(source);
    assert.deepEqual([...file.names], ["a", "b"]);
    assert.deepEqual(file.info("a"), { dtype: "F4", shape: [4], nbytes: 2 });
    const message =
      /tensor "a" of .* has dtype "F4", which is not supported: .*can be loaded by name/;
    await assert.rejects(file.get("a"), { name: "UnsupportedError", message });
    await assert.rejects(file[Symbol.asyncIterator]().next(), { message });
    const b = await file.get("b"); // nothing was read of a stream
    assert.deepEqual([...b.data], [7, 8, 9]);
    b.release();
    file.close();
  }
});

test("names are in the order of the file, also those of objects in JavaScript", async () => {
  const names = ["b", "10", "2", "constructor", "__proto__", "a"];
  const empty = Tensor.fromTypedArray(new Float32Array(0));
  const file = await open(await save(new Map(names.map((name) => [name, empty]))));
  assert.deepEqual(file.names, names);
  file.close();
  empty.release();
});

test("names and metadata that are no text are not written", async () => {
  const tensor = Tensor.fromTypedArray(Uint8Array.of(1));
  const message = /"(a)?\\ud800" has half of a surrogate pair/;
  for (const [named, metadata] of [
    [{ "a\ud800": tensor }, {}],
    [{ a: tensor }, { "\ud800": "" }],
    [{ a: tensor }, { by: "a\ud800" }],
  ]) {
    const written = [];
    const to = new WritableStream({ write: (chunk) => void written.push(chunk) });
    await assert.rejects(save(named, { to, metadata }), { name: "UnsupportedError", message });
    assert.equal(written.length, 0);
  }
  const pairs = [new Map([["by", "me"]]), [["by", "me"]], "text", new Set()];
  for (const metadata of pairs) {
    await assert.rejects(save({ a: tensor }, { metadata }), {
      name: "TypeError",
      message: /metadata must be an object of strings/,
    });
  }
  for (const name of [5, null, undefined, Symbol("x"), ["a"]]) {
    await assert.rejects(save([[name, tensor]]), {
      name: "TypeError",
      message: /is not a string$/,
    });
  }
  let asked = 0;
  const metadata = {
    __proto__: { toJSON: () => ({ by: 1 }) },
    get by() {
      return asked++ ? 5 : "me";
    },
  };
  const said = await open(await save({ a: tensor }, { metadata }));
  assert.deepEqual(said.metadata, { by: "me" });
  said.info("a").shape[0] = 9;
  assert.deepEqual(said.info("a").shape, [1]);
  said.close();
  const whole = await open(await save({ "\ud83d\ude00": tensor }, { metadata: { "😀": "😀" } }));
  assert.deepEqual([[...whole.names], whole.metadata], [["😀"], { "😀": "😀" }]);
  whole.close();
  tensor.release();
});
