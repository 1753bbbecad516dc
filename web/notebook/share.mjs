// A notebook in a link: its cells without outputs, compressed, in the part of the address that no
// server hears of.
import { parse } from "./ipynb.mjs";

const MARK = "#nb=";
const MOST = 4 << 20; // bytes of a notebook: a small link must not unpack to an endless one

export const isShared = (hash) => hash.startsWith(MARK);

/** What stands after the `#` of a link. */
export async function toLink(name, cells) {
  const written = cells.map(({ type, source }) => [type === "code" ? "c" : "t", source]);
  const text = JSON.stringify({ name, cells: written });
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return MARK + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Name and cells of a link; an error says that it is broken. */
export async function fromLink(hash) {
  let shared;
  try {
    const binary = atob(hash.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (each) => each.charCodeAt(0));
    shared = JSON.parse(await inflate(bytes));
    if (typeof shared.name !== "string" || !Array.isArray(shared.cells))
      throw new Error("no cells");
  } catch (error) {
    const why = error instanceof RangeError ? error.message : "part of it is missing or changed";
    throw new Error(`The link is broken: ${why}. Ask for it again, or for the .ipynb file.`, {
      cause: error,
    });
  }
  const name = shared.name.slice(0, 100) || "shared.ipynb";
  const cells = shared.cells.map((cell) => ({
    cell_type: cell?.[0] === "c" ? "code" : "markdown",
    source: cell?.[1],
  }));
  return { name, cells: parse(JSON.stringify({ nbformat: 4, cells }), "the link's notebook") };
}

async function inflate(bytes) {
  const reader = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw"))
    .getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MOST) {
      await reader.cancel();
      throw new RangeError(`it holds more than ${MOST >> 20} MB`);
    }
    parts.push(value);
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(await new Blob(parts).arrayBuffer());
}
