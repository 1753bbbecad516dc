// Real Pyodides in Node, with the real wheel: 314 and 0.29 load the same file. What pages do as well is in
// tests/browser/cases/js/cpu_cases.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import process from "node:process";
import { after, describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as library from "../../../js/dist/index.js";
import * as cases from "../../browser/cases/js/cpu_cases.mjs";
import { Skip } from "../../browser/cases/js/expect.mjs";
import { boot, WHEEL } from "./boot.mjs";

const { connect, liveTensors, Tensor } = library;
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

const OTHER_VERSION = `
import shutil, site
from pathlib import Path

folder = Path(site.getsitepackages()[0])
package, info = folder / "dlpack_web", folder / "dlpack_web-0.0.1.dist-info"
for each in (package, info):
    each.mkdir()
(package / "__init__.py").touch()
(info / "METADATA").write_text("Name: dlpack_web\\nVersion: 0.0.1\\n")
`;

/** What connect() says of two damaged wheels and of another version, and what is there afterwards. */
async function refusals(pyodide) {
  const left = () =>
    pyodide
      .runPython("import os, site; ' '.join(sorted(os.listdir(site.getsitepackages()[0])))")
      .split(" ")
      .filter((name) => /dlpack/.test(name));
  const refusal = async (bytes) => {
    const wheel = `data:application/zip;base64,${bytes.toString("base64")}`;
    const { name, message } = await connect(pyodide, { wheel }).catch((error) => error);
    return { error: name, message, left: left() };
  };
  const bytes = readFileSync(WHEEL);
  const flipped = Buffer.from(bytes);
  flipped[bytes.length >> 1] ^= 0xff;
  const told = [await refusal(bytes.subarray(0, -1000)), await refusal(flipped)];
  pyodide.runPython(OTHER_VERSION);
  told.push(await refusal(bytes));
  pyodide.runPython("for each in (package, info): shutil.rmtree(each)");
  return told;
}

// `make test-all` also has the older Pyodide's NumPy.
const FOLDERS = ["pyodide", ...(process.env.WHOLE ? ["pyodide-0.29"] : [])];

for (const folder of FOLDERS) {
  // Outside of the suite: Deno waits for none.
  const pyodide = await boot(folder);
  const refused = await refusals(pyodide);
  // One is told where the wheel is, the other finds the one that the npm package ships.
  const bridge = await connect(pyodide, folder === "pyodide" ? { wheel: WHEEL } : {});

  describe(`Pyodide in ${folder}`, () => {
    const py = (source) => pyodide.runPython(`import numpy as np, dlpack_web as dlw\n${source}`);
    const liveInPython = () => py("import gc; gc.collect(); dlw.live_tensors()");
    after(() => assert.deepEqual([liveTensors(), liveInPython()], [0, 0]));

    /** Runs `use` with the PyProxy of what Python evaluates to. */
    const withProxy = (source, use) => {
      const proxy = py(source);
      try {
        return use(proxy);
      } finally {
        proxy.destroy();
      }
    };

    test("wheels that do not work leave nothing behind, and what is there is not replaced", () => {
      const [short, flipped, other] = refused;
      assert.match(short.message, /^the dlpack_web wheel is damaged: .*not a zip file$/);
      assert.match(flipped.message, /^the dlpack_web wheel is damaged: .*(zlib|Bad CRC)/);
      for (const { error, left } of [short, flipped])
        assert.deepEqual([error, left], ["DLPackError", []]);
      assert.equal(other.error, "UnsupportedError");
      assert.match(
        other.message,
        /^Python has dlpack_web 0\.0\.1, and this JavaScript is dlpack-web 0\./,
      );
      assert.deepEqual(other.left, ["dlpack_web", "dlpack_web-0.0.1.dist-info"]);
    });

    for (const [name, run] of Object.entries(cases)) {
      test(name.replaceAll("_", " "), async (t) => {
        try {
          await run({ bridge, library, pyodide });
        } catch (error) {
          // Node 20 cannot parse `using`.
          if (!(error instanceof Skip || error instanceof SyntaxError)) throw error;
          t.skip(error.message);
        }
      });
    }

    test("connect is idempotent", async () => {
      assert.equal(await connect(pyodide), bridge);
    });

    // JavaScript's part of it is the same in both, and 0.29 keeps what it is given.
    const skip = folder === "pyodide" ? false : "nothing that this Pyodide is given is collected";
    test("a released tensor that Python is given loses no second hold", { skip }, async () => {
      const before = liveTensors();
      let over = 0;
      const held = Tensor.fromMemory(new WebAssembly.Memory({ initial: 1 }), 0, {
        dtype: "uint8",
        shape: [3],
        release: () => over++,
      });
      const give = (tensor) => {
        pyodide.globals.set("given", tensor);
        return py(`
try:
    with dlw.from_js(given) as t:
        found = t.shape[0]
except dlw.ReleasedError:
    found = "released"
del given
found`);
      };
      // Several, as an engine may keep one of them in sight for whatever reason.
      const gone = Array.from({ length: 20 }, () => {
        const tensor = held.slice();
        tensor.release();
        assert.equal(give(tensor), "released");
        return new WeakRef(tensor);
      });
      // deref() keeps its object until the task ends, so each task collects before it looks.
      let collected = 0;
      for (let i = 0; i < 1000 && collected === 0; i++) {
        await setTimeout(10);
        py("import gc; gc.collect()");
        collectGarbage();
        collected = gone.filter((ref) => ref.deref() === undefined).length;
      }
      assert.ok(collected > 0, "some were collected");
      await setTimeout(10); // finalizers run in a task of their own
      assert.deepEqual([liveTensors(), over], [before + 1, 0]);
      held.release();
      assert.deepEqual([liveTensors(), over], [before, 1]);
    });

    for (const [what, source, shape, values] of [
      ["0-d", "np.array(7, 'i2')", [], [7]],
      ["empty", "np.zeros((3, 0))", [3, 0], []],
      ["broadcast", "np.broadcast_to(np.float32(2), (2, 2))", [2, 2], [2]],
      ["transposed", "np.arange(4, dtype='u1').reshape(2, 2).T", [2, 2], [0, 1, 2, 3]],
    ]) {
      test(`${what} array`, () =>
        withProxy(source, (array) => {
          const tensor = bridge.tensor(array);
          assert.deepEqual([tensor.shape, [...tensor.data]], [shape, values]);
          tensor.release();
        }));
    }

    test("what is no array is refused", () => {
      for (const wrong of [5, "x", null, undefined, {}, [1, 2]]) {
        assert.throws(() => bridge.tensor(wrong), { name: "TypeError", message: /PyProxy/ });
      }
    });

    test("a misaligned array is copied, and a copy of a producer is refused, as asked for", () => {
      const given = (source, options) => withProxy(source, (x) => bridge.tensor(x, options));
      const tensor = given("np.arange(9, dtype='u1')[1:].view('u4')", { copy: true });
      assert.deepEqual([...new Uint8Array(tensor.copy().buffer)], [1, 2, 3, 4, 5, 6, 7, 8]);
      tensor.release();
      const copying = `
class Copying:
    def __dlpack__(self, **keywords):
        return np.arange(3.0).__dlpack__(**keywords | {"copy": True})
Copying()`;
      assert.throws(() => given(copying, { copy: false }), { name: "CopyError" });
    });

    test("a view of the heap itself is refused", () => {
      const view = pyodide._module.HEAPU8.subarray(1024, 2048);
      assert.throws(() => bridge.tensor(view), { name: "UnsupportedError", message: /moves when/ });
    });

    test("a destroyed proxy is refused, also if an option's getter destroys it", () => {
      const proxy = py("np.arange(3)");
      const options = Object.defineProperty({}, "copy", { get: () => proxy.destroy() });
      for (const given of [options, undefined]) {
        const gone = { name: "ReleasedError", message: /destroyed/ };
        assert.throws(() => bridge.tensor(proxy, given), gone);
      }
    });

    test("Pyodide's memory may grow while a tensor's own is asked for", () => {
      const { buffer } = Float32Array.of(1, 2);
      let get = () => buffer;
      const memory = Object.defineProperty({}, "buffer", { get: () => get() });
      const source = Tensor.fromMemory(memory, 0, { shape: [2], dtype: "float32" });
      const target = bridge.empty([2]);
      for (const use of [() => bridge.toPython(source), () => target.write(source)]) {
        get = () => {
          get = () => buffer;
          py(`grown = bytearray(${pyodide._module.HEAPU8.length})`);
          return buffer;
        };
        const made = use() ?? bridge.toPython(target);
        assert.match(String(made), /\[1\., 2\.\]/);
        made.release();
        made.destroy();
        py("del grown");
      }
      for (const each of [source, target]) each.release();
    });

    test("Python does not take a Tensor of JS's for a sequence, nor one with elements for false", () => {
      const heap = bridge.empty([3]);
      const [full, none] = [Tensor.fromTypedArray(new Float32Array(4)), bridge.empty([0])];
      pyodide.globals.set("tensors", [heap, full, none]);
      // Pyodide 314 takes what has `length` for a list; 1 added to such a proxy ends it.
      const told = py(`
from pyodide.ffi import to_js
def of(t):
    try:
        return t + 1
    except TypeError:
        return [bool(t), len(t), hasattr(t, "__getitem__"), repr(t)[:6], len(list(t)), "copy" in dir(t)]
to_js([of(t) for t in tensors])`);
      const said = (size) => [size > 0, size, false, "Tensor", size, true];
      assert.deepEqual(told, [said(3), said(4), said(0)]);
      py("del tensors");
      for (const each of [heap, full, none]) each.release();
    });

    test("copy() of Pyodide's memory outlives it", () =>
      withProxy("np.arange(6, dtype='float32').reshape(2, 3).T", (proxy) => {
        const tensor = bridge.tensor(proxy);
        const copy = tensor.copy();
        tensor.release();
        assert.deepEqual(copy, Float32Array.of(0, 3, 1, 4, 2, 5));
        assert.equal(copy.buffer.byteLength, 24);
      }));

    test("an array of JS's goes to Python by one copy, unless that is forbidden", () => {
      const tensor = Tensor.fromTypedArray(Float64Array.of(1, 2), { shape: [2, 1] });
      const asked = [];
      const producer = { [Symbol.for("dlpack.exchange")]: ({ copy }) => asked.push(copy) };
      for (const copy of [false, true]) assert.throws(() => bridge.toPython(producer, { copy }));
      assert.deepEqual(asked, [false, undefined]);
      assert.throws(() => bridge.toPython(tensor, { copy: false }), { name: "CopyError" });
      const proxy = bridge.toPython(tensor);
      assert.deepEqual(proxy.shape.toJs(), [2, 1]);
      proxy.release();
      proxy.destroy();
      tensor.release();
    });

    test("a Python Tensor released under its twin's hands stays safe", () => {
      const tensor = py("t = dlw.from_dlpack(np.arange(3.0)); t.js");
      assert.deepEqual([...tensor.data], [0, 1, 2]);
      py("t.release()");
      assert.equal(tensor.released, true);
      assert.throws(() => tensor.data, { name: "ReleasedError" });
    });

    test("a forged or stale handle is refused", () => {
      const core = pyodide.pyimport("dlpack_web._core");
      const before = liveInPython();
      for (const handle of [0, 1, 12345, 2 ** 32 - 1]) {
        assert.throws(
          () => core._take(handle),
          (error) => /ReleasedError/.test(error.message),
        );
      }
      assert.equal(liveInPython(), before);
      core.destroy();
    });

    for (const [raised, told] of [
      ['ZeroDivisionError("mine")', "mine"],
      ["NotImplementedError()", "NotImplementedError"],
      ["RuntimeError('\\udc80')", "RuntimeError"],
    ]) {
      test(`${raised} pending inside is raised, not left behind`, () => {
        const source = `
class Failing:
    def __dlpack__(self, **keywords):
        raise ${raised}
Failing()`;
        const is = ({ message, cause }) => message === told && raised.startsWith(cause.type);
        withProxy(source, (failing) => assert.throws(() => bridge.tensor(failing), is));
        assert.equal(py("1 + 1"), 2);
      });
    }

    test("Python code that blocks while JS is calling does not suspend", () => {
      withProxy(
        `
class Asking:
    def __dlpack__(self, **keywords):
        from pyodide.ffi import can_run_sync
        assert not can_run_sync()
        return np.arange(3.0).__dlpack__(**keywords)
Asking()`,
        (asking) => bridge.tensor(asking).release(),
      );
    });

    test("10,000 tensors that are made or cannot be made leave memory as it was", () => {
      const state = () => [liveInPython(), liveTensors(), pyodide._module.HEAPU8.length];
      const before = state();
      for (let i = 0; i < 10_000; i++) {
        const made = bridge.empty([100], "float32");
        const proxy = bridge.toPython(made);
        made.release();
        proxy.release();
        proxy.destroy();
        assert.throws(() => bridge.empty([-1], "float32"));
      }
      assert.deepEqual(state(), before);
    });
  });
}

const old = (version, module = {}) => ({ version, pyimport() {}, _module: module });

test("a Pyodide that is too old is refused with the versions that are served", async () => {
  for (const version of ["0.25.1", "0.28.3"]) {
    await assert.rejects(connect(old(version, { HEAPU8: {} })), {
      name: "UnsupportedError",
      message:
        `Pyodide ${version} is too old: dlpack-web serves Pyodide 0.29 and 314; load one of these, ` +
        "such as npm's pyodide@^314.0.0",
      given: version,
    });
  }
  await assert.rejects(connect(old("0.29.5", { HEAPU8: {} })), {
    message: /^Pyodide 0\.29\.5 lacks _module\.HEAP32, /,
  });
});

test("what is no Pyodide is refused", async () => {
  for (const wrong of [{}, undefined, { version: 5 }, Promise.resolve(old("314.0.0"))]) {
    await assert.rejects(connect(wrong), {
      name: "TypeError",
      message: /connect\(await loadPyodide\(\)\), not \[object (Object|Undefined|Promise)\]/,
    });
  }
});
