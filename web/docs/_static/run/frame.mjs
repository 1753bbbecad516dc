// A frame for the HTML of an output. Its sandbox runs no scripts and leads no page anywhere, and its
// styles end at its edge. `allow-same-origin` lets the page measure it. Pages that its links open are
// outside of the sandbox: browsers block isolated pages, as this site's are, in one.
const STYLE = new URL("./frame.css", import.meta.url).href;

/** An element that shows HTML. */
export function frameOf(html) {
  const frame = document.createElement("iframe");
  frame.title = "output of this block";
  frame.setAttribute("sandbox", "allow-same-origin allow-popups allow-popups-to-escape-sandbox");
  frame.srcdoc =
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>output</title>' +
    `<base target="_blank"><link rel="stylesheet" href="${STYLE}"></head><body>${html}</body></html>`;
  frame.addEventListener("load", () => {
    const body = frame.contentDocument?.body;
    const sizes = new ResizeObserver(() => fit(frame) || sizes.disconnect());
    if (body) sizes.observe(body);
  });
  return frame;
}

/** As high as its content, and as dark as the page, whatever the system prefers; false if content is as high as the frame. */
function fit(frame) {
  const root = frame.contentDocument?.documentElement;
  if (!root) return false;
  root.style.colorScheme = getComputedStyle(frame).colorScheme;
  const bar = frame.clientHeight - root.clientHeight; // to scroll sideways
  const height = () => Math.ceil(root.querySelector("body").offsetHeight);
  const needed = height();
  frame.style.height = `${needed + bar}px`;
  return height() === needed;
}

new MutationObserver(() => {
  for (const frame of document.querySelectorAll(".outputs iframe")) fit(frame);
}).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
