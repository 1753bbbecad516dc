// Colours a Python listing: comments, strings, keywords, numbers. Enough for reading.

const KEYWORDS =
  "and as async await def else finally for from if import in not or return try while with yield";

const TOKENS = new RegExp(
  [
    /(?<comment>#.*)/.source,
    /(?<string>"""[\s\S]*?"""|f?"(?:[^"\\\n]|\\.)*")/.source,
    `(?<keyword>\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b)`,
    /(?<number>\b\d[\d.e-]*\b)/.source,
  ].join("|"),
  "g",
);

/** Fills `element` with `source`, each token in a span with its kind as the class. */
export function highlight(element, source) {
  element.replaceChildren();
  let end = 0;
  for (const match of source.matchAll(TOKENS)) {
    const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = match[0];
    element.append(source.slice(end, match.index), span);
    end = match.index + match[0].length;
  }
  element.append(source.slice(end));
}
