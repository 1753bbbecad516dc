// More than 500 lines: one suite, whose tests share their fixtures.
// Parts of tensors in files, and models in several files: the bytes that are read, and what a server
// may do to them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { random as randomFrom } from "../random.mjs";
import { archiveOf, saved } from "./made_files.mjs";
import { failing, give as giveBytes, origin, serve } from "./server.mjs";

const { models: MODELS } = JSON.parse(
  readFileSync(new URL("../../../build/vectors.json", import.meta.url), "utf8"),
);
const KIB = 1 << 10;
/** What answers, by path: `answer(request, response, bytes)`, its bytes, what was asked and sent. */
const files = new Map();

serve((request, response) => {
  const file = files.get(request.url);
  if (!file) return response.writeHead(404).end();
  file.asked.push(request.headers.range);
  file.answer(request, response, file);
});

/** Answers as a good server does, and counts what it sends. */
function give(request, response, file, headers, body) {
  file.sent += giveBytes(request, response, file.bytes, headers, body);
}

const whole = (_, response, { bytes }) => {
  response.writeHead(200, { "content-length": bytes.length, etag: '"1"' });
  response.end(bytes);
};

function served(name, bytes, answer = give) {
  const path = `/${files.size}/${name}`;
  const file = { bytes, answer, asked: [], sent: 0 };
  files.set(path, file);
  return Object.assign(file, { url: origin + path });
}

function tensorOf(shape, dtype = "float32") {
  const size = shape.reduce((a, b) => a * b, 1);
  const kind = dtype === "float32" ? Float32Array : Uint8Array;
  const array = kind.from({ length: size }, (_, i) => i);
  return Tensor.fromTypedArray(array, { shape, dtype });
}

const ROWS = 4096;
const COLUMNS = 256;
const ROW = 4 * COLUMNS;
const WEIGHTS = await saved({ w: tensorOf([ROWS, COLUMNS]), b: tensorOf([COLUMNS]) });
const ORIGIN = WEIGHTS.length - ROW * (ROWS + 1);
const AT = { w: 0, b: 0 };
{
  const file = await open(WEIGHTS);
  AT.w = ORIGIN + (file.names[0] === "b" ? ROW : 0);
  AT.b = ORIGIN + (file.names[0] === "b" ? 0 : ROW * ROWS);
  file.close();
}
const LIVE = liveTensors();
const fails = failing();

/** The elements, and nothing is left behind. */
async function listOf(loading) {
  const tensor = await loading;
  try {
    const packed = tensor.contiguous();
    const found = { shape: [...tensor.shape], values: [...packed.data] };
    if (packed !== tensor) packed.release();
    return found;
  } finally {
    tensor.release();
  }
}

test("rows are read alone, and the facts of them are known before", async () => {
  const file = served("w.safetensors", WEIGHTS);
  const opened = await open(file.url);
  assert.deepEqual(file.asked.splice(0), ["bytes=0-131071"]);
  assert.deepEqual(opened.info("w", { part: [[1000, 1041]] }), {
    dtype: "float32",
    shape: [41, COLUMNS],
    nbytes: 41 * ROW,
  });
  file.sent = 0;
  const told = [];
  const { shape, values } = await listOf(
    opened.load("w", { part: [[1000, 1041]], progress: (...at) => told.push(at) }),
  );
  assert.deepEqual(shape, [41, COLUMNS]);
  assert.ok(values.every((value, i) => value === 1000 * COLUMNS + i));
  assert.equal(file.sent, 41 * ROW);
  assert.deepEqual(told.at(-1), [41 * ROW, 41 * ROW]);
  assert.deepEqual(await listOf(opened.get("b", { part: [[-1, null]] })), {
    shape: [1],
    values: [COLUMNS - 1],
  });
  opened.close();
  await fails(opened.load("w", { part: [0] }), "ReleasedError", /was closed/);
});

