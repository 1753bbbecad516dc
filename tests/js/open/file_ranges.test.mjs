// Files behind URLs, and what servers do to them besides what is in tests/files/servers.json. The servers are
// real ones, of this process.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { archiveOf, saved } from "./made_files.mjs";
import { failing, give, origin, pausesOf, rangeOf, serve } from "./server.mjs";

const COUNT = 300_000;
/** What answers, by a test's name, and the Range headers that it was asked with. */
const handlers = new Map();

serve((request, response) => {
  const { handle, asked } = handlers.get(decodeURIComponent(request.url.slice(1)));
  asked.push(request.headers.range);
  handle(request, response, asked.length);
});

/** A URL that a function answers: (request, response, how often it was asked). */
function served(name, handle) {
  const asked = [];
  handlers.set(name, { handle, asked });
  return { url: `${origin}/${encodeURIComponent(name)}`, asked };
}

const numbers = Uint32Array.from({ length: COUNT }, (_, i) => i);
const NPY = await saved(numbers);
const SAFETENSORS = await saved({
  a: numbers.subarray(0, COUNT / 2),
  b: numbers.subarray(COUNT / 2),
});
const LIVE = liveTensors();
const fails = failing();

/** Breaks the connection after so many bytes of the range. */
function cut(request, response, bytes, count, headers = {}) {
  const [start, end] = rangeOf(request, bytes);
  const range = `bytes ${start}-${end - 1}/${bytes.length}`;
  response.writeHead(206, { "content-range": range, "content-length": end - start, ...headers });
  response.write(bytes.subarray(start, Math.min(start + count, end)), () => {
    setImmediate(() => response.socket.destroy());
  });
}

async function isWhole(opening) {
  const tensor = await opening;
  assert.deepEqual([tensor.dtype, tensor.shape], ["uint32", [COUNT]]);
  assert.ok(tensor.data.every((value, i) => value === i));
  tensor.release();
}

test("tensors are read by their ranges alone", async () => {
  const { url, asked } = served("m.safetensors", (...at) => give(...at.slice(0, 2), SAFETENSORS));
  const opened = await open(url);
  const b = await opened.get("b");
  assert.equal(b.data[0], COUNT / 2);
  b.release();
  const start = SAFETENSORS.length - 2 * COUNT;
  assert.deepEqual(asked.splice(0), ["bytes=0-131071", `bytes=${start}-${SAFETENSORS.length - 1}`]);
  for await (const [, tensor] of opened) tensor.release();
  const first = start - 2 * COUNT;
  assert.deepEqual(asked.splice(0), [`bytes=${first}-${SAFETENSORS.length - 1}`]);
  const both = await Promise.all([opened.get("a"), opened.get("b"), opened.get("a")]);
  for (const tensor of both) tensor.release();
  assert.equal(asked.length, 3);
  opened.close();
  assert.equal(liveTensors(), LIVE);
});

/** An archive with one array, stored. */
async function npz() {
  return archiveOf([["a.npy", await saved(Float32Array.of(1, 2, 3))]], true);
}

test("an archive is read by its directory and its entries", async () => {
  const bytes = await npz();
  const { url, asked } = served("a.npz", (...at) => give(...at.slice(0, 2), bytes));
  const found = await open(url);
  assert.deepEqual(found.info("a"), { dtype: "float32", shape: [3], nbytes: 12 });
  const a = await found.get("a");
  assert.deepEqual([...a.data], [1, 2, 3]);
  a.release();
  found.close();
  assert.ok(asked.length <= 5, `${asked}`);
});

test("retries are counted, and must be a number", async () => {
  const { url, asked } = served("for ever", (request, response) => {
    cut(request, response, NPY, 0, { etag: '"1"' });
  });
  await fails(open(url, { retries: 0 }), "DLPackError", /after 1 try:/);
  assert.equal(asked.length, 1);
  for (const retries of [NaN, -1, "4"]) {
    await fails(
      open(url, { retries }),
      "RangeError",
      /^retries must be a number of 0 or more, not /,
    );
  }
  assert.equal(asked.length, 1);
});

