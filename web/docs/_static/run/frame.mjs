// A frame for the HTML of an output. In it there are no scripts, by its sandbox and by its policy;
// its styles end at its edge, its names are its own, and it cannot lead the page, or itself,
// anywhere. `allow-same-origin` lets the page measure it, which without scripts gives away nothing.
import { framedOf } from "./safe.mjs";

const SANDBOX = "allow-same-origin allow-popups allow-popups-to-escape-sandbox";
const STYLE = new URL("./frame.css", import.meta.url).href;
const POLICY = `default-src 'none'; style-src 'unsafe-inline' ${STYLE}; img-src data:`;
const FITS = 60; // times that a frame takes the height of its content: styles can make that endless

const parts = new WeakMap(); // element of frameOf() -> { frame, note }
const fits = new WeakMap(); // frame -> what gives it its content's height
const measured = new ResizeObserver((entries) => {
  // Not at once: a height that is set while heights are observed is an error.
  requestAnimationFrame(() => {
    for (const { target } of entries) fits.get(target.ownerDocument.defaultView?.frameElement)?.();
  });
});

/** An element that shows HTML in a frame. */
export function frameOf(source) {
  const element = document.createElement("div");
  element.className = "rich";
  const frame = document.createElement("iframe");
  frame.title = "output of this block";
  frame.setAttribute("sandbox", SANDBOX);
  frame.referrerPolicy = "no-referrer";
  frame.addEventListener("load", () => loaded(element));
  const note = document.createElement("p");
  note.className = "note";
  element.append(frame, note);
  parts.set(element, { frame, note });
  fill(element, source);
  return element;
}

/** Shows other HTML in the element of frameOf(), without the flicker of a new frame. */
export function reframe(element, source) {
  if (!parts.get(element)?.frame.parentElement) return false;
  fill(element, source);
  return true;
}

function fill(element, source) {
  const { frame, note } = parts.get(element);
  const { html, missed } = framedOf(source);
  let left = FITS;
  fits.set(frame, () => {
    if (left-- > 0) fit(frame);
  });
  const inside = frame.isConnected && whatIsIn(frame);
  if (inside) inside.innerHTML = html;
  else frame.srcdoc = pageOf(html);
  note.hidden = missed.length === 0;
  note.textContent = `Left out: ${missed.join(", ")}. Outputs run no scripts and have no forms here.`;
}

const pageOf = (html) =>
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>output</title>' +
  `<meta http-equiv="Content-Security-Policy" content="${POLICY}">` +
  `<link rel="stylesheet" href="${STYLE}"></head><body>${html}</body></html>`;

/** The body of what we put there; null if it is not there yet, or something else is. */
function whatIsIn(frame) {
  const inside = frame.contentDocument;
  return inside?.URL === "about:srcdoc" && inside.readyState === "complete" ? inside.body : null;
}

function loaded(element) {
  const { frame, note } = parts.get(element);
  const body = whatIsIn(frame);
  if (body) {
    dress(frame);
    measured.observe(body);
    fits.get(frame)();
    return;
  }
  frame.remove();
  note.hidden = false;
  note.textContent = "This output was about to lead its frame to another page: it was taken away.";
}

/** Light or dark as the page is here, whatever the system prefers: a reader may choose. */
function dress(frame) {
  const body = whatIsIn(frame);
  if (body) body.parentElement.style.colorScheme = getComputedStyle(frame).colorScheme;
}

new MutationObserver(() => {
  for (const frame of document.querySelectorAll(".rich iframe")) dress(frame);
}).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });

function fit(frame) {
  const body = whatIsIn(frame);
  if (!body) return;
  const root = body.parentElement;
  const bar = Math.max(0, frame.clientHeight - root.clientHeight); // to scroll sideways
  const height = Math.ceil(body.getBoundingClientRect().height) + (bar < 40 ? bar : 0);
  frame.style.height = `${Math.min(height, 4000)}px`; // the style sheet has the limit
}
