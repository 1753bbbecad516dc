// Random servers replace files during a read: the result is one version, or an error. A fake fetch()
// breaks connections at given bytes.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { random as randomFrom } from "../random.mjs";
import { saved } from "./made_files.mjs";

const real = { fetch, setTimeout };
/** Answers a request: (start, end or undefined, URL) gives a Response. */
let answer;
let asked;

beforeEach(() => {
  asked = [];
  globalThis.setTimeout = (done, _ms, ...args) => real.setTimeout(done, 0, ...args);
  globalThis.fetch = async (url, { headers, signal }) => {
    signal?.throwIfAborted();
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.Range);
    asked.push([Number(from), to === "" ? undefined : Number(to) + 1]);
    return answer(...asked.at(-1), url);
  };
});

afterEach(() => Object.assign(globalThis, real));

/** So many bytes in chunks of any size, and then its end or an error. */
function streamOf(bytes, breaks, random) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      const chunk = bytes.slice(at, at + 1 + random(30_000));
      at += chunk.length;
      if (chunk.length > 0) controller.enqueue(chunk);
      else if (breaks) controller.error(new TypeError("terminated"));
      else controller.close();
    },
  });
}

const COUNT = 20_000;
const versionOf = (make) => saved(Uint32Array.from({ length: COUNT }, make));
const FIRST = await versionOf((_, i) => i);
const OTHER = await versionOf((_, i) => i + 1);

/** Another version: of the same size, with one other element or all others. */
const another = (random) => {
  if (random(2)) return OTHER;
  const bytes = FIRST.slice();
  new DataView(bytes.buffer).setUint32(128 + 4 * random(COUNT), 7, true);
  return bytes;
};

const DATE = "Mon, 01 Jan 2024 00:00:0";
/** The headers that a server has for a version. A strong validator identifies it; others may not. */
const VALIDATORS = {
  none: () => ({}),
  "a weak ETag": () => ({ etag: 'W/"1"' }),
  "a date of the same second": () => ({ "last-modified": `${DATE}0 GMT`, date: `${DATE}0 GMT` }),
  "a date without now": () => ({ "last-modified": `${DATE}0 GMT` }),
  "a strong ETag": (version) => ({ etag: `"${version}"` }),
  "a strong date": (version) => ({
    "last-modified": `${DATE}${version} GMT`,
    date: `${DATE}9 GMT`,
  }),
  "a strong ETag at first": (_version, time) => ({ etag: time === 1 ? '"0"' : 'W/"0"' }),
  "an ETag at first": (_version, time) => (time === 1 ? { etag: '"0"' } : {}),
  "an ETag later": (version, time) => (time === 1 ? {} : { etag: `"${version}"` }),
};

for (const [which, headersOf] of Object.entries(VALIDATORS))
  for (const ranges of [true, false])
    for (const kind of ranges ? ["breaks", "parts"] : ["breaks"])
      test(`${kind}, ${ranges ? "ranges" : "no ranges"}, ${which}`, async () => {
        const random = randomFrom(3);
        const outcomes = { first: 0, second: 0, error: 0 };
        for (let i = 0; i < 30; i++) {
          const versions = [FIRST, another(random)];
          const last = random(4); // the request that still gets the first version
          const same = random(3) === 0;
          const part = 5000 + random(40_000);
          answer = (from, to = FIRST.length) => {
            const time = asked.length;
            const version = same || time <= last + 1 ? 0 : 1;
            const bytes = versions[version];
            const start = ranges ? from : 0;
            const end = kind === "parts" ? Math.min(to, start + part) : Math.min(to, bytes.length);
            const breaks = kind === "breaks" && time <= 4;
            const sent = bytes.subarray(start, breaks ? start + random(end - start) : end);
            const headers = {
              "content-length": end - start,
              ...(ranges && { "content-range": `bytes ${start}-${end - 1}/${bytes.length}` }),
              ...headersOf(version, time),
            };
            const status = ranges ? 206 : 200;
            return new Response(streamOf(sent, breaks, random), { status, headers });
          };
          asked = [];
          const before = liveTensors();
          let found;
          try {
            const tensor = await open("http://fake/a.npy", { format: "npy" });
            found = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, 4 * COUNT);
            tensor.release();
          } catch (error) {
            assert.match(error.message, /changed while it was read/, error.stack);
            assert.ok(!same, error.stack);
            outcomes.error++;
          }
          assert.equal(liveTensors(), before);
          if (found === undefined) continue;
          const is = versions.findIndex((bytes) => found.equals(bytes.subarray(128)));
          // The end of what came is all that a server can be asked for that has but parts.
          const partial = kind === "parts" || /at first/.test(which);
          if (is < 0) assert.ok(partial && versions[1].filter((x, j) => x !== FIRST[j]).length < 9);
          else outcomes[["first", "second"][is]]++;
        }
        assert.ok(outcomes.first > 2, JSON.stringify(outcomes));
        if (kind === "breaks") assert.ok(outcomes.error > 2, JSON.stringify(outcomes));
      });

/** Answers as a server does that breaks off the first answers, or sends at most so many bytes. */
const answering =
  (headers, broken, most = Infinity, bytes = FIRST) =>
  (from, to = bytes.length) => {
    const end = Math.min(to, from + most);
    const breaks = asked.length <= broken;
    const sent = bytes.subarray(from, breaks ? from + 10_000 : end);
    const range = `bytes ${from}-${end - 1}/${bytes.length}`;
    const all = { "content-range": range, "content-length": end - from, ...headers };
    return new Response(streamOf(sent, breaks, randomFrom(1)), { status: 206, headers: all });
  };

