// What onnxruntime-web is given by others, for Python's cases.

/** The copy that Python's sessions run in. */
const library = async () =>
  globalThis.ort ?? (await import("/libraries/ort/ort.webgpu.bundle.min.mjs"));

/** Notes the feeds of every run from now on. */
export async function watch({ pyodide }) {
  const { InferenceSession } = await library();
  const { run } = InferenceSession.prototype;
  let seen = [];
  InferenceSession.prototype.run = function (feeds, ...more) {
    seen.push(...Object.values(feeds).map((feed) => placeOf(feed, pyodide)));
    return run.call(this, feeds, ...more);
  };
  return {
    /** GPUBuffers, addresses in Pyodide's memory, and null for memory that is elsewhere. */
    take() {
      const found = seen;
      seen = [];
      return found;
    },
    stop() {
      InferenceSession.prototype.run = run;
    },
  };
}

function placeOf(feed, { _module: { HEAPU8 } }) {
  if (feed.location === "gpu-buffer") return feed.gpuBuffer;
  const { buffer, byteOffset } = feed.data;
  return buffer === HEAPU8.buffer ? byteOffset : null;
}

/** Number of sessions of a copy of the library that can run: they are counted from `start` on. */
export async function countSessions() {
  const { InferenceSession } = await library();
  const { create } = InferenceSession;
  const { release } = InferenceSession.prototype;
  let count = 0;
  InferenceSession.create = async function (...args) {
    const made = await create.apply(this, args);
    count++;
    return made;
  };
  InferenceSession.prototype.release = async function () {
    count--;
    return release.call(this);
  };
  return {
    count: () => count,
    stop() {
      InferenceSession.create = create;
      InferenceSession.prototype.release = release;
    },
  };
}
