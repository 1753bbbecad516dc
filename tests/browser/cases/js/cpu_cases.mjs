// NumPy and JavaScript on the same memory; each function is a test (hosts/harness.mjs).
import { equal, ok, Skip, throws } from "./expect.mjs";

/** Evaluates Python with NumPy as np; arrays come as PyProxy and are destroyed by the caller. */
function python({ pyodide }, source) {
  return pyodide.runPython(
    `import gc, sys\nimport numpy as np\nimport dlpack_web as dlw\n${source}`,
  );
}

/** Runs `use(tensor, array)` on the array that the Python expression gives. */
async function withArray(context, expression, use) {
  const array = python(context, expression);
  try {
    const tensor = context.bridge.tensor(array);
    try {
      return await use(tensor, array);
    } finally {
      tensor.release();
    }
  } finally {
    array.destroy();
  }
}

/** Grows Pyodide's memory; returns what keeps the new memory taken. */
function growMemory({ pyodide }, view) {
  const before = view.byteLength;
  for (let i = 0; i < 64 && view.byteLength === before; i++) {
    pyodide.runPython("globals().setdefault('_ballast', []).append(bytearray(32 << 20))");
  }
  pyodide.runPython("del _ballast");
  ok(view.byteLength === 0, "memory grew and the old view was detached");
}

export async function writes_are_seen_on_both_sides(context) {
  await withArray(context, "np.arange(6, dtype=np.float32).reshape(2, 3)", (tensor, array) => {
    equal([tensor.shape, tensor.strides, tensor.dtype], [[2, 3], [3, 1], "float32"]);
    equal(tensor.data, [0, 1, 2, 3, 4, 5]);
    tensor.data[4] = 40;
    context.pyodide.globals.set("shared", array);
    equal(python(context, "float(shared[1, 1])"), 40);
    python(context, "shared[0, 0] = 7");
    equal(tensor.at(0, 0), 7);
    equal(python(context, "shared.ctypes.data"), tensor.data.byteOffset);
    context.pyodide.globals.delete("shared");
  });
}

export async function strided_arrays_are_described_not_copied(context) {
  await withArray(context, "np.arange(12, dtype=np.int16).reshape(3, 4)[::-1, ::2]", (tensor) => {
    equal(
      [tensor.shape, tensor.strides],
      [
        [3, 2],
        [-4, 2],
      ],
    );
    const value = (i, j) => tensor.data[tensor.dataOffset + i * -4 + j * 2];
    equal([value(0, 0), value(0, 1), value(2, 1)], [8, 10, 2]);
    const packed = tensor.contiguous();
    equal(packed.data, [8, 10, 4, 6, 0, 2]);
    packed.release();
  });
}

export async function data_survives_memory_growth(context) {
  await withArray(context, "np.arange(4, dtype=np.float64)", (tensor) => {
    const old = tensor.data;
    growMemory(context, old);
    equal(old.length, 0, "the old view");
    equal(tensor.data, [0, 1, 2, 3]);
  });
}

export async function empty_tensors_are_shared_with_python(context) {
  const { bridge, pyodide } = context;
  const tensor = bridge.empty([2, 2], "float32");
  equal(tensor.data.byteOffset % 256, 0, "alignment");
  tensor.data.set([1, 2, 3, 4]);
  const proxy = bridge.toPython(tensor);
  pyodide.globals.set("shared", proxy);
  equal(python(context, "a = shared.numpy(); a[1, 1] = 9; float(a.sum())"), 15);
  equal(tensor.data, [1, 2, 3, 9]);
  tensor.release();
  equal(python(context, "float(a[0, 1])"), 2, "memory outlives the JS tensor");
  python(context, "shared.release(); del a, shared; gc.collect()");
  proxy.destroy();
}

export async function js_owned_arrays_are_copied_once_or_refused(context) {
  const { bridge, library, pyodide } = context;
  const tensor = library.Tensor.fromTypedArray(new Float32Array([1, 2]), { shape: [2] });
  await throws(() => bridge.toPython(tensor, { copy: false }), "CopyError", /cop/);
  const proxy = bridge.toPython(tensor);
  pyodide.globals.set("copied", proxy);
  equal(python(context, "copied.numpy().tolist() == [1, 2]"), true);
  python(context, "copied.release(); del copied");
  proxy.destroy();
  tensor.release();
}