test("a part of a .npy file takes a request for its header and one for its rows", async () => {
  const file = served("w.npy", await saved(tensorOf([ROWS, COLUMNS])));
  const { shape, values } = await listOf(open(file.url, { part: [[8, 10]] }));
  assert.deepEqual([shape, values[0], values.length], [[2, COLUMNS], 8 * COLUMNS, 2 * COLUMNS]);
  assert.equal(file.sent, (1 << 17) + 2 * ROW);
  const raw = served("w.bin", WEIGHTS.subarray(WEIGHTS.length - 4 * ROW));
  const last = { dtype: "float32", shape: [4, COLUMNS], part: [-1, [0, 3]] };
  assert.equal((await listOf(open(raw.url, last))).values.length, 3);
});

test("what is not a part is refused", async () => {
  const file = await open(WEIGHTS);
  await fails(file.load("w", { part: [ROWS] }), "RangeError", /4096/);
  await fails(file.load("w", { part: [-ROWS - 1] }), "RangeError", /-4097/);
  await fails(file.load("w", { part: [null, null, null] }), "RangeError", /3 ranges for 2 axes/);
  await fails(file.load("w", { part: [[0, 9, 0]] }), "RangeError", /step must not be 0/);
  for (const part of [
    [[0.5, 2]],
    [[0, 2 ** 53]],
    [["0"]],
    ["1"],
    [[0n, 1n]],
    [true],
    [[0, 9, 1, 1]],
  ]) {
    await fails(file.load("w", { part }), "TypeError|RangeError", /./);
  }
  for (const part of [5, "0:5", { length: 1 }, null]) {
    await fails(file.load("w", { part }), "TypeError", /part must be an array/);
  }
  file.close();
  await fails(open(WEIGHTS, { part: [0] }), "TypeError", /several tensors.*file\.load/);
  const packed = { dtype: "int4", shape: [16], part: [[2, 4]] };
  await fails(open(new Uint8Array(8), packed), "UnsupportedError", /less than a byte/);
});

test("elements may be vectors of 65,535 lanes", async () => {
  for (const [dtype, step] of [
    ["uint8x65535", 65535],
    ["complex128x65535", 16 * 65535],
    ["float32x65535", 4 * 65535],
    ["int4x2", 1],
  ]) {
    const bytes = new Uint8Array(9 * step).map((_, i) => i % 251);
    for (const source of [bytes, new Blob([bytes])]) {
      for (const [part, first] of [
        [undefined, 0],
        [[[1, null, 4]], 1],
        [[-1], 8],
      ]) {
        const tensor = await open(source, { dtype, part });
        const packed = tensor.contiguous();
        const { buffer, byteOffset } = packed.data;
        const found = Buffer.from(buffer, byteOffset, step);
        assert.equal(tensor.dtype, dtype);
        assert.ok(found.equals(bytes.subarray(first * step, (first + 1) * step)));
        if (packed !== tensor) packed.release();
        tensor.release();
      }
    }
  }
});

test("a part without elements takes no request", async () => {
  const file = served("w.safetensors", WEIGHTS);
  const opened = await open(file.url);
  file.asked.length = 0;
  for (const [part, shape] of [
    [[[5, 5]], [0, COLUMNS]],
    [[[5, 3]], [0, COLUMNS]],
    [
      [
        [9999, null],
        [0, 4],
      ],
      [0, 4],
    ],
    [[7, [0, 0]], [0]],
  ]) {
    assert.deepEqual((await listOf(opened.load("w", { part }))).shape, shape);
  }
  assert.deepEqual(file.asked, []);
  opened.close();
});

