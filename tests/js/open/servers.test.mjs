// What servers do to files at URLs: rows of tests/files/servers.json; tests/native/files/test_servers.py reads
// them too, and says what a row has.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { open } from "../../../js/dist/open/index.js";
import { archiveOf, saved } from "./made_files.mjs";
import { failing, origin, pausesOf, present, rangeOf, serve } from "./server.mjs";

const ROWS = JSON.parse(readFileSync(new URL("../../files/servers.json", import.meta.url), "utf8"));
const numbers = Uint32Array.from({ length: 300_000 }, (_, i) => i);
const halves = { a: numbers.subarray(0, 150_000), b: numbers.subarray(150_000) };
const FILES = {
  npy: await saved(numbers),
  safetensors: await saved(halves),
  npz: await archive(),
  raw: new Uint8Array(numbers.buffer),
};
const fails = failing();

async function archive() {
  const entries = Object.entries(halves).map(async ([name, half]) => [
    `${name}.npy`,
    await saved(half),
  ]);
  return archiveOf(await Promise.all(entries), true);
}

let told; // the row whose server is asked
let asked;
serve((request, response) => {
  asked.push(request.headers.range);
  const { answers, file = "npy" } = told;
  answer(request, response, FILES[file], answers[Math.min(asked.length, answers.length) - 1]);
});

function answer(request, response, file, says) {
  const { ranges = true, status = ranges ? 206 : 200, cut, most = Infinity } = says;
  if (says.closes) return response.socket.destroy();
  const bytes = file.slice(0, says.keep);
  if (says.other !== undefined) bytes[says.other === true ? bytes.length - 1 : says.other] ^= 1;
  const size = bytes.length;
  const [start, wanted] = ranges ? rangeOf(request, bytes) : [0, size];
  const end = Math.min(wanted, start + most);
  const facts = { start, end: size - 1, size, more: size + 1 };
  Object.assign(facts, { last: end - 1, before: end - 2, next: start + 4 });
  const sends = {
    whole: () => bytes,
    longer: () => bytes.subarray(start, end + 1),
    gzip: () => gzipSync(bytes.subarray(start, end)),
  };
  const body = sends[says.body]?.() ?? bytes.subarray(start, end);
  const headers = Object.entries(says.headers ?? {}).map(([name, text]) => [
    name,
    text?.replace(/\{(\w+)\}/g, (_, fact) => facts[fact]),
  ]);
  response.writeHead(
    status,
    present({
      "content-length": body.length,
      "content-encoding": says.body === "gzip" ? "gzip" : undefined,
      "content-range": ranges ? `bytes ${start}-${end - 1}/${size}` : undefined,
      etag: '"1"',
      ...Object.fromEntries(headers),
    }),
  );
  if (cut === undefined) return response.end(body);
  response.write(body.subarray(0, cut), () => {
    setImmediate(() => response.socket.destroy());
  });
}

async function read(url, part, options) {
  const opened = await open(url, options);
  try {
    if (part) {
      const tensor = await opened.load("a", { part: [part] });
      assert.deepEqual(tensor.data, halves.a.subarray(...part));
      tensor.release();
      return;
    }
    if (options.format === "npy" || options.format === "raw") {
      assert.deepEqual([opened.dtype, opened.shape, opened.data], ["uint32", [300_000], numbers]);
      return;
    }
    for (const name of ["b", "a", "b"]) {
      const tensor = await opened.get(name);
      assert.deepEqual(tensor.data, halves[name]);
      tensor.release();
    }
  } finally {
    opened.release?.();
    opened.close?.();
  }
}

for (const row of ROWS) {
  if (row.only === "py") continue;
  test(`a server: ${row.name}`, async () => {
    for (const retries of row.paced ? [1, undefined] : [undefined]) {
      told = row;
      asked = [];
      const { file: format = "npy" } = row;
      const url = `${origin}/${encodeURIComponent(row.name)}`;
      const pauses = await pausesOf(async () => {
        const dtype = format === "raw" ? "uint32" : undefined;
        const reading = read(url, row.part, { format, retries, dtype });
        const message = row.error?.replace("{origin}", origin);
        await (row.error
          ? fails(reading, "DLPackError|UnsupportedError", new RegExp(message))
          : reading);
      });
      if (row.paced) {
        assert.ok(asked.length <= 16 * (retries ?? 4) + 1, `${asked.length}`);
        // Node itself may try once more where a connection ended before its answer.
        assert.ok(pauses.length <= asked.length - 1 && pauses.length > 0);
      } else if (typeof row.asked === "number") assert.equal(asked.length, row.asked);
      else if (row.asked) {
        const last = FILES[format].length - 1;
        assert.deepEqual(
          asked,
          row.asked.map((each) => each.replace("{last}", last)),
        );
      }
    }
  });
}