test("tries are counted from the last byte that came, and each waits longer", async () => {
  const { url, asked } = served("slow", (request, response, time) => {
    // Of three answers one gives something: more breaks in all than there are retries.
    cut(request, response, NPY, time % 3 === 1 ? 120_000 : 0, { etag: '"1"' });
  });
  let loaded;
  const progress = (bytes) => (loaded = bytes);
  const pauses = await pausesOf(() => isWhole(open(url, { retries: 3, progress })));
  assert.equal(loaded, 4 * COUNT);
  assert.equal(asked.length, 3 * Math.floor(NPY.length / 120_000) + 1);
  assert.equal(pauses.length, asked.length - 1);
});

const RAW = new Uint8Array(numbers.buffer);
const raw = { dtype: "uint32" };
test("more than was asked for, which the headers say", async () => {
  const { url } = served("more", (request, response) => {
    const [start] = rangeOf(request, SAFETENSORS);
    const range = `bytes ${start}-${SAFETENSORS.length - 1}/${SAFETENSORS.length}`;
    response.writeHead(206, { "content-range": range });
    response.end(SAFETENSORS.subarray(start));
  });
  const opened = await open(url);
  const a = await opened.get("a"); // the rest is not read
  assert.deepEqual([a.size, a.data.at(-1)], [COUNT / 2, COUNT / 2 - 1]);
  a.release();
  opened.close();
});

test("an answer without a byte", async () => {
  const { url, asked } = served("nothing at all", (request, response, time) => {
    if (time === 1) return give(request, response, SAFETENSORS);
    response.writeHead(206).end();
  });
  const opened = await open(url);
  await fails(opened.get("b", {}), "DLPackError|UnsupportedError", /after 5 tries|0 bytes/);
  assert.ok(asked.length <= 6);
  opened.close();
});

test("a stream without end that says that it is small", async () => {
  let stopped = false;
  const { url } = served("endless", (_, response) => {
    response.writeHead(200);
    response.write(NPY);
    const more = () => {
      while (!stopped && response.write(new Uint8Array(1 << 16)));
    };
    response.on("drain", more);
    response.on("close", () => {
      stopped = true;
    });
    more();
  });
  await fails(open(url), "UnsupportedError", /more bytes follow/);
  while (!stopped) await new Promise((done) => setImmediate(done)); // the connection is let go of
});

test("errors of servers", async () => {
  const answer = (status) => (_, response) => response.writeHead(status).end("no");
  const { url, asked } = served("500", answer(500));
  await fails(open(url, { retries: 1 }), "DLPackError", /500.*after 2 tries/);
  assert.equal(asked.length, 2);
  const nobody = open("http://127.0.0.1:1/nobody?secret", { retries: 0 });
  const unreachable =
    /^http:\/\/127.0.0.1:1\/nobody could not be read, after 1 try: .*cannot be reached$/;
  await fails(nobody, "DLPackError", unreachable);
  await fails(open("model.npy"), "TypeError", /"model.npy" is not a URL.*openAsBlob/);
  await fails(open(await fetch(served("404r", answer(404)).url)), "UnsupportedError", /404/);
});

test("a request that the policy of the page blocks says so, and is not repeated", async (t) => {
  const page = new EventTarget();
  for (const name of ["addEventListener", "removeEventListener"]) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name); // Deno has them
    globalThis[name] = (...args) => page[name](...args);
    t.after(() => {
      delete globalThis[name];
      if (before) Object.defineProperty(globalThis, name, before);
    });
  }
  let blocks = "https://models.example/x.npy";
  const violated = () => {
    const facts = { blockedURI: blocks, effectiveDirective: "connect-src" };
    page.dispatchEvent(Object.assign(new Event("securitypolicyviolation"), facts));
  };
  const asked = t.mock.method(globalThis, "fetch", async () => {
    setTimeout(violated);
    throw new TypeError("Failed to fetch");
  });
  t.after(() => asked.mock.restore()); // Deno does not
  for (blocks of ["https://models.example/x.npy", "https://models.example"]) {
    await fails(open("https://models.example/x.npy"), "UnsupportedError", /Policy .* connect-src$/);
  }
  assert.equal(asked.mock.callCount(), 2);
  blocks = "https://other.example/x.npy";
  const other = open("https://models.example/x.npy", { retries: 0 });
  await fails(other, "DLPackError", /cannot be reached$/);
});

test("an empty file", async () => {
  const { url } = served("empty", (_, response) => {
    response.writeHead(416, { "content-range": "bytes */0" }).end();
  });
  await fails(open(url), "UnsupportedError", /does not begin like a .npy, .npz/);
  const tensor = await open(url, { dtype: "float32" });
  assert.deepEqual(tensor.shape, [0]);
  tensor.release();
});