test("parts that are asked for at once share requests where they are near", async () => {
  const file = served("w.safetensors", WEIGHTS);
  const opened = await open(file.url);
  file.asked.length = 0;
  const part = (...range) => listOf(opened.load("w", { part: [range] }));
  const found = await Promise.all([
    part(100, 110),
    part(120, 130),
    part(105, 125),
    part(4000, 4001),
  ]);
  assert.deepEqual(
    found.map(({ values }) => values[0] / COLUMNS),
    [100, 120, 105, 4000],
  );
  assert.deepEqual(file.asked.splice(0).sort(), [
    `bytes=${AT.w + 100 * ROW}-${AT.w + 130 * ROW - 1}`,
    `bytes=${AT.w + 4000 * ROW}-${AT.w + 4001 * ROW - 1}`,
  ]);
  // One that is aborted does not end the others; all of them end the request.
  const controller = new AbortController();
  const given = opened.load("w", { part: [[5, 6]], signal: controller.signal });
  const other = part(6, 7);
  controller.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  assert.equal((await other).values[0], 6 * COLUMNS);
  file.answer = (_, response) => {
    response.on("close", () => file.closed());
    response.writeHead(206, { "content-length": 2 * ROW, etag: '"1"' });
    response.write(new Uint8Array(10));
    file.begun();
  };
  const begun = new Promise((done) => {
    file.begun = done;
  });
  const closed = new Promise((done) => {
    file.closed = done;
  });
  const late = new AbortController();
  const both = [0, 1].map((i) => opened.load("w", { part: [[i, i + 1]], signal: late.signal }));
  for (const each of both) each.catch(() => {});
  await begun;
  late.abort(new Error("late"));
  for (const each of both) await fails(each, "Error", /late/);
  await closed;
  opened.close();
});

test("strided rows take a few requests, scattered elements are refused", async () => {
  const shape = [64, 64 * KIB]; // rows of 256 KiB
  const file = served("w.npy", await saved(tensorOf(shape)));
  const { values, shape: found } = await listOf(
    open(file.url, {
      part: [
        [1, null, 20],
        [3, 9],
      ],
    }),
  );
  assert.deepEqual(found, [4, 6]);
  assert.deepEqual(values.slice(6, 8), [21 * 64 * KIB + 3, 21 * 64 * KIB + 4]);
  assert.equal(file.asked.length, 5);
  assert.equal(file.sent, (1 << 17) + 4 * 6 * 4);
  // Every second row of small ones is read with those between.
  const small = served("w.safetensors", WEIGHTS);
  const opened = await open(small.url);
  small.asked.length = small.sent = 0;
  const second = await listOf(opened.load("w", { part: [[0, null, 2]] }));
  assert.deepEqual([second.shape[0], second.values[COLUMNS]], [ROWS / 2, 2 * COLUMNS]);
  assert.equal(small.asked.length, 1);
  small.asked.length = 0;
  const column = { part: [null, [0, 1]] };
  const scattered =
    /scattered: 16384 bytes in 4096 places, for which 4193284 would be read.*`whole`/;
  await fails(opened.load("w", column), "UnsupportedError", scattered);
  assert.deepEqual(small.asked, []);
  const all = await listOf(opened.load("w", { ...column, whole: true }));
  assert.ok(all.values.every((value, i) => value === i * COLUMNS));
  opened.close();
});

test("a server without ranges is refused, or read whole if asked", async () => {
  const file = served("w.safetensors", WEIGHTS, whole);
  const opened = await open(file.url);
  const part = { part: [[1000, 1001]] };
  await fails(opened.load("w", part), "UnsupportedError", /does not support ranges.*`whole`/);
  const found = await listOf(opened.load("w", { ...part, whole: true }));
  assert.equal(found.values[0], 1000 * COLUMNS);
  assert.equal((await listOf(opened.load("b"))).values[5], 5);
  const all = await listOf(opened.load("b", { part: [[null, null, -1]] }));
  assert.equal(all.values[0], COLUMNS - 1); // which is read to its end in any case
  const flipped = {
    part: [
      [9, 2, -3],
      [null, null, -1],
    ],
    whole: true,
  };
  const { shape, values } = await listOf(opened.load("w", flipped));
  assert.deepEqual([shape, values[0]], [[3, COLUMNS], 10 * COLUMNS - 1]);
  opened.close();
  const npy = served("w.npy", await saved(tensorOf([ROWS, COLUMNS])), whole);
  await fails(open(npy.url, part), "UnsupportedError", /does not support ranges/);
  assert.equal((await listOf(open(npy.url, { ...part, whole: true }))).values[1], 256_001);
  // The body of a response is read anyway.
  const response = await fetch(npy.url);
  assert.equal((await listOf(open(response, part))).values[1], 256_001);
});

