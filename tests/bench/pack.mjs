// Packing and converting in wasm memory, beside what NumPy does there: no GPU is needed.
// The floor of both copies as many bytes as are packed, or converted, within that memory.

const DTYPES = { u8: "u1", u16: "u2", f32: "f4", f64: "f8", c128: "c16" };
const LAYOUTS = {
  transposed: "array.reshape(1 << (array.size.bit_length() // 2), -1).T",
  strided: "np.repeat(array, 2)[::2]",
  reversed: "array[::-1]",
  "HWC-CHW": "array[: array.size // 12 * 12].reshape(-1, 3).T",
  "CHW-HWC": "array[: array.size // 12 * 12].reshape(3, -1).T",
  broadcast: "np.broadcast_to(array[: array.size // 1024, None], (array.size // 1024, 1024))",
};

/** What layouts `packWays` takes: float32 goes without saying. */
export const PACKED = [
  ...["transposed u8", "transposed u16", "transposed", "transposed f64", "transposed c128"],
  ...["strided", "strided f64", "strided c128", "reversed", "broadcast"],
  ...["HWC-CHW u8", "CHW-HWC u8"],
];

/** Whether two typed arrays, of multiples of 4 bytes, have the same ones. */
function sameBytes(a, b) {
  const [left, right] = [a, b].map((x) => new Int32Array(x.buffer, x.byteOffset, x.byteLength / 4));
  return left.length === right.length && left.every((word, i) => word === right[i]);
}

function expectSame(a, b, what) {
  if (!sameBytes(a, b)) throw new Error(`wrong result: ${what}`);
}

/** Runs some Python, gives the proxies of what it defines to `use`, and destroys them. */
function defined(pyodide, source) {
  const tuple = pyodide.runPython(`import numpy as np\n${source}`);
  const proxies = Array.from({ length: tuple.length }, (_, i) => tuple.get(i));
  tuple.destroy();
  return proxies;
}

/** A copy of as many bytes as `source` has, and how that is given up. */
function floorWay(bridge, bytes) {
  const [source, target] = [bridge.empty([bytes], "uint8"), bridge.empty([bytes], "uint8")];
  source.data.fill(7);
  const run = () => target.data.set(source.data);
  const verify = () => {
    run();
    expectSame(target.data, source.data, "copy");
  };
  return {
    way: { name: "floor", run, verify },
    release: () => [source, target].map((tensor) => tensor.release()),
  };
}

/** An array of some layout packed into fresh memory. */
export function packWays({ pyodide, bridge }, bytes, layout) {
  const [kind, dtype = "f32"] = layout.split(" ");
  const [laidOut, numpy, silent] = defined(
    pyodide,
    `
def make():
    raw = np.random.default_rng(1).integers(0, 256, ${bytes}, dtype=np.uint8)
    array = raw.view("${DTYPES[dtype]}")
    return ${LAYOUTS[kind]}
def pack(source):
    np.ascontiguousarray(source)
make(), np.ascontiguousarray, pack`,
  );
  const tensor = bridge.tensor(laidOut);
  const floor = floorWay(bridge, bytes);
  const ours = () => tensor.contiguous().release();
  function verify() {
    const expected = numpy(laidOut);
    const packed = tensor.contiguous();
    const view = expected.getBuffer("u8"); // last, as memory may have grown
    expectSame(packed.data, view.data, `pack, ${layout}`);
    packed.release();
    view.release();
    expected.destroy();
  }
  return {
    ways: [
      { name: "dlpack-web", run: ours, verify },
      { name: "np.ascontiguousarray", run: () => silent(laidOut), verify() {} },
      floor.way,
    ],
    done() {
      tensor.release();
      floor.release();
      for (const each of [silent, numpy, laidOut]) each.destroy();
    },
  };
}

const CONVERTED = {
  f16: { dtype: "float16", name: "np.astype", numpy: "source.astype(np.float16)" },
  bf16: {
    dtype: "bfloat16", // which NumPy lacks
    name: "NumPy, by hand",
    numpy: `((bits := source.view("u4")) + 0x7FFF + ((bits >> 16) & 1) >> 16).astype("u2")`,
  },
};

/** As much of a GPUDevice as uploads need: a queue that drops, or keeps, what is written. */
function makeSink() {
  const sink = {
    kept: null,
    lost: new Promise(() => {}),
    limits: { maxBufferSize: 2 ** 31 },
    pushErrorScope() {},
    popErrorScope: async () => null,
    createBuffer: ({ size, usage }) => ({ size, usage, destroy() {} }),
    queue: {
      submit() {},
      writeBuffer(_buffer, offset, memory, from, bytes) {
        sink.kept?.set(new Uint8Array(memory, from, bytes), offset);
      },
    },
  };
  return sink;
}

/** So many bytes of float32 to 16 bits on the way to a GPU, without a GPU. */
export function convertWays({ pyodide, bridge }, bytes, layout) {
  const { dtype, name, numpy } = CONVERTED[layout];
  const [array, convert, silent] = defined(
    pyodide,
    `
array = np.random.default_rng(1).standard_normal(${bytes / 4}, dtype=np.float32)
def convert(source):
    return ${numpy}
def silent(source):
    convert(source)
array, convert, silent`,
  );
  const source = bridge.tensor(array);
  const device = makeSink();
  const target = source.to(device, { dtype });
  const floor = floorWay(bridge, bytes);
  const ours = () => target.write(source, { convert: true });
  function verify() {
    device.kept = new Uint8Array(bytes / 2);
    ours();
    const expected = convert(array);
    const view = expected.getBuffer("u8");
    expectSame(device.kept, view.data, `convert, ${layout}`);
    device.kept = null;
    view.release();
    expected.destroy();
  }
  return {
    ways: [
      { name: "dlpack-web", run: ours, verify },
      { name, run: () => silent(array), verify() {} },
      floor.way,
    ],
    done() {
      for (const tensor of [target, source]) tensor.release();
      floor.release();
      for (const each of [silent, convert, array]) each.destroy();
    },
  };
}
