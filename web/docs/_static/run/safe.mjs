// HTML and Markdown of outputs, which others may have written, before the page shows it. Two
// walls, either of which holds alone: DOMPurify here, and in frame.mjs a frame without scripts.
import { DOMPurify } from "../../../libraries/blocks.mjs";

/** What Markdown may become. It stands in the page itself: no styles, names, classes or forms. */
const TEXT = {
  ALLOWED_TAGS: (
    "a b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img kbd li " +
    "mark ol p pre s small span strong sub summary sup table tbody td tfoot th thead tr u ul"
  ).split(" "),
  ALLOWED_ATTR: "align alt colspan height href open rowspan src start title width".split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** What outputs may be in their frame: styles and drawings, too. */
const FRAMED = {
  FORBID_TAGS: ["form", "input", "button", "select", "option", "textarea", "dialog"],
  FORBID_ATTR: ["accesskey", "autofocus", "contenteditable", "popover", "popovertarget"],
  FORCE_BODY: true, // or styles at the beginning are lost
};

/** What people miss where it is left out. */
const MISSED = ["script", "iframe", "object", "embed", "form", "input", "button", "select"];

const purify = DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (["a", "area"].includes(node.localName)) leadOutside(node);
  // Images are what is in the file: no server hears of it, not even ours.
  const source = node.localName === "img" ? node.getAttribute("src") : null;
  if (source && !/^data:image\//i.test(source)) node.removeAttribute("src");
});

/** A link goes to another tab, which knows nothing of this page, or nowhere. */
function leadOutside(link) {
  const there = link.getAttribute("href") ?? link.getAttribute("xlink:href") ?? "";
  link.removeAttribute("xlink:href");
  if (/^(https?:|mailto:)/i.test(there.trim())) {
    link.setAttribute("href", there);
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer");
  } else {
    link.removeAttribute("href"); // it would lead this page somewhere else
  }
}

/** HTML that stands in the page, as a DocumentFragment. */
export function textOf(source) {
  return purify.sanitize(source, TEXT);
}

/** HTML for a frame, and the names of what was left out of it. */
export function framedOf(source) {
  const html = purify.sanitize(source, FRAMED);
  const names = purify.removed.map(({ element }) => element?.localName);
  return { html, missed: MISSED.filter((name) => names.includes(name)) };
}

/** Has the links of an element lead outside. */
export function guard(element) {
  for (const link of element.querySelectorAll("a")) leadOutside(link);
  return element;
}
