/** Resolves to the module ways.py, in which rows have their Python. */
export async function loadPython(pyodide) {
  const source = await (await fetch(new URL("ways.py", import.meta.url))).text();
  pyodide.FS.writeFile("ways.py", source);
  return pyodide.pyimport("ways");
}
