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

// What a page keeps of a block's output: the last lines, of so many characters, and outputs.
const LINES = 10_000;
const CHARACTERS = 700_000; // laid out in some tenths of a second
const OUTPUTS = 1_000;
const GONE = { output_type: "stream", name: "stderr", text: "[Earlier output is not kept.]\n" };

const names = new WeakMap(); // output -> its display id

/** An element for one output, which may be the one that was in its place `before`. */
export function outputElement(output, before) {
  switch (output.output_type) {
    case "stream":
      // HTML would make lines of what is left of these.
      return Object.assign(plain(joined(output.text).replaceAll("\r", "")), {
        className: `stream ${output.name}`,
      });
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
  if (type === "stream") {
    const more = last?.output_type === "stream" && last.name === name && last !== GONE;
    // Reading what was there before, of each message, would take most of the time.
    let whole = more ? joined(last.text) + text : text;
    if (last?.returned || text.includes("\r")) whole = overwritten(whole);
    if (whole.length > 2 * CHARACTERS) whole = ending(whole);
    const returned = text.endsWith("\r");
    outputs.splice(more ? -1 : outputs.length, 1, {
      output_type: type,
      name,
      text: whole,
      returned,
    });
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
  const over = outputs.length - OUTPUTS;
  if (over > 0) forget(outputs.splice(0, over + 1, GONE));
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
const overwritten = (text) =>
  text.replace(/[^\n]+/g, (line) => {
    let end = line.length;
    while (line[end - 1] === "\r") end--;
    const shown = line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
    return end < line.length ? `${shown}\r` : shown;
  });

/** The end of a text, as much of it as a page shows. */
function ending(text) {
  let from = Math.max(0, text.length - CHARACTERS);
  let at = text.endsWith("\n") ? text.length - 1 : text.length;
  let lines = 0;
  for (; lines < LINES && at > from; lines++) at = text.lastIndexOf("\n", at - 1);
  if (lines === LINES) from = Math.max(from, at + 1);
  return from ? GONE.text + text.slice(from) : text;
}

function plain(text) {
  const element = document.createElement("pre");
  const colours = new AnsiUp();
  colours.use_classes = true;
  element.innerHTML = colours.ansi_to_html(ending(text)); // escapes all else
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
