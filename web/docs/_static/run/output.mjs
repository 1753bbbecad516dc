// Outputs, in the form of notebook files (nbformat 4), as elements of the page.
import { AnsiUp } from "../../../libraries/blocks.mjs";
import { frameOf } from "./frame.mjs";
import { forget, PICTURE, picture } from "./pictures.mjs";

// The richest first.
const SHOWN = {
  "text/html": frameOf,
  "image/svg+xml": drawing,
  "image/png": (data) => image("image/png", data),
  "image/jpeg": (data) => image("image/jpeg", data),
  "application/json": (data) => plain(JSON.stringify(data, null, 2)),
  "text/plain": plain,
};

const names = new WeakMap(); // output -> its display id

/** An element for one output, which may be the one that was in its place `before`. */
export function outputElement(output, before) {
  switch (output.output_type) {
    case "stream":
      return Object.assign(plain(joined(output.text)), { className: `stream ${output.name}` });
    case "error":
      return traceback(output);
    default: {
      const drawn = output.data?.[PICTURE] && picture(output, before);
      if (drawn) return drawn;
      const type = Object.keys(SHOWN).find((each) => output.data?.[each] !== undefined);
      if (!type) return plain("");
      const data = type === "application/json" ? output.data[type] : joined(output.data[type]);
      return SHOWN[type](data);
    }
  }
}

/** Adds a message of the kernel to the outputs of a cell. Outputs do not change: others come. */
export function addOutput(outputs, message, count) {
  const { type, name, text, data, metadata = {} } = message;
  const last = outputs.at(-1);
  if (type === "stream" && last?.output_type === "stream" && last.name === name) {
    const before = joined(last.text);
    const whole = before + text;
    const again = before.endsWith("\r") || text.includes("\r");
    outputs.splice(-1, 1, { ...last, text: again ? overwritten(whole) : whole });
  } else if (type === "stream") {
    outputs.push({ output_type: "stream", name, text: overwritten(text) });
  } else if (type === "display") {
    const output = { output_type: "display_data", data, metadata };
    if (message.display_id) names.set(output, message.display_id);
    outputs.push(output);
  } else if (type === "result") {
    outputs.push({ output_type: "execute_result", data, metadata, execution_count: count });
  } else if (type === "error") {
    const { ename, evalue, traceback } = message;
    outputs.push({ output_type: "error", ename, evalue, traceback });
  }
}

/** Replaces what has the display id of a message; false where nothing does. */
export function updateOutputs(outputs, { data, metadata, display_id }) {
  let found = false;
  for (const [i, output] of outputs.entries()) {
    if (names.get(output) !== display_id) continue;
    found = true;
    forget([output]);
    outputs[i] = { ...output, data, metadata };
    names.set(outputs[i], display_id);
  }
  return found;
}

/** In the form of notebook files text is a list of lines, or one string. */
const joined = (text) => (Array.isArray(text) ? text.join("") : text);

/** What a terminal shows of a line that goes back to its beginning. */
const overwritten = (text) => text.replace(/[^\n]*\r(?!\n|$)/g, "");

function plain(text) {
  const element = document.createElement("pre");
  const colours = new AnsiUp();
  colours.use_classes = true;
  element.innerHTML = colours.ansi_to_html(text); // escapes all else
  return element;
}

/** As an image, a drawing runs no scripts, loads nothing and leads nowhere. */
function drawing(source) {
  const element = document.createElement("img");
  element.src = `data:image/svg+xml,${encodeURIComponent(source)}`;
  element.alt = "drawing of this block";
  return element;
}

function image(type, data) {
  const element = document.createElement("img");
  element.src = `data:${type};base64,${data}`;
  element.alt = "output of this block";
  return element;
}

function traceback({ ename, evalue, traceback }) {
  const message = `${ename}: ${evalue}`;
  const element = Object.assign(plain(traceback?.join("\n") || message), { className: "error" });
  // First of all: below it there may be screens of the library's source.
  const first = document.createElement("strong");
  first.textContent = `${message}\n\n`;
  if (traceback?.length) element.prepend(first);
  return element;
}
