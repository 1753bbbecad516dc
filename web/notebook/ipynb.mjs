// Notebook files: nbformat 4 in, 4.5 out.
import { joined } from "./output.mjs";

/** The cells of a notebook file: [{ id, type, source, outputs, count, metadata }]. */
export function parse(text, name) {
  let notebook;
  try {
    notebook = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is no notebook: ${error.message}`);
  }
  if (notebook.nbformat !== 4 || !Array.isArray(notebook.cells)) {
    const given = notebook.nbformat === undefined ? "no notebook" : `nbformat ${notebook.nbformat}`;
    throw new Error(`${name} is ${given}: open a Jupyter notebook of nbformat 4`);
  }
  return notebook.cells.map((cell) => ({
    id: cell.id, // since nbformat 4.5
    type: cell.cell_type === "code" ? "code" : "markdown", // raw cells are text here
    source: joined(cell.source ?? ""),
    outputs: cell.outputs ?? [],
    count: cell.execution_count ?? null,
    metadata: cell.metadata ?? {},
  }));
}

/** A notebook file of cells. */
export function serialize(cells) {
  const written = cells.map(({ id, type, source, outputs, count, metadata }) =>
    type === "code"
      ? { cell_type: "code", id, metadata, execution_count: count, outputs, source }
      : { cell_type: "markdown", id, metadata, source },
  );
  const kernelspec = { display_name: "Python (Pyodide)", language: "python", name: "python" };
  const metadata = { kernelspec, language_info: { name: "python" } };
  return `${JSON.stringify({ cells: written, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}
