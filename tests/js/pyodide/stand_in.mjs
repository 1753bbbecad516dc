// A stand-in for Pyodide whose C core is this file: tests see what is read from which byte, written where, and
// held for how long.
import assert from "node:assert/strict";
import { attach } from "../../../js/dist/pyodide/calls.js";

// Bytes of wasm/bridge.c's scratch, of a dlw_tensor and its lists, of elements and of a kernel's call.
export const [SCRATCH, STRUCT, LISTS, DATA, CALL] = [1024, 4096, 8192, 16384, 32768];

/** The stand-in, and what its core was called with. */
export function fakePyodide(changes = {}) {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 4 });
  const calls = [];
  const functions = [];
  let suspendable = true;
  const struct = (at = STRUCT) => new DataView(memory.buffer, at);
  const scratch = () => new BigInt64Array(memory.buffer, SCRATCH, 130);
  /** Writes a dlw_tensor, as C lays it out. */
  function describe({
    at = STRUCT,
    data = DATA,
    flags = 0,
    device = 1,
    id = 0,
    code = 2,
    bits = 32,
    lanes = 1,
    shape = [],
    strides = null,
    offset = 0,
    handle = 77,
  }) {
    const view = struct(at);
    view.setBigUint64(16, BigInt(flags), true);
    view.setUint32(24, data, true);
    view.setUint32(28, device, true);
    view.setUint32(32, id, true);
    view.setUint32(36, shape.length, true);
    view.setUint8(40, code);
    view.setUint8(41, bits);
    view.setUint16(42, lanes, true);
    view.setUint32(44, LISTS, true);
    view.setUint32(48, strides ? LISTS + 512 : 0, true);
    view.setBigUint64(56, BigInt(offset), true);
    view.setUint32(64, handle, true);
    const list = (where, values) =>
      values.forEach((value, i) => {
        new DataView(memory.buffer, where).setBigInt64(8 * i, BigInt(value), true);
      });
    list(LISTS, shape);
    if (strides) list(LISTS + 512, strides);
    return at;
  }
  const state = { next: STRUCT, kind: 2, text: "words of Python", memory, calls, functions };
  const noted =
    (name, result) =>
    (...given) => {
      calls.push([name, ...given]);
      state.suspended = module.validSuspender.value;
      return typeof result === "function" ? result(...given) : (result ?? state.next);
    };
  const core = {
    scratch: () => SCRATCH,
    call: () => CALL,
    borrow: noted("borrow"),
    empty: noted("empty"),
    wrap: noted("wrap"),
    share: noted("share"),
    view: noted("view"),
    pack: noted("pack"),
    chunk: noted("chunk", () => state.count),
    release: noted("release", 0),
    error_kind: noted("error_kind", () => state.kind),
    error_text() {
      const bytes = new TextEncoder().encode(`${state.text}\0after`);
      new Uint8Array(memory.buffer, 2048, bytes.length).set(bytes);
      return 2048;
    },
    on_drop: noted("on_drop", 0),
    on_run: noted("on_run", 0),
    on_wait: noted("on_wait", 0),
  };
  const module = {
    get HEAPU8() {
      return new Uint8Array(memory.buffer);
    },
    get HEAP32() {
      return new Int32Array(memory.buffer);
    },
    LDSO: {
      loadedLibsByName: {
        "/lib/other.so": { exports: {} },
        "/site-packages/dlpack_web/_core.abi3.so": {
          exports: Object.fromEntries(
            Object.entries(core).map(([name, call]) => [`dlw_bridge_${name}`, call]),
          ),
        },
      },
    },
    validSuspender: { value: true },
    _check_gil: () => calls.push(["gil"]),
    PyProxy_getPtr(proxy) {
      if (typeof proxy?.address !== "number") throw new TypeError("no proxy");
      return proxy.address;
    },
    addFunction: (call, signature) => functions.push([call, signature]) - 1,
    _JsvPromise_Syncify: () => suspendable,
    _Py_EMSCRIPTEN_SIGNAL_HANDLING: 12,
    ...changes,
  };
  const taken = [];
  class PyProxy {}
  const pyodide = {
    version: "314.0",
    ffi: { PyProxy },
    pyimport: () => ({
      _take(handle) {
        taken.push(handle);
        return { handle };
      },
      _raise() {
        throw new Error("the Python exception");
      },
    }),
    unpackArchive() {},
    _module: module,
  };
  suspendable = false;
  /** Writes a kernel's call, as C lays it out; addresses of tensors are in arrays. */
  function describeCall(site, workgroups, args, key = []) {
    const pairs = args.flatMap((arg) => (Array.isArray(arg) ? [1, arg[0]] : [0, arg]));
    const facts = [site, ...workgroups, args.length, ...pairs];
    new Float64Array(memory.buffer, CALL, facts.length).set(facts);
    const numbers = [key.length && key.length + 1, ...key];
    new Float64Array(memory.buffer, CALL + 8 * (5 + 2 * 32), numbers.length).set(numbers);
  }
  return Object.assign(state, { describeCall, pyodide, module, describe, scratch, taken, PyProxy });
}

/** The calls since then, without the checks of the GIL before each. */
export function since(fake) {
  const told = fake.calls.splice(0);
  const names = told.map(([name]) => name);
  for (const [i, name] of names.entries()) {
    if (name !== "gil" && !name.startsWith("on_")) assert.equal(names[i - 1], "gil", `${name}`);
  }
  return told.filter(([name]) => name !== "gil");
}

export function connected(changes) {
  const fake = fakePyodide(changes);
  const calls = attach(fake.pyodide);
  since(fake);
  return { fake, calls, bridge: calls.bridge };
}