test("what is encoded on its way", async () => {
  const packed = gzipSync(NPY);
  const { url } = served("gzip", (_, response) => {
    response.writeHead(200, { "content-encoding": "gzip", "content-length": packed.length });
    response.end(packed);
  });
  if ("Deno" in globalThis) await fails(open(url), "UnsupportedError", /compressed .*gzip/);
  else await isWhole(open(url));
  await isWhole(open(await fetch(url)));
});

/** fetch() as pages have it, where a server of another origin hides headers. */
async function withHidden(names, run) {
  const { fetch } = globalThis;
  globalThis.fetch = async (...args) => {
    const { body, status, statusText, headers } = await fetch(...args);
    const seen = new Headers(headers);
    for (const name of names) seen.delete(name);
    return new Response(body, { status, statusText, headers: seen });
  };
  try {
    await run();
  } finally {
    globalThis.fetch = fetch;
  }
}

for (const [status, smaller] of [
  [200, true],
  [200, false],
  [206, true],
  [206, false],
]) {
  const which = `${status}, of ${smaller ? "fewer" : "more"} bytes`;
  test(`what is compressed on its way, and hides it: ${which}`, async (t) => {
    if ("Deno" in globalThis) return t.skip("Deno does not decode it");
    // What is random becomes larger.
    const data = smaller ? RAW : Uint8Array.from({ length: 4000 }, (_, i) => (i * i * 251) >> 7);
    const packed = smaller ? gzipSync(data) : gzipSync(data, { level: 0 });
    assert.equal(packed.length < data.length, smaller);
    const whole = packed.length - (packed.length % 4);
    const { url } = served(`gzip ${which}`, (_, response) => {
      const range = `bytes 0-${packed.length - 1}/${packed.length}`;
      response.writeHead(status, {
        "content-encoding": "gzip",
        "content-length": packed.length,
        ...(status === 206 && { "content-range": range }),
      });
      response.end(packed);
    });
    const hidden = ["content-encoding", "content-range"];
    for (const names of [hidden, ["content-encoding"]]) {
      await withHidden(names, async () => {
        const opening = open(url, { dtype: "uint8", retries: 0 });
        await fails(opening, "UnsupportedError|DLPackError", /gzip.*(more than|ended|sends)/);
        const cutOff = open(url, { dtype: "uint8", shape: [whole], retries: 0 });
        await fails(cutOff, "UnsupportedError|DLPackError", /gzip/);
      });
    }
    if (status === 206) await fails(open(url, raw), "UnsupportedError", /Content-Encoding: gzip/);
  });
}

test("what a server sends in place of a file", async () => {
  const page = Buffer.from("\ufeff\n <!DOCTYPE html><html><title>Log in</title></html>    ");
  const pointer = Buffer.from(
    "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 12\n",
  );
  const sends = (name, bytes, type) =>
    served(name, (_, response) => {
      response.writeHead(200, { "content-type": type, "content-length": bytes.length });
      response.end(bytes);
    }).url;
  for (const name of ["weights.npy", "weights.safetensors", "weights.npz", "weights.bin"]) {
    const format = /npy|npz|safetensors/.exec(name)?.[0];
    for (const [bytes, why] of [
      [page, /begins like a web page.*log in.*raw/],
      [pointer, /Git LFS.*git lfs pull/],
    ]) {
      const url = sends(name, bytes, "application/octet-stream");
      await fails(open(url), "UnsupportedError", why);
      await fails(open(url, { dtype: "uint8" }), "UnsupportedError", why);
      if (format) await fails(open(url, { format }), "UnsupportedError", why);
      await fails(open(await fetch(url), { dtype: "uint8" }), "UnsupportedError", why);
      await fails(open(new Blob([bytes]), { dtype: "uint8" }), "UnsupportedError", why);
      const tensor = await open(url, { dtype: "uint8", format: "raw" });
      assert.deepEqual(Buffer.from(tensor.data), bytes);
      tensor.release();
    }
  }
  const strange = sends("typed.bin", RAW, "text/html; charset=utf-8");
  await fails(open(strange, raw), "UnsupportedError", /says that it is a web page/);
  await fails(open(await fetch(strange), raw), "UnsupportedError", /says that it is a web page/);
  await isWhole(open(strange, { ...raw, format: "raw" }));
  await isWhole(open(sends("typed.npy", NPY, "text/html"))); // its own bytes say more
});