export async function refused_arrays_say_why(context) {
  const refused = [
    ["np.array([1, 'a'], dtype=object)", "UnsupportedError", /object/],
    ["np.array(['a', 'bc'])", "UnsupportedError", /strings/],
    ["np.array([b'a'])", "UnsupportedError", /byte strings/],
    ["np.array(['2020-01-01'], dtype='datetime64[D]')", "UnsupportedError", /int64/],
    ["np.zeros(2, dtype=[('x', 'f4'), ('y', 'i4')])", "UnsupportedError", /field/],
    ["np.arange(3, dtype='>i4')", "UnsupportedError", /newbyteorder/],
    ["[1, 2, 3]", "UnsupportedError", /list/],
  ];
  for (const [expression, name, pattern] of refused) {
    const object = python(context, expression);
    const error = await throws(() => context.bridge.tensor(object), name, pattern);
    ok(error.cause, `a cause for ${expression}`);
    object.destroy();
  }
}

export async function impossible_shapes_are_refused({ bridge }) {
  await throws(() => bridge.empty(new Array(65).fill(1)), "RangeError", /64/);
  await throws(() => bridge.empty([-1]), "RangeError", /-1/);
  await throws(() => bridge.empty([2 ** 40]), "UnsupportedError", /address space/);
}

export async function misaligned_data_is_refused(context) {
  const array = python(context, "np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float32)");
  await throws(() => context.bridge.tensor(array), "UnsupportedError", /aligned.*copy/);
  array.destroy();
}

export async function read_only_arrays_are_not_lent_for_writing(context) {
  const array = python(context, "a = np.zeros(3); a.flags.writeable = False; a");
  const { bridge } = context;
  await throws(() => bridge.tensor(array, { writable: true }), "UnsupportedError", /read-only/);
  const tensor = bridge.tensor(array);
  ok(tensor.readOnly, "readOnly");
  tensor.release();
  const copy = bridge.tensor(array, { copy: true, writable: true });
  ok(!copy.readOnly, "a copy may be written");
  copy.release();
  array.destroy();
}

export async function released_tensors_throw(context) {
  const tensor = context.bridge.empty([3], "int32");
  const { data } = tensor;
  tensor.release();
  tensor.release();
  ok(tensor.released, "released");
  for (const use of [
    () => tensor.data,
    () => tensor.at(0),
    () => tensor.contiguous(),
    () => tensor.read(),
    () => context.bridge.toPython(tensor),
  ]) {
    await throws(use, "ReleasedError", /released/);
  }
  ok(data.length === 3, "the view itself is JavaScript's and cannot be revoked");
}

export async function using_releases_at_the_end_of_the_block({ bridge }) {
  if (typeof Symbol.dispose !== "symbol") throw new Skip("this browser has no `using`");
  const { made } = await import("./using.mjs");
  ok(made(bridge).released, "released");
}

export async function ten_thousand_exchanges_leave_nothing(context) {
  const { bridge, pyodide, library } = context;
  const array = python(context, "watched = np.arange(1000, dtype=np.float32)\nwatched");
  const state = () => [
    python(context, "gc.collect(); sys.getrefcount(watched)"),
    python(context, "dlw.live_tensors()"),
    library.liveTensors(),
  ];
  const exchange = () => {
    const tensor = bridge.tensor(array);
    if (tensor.data[3] !== 3) throw new Error("wrong data");
    tensor.release();
  };
  for (let i = 0; i < 100; i++) exchange();
  const before = state();
  const heap = pyodide._module.HEAPU8.length;
  for (let i = 0; i < 10_000; i++) exchange();
  equal(state(), before, "[refcount, live in C, live in JS]");
  equal(pyodide._module.HEAPU8.length, heap, "size of Pyodide's memory");
  python(context, "del watched");
  array.destroy();
}

export async function ten_thousand_exchanges_from_python(context) {
  const { pyodide } = context;
  const heap = pyodide._module.HEAPU8.length;
  const flat = python(
    context,
    `
def exchange(array):
    with dlw.from_dlpack(array) as tensor:
        return tensor.js.data.length

def counted():
    array = np.arange(1000, dtype=np.float32)
    exchange(array)
    before = sys.getrefcount(array), dlw.live_tensors()
    for _ in range(10_000):
        exchange(array)
    gc.collect()
    return before == (sys.getrefcount(array), dlw.live_tensors())

counted()`,
  );
  ok(flat, "refcount and live tensors as before");
  equal(pyodide._module.HEAPU8.length, heap, "size of Pyodide's memory");
}
