// Compiles the Python of a folder's packages and of the standard library, in the Pyodide that will
// run them: compiling takes most of the time in which IPython and NumPy are imported, and here it
// is done once. As in Pyodide's own "pyc" builds the sources are left out.
// Usage: node compile.mjs FOLDER
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPyodide } from "pyodide";

const COMPILE = `
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

def compiled(name, body):
    """Name and content of a module; those that this Python cannot compile stay."""
    try:
        code = compile(body, name, "exec", dont_inherit=True)
    except SyntaxError:
        return name, body
    return f"{name}c", _code_to_hash_pyc(code, bytes(8), False)

with (
    zipfile.ZipFile("/before.zip") as before,
    zipfile.ZipFile("/after.zip", "w", zipfile.ZIP_DEFLATED) as after,
):
    for info in before.infolist():
        name, body = info.filename, before.read(info)
        if name.endswith(".py"):
            name, body = compiled(name, body)
        made = zipfile.ZipInfo(name)  # of 1980: the same bytes on each machine
        made.compress_type = info.compress_type
        made.external_attr = info.external_attr
        after.writestr(made, body)
`;

const folder = process.argv[2];
const pyodide = await loadPyodide();
for (const name of readdirSync(folder).filter((each) => /\.(whl|zip)$/.test(each))) {
  const file = join(folder, name);
  pyodide.FS.writeFile("/before.zip", new Uint8Array(readFileSync(file)));
  pyodide.runPython(COMPILE);
  writeFileSync(file, pyodide.FS.readFile("/after.zip"));
}
