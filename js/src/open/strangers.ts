/** What is given in place of a file, by its first bytes: pages of servers, pointers of Git LFS. */

/** Bytes that are looked at. */
export const STRANGE = 64;

/**
 * What came in place of a file of tensors; undefined: neither a web page nor a pointer.
 *
 * @param contentType - that of the server, which is believed where it says that this is a page
 */
export function strangerOf(
  head: Uint8Array,
  contentType: string | null = null,
): string | undefined {
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
    ", not like a file of tensors: servers send one to log in, or where they lack the file; if these " +
    'are the elements, give the format "raw"'
  );
}
