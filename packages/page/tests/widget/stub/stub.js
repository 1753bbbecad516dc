// A host that shows a widget, without a kernel: the test takes what the page sends (`taken`), and
// gives what the kernel sends (`give`), both with buffers as base64.
import widget from "./_widget.js";

const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

/** Bytes amid a message, as Jupyter's clients give them. */
function viewOf(text) {
  const bytes = bytesOf(text);
  const message = new Uint8Array(bytes.length + 24).fill(255);
  message.set(bytes, 16);
  return new DataView(message.buffer, 16, bytes.length);
}

/** The forms in which hosts give buffers. */
const FORMS = {
  // JupyterLab, Notebook, VS Code, marimo
  views: (buffers) => buffers.map(viewOf),
  // Colab, where a message without buffers has no list
  bytes: (buffers) => (buffers.length > 0 ? buffers.map(bytesOf) : undefined),
  buffers: (buffers) => buffers.map((text) => bytesOf(text).buffer),
  dropped: () => undefined,
};

const given = FORMS[location.hash.slice(1)];
const listeners = new Set();
let sent = [];

function textOf(buffer) {
  const bytes = ArrayBuffer.isView(buffer)
    ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    : new Uint8Array(buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

const model = {
  // A host may send it as JSON, and later.
  send: (content, _callbacks, buffers = []) =>
    sent.push({ content: JSON.stringify(content), buffers: buffers.map(textOf) }),
  on: (_type, listener) => listeners.add(listener),
};

globalThis.taken = () => {
  const all = sent;
  sent = [];
  return all;
};
globalThis.give = (content, buffers) => {
  for (const listener of listeners) listener(JSON.parse(content), given(buffers));
};

// No host here has off(); Colab's form comes without initialize().
const page = widget();
const end = given === FORMS.bytes ? undefined : await page.initialize({ model });
const remove = await page.render({ model, el: document.querySelector("#view") });
globalThis.remove = async () => {
  await remove();
  await end?.();
};

/** What the policy blocks, tried by the page and not by the debugger, which may do more. */
globalThis.blocked = async () => {
  await new Promise((wake) => setTimeout(wake));
  const found = [];
  for (const trial of [
    () => new Function("return 1")(),
    () => (document.querySelector("#view").innerHTML = "<b>"),
  ]) {
    try {
      trial();
    } catch (error) {
      found.push(error.name);
    }
  }
  return found;
};
