// What was given up is over: an aborted open(), get() or save() rejects at once with the reason, even
// if what it waits for never answers; nothing is read, written or kept after it.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { liveTensors, Tensor } from "../../../js/dist/index.js";
import { open, save } from "../../../js/dist/open/index.js";
import { fakeBuffer, fakeDevice } from "../fake_device.mjs";
import { saved } from "./made_files.mjs";

const MB = 1 << 20;
const REASON = new RangeError("enough");
const real = globalThis.fetch;
let live;

beforeEach(() => {
  live = liveTensors();
});
afterEach(() => {
  globalThis.fetch = real;
  assert.equal(liveTensors(), live, "tensors");
});

/** Lets all that is ready happen. */
async function settle() {
  for (let i = 0; i < 20; i++) await new Promise((done) => setImmediate(done));
}

/** A promise and what resolves it. */
function later() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** Starts it, waits until it stands still, aborts: it must reject with the reason. */
async function isAborted(start, hasBegun = () => true) {
  const controller = new AbortController();
  const work = start(controller.signal);
  let ended = false;
  work.then(
    () => {
      ended = true;
    },
    () => {
      ended = true;
    },
  );
  do await settle();
  while (!hasBegun() && !ended);
  assert.ok(!ended, "it waits");
  controller.abort(REASON);
  await settle();
  assert.ok(ended, "it goes on waiting");
  await assert.rejects(work, REASON);
  await assert.rejects(start(controller.signal), REASON); // and a signal that is aborted already
}

const NPY = await saved(new Float64Array(MB).fill(1));
const MODEL = await saved({ a: new Float64Array(MB), b: new Float64Array(MB) });

/** A stream that gives so many bytes and then nothing; counts what it is asked for. */
function stalled(bytes, count, seen) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      seen.pulled++;
      if (at >= count) return new Promise(() => {});
      controller.enqueue(bytes.slice(at, Math.min(at + 65536, count)));
      at += 65536;
      return undefined;
    },
    cancel() {
      seen.cancelled++;
    },
  });
}

for (const count of [0, 8, 100, 200, 5000, 300_000])
  test(`a stream that stalls after ${count} bytes`, async () => {
    for (const bytes of [NPY, MODEL]) {
      for (const given of ["stream", "response", "url"]) {
        const seen = { pulled: 0, cancelled: 0 };
        const start = async (signal) => {
          const body = () => stalled(bytes, count, seen);
          globalThis.fetch = async () => new Response(body());
          const source = {
            stream: body,
            response: () => new Response(body()),
            url: () => "http://fake/",
          };
          const opened = await open(source[given](), { signal });
          if (!("get" in opened)) return opened;
          try {
            return await opened.get("b");
          } finally {
            opened.close();
          }
        };
        await isAborted(start);
        const { pulled } = seen;
        assert.ok(seen.cancelled > 0);
        await settle();
        assert.equal(seen.pulled, pulled);
      }
    }
  });

test("a server, a file handle, a Blob's URL that never answers", async () => {
  let signals = 0;
  globalThis.fetch = (_, { signal }) => {
    return new Promise((_, fail) => {
      signal.addEventListener("abort", () => fail(signal.reason));
      if (signal.aborted) fail(signal.reason);
      signals++;
    });
  };
  await isAborted((signal) => open("http://fake/a.npy", { signal }));
  await isAborted((signal) => open("blob:fake", { signal }));
  await isAborted((signal) => open("data:,fake", { signal }));
  assert.ok(signals >= 3);
  const handle = {
    [Symbol.toStringTag]: "FileSystemFileHandle",
    getFile: () => new Promise(() => {}),
  };
  await isAborted((signal) => open(handle, { signal }));
});

test("a retry that is awaited", async () => {
  let asked = 0;
  globalThis.fetch = async () => {
    asked++;
    return new Response("", { status: 503 });
  };
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (done, ms, ...args) => setTimeout(done, ms === 100 ? 1e6 : ms, ...args);
  try {
    const controller = new AbortController();
    const opening = open("http://fake/a.npy", { signal: controller.signal });
    await settle();
    controller.abort(REASON);
    await assert.rejects(opening, REASON);
    assert.equal(asked, 1);
  } finally {
    globalThis.setTimeout = setTimeout;
  }
});

