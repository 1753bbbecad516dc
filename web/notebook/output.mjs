// Outputs of cells, in the form of notebook files (nbformat 4), as elements of the page.
import { AnsiUp, DOMPurify, marked } from "../libraries/notebook.mjs";

// The richest first.
const SHOWN = {
  "text/html": html,
  "image/svg+xml": html,
  "text/markdown": markdown,
  "image/png": (data) => image("image/png", data),
  "image/jpeg": (data) => image("image/jpeg", data),
  "application/json": (data) => plain(JSON.stringify(data, null, 2)),
  "text/plain": plain,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

/** An element for one output. HTML from outside is never trusted: scripts do not survive. */
export function outputElement(output) {
  switch (output.output_type) {
    case "stream":
      return Object.assign(plain(joined(output.text)), { className: `stream ${output.name}` });
    case "error":
      return traceback(output);
    default: {
      const type = Object.keys(SHOWN).find((each) => output.data?.[each] !== undefined);
      return type ? SHOWN[type](joined(output.data[type])) : plain("");
    }
  }
}

/** Adds a message of the kernel to the outputs of a cell. */
export function addOutput(outputs, message, count) {
  const { type, name, text, data, metadata = {} } = message;
  const last = outputs.at(-1);
  if (type === "stream" && last?.output_type === "stream" && last.name === name) {
    const whole = joined(last.text) + text;
    last.text = /\r$/.test(last.text) || text.includes("\r") ? overwritten(whole) : whole;
  } else if (type === "stream") {
    outputs.push({ output_type: "stream", name, text: overwritten(text) });
  } else if (type === "display") {
    outputs.push({ output_type: "display_data", data, metadata });
  } else if (type === "result") {
    outputs.push({ output_type: "execute_result", data, metadata, execution_count: count });
  } else if (type === "error") {
    const { ename, evalue, traceback } = message;
    outputs.push({ output_type: "error", ename, evalue, traceback });
  }
}

/** Markdown as a safe element. */
export function markdown(source) {
  return html(marked.parse(source, { async: false }));
}

/** Lines in notebook files are lists, or one string. */
export const joined = (text) => (Array.isArray(text) ? text.join("") : text);

/** What a terminal shows of a line that goes back to its beginning. */
const overwritten = (text) => text.replace(/[^\n]*\r(?!\n|$)/g, "");

function html(source) {
  const element = document.createElement("div");
  element.className = "rich";
  element.innerHTML = DOMPurify.sanitize(source, { FORBID_TAGS: ["form", "input", "button"] });
  return element;
}

function plain(text) {
  const element = document.createElement("pre");
  const colours = new AnsiUp();
  colours.use_classes = true;
  element.innerHTML = colours.ansi_to_html(text); // escapes all else
  return element;
}

function image(type, data) {
  const element = document.createElement("img");
  element.src = `data:${type};base64,${data}`;
  element.alt = "output of this cell";
  return element;
}

function traceback({ ename, evalue, traceback }) {
  const lines = traceback?.length ? traceback.join("\n") : `${ename}: ${evalue}`;
  return Object.assign(plain(lines), { className: "error" });
}
