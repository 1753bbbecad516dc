// A frame for the HTML of an output. Its sandbox runs no scripts and leads no page anywhere, and its
// styles end at its edge. `allow-same-origin` lets the page measure it.
const STYLE = new URL("./frame.css", import.meta.url).href;

/** An element that shows HTML. */
export function frameOf(html) {
  const frame = document.createElement("iframe");
  frame.title = "output of this block";
  frame.setAttribute("sandbox", "allow-same-origin allow-popups");
  frame.srcdoc =
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>output</title>' +
    `<base target="_blank"><link rel="stylesheet" href="${STYLE}"></head><body>${html}</body></html>`;
  frame.addEventListener("load", () => fit(frame));
  return frame;
}

/** As high as its content, and as dark as the page, whatever the system prefers. */
function fit(frame) {
  const root = frame.contentDocument?.documentElement;
  if (!root) return;
  root.style.colorScheme = getComputedStyle(frame).colorScheme;
  const bar = frame.clientHeight - root.clientHeight; // to scroll sideways
  frame.style.height = `${Math.ceil(root.querySelector("body").offsetHeight) + bar}px`;
}

new MutationObserver(() => {
  for (const frame of document.querySelectorAll(".outputs iframe")) fit(frame);
}).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
