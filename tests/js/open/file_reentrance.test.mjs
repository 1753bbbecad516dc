// What runs in the middle of opening and loading files (progress, streams, signals) calls back into
// them: the right result or a clear error, every stream let go of, no tensor left.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { saved } from "./made_files.mjs";
import { origin, rangeOf, serve } from "./server.mjs";

const COUNT = 700_000; // more than two steps of progress
let live;
const bodies = { begun: 0, closed: 0 };

const numbers = Uint32Array.from({ length: 2 * COUNT }, (_, i) => i);
const FILE = await saved({ a: numbers.slice(0, COUNT), b: numbers.slice(COUNT) });
const START = FILE.length - 8 * COUNT;

serve((request, response) => {
  bodies.begun++;
  response.on("close", () => bodies.closed++);
  const ranged = request.url === "/ranges";
  const [start, end] = ranged ? rangeOf(request, FILE) : [0, FILE.length];
  const range = { "content-range": `bytes ${start}-${end - 1}/${FILE.length}` };
  response.writeHead(ranged ? 206 : 200, {
    "content-length": end - start,
    ...(ranged && range),
  });
  response.end(FILE.subarray(start, end));
});

beforeEach(() => {
  live = liveTensors();
});

afterEach(async () => {
  assert.equal(liveTensors(), live, "tensors");
  while (bodies.closed < bodies.begun) await new Promise((done) => setImmediate(done));
});

/** What a file is opened from, and whether it can be read again. */
const SOURCES = {
  "a URL with ranges": () => `${origin}/ranges`,
  "a URL without": () => `${origin}/plain`,
  "a Blob": () => new Blob([FILE]),
  "an array": () => FILE,
  "a stream": () => new Blob([FILE]).stream(),
  "a Response": () => fetch(`${origin}/plain`, { headers: { Range: "bytes=0-" } }),
};
const ONCE = ["a stream", "a Response"];

const outcome = (promise) =>
  promise.then(
    (tensor) => {
      const first = tensor.data[0];
      assert.ok(tensor.data.every((value, i) => value === first + i));
      tensor.release();
      return first;
    },
    (error) => error.name,
  );

for (const [name, source] of Object.entries(SOURCES)) {
  const opened = async (options) => open(await source(), options);

  test(`${name}: progress closes the file`, async () => {
    const file = await opened();
    const loads = [file.get("a", { progress: () => file.close() }), file.get("b")];
    const told = await Promise.all(loads.map(outcome));
    assert.equal(told[0], "ReleasedError");
    assert.ok(["ReleasedError", COUNT].includes(told[1]), told[1]);
    assert.equal(await outcome(file.get("a")), "ReleasedError");
  });

  test(`${name}: progress loads the same tensor`, async () => {
    const file = await opened();
    const inner = [];
    const progress = () => {
      if (inner.length < 3) inner.push(outcome(file.get("a")));
    };
    assert.equal(await outcome(file.get("a", { progress })), 0);
    assert.ok(inner.length > 0);
    const expected = ONCE.includes(name) ? "DLPackError" : 0; // a stream is past it
    assert.deepEqual(
      await Promise.all(inner),
      inner.map(() => expected),
    );
    assert.equal(await outcome(file.get("b")), COUNT);
    file.close();
  });

  test(`${name}: progress aborts`, async () => {
    const file = await opened();
    const controller = new AbortController();
    const { signal } = controller;
    const progress = () => controller.abort(new RangeError("enough"));
    assert.equal(await outcome(file.get("a", { progress, signal })), "RangeError");
    const expected = ONCE.includes(name) ? "ReleasedError" : COUNT;
    assert.equal(await outcome(file.get("b")), expected);
    file.close();
  });

  test(`${name}: progress throws`, async () => {
    const file = await opened();
    const progress = () => {
      throw new SyntaxError("mine");
    };
    const loads = [file.get("a", { progress }), file.get("b")];
    const expected = ONCE.includes(name) ? "ReleasedError" : COUNT;
    assert.deepEqual(await Promise.all(loads.map(outcome)), ["SyntaxError", expected]);
    file.close();
  });

  test(`${name}: one name twice at once`, async () => {
    const file = await opened();
    const told = await Promise.all(["b", "b"].map((each) => outcome(file.get(each))));
    assert.deepEqual(told, [COUNT, ONCE.includes(name) ? "DLPackError" : COUNT]);
    file.close();
  });

  test(`${name}: closed within a signal's event, and the signal within close`, async () => {
    const file = await opened();
    const controller = new AbortController();
    const { signal } = controller;
    signal.addEventListener("abort", () => file.close());
    const loads = [file.get("a", { signal }), file.get("b", { signal })];
    controller.abort(new RangeError("enough"));
    const told = await Promise.all(loads.map(outcome));
    assert.ok(
      told.every((each) => each === "RangeError" || each === "ReleasedError"),
      `${told}`,
    );
    const other = await opened();
    const ending = new AbortController();
    const late = other.get("a", { signal: ending.signal });
    other.close();
    ending.abort(new RangeError("late"));
    assert.equal(await outcome(late), "ReleasedError");
  });

  test(`${name}: closed, or loaded, while all are iterated over`, async () => {
    const file = await opened();
    const seen = [];
    const closes = async () => {
      for await (const [, tensor] of file) {
        seen.push(tensor.data[0]);
        tensor.release();
        file.close();
      }
    };
    await assert.rejects(closes, { name: "ReleasedError" });
    assert.deepEqual(seen, [0]);
    if (ONCE.includes(name)) return;
    const again = await opened();
    for await (const [which, tensor] of again) {
      assert.equal(await outcome(again.get(which)), tensor.data[0]);
      tensor.release();
    }
    again.close();
  });
}

