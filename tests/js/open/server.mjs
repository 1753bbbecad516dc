// A server of this process, for the tests of a file: what it answers, and how a good one does.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before } from "node:test";
import { liveTensors } from "../../../js/dist/index.js";

/** Where it is, once tests run. */
export let origin;

/** `answer(request, response)` is called with each request. */
export function serve(answer) {
  // A loaded machine takes longer than the 5 s after which Node ends idle connections.
  const server = createServer({ keepAliveTimeout: 60_000 }, answer);
  before(async () => {
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    origin = `http://127.0.0.1:${server.address().port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
}

/** Headers without those that are undefined. */
export const present = (headers) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));

/** Where a request's range begins and ends in a file. */
export function rangeOf({ headers: { range } }, bytes) {
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range);
  return [Number(from), to ? Math.min(Number(to) + 1, bytes.length) : bytes.length];
}

/** Answers as a good server does; `headers` in place of its own, undefined: without. How much was sent. */
export function give(request, response, bytes, headers = {}, body = undefined) {
  const [start, end] = rangeOf(request, bytes);
  const all = {
    "content-range": `bytes ${start}-${end - 1}/${bytes.length}`,
    "content-length": end - start,
    etag: '"1"',
    ...headers,
  };
  response.writeHead(206, present(all));
  const sent = body ?? bytes.subarray(start, end);
  response.end(sent);
  return sent.length;
}

/** What checks that opening or loading fails so, and leaves no tensor but those that are live now. */
export function failing() {
  const live = liveTensors();
  return async (loading, name, message) => {
    await assert.rejects(loading, (error) => {
      assert.ok(name.split("|").includes(error.name), error.stack);
      assert.match(error.message, message);
      return true;
    });
    assert.equal(liveTensors(), live);
  };
}

/** How long it would have waited, each time: longer than before, up to the longest. */
export async function pausesOf(run) {
  const { setTimeout } = globalThis;
  const pauses = [];
  const ours = [100, 200, 400, 800, 1600, 3200, 5000]; // Node's own timers have other times
  globalThis.setTimeout = (done, ms, ...args) => {
    if (ours.includes(ms)) pauses.push(ms);
    return setTimeout(done, ours.includes(ms) ? 0 : ms, ...args);
  };
  try {
    await run();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
  for (const [i, ms] of pauses.entries()) {
    if (i > 0) assert.equal(ms, Math.min(2 * pauses[i - 1], 5000));
  }
  return pauses;
}