test("headers go along", async () => {
  const { url } = served("headers", (request, response) => {
    if (request.headers.authorization !== "Bearer x") response.writeHead(401).end();
    else give(request, response, NPY);
  });
  await fails(open(url), "DLPackError", /401/);
  await isWhole(open(url, { headers: { Authorization: "Bearer x" } }));
});

test("data: and blob: URLs", async () => {
  await isWhole(
    open(`data:application/octet-stream;base64,${Buffer.from(NPY).toString("base64")}`),
  );
  const url = URL.createObjectURL(new Blob([NPY]));
  await isWhole(open(new URL(url)));
  URL.revokeObjectURL(url);
});

test("a server that stalls is left by an abort", async () => {
  const closed = [];
  const { url } = served("stalled", (_, response) => {
    response.on("close", () => closed.push(true));
    response.writeHead(200, { "content-length": NPY.length });
    response.write(NPY.subarray(0, 200_000));
  });
  const controller = new AbortController();
  const progress = () => controller.abort(new Error("enough"));
  const opening = open(url, { signal: controller.signal, progress, retries: 9 });
  setTimeout(() => controller.abort(new Error("enough")), 50);
  await fails(opening, "Error", /enough/);
  while (closed.length === 0) await new Promise((done) => setImmediate(done));
  const silent = served("silent", () => {});
  const ending = new AbortController();
  setTimeout(() => ending.abort(new Error("enough")), 10);
  await fails(open(silent.url, { signal: ending.signal }), "Error", /enough/);
});

test("a file that is closed ends what is loading", async () => {
  const { url } = served("closing", (request, response, time) => {
    if (time === 1) give(request, response, SAFETENSORS);
    else
      response
        .writeHead(206, {
          "content-range": `${request.headers.range.replace("=", " ")}/${SAFETENSORS.length}`,
        })
        .write(SAFETENSORS.subarray(0, 1));
  });
  const opened = await open(url);
  const loading = [opened.get("a"), opened.get("b")];
  setTimeout(() => opened.close(), 20);
  const told = await Promise.allSettled(loading);
  assert.deepEqual(
    told.map(({ reason }) => reason?.name),
    ["ReleasedError", "ReleasedError"],
  );
  assert.equal(liveTensors(), LIVE);
});

test("a stream that fails, or gives no bytes", async () => {
  const broken = new ReadableStream({ pull: (c) => c.error(new RangeError("mine")) });
  await fails(open(broken), "RangeError", /mine/);
  const text = new ReadableStream({ start: (c) => c.enqueue("text") });
  await fails(open(text), "TypeError", /and not bytes/);
  const locked = new Blob([NPY]).stream();
  locked.getReader();
  await fails(open(locked), "TypeError", /is locked/);
  const response = new Response(NPY);
  await response.arrayBuffer();
  await fails(open(response), "TypeError", /was already read/);
  await isWhole(open(new Response(NPY)));
});

test("a stream that throws while it is written", async () => {
  const tensor = Tensor.fromTypedArray(new Uint8Array(100));
  let reason;
  const full = new WritableStream({
    write() {
      throw new RangeError("full");
    },
    abort: (why) => {
      reason = why;
    },
  });
  await assert.rejects(save(tensor, { to: full }), { name: "RangeError" });
  const controller = new AbortController();
  const aborted = new WritableStream({
    write: () => controller.abort(new Error("enough")),
    abort: (why) => {
      reason = why;
    },
  });
  await assert.rejects(save(tensor, { to: aborted, signal: controller.signal }), /enough/);
  assert.equal(reason.message, "enough");
  await assert.rejects(save(tensor, { to: {} }), { name: "TypeError" });
  await assert.rejects(save({ tensor }, { format: "npy" }), /has one tensor/);
  await assert.rejects(save(tensor, { format: "safetensors" }), /has names/);
  await assert.rejects(save(tensor, { metadata: {} }), /no metadata/);
  await assert.rejects(save({ a: 3 }), /not a tensor/);
  await assert.rejects(
    save([
      ["a", tensor],
      ["a", tensor],
    ]),
    /same name/,
  );
  tensor.release();
  await assert.rejects(save(tensor), { name: "ReleasedError" });
  assert.equal(liveTensors(), LIVE);
});