test("a header that is longer than the first answer is asked for exactly", async () => {
  const names = Array.from({ length: 3000 }, (_, i) => `layer.${i}.${"x".repeat(20)}`);
  const bytes = await saved(Object.fromEntries(names.map((name) => [name, tensorOf([100])])));
  const header = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
  assert.ok(header > 1 << 17);
  const file = served("many.safetensors", bytes);
  const opened = await open(file.url);
  assert.deepEqual(file.asked, ["bytes=0-131071", `bytes=131072-${header - 1}`]);
  assert.equal((await listOf(opened.load(names[2999], { part: [[99, 100]] }))).values[0], 99);
  opened.close();
});

/** A .npy file of any order. */
async function npyOf(shape, columns) {
  const bytes = await saved(tensorOf(shape));
  if (!columns) return bytes;
  const text = new TextDecoder("latin1").decode(bytes);
  const at = text.indexOf("'fortran_order': False");
  bytes.set(new TextEncoder().encode("'fortran_order': True "), at);
  return bytes;
}

test("stored entries of an archive, and compressed ones", async () => {
  const npy = await npyOf([ROWS, COLUMNS], false);
  const stored = served("w.npz", archiveOf([["w.npy", npy]], true));
  const opened = await open(stored.url);
  stored.sent = 0;
  assert.equal((await listOf(opened.load("w", { part: [[9, 11]] }))).values[0], 9 * COLUMNS);
  assert.equal(stored.sent, 2 * ROW);
  opened.close();
  const packed = served("d.npz", deflated(npy));
  const other = await open(packed.url);
  await fails(
    other.load("w", { part: [[9, 11]] }),
    "UnsupportedError",
    /it is compressed in .*`whole`/,
  );
  const found = await listOf(other.load("w", { part: [[9, 11]], whole: true }));
  assert.equal(found.values[0], 9 * COLUMNS);
  assert.equal(
    (
      await listOf(
        other
          .parts("w")
          .next()
          .then(({ value }) => value),
      )
    ).shape[0],
    ROWS,
  );
  other.close();
  // What is here is read without being asked, and its sum compared.
  const here = await open(new Blob([deflated(npy)]));
  assert.equal((await listOf(here.load("w", { part: [-1, -1] }))).values[0], ROWS * COLUMNS - 1);
  here.close();
  const wrong = await open(deflated(npy, 1));
  await fails(wrong.load("w", { part: [0] }), "UnsupportedError", /CRC-32/);
  wrong.close();
});

/** A deflated entry with its sum, or a wrong one. */
function deflated(npy, wrong = 0) {
  const sum = new DataView(archiveOf([["w.npy", npy]], true).buffer).getUint32(14, true) ^ wrong;
  const bytes = archiveOf([["w.npy", npy]]);
  const view = new DataView(bytes.buffer);
  view.setUint32(14, sum, true);
  view.setUint32(view.getUint32(bytes.length - 6, true) + 16, sum, true);
  return bytes;
}

