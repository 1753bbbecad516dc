// What onnxruntime-web is given by others, for Python's cases.

/** The classes of the copies that Python's sessions run in: with WebGPU, and for the CPU alone. */
async function classes() {
  const builds = ["ort.webgpu.bundle.min.mjs", "ort.wasm.bundle.min.mjs"];
  const found = globalThis.ort
    ? [globalThis.ort]
    : await Promise.all(builds.map((file) => import(`/libraries/ort/${file}`)));
  return found.map(({ InferenceSession }) => InferenceSession);
}

/** Notes the feeds of every run from now on. */
export async function watch({ pyodide }) {
  let seen = [];
  const watched = (await classes()).map(({ prototype }) => {
    const { run } = prototype;
    prototype.run = function (feeds, ...more) {
      seen.push(...Object.values(feeds).map((feed) => placeOf(feed, pyodide)));
      return run.call(this, feeds, ...more);
    };
    return () => Object.assign(prototype, { run });
  });
  return {
    /** GPUBuffers, addresses in Pyodide's memory, and null for memory that is elsewhere. */
    take() {
      const found = seen;
      seen = [];
      return found;
    },
    stop() {
      for (const restore of watched) restore();
    },
  };
}

function placeOf(feed, { _module: { HEAPU8 } }) {
  if (feed.location === "gpu-buffer") return feed.gpuBuffer;
  const { buffer, byteOffset } = feed.data;
  return buffer === HEAPU8.buffer ? byteOffset : null;
}

/** Number of sessions of these copies that can run: they are counted from `start` on. */
export async function countSessions() {
  let count = 0;
  const watched = (await classes()).map((sessions) => {
    const { create, prototype } = sessions;
    const { release } = prototype;
    sessions.create = async function (...args) {
      const made = await create.apply(this, args);
      count++;
      return made;
    };
    prototype.release = async function () {
      count--;
      return release.call(this);
    };
    return () => {
      Object.assign(sessions, { create });
      Object.assign(prototype, { release });
    };
  });
  return {
    count: () => count,
    stop() {
      for (const restore of watched) restore();
    },
  };
}

/** From now on the results of every run claim a first extent that is one too large. */
export async function lie() {
  const watched = (await classes()).map(({ prototype }) => {
    const { run } = prototype;
    prototype.run = async function (...args) {
      const results = await run.apply(this, args);
      for (const { dims } of Object.values(results)) dims[0]++;
      return results;
    };
    return () => Object.assign(prototype, { run });
  });
  return {
    stop() {
      for (const restore of watched) restore();
    },
  };
}