/** A GPU that never says that it has done anything. */
function deafDevice(written, { popErrorScope = async () => null } = {}) {
  return {
    ...fakeDevice(),
    [Symbol.toStringTag]: "GPUDevice",
    limits: { maxBufferSize: 2 ** 31, maxStorageBufferBindingSize: 2 ** 31 },
    queue: {
      writeBuffer: (_buffer, offset) => void written.push(offset),
      submit() {},
      onSubmittedWorkDone: () => written.done ?? new Promise(() => {}),
    },
    popErrorScope,
  };
}

test("a GPU that does not answer", async () => {
  const bytes = await saved(new Float64Array(12 * MB));
  for (const dtype of [undefined, "float32"]) {
    const written = [];
    const { promise, resolve } = later();
    written.done = promise;
    const device = deafDevice(written);
    const begins = () => written.length > 0;
    await isAborted((signal) => open(bytes, { device, dtype, signal }), begins);
    const { length } = written;
    resolve(); // it answers after all
    await settle();
    assert.equal(written.length, length, "and nothing is written any more");
  }
  const device = deafDevice([], { popErrorScope: () => new Promise(() => {}) });
  await isAborted((signal) => open(bytes, { device, signal }));
});

test("one that waits for its turn", async () => {
  const seen = { pulled: 0, cancelled: 0 };
  const file = await open(stalled(MODEL, 1000, seen));
  const first = file.get("a");
  await isAborted((signal) => file.get("b", { signal }));
  file.close();
  await assert.rejects(first, { name: "ReleasedError" });
  assert.equal(seen.cancelled, 1);
});

test("a signal that is aborted after its load does not end the next one", async () => {
  const file = await open(stalled(MODEL, MODEL.length, { pulled: 0, cancelled: 0 }));
  const controller = new AbortController();
  (await file.get("a", { signal: controller.signal })).release();
  controller.abort(REASON);
  (await file.get("b")).release();
  file.close();
});

test("progress that throws, or aborts, ends it", async () => {
  for (const bytes of [NPY, MODEL]) {
    for (const how of ["throws", "aborts"]) {
      const seen = { pulled: 0, cancelled: 0 };
      const controller = new AbortController();
      const progress = () => {
        if (how === "throws") throw REASON;
        controller.abort(REASON);
      };
      const options = { progress, signal: controller.signal };
      const opening = open(stalled(bytes, bytes.length, seen), options);
      await assert.rejects(
        opening.then((opened) => ("get" in opened ? opened.get("a") : opened)),
        REASON,
      );
      const { pulled } = seen;
      await settle();
      assert.ok(seen.cancelled === 1 && seen.pulled === pulled);
    }
  }
});

// --- save ---------------------------------------------------------------------------------------

/** A target that stands still in one of its calls, as stream or handle; notes all of them. */
function targetThatStalls(where, calls) {
  const { promise, resolve } = later();
  const call = (name) => {
    calls.push(name);
    return name === where ? promise : undefined;
  };
  const stream = new WritableStream({
    write: () => call("write"),
    close: () => call("close"),
    abort: () => call("abort"),
  });
  if (where !== "createWritable") return { to: stream, resolve };
  const to = {
    [Symbol.toStringTag]: "FileSystemFileHandle",
    createWritable: async () => {
      await call("createWritable");
      return stream;
    },
  };
  return { to, resolve };
}

for (const where of ["createWritable", "write", "close"])
  test(`save() to a target that stalls in ${where}`, async () => {
    const calls = [];
    const { to, resolve } = targetThatStalls(where, calls);
    const tensor = Tensor.fromTypedArray(new Float64Array(2 * MB));
    const controller = new AbortController();
    const saving = save({ a: tensor }, { to, signal: controller.signal });
    tensor.release();
    await settle();
    assert.equal(calls.at(-1), where);
    controller.abort(REASON);
    await assert.rejects(saving, REASON);
    resolve();
    await settle();
    const after = calls.slice(calls.indexOf(where) + 1);
    assert.deepEqual(after, where === "close" ? [] : ["abort"]);
  });

test("save() of a tensor on a GPU that does not answer", async () => {
  const calls = [];
  const { to } = targetThatStalls("none", calls);
  const device = {
    ...deafDevice([]),
    createBuffer: ({ size }) =>
      Object.assign(fakeBuffer(size), { mapAsync: () => new Promise(() => {}) }),
  };
  const tensor = Tensor.fromTypedArray(new Float32Array(4)).to(device);
  await isAborted((signal) => save(tensor, { to, signal }));
  assert.ok(!calls.slice(1).includes("write"));
  tensor.release();
  live = liveTensors(); // the copy that is read back belongs to the GPU's answer
});