test("random parts are what tensor.slice gives of the whole", async () => {
  const random = randomFrom(7);
  for (let round = 0; round < (process.env.WHOLE ? 150 : 50); round++) {
    const shape = Array.from({ length: random(4) }, () => [0, 1, 2, 3, 5, 9, 40][random(7)]);
    const dtype = ["float32", "uint8"][random(2)];
    const npy = dtype === "float32" ? await npyOf(shape, random(2) === 1) : null;
    const several = await saved({ a: tensorOf([3], "uint8"), w: tensorOf(shape, dtype) });
    const ranges = shape.slice(0, random(shape.length + 1)).map((extent) => {
      const bound = () => (random(3) === 0 ? null : random(2 * extent + 3) - extent - 1);
      if (random(4) === 0 && extent > 0) return random(2 * extent) - extent;
      if (random(5) === 0) return null;
      return [bound(), bound(), [1, 1, 2, 3, -1, -2, 50][random(7)]];
    });
    for (const [bytes, name] of [
      [npy, "w.npy"],
      [npy && archiveOf([["w.npy", npy]], true), "w.npz"],
      [npy && deflated(npy), "w.npz"],
      [several, "w.safetensors"],
    ]) {
      if (bytes === null) continue;
      const remote = random(4) === 0;
      const source = remote ? served(name, bytes).url : random(2) ? bytes : new Blob([bytes]);
      const context = `round ${round}: ${name} [${shape}] ${JSON.stringify(ranges)}`;
      const load = async (options) => {
        if (name === "w.npy") return open(source, options);
        const file = await open(source);
        return file.load("w", options).finally(() => file.close());
      };
      const all = await load({});
      const expected = await listOf(Promise.resolve(all.slice(...ranges)));
      all.release();
      const found = await listOf(load({ part: ranges, whole: true }));
      assert.deepEqual(found, expected, context);
    }
  }
  assert.equal(liveTensors(), LIVE);
});

test("a tensor in parts", async () => {
  const given = {};
  const file = await open(WEIGHTS, given);
  Object.assign(given, { dtype: "float16", part: [0] });
  const sizes = async (options) => {
    const found = [];
    for await (const rows of file.parts("w", options)) {
      assert.equal(rows.at(0, 0), found.reduce((a, b) => a + b, 0) * COLUMNS);
      found.push(rows.shape[0]);
      rows.release();
    }
    return found;
  };
  assert.deepEqual(await sizes(), [ROWS]);
  assert.deepEqual(await sizes({ nbytes: 1500 * ROW + 1 }), [1500, 1500, 1096]);
  for (const nbytes of [ROW - 1, 0, -1, NaN]) {
    await fails(sizes({ nbytes }), "UnsupportedError", /one row has 1024 bytes/);
  }
  await fails(sizes({ part: [[0, 9]] }), "TypeError", /parts\(\) has no option "part"/);
  file.close();
  for (const [shape, count] of [
    [[], 1],
    [[0, 5], 1],
    [[3, 0], 1],
  ]) {
    const other = await open(await saved({ w: tensorOf(shape) }));
    const found = [];
    for await (const rows of other.parts("w")) {
      found.push([...rows.shape]);
      rows.release();
    }
    assert.deepEqual(found, Array(count).fill(shape));
    other.close();
  }
  const unknown = { w: { dtype: "F99", shape: [0], data_offsets: [0, 8] } };
  const header = new TextEncoder().encode(JSON.stringify(unknown));
  const size = new Uint8Array(8);
  size[0] = header.length;
  const strange = await open(new Uint8Array([...size, ...header, ...new Uint8Array(8)]));
  await fails(strange.parts("w", { nbytes: 1 }).next(), "UnsupportedError", /F99/);
  strange.close();
});

// --- sharded models -----------------------------------------------------------------------------

const named = (i, count = 20) =>
  `model-${String(i).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.safetensors`;

/** Files of a model by their names: `count` shards of two tensors each, and their index. */
async function modelOf(count, change = () => {}) {
  const found = new Map();
  const weight_map = {};
  for (let i = 1; i <= count; i++) {
    const tensors = { [`layer.${i}.w`]: tensorOf([i, 4]), [`layer.${i}.b`]: tensorOf([4]) };
    for (const name of Object.keys(tensors)) weight_map[name] = named(i, count);
    found.set(named(i, count), await saved(tensors));
  }
  const index = { metadata: { total_size: 12345, by: "us" }, weight_map };
  change(index, found);
  found.set("model.safetensors.index.json", new TextEncoder().encode(JSON.stringify(index)));
  return found;
}

/** The URL of its index, and what was asked for. */
function servedModel(model, answer = give) {
  const folder = `/model${files.size}/`;
  const all = [...model].map(([name, bytes]) => {
    const file = { bytes, answer, asked: [], sent: 0 };
    files.set(folder + name, file);
    return file;
  });
  const asked = () => all.map((file) => file.asked.splice(0).length);
  return { url: `${origin}${folder}model.safetensors.index.json?token=1`, asked, folder };
}