test("a connection that breaks is taken up where it broke, of a file with a strong validator", async () => {
  const step = 40_000 - 2048;
  for (const [answers, starts] of [
    [answering(VALIDATORS["a strong ETag"](1), 3), [0, 10_000, 20_000, 30_000]],
    [answering(VALIDATORS["a strong date"](1), 3), [0, 10_000, 20_000, 30_000]],
    // Without one it is read from its start again, and parts with an overlap.
    [answering({}, 1), [0, 0]],
    [answering({}, 0, 40_000), [0, step, 2 * step]],
  ]) {
    asked = [];
    answer = answers;
    (await open("http://fake/a.npy")).release();
    assert.deepEqual(
      asked.map(([from]) => from),
      starts,
    );
  }
});

for (const [which, headersOf] of Object.entries(VALIDATORS))
  test(`strided rows are of one version, or an error: ${which}`, async () => {
    const shape = [10, 40_000];
    const versions = [1, 2].map((value) => {
      const array = new Float32Array(400_000).fill(value);
      return saved({ w: Tensor.fromTypedArray(array, { shape }) });
    });
    for (let last = 1; last < 6; last++) {
      asked = [];
      answer = async (...at) => {
        const version = asked.length <= last ? 0 : 1;
        const headers = headersOf(version, asked.length);
        return answering(headers, 0, Infinity, await versions[version])(...at);
      };
      const file = await open("http://fake/m.safetensors");
      const found = await file
        .load("w", { part: [[0, null, 2]] })
        .catch((error) => assert.match(error.message, /changed while/));
      if (found) assert.equal(new Set(found.data).size, 1, `${last}`);
      if (!/none|weak|without|same/.test(which)) continue;
      const message = /scattered: .* would be read with one request, as .*strong ETag.*`whole`/;
      await assert.rejects(file.load("w", { part: [null, [0, 1]] }), { message });
    }
  });

test("a file without ranges that is asked for again begins as before, or is an error", async () => {
  const tensors = { a: new Uint32Array(5000).fill(1), b: new Uint32Array(5000).fill(2) };
  const bytes = await saved(tensors);
  for (const place of [0, 8, 30, 8 + bytes[0] + 256 * bytes[1] - 1]) {
    let now = bytes;
    answer = () =>
      new Response(streamOf(now, false, randomFrom(1)), {
        headers: { "content-length": bytes.length },
      });
    const file = await open("http://fake/m.safetensors");
    for (const name of ["b", "a", "b", "a"]) {
      const tensor = await file.get(name);
      assert.deepEqual(tensor.data, tensors[name]);
      tensor.release();
    }
    now = bytes.slice();
    now[place] ^= 1;
    await assert.rejects(file.get("a"), { message: /changed while it was read/ });
    await assert.rejects(file.get("b"), { message: /changed while it was read/ });
    file.close();
  }
});

test("files without ranges leave four requests open, of the six of a browser to a host", async () => {
  const weight_map = {};
  const model = new Map();
  for (let i = 1; i <= 9; i++) {
    const tensor = Tensor.fromTypedArray(new Float32Array(9999));
    const tensors = ["a", "b", "c"].map((name) => [name + i, tensor]);
    model.set(`${i}`, await save(tensors));
    for (const [name] of tensors) weight_map[name] = `${i}`;
  }
  model.set("m.json", new Blob([JSON.stringify({ weight_map })]));
  let busy = 0;
  const waiting = [];
  const free = () => (waiting.length > 0 ? waiting.shift()() : busy--);
  answer = async (_from, _to, url) => {
    if (busy === 6) await new Promise((done) => waiting.push(done));
    else busy++;
    const bytes = new Uint8Array(await model.get(url.split("/").at(-1)).arrayBuffer());
    let at = 0;
    const pull = (controller) => {
      controller.enqueue(bytes.slice(at, at + 4096));
      at += 4096;
      if (at < bytes.length) return;
      controller.close();
      free();
    };
    const stream = new ReadableStream({ pull, cancel: free });
    return new Response(stream, { headers: { "content-length": bytes.length } });
  };
  const file = await open("http://fake/m.json");
  const other = await open("http://fake/1");
  await Promise.all(file.names.map((name) => file.load(name)));
  for (let i = 1; i <= 9; i++) await file.load(`a${i}`);
  await other.load("a1");
  asked = [];
  await other.load("b1");
  for (const name of ["b9", "b8", "b7", "c9", "c8", "c7"]) await file.load(name);
  assert.equal(asked.length, 0, "they go on where they are");
  await file.load("b6");
  assert.equal(asked.length, 1);
  file.close();
  other.close();
  assert.equal(busy, 0);
});

test("an archive without a length is kept up to a limit", async () => {
  let sent = 0;
  let cancelled = false;
  const block = new Uint8Array(1 << 22);
  answer = () => {
    const stream = new ReadableStream({
      pull(controller) {
        if (sent === 0) block.set([0x50, 0x4b, 3, 4]);
        sent += block.length;
        controller.enqueue(block);
      },
      cancel() {
        cancelled = true;
      },
    });
    return new Response(stream);
  };
  const { Blob } = globalThis;
  globalThis.Blob = class extends Blob {
    constructor() {
      super([]); // takes no memory here
    }
  };
  try {
    const message = /has more than \d+ bytes, and its length is not known.*Content-Length/;
    for (const source of ["http://fake/a.npz", () => answer(), () => answer().body]) {
      [sent, cancelled] = [0, false];
      const given = typeof source === "string" ? source : source();
      await assert.rejects(open(given), { name: "UnsupportedError", message });
      assert.ok(sent <= 1 << 30 && cancelled, `${sent}`);
    }
  } finally {
    globalThis.Blob = Blob;
  }
});
