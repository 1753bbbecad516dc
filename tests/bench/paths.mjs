// What is compared: today's ways, ours, and the floor below which nothing can go.
// The floors reach into Pyodide's private parts, which nobody should do outside a benchmark.

const PYBUF_FULL_RO = 0x11c; // strides and format, read-only accepted: what NumPy is asked for
const USAGE = { STORAGE: 0x80, COPY_DST: 0x08, COPY_SRC: 0x04, MAP_READ: 0x01 };
const TENSOR_USAGE = USAGE.STORAGE | USAGE.COPY_DST | USAGE.COPY_SRC;

function expect(condition, what) {
  if (!condition) throw new Error(`wrong result: ${what}`);
}

const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

/** A float32 ndarray of so many bytes, as the PyProxy that JavaScript holds. */
export function makeArray(pyodide, bytes) {
  const make = pyodide.runPython(
    "import numpy as np\nlambda n: np.random.default_rng(n).random(n, dtype=np.float32)",
  );
  const array = make(bytes / 4);
  make.destroy();
  return array;
}

/** NumPy array -> typed array over its memory, and given back. */
export function viewWays({ pyodide, bridge }, bytes) {
  const array = makeArray(pyodide, bytes);
  const count = bytes / 4;
  const { _module: wasm } = pyodide;
  const buffer = wasm._malloc(64); // a Py_buffer
  const expected = array.getBuffer();
  const check = (view) => expect(same(view, expected.data), "view");
  const keep = { view: null };

  function ours() {
    const tensor = bridge.tensor(array);
    keep.view = tensor.data;
    tensor.release();
  }
  function getBuffer() {
    const borrowed = array.getBuffer();
    keep.view = borrowed.data;
    borrowed.release();
  }
  function floor() {
    wasm._PyObject_GetBuffer(wasm.PyProxy_getPtr(array), buffer, PYBUF_FULL_RO);
    keep.view = new Float32Array(wasm.HEAPU8.buffer, wasm.HEAPU32[buffer >> 2], count);
    wasm._PyBuffer_Release(buffer);
  }
  const way = (name, run) => ({
    name,
    run,
    verify() {
      run();
      check(keep.view);
    },
  });
  return {
    ways: [way("dlpack-web", ours), way("getBuffer()+release()", getBuffer), way("floor", floor)],
    done() {
      expected.release();
      array.destroy();
    },
  };
}

/** Reading `tensor.data` again and again. */
export function dataWays({ pyodide, bridge }, bytes) {
  const array = makeArray(pyodide, bytes);
  const tensor = bridge.tensor(array);
  const kept = tensor.data;
  let view = null;
  const verify = () => expect(view === null || view[0] === kept[0], "data");
  return {
    ways: [
      {
        name: "dlpack-web",
        run() {
          view = tensor.data;
        },
        verify,
      },
      {
        name: "floor", // a variable, and whether growth has emptied the view in it
        run() {
          view = kept.length > 0 ? kept : null;
        },
        verify,
      },
    ],
    done() {
      tensor.release();
      array.destroy();
    },
  };
}

/** NumPy array -> GPU, into a fresh buffer as a first upload does it. */
export function uploadWays({ pyodide, bridge, device }, bytes) {
  const array = makeArray(pyodide, bytes);
  const source = bridge.tensor(array);
  const wasm = pyodide._module;
  const existing = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const expected = source.data.slice();
  const settle = () => device.queue.onSubmittedWorkDone();
  const fresh = () => device.createBuffer({ size: bytes, usage: TENSOR_USAGE });

  /** A way that uploads and says which buffer it filled and how that is given back. */
  const way = (name, upload) => ({
    name,
    settle,
    maxBatch: 64, // so many buffers are alive at once
    run: () => upload().release(),
    async verify() {
      const { buffer, release } = upload();
      expect(same(await readBuffer(device, buffer, bytes), expected), `upload, ${name}`);
      release();
    },
  });
  return {
    ways: [
      way("dlpack-web", () => {
        const tensor = source.to(device);
        return { buffer: tensor.buffer, release: () => tensor.release() };
      }),
      way("getBuffer()+writeBuffer", () => {
        const buffer = fresh();
        const borrowed = array.getBuffer();
        device.queue.writeBuffer(buffer, 0, borrowed.data);
        borrowed.release();
        return { buffer, release: () => buffer.destroy() };
      }),
      way("toJs()+writeBuffer", () => {
        const buffer = fresh();
        device.queue.writeBuffer(buffer, 0, array.toJs());
        return { buffer, release: () => buffer.destroy() };
      }),
      way("floor", () => {
        // By address into a buffer that is there already.
        device.queue.writeBuffer(existing, 0, wasm.HEAPU8.buffer, source.data.byteOffset, bytes);
        return { buffer: existing, release() {} };
      }),
    ],
    done() {
      existing.destroy();
      source.release();
      array.destroy();
    },
  };
}

/** GPU -> an existing NumPy array. */
export function downloadWays({ pyodide, bridge, device }, bytes) {
  const array = makeArray(pyodide, bytes);
  const source = bridge.tensor(array);
  const expected = source.data.slice();
  const gpu = source.to(device);
  const staging = device.createBuffer({ size: bytes, usage: USAGE.MAP_READ | USAGE.COPY_DST });

  /** A way that fills `array` again; verified after its memory was wiped. */
  const way = (name, each) => ({
    name,
    each,
    async verify() {
      source.data.fill(0);
      await each();
      expect(same(source.data, expected), `download, ${name}`);
    },
  });
  async function mapped(target, use) {
    copyBuffer(device, gpu.buffer, target, bytes);
    await target.mapAsync(GPUMapMode.READ);
    use(target.getMappedRange());
    target.unmap();
  }
  return {
    ways: [
      way("dlpack-web", () => gpu.read(source)),
      way("fresh staging+slice()+assign", async () => {
        const once = device.createBuffer({ size: bytes, usage: USAGE.MAP_READ | USAGE.COPY_DST });
        let copy;
        await mapped(once, (range) => {
          copy = new Float32Array(range.slice(0));
        });
        once.destroy();
        const borrowed = array.getBuffer();
        borrowed.data.set(copy);
        borrowed.release();
      }),
      way("floor", () => mapped(staging, (range) => source.data.set(new Float32Array(range)))),
    ],
    done() {
      gpu.release();
      staging.destroy();
      source.release();
      array.destroy();
    },
  };
}

function copyBuffer(device, from, to, bytes) {
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
  device.queue.submit([encoder.finish()]);
}

async function readBuffer(device, buffer, bytes) {
  const staging = device.createBuffer({ size: bytes, usage: USAGE.MAP_READ | USAGE.COPY_DST });
  copyBuffer(device, buffer, staging, bytes);
  await staging.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return values;
}
