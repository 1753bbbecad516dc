// NumPy's memory in JavaScript: views of it, reading them, and packing within it.
// The floors reach into Pyodide's private parts, which nobody should do outside a benchmark.
import { same } from "./gpu.mjs";

const MB = 2 ** 20;
const PYBUF_FULL_RO = 0x11c; // strides and format, read-only accepted: what NumPy is asked for

/** NumPy array -> typed array over its memory, and given back. */
export const view = {
  path: "view",
  sizes: [64, 4 * MB],
  make({ bridge, pyodide, python, keep }, bytes) {
    const array = keep(python.make_array(bytes));
    const { _module: wasm } = pyodide;
    const buffer = wasm._malloc(64); // a Py_buffer
    keep({ release: () => wasm._free(buffer) });
    const expected = keep(array.getBuffer());
    return {
      ways: {
        "dlpack-web"() {
          const tensor = bridge.tensor(array);
          const { data } = tensor;
          tensor.release();
          return data;
        },
        "getBuffer()+release()"() {
          const borrowed = array.getBuffer();
          const { data } = borrowed;
          borrowed.release();
          return data;
        },
        floor() {
          wasm._PyObject_GetBuffer(wasm.PyProxy_getPtr(array), buffer, PYBUF_FULL_RO);
          const data = new Float32Array(wasm.HEAPU8.buffer, wasm.HEAPU32[buffer >> 2], bytes / 4);
          wasm._PyBuffer_Release(buffer);
          return data;
        },
      },
      check: (data) => data.byteOffset === expected.data.byteOffset && same(data, expected.data),
    };
  },
};

/** Reading `tensor.data` again and again. */
export const data = {
  path: "data",
  sizes: [64],
  make({ bridge, python, keep }, bytes) {
    const tensor = keep(bridge.tensor(keep(python.make_array(bytes))));
    const kept = tensor.data;
    return {
      ways: {
        "dlpack-web": () => tensor.data,
        floor: () => (kept.length > 0 ? kept : null), // whether growth has emptied it
      },
      check: (found) => same(found, kept),
    };
  },
};

/** An array of some layout packed into fresh memory. The floor copies as many bytes. */
export const pack = {
  path: "pack",
  sizes: [64 * MB],
  layouts: [
    "transposed u1",
    "transposed u2",
    "transposed f4",
    "transposed f8",
    "transposed c16",
    "strided f4",
    "strided f8",
    "strided c16",
    "reversed f4",
    "broadcast f4",
    "HWC-CHW u1",
    "CHW-HWC u1",
  ],
  make({ bridge, python, keep }, bytes, layout) {
    const made = keep(python.laid_out(bytes, ...layout.split(" ")));
    const [array, numpy] = [0, 1].map((i) => keep(made.get(i)));
    const tensor = keep(bridge.tensor(array));
    const expected = keep(bridge.tensor(keep(numpy())));
    const target = keep(bridge.empty([expected.nbytes], "uint8"));
    const bytesOf = ({ data: { buffer, byteOffset, byteLength } }) =>
      new Uint8Array(buffer, byteOffset, byteLength);
    return {
      ways: {
        "dlpack-web": () => tensor.contiguous(),
        "np.ascontiguousarray": () => numpy().destroy(),
        floor: () => target.data.set(bytesOf(expected)),
      },
      wipe: () => target.data.fill(0),
      check: (found, name) => {
        if (name === "np.ascontiguousarray") return true;
        return same((found ?? target).data, expected.data);
      },
      free: (found) => found?.release(),
    };
  },
};
