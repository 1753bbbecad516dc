// connect() with this package, in a real Pyodide: its wheel, its script, its version.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../../js/dist/index.js";
import { boot, WHEEL } from "../../../../tests/js/pyodide/boot.mjs";
import { onnxruntime } from "../../js/dist/pyodide.js";

const { name, version } = onnxruntime;
const pyodide = await boot("pyodide");
const found = () =>
  pyodide.runPython(`
import glob, site
" ".join(sorted(each.split("/")[-1] for each in glob.glob(f"{site.getsitepackages()[0]}/${name}*")))`);

/** What connect() says of a package that is another one in these fields. */
const told = (other) =>
  connect(pyodide, { wheel: WHEEL, packages: [{ ...onnxruntime, ...other }] }).catch(
    (error) => `${error.name}: ${error.message}`,
  );

for (const [other, message] of [
  [
    { version: "9.8.7" },
    /^UnsupportedError: the package dlpack_web_onnxruntime is 9\.8\.7, and dlpack-web is 0\.[\w.]+: the versions must be equal$/,
  ],
  [{ wheel: WHEEL }, /^DLPackError: no wheel of dlpack_web_onnxruntime .* is a wheel of another/],
  [
    { wheel: undefined },
    /found: this bundle does not know its URL\. Pass the URL of dist\/\*\.whl of the npm package dlpack-web-onnxruntime@/,
  ],
  [{ wheel: "/missing.whl" }, /\/missing\.whl cannot be loaded .* connect\(pyodide, \{ packages: /],
]) {
  test(`a package with another ${Object.keys(other)} is refused, and nothing is left`, async () => {
    assert.match(await told(other), message);
    assert.equal(found(), "");
  });
}

test("a wheel of another version that Python has is refused, and stays installed", async () => {
  pyodide.runPython(`
from pathlib import Path
module, info = (Path(site.getsitepackages()[0]) / each for each in ("${name}", "${name}-0.0.1.dist-info"))
for each in (module, info):
    each.mkdir()
(module / "__init__.py").touch()
(info / "METADATA").write_text("Name: ${name}\\nVersion: 0.0.1\\n")`);
  assert.match(
    await told({}),
    /^UnsupportedError: Python has dlpack_web_onnxruntime 0\.0\.1, and this JavaScript is dlpack-web-onnxruntime 0\.[\w.]+:/,
  );
  assert.equal(found(), `${name} ${name}-0.0.1.dist-info`);
  pyodide.runPython("import shutil\nfor each in (module, info): shutil.rmtree(each)");
});

test("its wheel is installed and its script is handed over, once", async () => {
  const broken = () => {
    throw new Error("not yet");
  };
  assert.equal(await told({ script: broken }), "Error: not yet");
  let scripts = 0;
  const counted = (internal) => {
    scripts++;
    return onnxruntime.script(internal);
  };
  const given = { packages: [{ ...onnxruntime, script: counted }] };
  const [one, two] = await Promise.all([connect(pyodide, given), connect(pyodide, given)]);
  assert.equal(one, two);
  assert.equal(await connect(pyodide, { packages: [onnxruntime] }), one);
  assert.equal(found(), `${name} ${name}-${version}.dist-info`);
  assert.equal(
    await pyodide.runPythonAsync(`
from dlpack_web.internal import calls_of
import dlpack_web_onnxruntime as onnxruntime
(await calls_of("${name}")).library is not None and onnxruntime.get_device()`),
    globalThis.navigator?.gpu ? "WEBGPU" : "CPU", // Deno has one
  );
  assert.equal(scripts, 1);
});