const fileList = (model) => [...model].map(([name, bytes]) => new File([bytes], name));

/** Stands for a directory handle of the origin's file system. */
function folderOf(model) {
  return {
    [Symbol.toStringTag]: "FileSystemDirectoryHandle",
    name: "model",
    async *keys() {
      yield* model.keys();
    },
    async getFileHandle(name) {
      if (!model.has(name)) throw new DOMException("not there", "NotFoundError");
      return {
        [Symbol.toStringTag]: "FileSystemFileHandle",
        name,
        getFile: async () => new File([model.get(name)], name),
      };
    },
  };
}

test("a model of 20 shards opens with one request for each, and is one file", async () => {
  const model = await modelOf(20);
  const { url, asked, folder } = servedModel(model);
  // Its query is not sent with the shards.
  files.set(`${folder}model.safetensors.index.json?token=1`, {
    ...files.get(`${folder}model.safetensors.index.json`),
  });
  const told = [];
  const file = await open(url, { progress: (...at) => told.push(at) });
  assert.deepEqual(asked(), [...new Array(20).fill(1), 1]);
  assert.equal(file.size, 40);
  assert.deepEqual(file.metadata, { total_size: "12345", by: "us" });
  assert.deepEqual(file.info("layer.7.w"), { dtype: "float32", shape: [7, 4], nbytes: 112 });
  assert.deepEqual((await listOf(file.load("layer.7.w", { part: [[2, 4], 0] }))).values, [8, 12]);
  assert.equal(
    asked().reduce((a, b) => a + b),
    1,
  );
  told.length = 0;
  const names = [];
  for await (const [name, tensor] of file) {
    names.push(name);
    tensor.release();
  }
  assert.deepEqual(names, file.names);
  const total = 16 * (210 + 20);
  assert.deepEqual(told.at(-1), [total, total]);
  assert.ok(told.every(([loaded, of], i) => of === total && loaded >= (told[i - 1]?.[0] ?? 0)));
  assert.deepEqual(asked(), [...new Array(20).fill(1), 0]);
  file.close();
  assert.ok(file.closed);
  await fails(file.load("layer.1.b"), "ReleasedError", /was closed/);
});

test("a sharded model in a list of files, and in a folder", async () => {
  const model = await modelOf(3);
  model.set("readme.md", new Uint8Array(3));
  for (const source of [fileList(model), folderOf(model)]) {
    const file = await open(source);
    assert.equal((await listOf(file.get("layer.3.w"))).values[11], 11);
    file.close();
  }
  const [index] = fileList(model).filter(({ name }) => name.endsWith(".json"));
  await fails(open(index), "UnsupportedError", /its shards are not known: open its URL/);
  model.delete("model.safetensors.index.json");
  const none = /needs one index .*, and has none/;
  await fails(open(fileList(model)), "UnsupportedError", none);
  await fails(open(folderOf(model)), "UnsupportedError", /the folder model needs one index/);
  for (const list of [[], [1, 2], [index, new Blob([])]]) {
    await fails(open(list), "TypeError", /open\(\) takes .*the files or the directory handle/);
  }
  // Zero-based numbers, and names without any.
  for (const names of [
    ["m-00000-of-00002.safetensors", "m-00001-of-00002.safetensors"],
    ["first.safetensors", "second.safetensors"],
  ]) {
    const other = await modelOf(2, (made, found) => {
      names.forEach((name, i) => {
        found.set(name, found.get(named(i + 1, 2)));
        found.delete(named(i + 1, 2));
        for (const part of "wb") made.weight_map[`layer.${i + 1}.${part}`] = name;
      });
    });
    const file = await open(fileList(other));
    assert.equal(file.size, 4);
    file.close();
  }
});

