/** One request for a range of a file, and its answer. */
import { cut, DLPackError, UnsupportedError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { Broken } from "./retries.js";
import { type Chunks, chunksOf, encodingOf, type FetchOptions, sizeOfResponse } from "./source.js";

/** An error that may not recur on retry. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Headers that identify a version of a file, if the page may read them. */
export interface Version {
  readonly etag: string | null;
  readonly modified: string | null;
  readonly size: number | undefined;
  /** The one that no other bytes have: a strong ETag or date (RFC 9110, 8.8); null: none. */
  readonly strong: string | null;
}

/** An answer: bytes of a file from `start` on. */
export interface Answer {
  readonly body: ReadableStream;
  readonly start: number;
  /** Where its bytes end; undefined if no header says so. */
  readonly end: number | undefined;
  /** Whether this is a range of the file; otherwise it is all of it. */
  readonly ranges: boolean;
  /** Whether Content-Range says which. Servers of other origins may hide it (CORS). */
  readonly placed: boolean;
  /** Whether Content-Length has the number of bytes. */
  readonly counted: boolean;
  readonly version: Version;
  readonly contentType: string | null;
  /** Why the size may differ from that in `version`. */
  readonly doubt: string | undefined;
}

const EXPOSE =
  "have the server send Access-Control-Expose-Headers: Content-Range, Content-Encoding";

/** Advice for a server that hides its response headers from a page. */
export const HIDDEN = `its server hides response headers from this page: ${EXPOSE}`;

/** A URL in messages: without its query, which may have a password. */
export function nameOf(url: string): string {
  return cut(url.replace(/[?#].*$/s, ""), 500);
}

/** Asks for bytes from `start` up to `end`; `again` without the cache, which may have a part of them. */
export async function ask(
  url: string,
  start: number,
  end: number | undefined,
  options: FetchOptions,
  signal?: AbortSignal,
  again = false,
): Promise<Answer> {
  const name = nameOf(url);
  const range = `bytes=${start}-${end === undefined ? "" : end - 1}`;
  const init: RequestInit = { headers: { ...options.headers, Range: range } };
  if (again) init.cache = "no-store";
  if (signal) init.signal = signal as globalThis.AbortSignal;
  const blocked = watchPolicy(url);
  const response = await fetch(url, init)
    .catch(async (error: unknown) => {
      if ((error as Error)?.name !== "TypeError") throw error;
      await new Promise((done) => setTimeout(done)); // the policy's event comes later
      if (!blocked.by) throw unreachable(url, options, error);
      throw new UnsupportedError(
        `${name}: the Content-Security-Policy of this page blocks it: allow it in ${blocked.by}`,
        { cause: error },
      );
    })
    .finally(blocked.end);
  const { status, statusText, headers, type } = response;
  const body = response.body ?? new Blob([]).stream();
  const refused = (error: Error) => {
    body.cancel().catch(() => {});
    return error;
  };
  const length = sizeOfResponse(response);
  const encoding = encodingOf(response);
  if (encoding !== null && (status === 206 || "Deno" in globalThis)) {
    throw refused(
      new UnsupportedError(
        `${name}: the server sends it compressed (Content-Encoding: ${cut(encoding)}) where a range was ` +
          "asked for: have it send the file as it is, or open the body of a plain fetch()",
        { given: cut(encoding) },
      ),
    );
  }
  const [etag, modified] = [headers.get("etag"), headers.get("last-modified")];
  const counted = length !== undefined;
  /** Says that the body has the bytes up to `end` of a file of `size` bytes. */
  const answer = (end: number | undefined, size: number | undefined, placed = true): Answer => ({
    body,
    counted,
    contentType: headers.get("content-type"),
    start: status === 200 ? 0 : start,
    end,
    ranges: status !== 200,
    placed,
    version: {
      etag: etag?.replace(/^W\//, "") ?? null,
      modified,
      strong: strongOf(etag, modified, headers.get("date")),
      size,
    },
    // Another origin's encoding may be hidden; then the length counts compressed bytes.
    doubt: !placed || (status === 200 && type === "cors" && counted) ? HIDDEN : undefined,
  });
  if (status === 200) return answer(length, length);
  const given = headers.get("content-range");
  if (status === 206) {
    const found = rangeOf(given, start, end, length);
    if (found === null) {
      const sends = given === null ? `${length} bytes` : `"${cut(given)}"`;
      const many = counted && given !== null ? `, in ${length} bytes` : "";
      throw refused(
        new UnsupportedError(
          `${name}: the server was asked for ${range} and says that it sends ${sends}${many}`,
          { given: given && cut(given) },
        ),
      );
    }
    return answer(found.end, found.size, given !== null);
  }
  refused(new Error());
  if (status === 416 && start === 0 && given === "bytes */0") {
    const nothing = { body: new Blob([]).stream(), counted: true, contentType: null };
    return { ...answer(0, 0), ...nothing };
  }
  const what = `${name}: ${status} ${cut(statusText)}`.trim();
  throw PASSING.has(status) ? new Broken(what) : new DLPackError(what, { given: status });
}

/** The validator that is strong: dates are if nothing can change within their second any more. */
function strongOf(etag: string | null, modified: string | null, date: string | null) {
  if (etag !== null && !etag.startsWith("W/")) return etag;
  const age = Date.parse(date ?? "") - Date.parse(modified ?? "");
  return age >= 1000 ? modified : null;
}

/** The end of a range and the file's size; null if it is not the requested range. */
function rangeOf(
  given: string | null,
  start: number,
  end: number | undefined,
  length: number | undefined,
): { end: number | undefined; size: number | undefined } | null {
  if (given === null) {
    if (length === undefined) return { end: undefined, size: undefined };
    const last = start + length;
    if (length === 0 || last > (end ?? last)) return null;
    // For a request of everything from the start, the length is that of the file.
    return { end: last, size: start === 0 && end === undefined ? length : undefined };
  }
  const [, from, to, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(given) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (first !== start || !(last >= first)) return null;
  if (length !== undefined && length !== last - first + 1) return null;
  if (total === "*") return { end: last + 1, size: undefined };
  return Number(total) > last ? { end: last + 1, size: Number(total) } : null;
}

/** Notes the directive of the page's policy by which it blocks requests for a URL. */
function watchPolicy(url: string): { by: string; end: () => void } {
  const type = "securitypolicyviolation";
  const { origin, href } = new URL(url, globalThis.location?.href);
  const note = ({ blockedURI, effectiveDirective }: SecurityPolicyViolationEvent) => {
    if (blockedURI === href || blockedURI === origin) found.by = effectiveDirective;
  };
  const found = { by: "", end: () => globalThis.removeEventListener?.(type, note) };
  globalThis.addEventListener?.(type, note);
  return found;
}

/** The error for a request without an answer; browsers do not report the cause. */
function unreachable(url: string, { headers }: FetchOptions, error: unknown): Broken {
  const { message, cause } = error as Error;
  const why = (cause as Error | undefined)?.message ?? message;
  const origin = globalThis.location?.origin;
  let help = "";
  if (origin !== undefined) {
    // Chromium refuses an encoding that it did not ask for.
    help =
      ", or compresses the file where a range was asked for: open the body of a plain fetch() then";
    if (new URL(url, location.href).origin !== origin) {
      const more = Object.keys(headers ?? {}).map((name) => `${cut(name)}, `);
      help +=
        `; or it does not allow this page: have it send Access-Control-Allow-Origin: ${origin} and ` +
        `Access-Control-Allow-Headers: ${more.join("")}Range, or copy the file to ${origin}`;
    }
  }
  return new Broken(`${cut(why, 300)}: the server cannot be reached${help}`, { cause: error });
}

/**
 * The bytes of an answer from `at` on, as many as its headers say, or else up to `most`. Throws
 * UnsupportedError for more, Broken for less.
 */
export async function* bytesOf(
  answer: Answer,
  at: number,
  most: number | undefined,
  name: string,
  signal?: AbortSignal,
): Chunks {
  const { body, start, end = most } = answer;
  let place = start;
  for await (const chunk of chunksOf(body, signal)) {
    const skip = Math.max(at - place, 0);
    place += chunk.length;
    if (end !== undefined && place > end) {
      throw new UnsupportedError(
        `${name}: the server sends more than the ${end - start} bytes from byte ${start} on that it was ` +
          "asked for and announced: it ignores the range, or compresses the file; open the " +
          "body of a plain fetch() instead, which needs no ranges",
      );
    }
    if (skip < chunk.length) yield chunk.subarray(skip);
  }
  if (answer.end !== undefined && place < answer.end) {
    throw new Broken(`the answer ended after byte ${place} of ${answer.end}`);
  }
}
