// Colours a Python listing: comments, strings, keywords, numbers. Enough for reading.

const TOKENS =
  /(?<comment>#.*)|(?<string>"""[\s\S]*?"""|f?"(?:[^"\\\n]|\\.)*")|(?<keyword>\b(?:and|as|async|await|def|else|finally|for|from|if|import|in|not|or|return|try|while|with|yield)\b)|(?<number>\b\d[\d.e-]*\b)/g;

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
