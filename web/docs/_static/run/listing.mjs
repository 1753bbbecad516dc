// What stands in the blocks of a page, for the notebook page and for tests/docs.

/** The blocks of a document, this page or another one, as { code, source, line, raises }. */
export function blocksOf(root) {
  return Array.from(root.querySelectorAll(".block"), (element) => ({
    code: codeOf(element),
    source: element.dataset.source,
    line: Number(element.dataset.line),
    raises: "raises" in element.dataset,
  }));
}

/** The cells of a notebook with these blocks, below their headings and a link to the page. */
export function cellsOf(root, address) {
  const title = nameOf(root.querySelector("h1"));
  const cells = [{ type: "markdown", source: `# ${title}\nFrom [the documentation](${address}).` }];
  let heading = "";
  for (const element of root.querySelectorAll("[role=main] :is(h2, h3, .block)")) {
    if (!element.matches(".block")) heading = `## ${nameOf(element)}`;
    else {
      if (heading) cells.push({ type: "markdown", source: heading });
      heading = "";
      cells.push({ type: "code", source: codeOf(element) });
    }
  }
  return cells;
}

/** Without the link of a heading. */
const nameOf = (heading) => heading.textContent.replace(/#$/, "");
const codeOf = (block) => block.querySelector("pre").textContent.replace(/\n$/, "");
