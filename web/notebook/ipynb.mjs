// Notebook files: nbformat 4 in, 4.5 out.
import { forFile } from "../docs/_static/run/live.mjs";
import { joined } from "../docs/_static/run/output.mjs";

const MOST = 5000; // cells, and outputs of one

/**
 * The cells of a notebook file: [{ id, type, source, outputs, count, metadata, kept }]. All of it is
 * looked at before anything is shown.
 */
export function parse(text, name) {
  let notebook;
  try {
    notebook = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is not a notebook: ${error.message}`);
  }
  if (notebook?.nbformat !== 4 || !Array.isArray(notebook.cells)) {
    const { nbformat } = notebook ?? {};
    const given = Number.isInteger(nbformat) ? `nbformat ${nbformat}` : "no notebook";
    throw new Error(`${name} is ${given}: open a Jupyter notebook of nbformat 4`);
  }
  const ids = new Set();
  return few(notebook.cells, `${name} has`, "cells").map((cell, i) => {
    const where = `cell ${i + 1} of ${name}`;
    if (!isObject(cell)) throw new Error(`${where} is not a cell: ${shortly(cell)}`);
    const outputs = few(cell.outputs ?? [], `${where} has`, "outputs");
    return {
      id: ownId(cell.id, ids),
      type: cell.cell_type === "code" ? "code" : "markdown", // raw cells are text here
      source: textIn(cell.source ?? "", `the source of ${where}`),
      outputs: outputs.map((output, j) => checked(output, `output ${j + 1} of ${where}`)),
      count: Number.isInteger(cell.execution_count) ? cell.execution_count : null,
      metadata: isObject(cell.metadata) ? cell.metadata : {},
      // Not shown, and not lost.
      kept: {
        ...(cell.cell_type === "raw" && { cell_type: "raw" }),
        ...(isObject(cell.attachments) && { attachments: cell.attachments }),
      },
    };
  });
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const shortly = (value) => `${JSON.stringify(value)}`.slice(0, 40);

function few(list, has, what) {
  if (!Array.isArray(list)) throw new Error(`${has} no list of ${what}, but ${shortly(list)}`);
  if (list.length > MOST) throw new Error(`${has} ${list.length} ${what}: up to ${MOST} are shown`);
  return list;
}

/** The id of a cell (nbformat 4.5), or none where it is not valid or another cell's. */
function ownId(id, ids) {
  if (typeof id !== "string" || !/^[\w-]{1,64}$/.test(id) || ids.has(id)) return undefined;
  ids.add(id);
  return id;
}

/** Text that may be a list of lines. */
function textIn(value, what) {
  const isText = (each) => typeof each === "string";
  if (isText(value) || (Array.isArray(value) && value.every(isText))) return joined(value);
  throw new Error(`${what} is not text: ${shortly(value)}`);
}

/** An output of which the page can show everything. */
function checked(output, what) {
  switch (output?.output_type) {
    case "stream": {
      const name = output.name === "stderr" ? "stderr" : "stdout";
      return { output_type: "stream", name, text: textIn(output.text, what) };
    }
    case "error": {
      const [ename, evalue] = [output.ename ?? "Error", output.evalue ?? ""].map(String);
      const traceback = [output.traceback ?? []].flat().map((line) => textIn(line, what));
      return { output_type: "error", ename, evalue, traceback };
    }
    case "display_data":
    case "execute_result": {
      if (!isObject(output.data)) throw new Error(`${what} has no data: ${shortly(output.data)}`);
      for (const [type, value] of Object.entries(output.data)) {
        if (!/\bjson$/.test(type)) textIn(value, `${type} of ${what}`);
      }
      return { ...output, metadata: isObject(output.metadata) ? output.metadata : {} };
    }
    default:
      throw new Error(`${what} is not an output: ${shortly(output)}`);
  }
}

/** A notebook file of cells. */
export function serialize(cells) {
  const written = cells.map(({ id, type, source, outputs, count, metadata, kept }) =>
    type === "code"
      ? {
          cell_type: "code",
          id,
          metadata,
          execution_count: count,
          outputs: outputs.map(forFile),
          source,
        }
      : { cell_type: "markdown", ...kept, id, metadata, source },
  );
  const kernelspec = { display_name: "Python (Pyodide)", language: "python", name: "python" };
  const metadata = { kernelspec, language_info: { name: "python" } };
  return `${JSON.stringify({ cells: written, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}
