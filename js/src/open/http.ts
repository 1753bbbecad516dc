/**
 * A file behind a URL. The first request asks for all of it as a range, so that one answer says
 * whether there are ranges, how large the file is and which version: what is read from its start on,
 * as an array is, takes no other request. A read that breaks off goes on where it broke off.
 *
 * Every later answer must be of the same version, by its ETag, date and size. No If-Range is sent:
 * where the file is another origin's, that header would have to be allowed first.
 */
import { DLPackError, UnsupportedError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { chunksOf, type FetchOptions, type Source, sizeOfResponse } from "./source.js";

const RETRIES = 4;
/** What may go better the next time. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/** What tells one version of a file from another, where the server lets it be seen. */
interface Version {
  readonly etag: string | null;
  readonly modified: string | null;
  readonly size: number | undefined;
}

/** An answer, and where its body begins. */
interface Answer {
  readonly body: ReadableStream | null;
  readonly start: number;
  readonly ranges: boolean;
  readonly version: Version;
}

export class HttpSource implements Source {
  readonly name: string;
  readonly way: "any" | "again";
  readonly size: number | undefined;
  readonly #url: string;
  readonly #options: FetchOptions;
  readonly #version: Version;
  /** The first answer, until it is read. */
  #first: Answer | null;

  private constructor(url: string, options: FetchOptions, first: Answer) {
    this.name = url.replace(/[?#].*$/s, "");
    this.#url = url;
    this.#options = options;
    this.#first = first;
    this.#version = first.version;
    this.size = first.version.size;
    this.way = first.ranges ? "any" : "again";
  }

  static async open(url: string, options: FetchOptions, signal?: AbortSignal): Promise<Source> {
    const first = await patiently(options, signal, () => ask(url, 0, undefined, options, signal));
    return new HttpSource(url, options, first);
  }

  async *read(
    start: number,
    end: number | undefined,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const stop = end ?? this.size;
    const tries = new Tries(this.#options);
    for (let at = start; stop === undefined || at < stop; ) {
      try {
        const answer = await this.#answer(at, stop, tries.count > 0, signal);
        // A server without ranges sends what was there before, too.
        let skip = at - answer.start;
        for await (const chunk of chunksOf(answer.body as ReadableStream, signal)) {
          if (skip >= chunk.length) {
            skip -= chunk.length;
            continue;
          }
          const from = skip;
          skip = 0;
          // What a server sends beyond what was asked for is not read.
          const count = Math.min(chunk.length - from, (stop ?? Number.POSITIVE_INFINITY) - at);
          at += count;
          yield chunk.subarray(from, from + count);
          if (at === stop) return;
        }
        if (stop === undefined) return;
        if (at < stop) throw new Broken(`the answer ended after byte ${at} of ${stop}`);
      } catch (error) {
        await tries.again(error, this.name, signal);
      }
    }
  }

  close(): void {
    this.#first?.body?.cancel().catch(() => {});
    this.#first = null;
  }

  /** An answer that begins at `start`, or before. */
  async #answer(
    start: number,
    end: number | undefined,
    again: boolean,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const first = this.#first;
    this.#first = null;
    if (first !== null) {
      if (start === 0 || !first.ranges) return first;
      first.body?.cancel().catch(() => {});
    }
    const answer = await ask(this.#url, start, end, this.#options, signal, again);
    const { version } = answer;
    const changed = (["etag", "modified", "size"] as const).find(
      (fact) => version[fact] !== this.#version[fact] && version[fact] != null,
    );
    if (changed === undefined && (answer.ranges || this.way === "again")) return answer;
    answer.body?.cancel().catch(() => {});
    throw new UnsupportedError(
      changed === undefined
        ? `${this.name}: the server has no ranges any more: open it again`
        : `${this.name} changed while it was read (${changed}: ${this.#version[changed]}, then ` +
            `${version[changed]}): open it again`,
      { given: changed && version[changed], needed: changed && this.#version[changed] },
    );
  }
}

/** A connection that was lost, or a server that cannot just now. */
class Broken extends DLPackError {}

/** How often one read was taken up again. */
class Tries {
  count = 0;
  readonly #most: number;

  constructor({ retries = RETRIES }: FetchOptions) {
    this.#most = retries;
  }

  /** Waits a moment, twice as long each time; throws what is no passing matter, or too much. */
  async again(error: unknown, name: string, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    // What fetch() and its bodies throw where the network failed; all else here has other classes.
    const passing = error instanceof Broken || (error as Error)?.name === "TypeError";
    if (!passing) throw error;
    if (this.count++ >= this.#most) {
      const { message } = error as Error;
      throw new DLPackError(`${name} could not be read (${message}), after ${this.count} tries`, {
        cause: error,
      });
    }
    if (this.count > 1) await pause(2 ** this.count * 50, signal);
  }
}

async function patiently<R>(
  options: FetchOptions,
  signal: AbortSignal | undefined,
  request: () => Promise<R>,
): Promise<R> {
  const tries = new Tries(options);
  for (;;) {
    try {
      return await request();
    } catch (error) {
      await tries.again(error, "the URL", signal);
    }
  }
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const stop = () => {
      clearTimeout(timer);
      fail(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      done();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** One request for bytes from `start` up to `end`. */
async function ask(
  url: string,
  start: number,
  end: number | undefined,
  options: FetchOptions,
  signal?: AbortSignal,
  again = false,
): Promise<Answer> {
  const range = `bytes=${start}-${end === undefined ? "" : end - 1}`;
  const init: RequestInit = { headers: { ...options.headers, Range: range } };
  // What a cache has of an answer that broke off is not to stand for what the server has now.
  if (again) init.cache = "no-store";
  if (signal) init.signal = signal as globalThis.AbortSignal;
  const response = await fetch(url, init);
  const { status, statusText, headers, body } = response;
  const size = sizeOfResponse(response);
  const encoding = headers.get("content-encoding");
  if ("Deno" in globalThis && encoding !== null && encoding !== "identity") {
    body?.cancel().catch(() => {});
    throw new UnsupportedError(
      `${url}: the server sends it encoded (${encoding}) where a range was asked for, which Deno does ` +
        "not decode: open(await fetch(url)), or have the server send it as it is",
      { given: encoding },
    );
  }
  const told = { etag: headers.get("etag"), modified: headers.get("last-modified") };
  const empty = /^bytes \*\/0$/.test(headers.get("content-range") ?? "");
  if (status === 206) {
    const found = rangeOf(headers.get("content-range"), start, size);
    if (found !== null)
      return { body, start, ranges: true, version: { ...told, size: found.size } };
    body?.cancel().catch(() => {});
    throw new UnsupportedError(
      `${url}: the server was asked for ${range} and says that it sends ` +
        `"${headers.get("content-range")}"`,
    );
  }
  if (status === 200) return { body, start: 0, ranges: false, version: { ...told, size } };
  body?.cancel().catch(() => {});
  if (status === 416 && start === 0 && empty) {
    return { body: new Blob([]).stream(), start, ranges: true, version: { ...told, size: 0 } };
  }
  const what = `${url}: ${status} ${statusText}`.trim();
  throw PASSING.has(status) ? new Broken(what) : new DLPackError(what, { given: status });
}

/** What a Content-Range says of the file's size; null where it is not what was asked for. */
function rangeOf(
  given: string | null,
  start: number,
  length: number | undefined,
): { size: number | undefined } | null {
  // Another origin may keep it to itself; of its first answer the length is that of the file.
  if (given === null) return { size: start === 0 ? length : undefined };
  const [, from, to, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(given) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (first !== start || !(last >= first)) return null;
  if (length !== undefined && length !== last - first + 1) return null;
  if (total === "*") return { size: undefined };
  return Number(total) > last ? { size: Number(total) } : null;
}
