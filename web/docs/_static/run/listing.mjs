// What stands in the blocks of a page, for those that run many pages (tests/docs).

/** The blocks of a document, this page or another one, as { code, source, line, raises }. */
export function blocksOf(root) {
  return Array.from(root.querySelectorAll(".block"), (element) => ({
    code: element.querySelector("pre").textContent.replace(/\n$/, ""),
    source: element.dataset.source,
    line: Number(element.dataset.line),
    raises: "raises" in element.dataset,
  }));
}