/** A stream that gives so many bytes and then waits, and what became of it. */
function stalled(count, type) {
  const told = { cancelled: 0 };
  const stream = new ReadableStream({
    type,
    start: (controller) => controller.enqueue(FILE.slice(0, count)),
    cancel: (reason) => {
      told.cancelled++;
      told.reason = reason;
    },
  });
  return { stream, told };
}

for (const type of ["bytes", undefined]) {
  for (const [what, name, count] of [
    ["in the tensor", "a", START + 100],
    ["before it", "b", START + 100],
  ]) {
    const which = `a stream (${type}) that waits ${what}`;
    test(`${which} is left by an abort`, { timeout: 120_000 }, async () => {
      const { stream, told } = stalled(count, type);
      const file = await open(stream);
      const controller = new AbortController();
      const loading = outcome(file.get(name, { signal: controller.signal }));
      const next = outcome(file.get("b"));
      setImmediate(() => controller.abort(new RangeError("enough")));
      assert.equal(await loading, "RangeError");
      assert.equal(await next, "ReleasedError");
      assert.deepEqual([told.cancelled, told.reason.message], [1, "enough"]);
    });

    test(`${which} is left by close()`, { timeout: 120_000 }, async () => {
      const { stream, told } = stalled(count, type);
      const file = await open(stream);
      const loading = outcome(file.get(name));
      setImmediate(() => file.close());
      assert.equal(await loading, "ReleasedError");
      assert.equal(told.cancelled, 1);
    });
  }
}

test("a stream whose pull() calls back", { timeout: 120_000 }, async () => {
  let file;
  let at = 0;
  const told = [];
  const stream = new ReadableStream({
    async pull(controller) {
      controller.enqueue(FILE.slice(at, at + 100_000));
      at += 100_000;
      if (at >= FILE.length) controller.close();
      else told.push(await open(stream).catch(({ name }) => name));
      if (file && at > START + 6 * COUNT) file.close();
    },
  });
  file = await open(stream);
  assert.equal(await outcome(file.get("a")), 0);
  assert.equal(await outcome(file.get("b")), "ReleasedError");
  assert.deepEqual(new Set(told), new Set(["TypeError"]), "it is locked");
});

test("progress of an array that goes away", async () => {
  const bytes = FILE.slice().buffer;
  const file = await open(bytes);
  const progress = () => structuredClone(bytes, { transfer: [bytes] });
  const wide = open(new Uint8Array(8 << 20).buffer, { dtype: "uint8" });
  (await wide).release();
  const large = new ArrayBuffer(8 << 20);
  const leaves = { dtype: "uint8", progress: () => large.byteLength && large.transfer?.() };
  if (large.transfer) assert.equal(await outcome(open(large, leaves)), "UnsupportedError");
  assert.equal(await outcome(file.get("a", { progress })), 0); // all of it was there
  assert.equal(await outcome(file.get("b")), "UnsupportedError");
  file.close();
});

test("what a stream that is written does with the tensors", async () => {
  const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
  const chunks = [];
  let inner;
  const stream = new WritableStream({
    write(chunk) {
      tensor.release();
      inner ??= save(tensor).catch(({ name }) => name);
      chunks.push(chunk.slice());
    },
  });
  await save({ tensor }, { to: stream });
  assert.equal(await inner, "ReleasedError");
  const back = await open(new Blob(chunks));
  const read = await back.get("tensor");
  assert.deepEqual([...read.data], [1, 2, 3]);
  read.release();
  back.close();
});
