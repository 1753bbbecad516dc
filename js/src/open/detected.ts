/** Detects wrong files by their first bytes: web pages, pointers of Git LFS, gzip. */

/** Bytes to check. */
export const HEAD_BYTES = 64;

const GZIP = [0x1f, 0x8b, 8];
const RAW = 'if these are the elements, give the format "raw"';

/**
 * Describes what is in place of a file of tensors; undefined if it is nothing known.
 *
 * @param contentType - the server's; trusted if it is that of a web page
 */
export function detectWrongFile(
  head: Uint8Array,
  contentType: string | null = null,
): string | undefined {
  if (GZIP.every((byte, i) => head[i] === byte)) {
    return (
      "it is compressed with gzip, and no server says so (Content-Encoding): decompress it first, " +
      `blob.stream().pipeThrough(new DecompressionStream("gzip")); ${RAW}`
    );
  }
  const text = new TextDecoder().decode(head).trimStart().toLowerCase();
  if (text.startsWith("version https://git-lfs")) {
    return "it is a pointer of Git LFS, not the file: run `git lfs pull`, or use the URL of the file itself";
  }
  const page = /^<(!doctype html|html)\b/.test(text);
  if (!page && !/^text\/html\b/i.test(contentType ?? "")) return undefined;
  return (
    (page
      ? "it begins like a web page (HTML)"
      : "the server says that it is a web page (text/html)") +
    `, not like a file of tensors: servers send one to log in, or where they lack the file; ${RAW}`
  );
}