for (const { name, files: given, error, unlisted } of MODELS) {
  test(`a model: ${name}`, async () => {
    const decoded = Object.entries(given).map(([each, text]) => [
      each,
      Buffer.from(text, "base64"),
    ]);
    const model = new Map(decoded.map(([each, bytes]) => [each, new Uint8Array(bytes)]));
    const { folder } = servedModel(model);
    const sources = [fileList(model), folderOf(model)];
    if (!unlisted) sources.push(`${origin}${folder}model.index.json`);
    for (const source of sources) {
      const opening = open(source, { retries: 0 });
      if (error) await fails(opening, "UnsupportedError|DLPackError", new RegExp(error));
      else (await opening).close();
    }
  });
}

test("a shard that changed since the model was opened is an error that names it", async () => {
  const { url, folder } = servedModel(await modelOf(2));
  const own = `${folder}model.safetensors.index.json`;
  files.set(`${own}?token=1`, files.get(own));
  const file = await open(url);
  files.get(folder + named(2, 2)).answer = (request, response, shard) =>
    give(request, response, shard, { etag: '"2"' });
  assert.equal((await listOf(file.get("layer.1.w"))).values[3], 3);
  await fails(file.get("layer.2.w"), "UnsupportedError", /model-00002.*changed while it was read/);
  file.close();
});

// --- dtypes that NumPy's files do not say ---------------------------------------------------------

/** A .npy file of two elements. */
function rawOf(descr, bytes) {
  const quoted = descr[0] === "[" ? descr : `'${descr}'`;
  const dict = `{'descr': ${quoted}, 'fortran_order': False, 'shape': (2,), }`;
  const text = `${dict.padEnd(117)}\n`;
  const head = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 118, 0);
  return Uint8Array.of(...head, ...new TextEncoder().encode(text), ...bytes);
}

test("what ml_dtypes wrote is read with its dtype, where the bits agree", async () => {
  for (const [descr, dtype, bytes] of [
    ["<V2", "bfloat16", [0x80, 0x3f, 0, 0x40]],
    ["|V2", "bfloat16", [0x80, 0x3f, 0, 0x40]],
    ["<V1", "float8_e4m3fn", [0x38, 0x40]],
    ["<f1", "float8_e5m2", [0x3c, 0x40]],
  ]) {
    const npy = rawOf(descr, bytes);
    const expected = { shape: [2], values: bytes };
    const reversed = dtype === "bfloat16" ? [0, 0x40, 0x80, 0x3f] : [...bytes].reverse();
    assert.deepEqual(await listOf(open(npy, { dtype })), expected);
    const part = { dtype, part: [[null, null, -1]] };
    assert.deepEqual((await listOf(open(npy, part))).values, reversed);
    const file = await open(archiveOf([["a.npy", npy]], true));
    assert.equal(file.info("a").dtype, descr);
    await fails(file.get("a"), "UnsupportedError", /give (their|the) dtype/);
    assert.deepEqual(await listOf(file.get("a", { dtype })), expected);
    await fails(file.get("a", { dtype: "float64" }), "UnsupportedError", /give (their|the) dtype/);
    await fails(async () => file.info("a", part), "UnsupportedError", /give (their|the) dtype/);
    file.close();
    const typed = await open(archiveOf([["a.npy", npy]], true), { dtype });
    const some = { part: [[1, null]] };
    assert.deepEqual(typed.info("a", some), { dtype, shape: [1], nbytes: bytes.length / 2 });
    assert.deepEqual((await listOf(typed.load("a", some))).shape, [1]);
    typed.close();
  }
});

test("another suffix is not written", async () => {
  const tensor = tensorOf([3]);
  const handle = (name) => ({
    ...folderOf(new Map()),
    [Symbol.toStringTag]: "FileSystemFileHandle",
    name,
  });
  for (const name of ["x.pt", "x.npy.gz", "a.txt", "a.npz", "v1.2"]) {
    await assert.rejects(save(tensor, { to: handle(name) }), /does not write \.\w+ files: name it/);
  }
  const mismatch = save(tensor, { to: handle("a.safetensors") });
  await assert.rejects(mismatch, /a safetensors file has names/);
  tensor.release();
});
