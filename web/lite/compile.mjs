// Compiles the Python of a folder's packages and of the standard library, in the Pyodide that will
// run them: compiling takes most of the time in which IPython and NumPy are imported, and here it
// is done once. As in Pyodide's own "pyc" builds the sources are left out, but of the wheels
// that are named: readers may want to see them. Jedi's stubs of packages that are not here stay
// out: half of all the files that a kernel unpacks.
// Usage: node compile.mjs FOLDER WHEEL...
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPyodide } from "pyodide";

const COMPILE = `
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc, cache_from_source

STUBS = ("jedi/third_party/django-stubs/", "jedi/third_party/typeshed/third_party/2")

def compiled(name, body):
    """The files that a file becomes; what this Python cannot compile stays."""
    try:
        code = compile(body, name, "exec", dont_inherit=True)
    except SyntaxError:
        return {name: body}
    pyc = _code_to_hash_pyc(code, bytes(8), False)
    return {name: body, cache_from_source(name): pyc} if sources else {f"{name}c": pyc}

with (
    zipfile.ZipFile("/before.zip") as before,
    zipfile.ZipFile("/after.zip", "w", zipfile.ZIP_DEFLATED) as after,
):
    for info in before.infolist():
        name, body = info.filename, before.read(info)
        if name.startswith(STUBS):
            continue
        files = compiled(name, body) if name.endswith(".py") else {name: body}
        for name, body in files.items():
            made = zipfile.ZipInfo(name)  # of 1980: the same bytes on each machine
            made.compress_type = info.compress_type
            made.external_attr = info.external_attr
            after.writestr(made, body)
`;

const [folder, ...named] = process.argv.slice(2);
const pyodide = await loadPyodide();
for (const name of readdirSync(folder).filter((each) => /\.(whl|zip)$/.test(each))) {
  const file = join(folder, name);
  pyodide.FS.writeFile("/before.zip", new Uint8Array(readFileSync(file)));
  pyodide.globals.set("sources", named.includes(name));
  pyodide.runPython(COMPILE);
  writeFileSync(file, pyodide.FS.readFile("/after.zip"));
}
