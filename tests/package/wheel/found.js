/**
 * Which wheel connect() finds. A stand-in for Pyodide, of that ABI, takes it, so that this runs wherever
 * JavaScript does.
 *
 * @returns the SHA-256 of what would be unpacked, or the message of the error
 */
export async function found(connect, options, abi = "2026_0") {
  let taken;
  const nothing = () => {};
  const modules = {
    "importlib.util": { find_spec: nothing },
    importlib: { invalidate_caches: nothing },
    site: { getsitepackages: () => ({ get: () => "", destroy: nothing }) },
    shutil: { rmtree: nothing },
    sys: { modules: new Map() },
    sysconfig: { get_config_var: () => abi },
  };
  const pyodide = {
    version: "314",
    ffi: { PyProxy: class {} },
    pyimport: (name) => ({ ...modules[name], destroy: nothing }),
    unpackArchive(bytes) {
      taken = bytes;
      throw new Error("that is enough");
    },
    _module: {
      HEAPU8: {},
      HEAP32: {},
      LDSO: {},
      validSuspender: {},
      _check_gil: nothing,
      PyProxy_getPtr: nothing,
      addFunction: nothing,
      _JsvPromise_Syncify: nothing,
    },
  };
  try {
    await connect(pyodide, options);
  } catch (error) {
    if (!taken) return error.message;
  }
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", taken));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
