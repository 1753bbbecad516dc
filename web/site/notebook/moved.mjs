// Links to the notebook page that was here lead to the same notebook in JupyterLite. Those that
// contain a notebook offer it as a file: nothing of it is shown or run.
const MOST = 4 << 20; // bytes of a notebook: a small link must not unpack to an endless one
const TOUR = "tour.ipynb";
const { hash } = location;

async function inflate(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const parts = [];
  let length = 0;
  for await (const part of stream) {
    length += part.length;
    if (length > MOST) throw new RangeError(`more than ${MOST} bytes`);
    parts.push(part);
  }
  return await new Blob(parts).text();
}

/** A notebook file of the cells of a link: [kind, source] each, "c" for code. */
function book(cells) {
  const made = cells.map(([kind, source]) =>
    kind === "c"
      ? { cell_type: "code", metadata: {}, source, execution_count: null, outputs: [] }
      : { cell_type: "markdown", metadata: {}, source },
  );
  const kernelspec = { display_name: "Python (Pyodide)", language: "python", name: "python" };
  return JSON.stringify({ cells: made, metadata: { kernelspec }, nbformat: 4, nbformat_minor: 4 });
}

async function offer(text) {
  const { name, cells } = JSON.parse(await inflate(text));
  const link = document.querySelector("#file");
  link.href = URL.createObjectURL(new Blob([book(cells)], { type: "application/x-ipynb+json" }));
  link.download = link.textContent = name || "shared.ipynb";
  document.querySelector("#shared").hidden = false;
}

if (hash.startsWith("#nb=")) {
  await offer(hash.slice(4)).catch(() => {
    document.querySelector("#broken").hidden = false;
  });
} else {
  const [, page] = /^#(docs\/[\w/-]+):\d+$/.exec(hash) ?? [];
  const [, example] = /^#(\w+)$/.exec(hash) ?? [];
  const path = (page ?? example) ? `${page ?? example}.ipynb` : TOUR;
  const there = await fetch(`../jupyterlite/files/${path}`, { method: "HEAD" });
  location.replace(`../jupyterlite/lab/index.html?path=${there.ok ? path : TOUR}`);
}
