import { tagOf } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";

/** Bytes as they come; each chunk is valid until the next is requested. */
export type Chunks = AsyncGenerator<Uint8Array, void, undefined>;

/** @internal Bytes, read from any position or from the start. */
export interface Source {
  /** Names it in messages. */
  readonly name: string;
  /** The size in bytes; undefined if unknown. */
  readonly size: number | undefined;
  /**
   * "any": reads from any position; "again": from the start, any number of times; "once": from the
   * start, once.
   */
  readonly way: "any" | "again" | "once";
  /** Whether each read is a request. */
  readonly remote?: boolean;
  /** Whether answers may be of different versions of the file: not all had a strong validator. */
  readonly unversioned?: boolean;
  /** If the first request asked only for the start of the file: for how many bytes. */
  readonly begun?: number | undefined;
  /** The media type from the server. */
  readonly contentType?: string | null;
  /** Why `size` may be wrong, for the message about a file of the wrong length. */
  readonly doubt?: string | undefined;
  /** The names of files beside it, if they are known. */
  readonly beside?: readonly string[];
  /** A file beside it. */
  sibling?(name: string, signal?: AbortSignal): Promise<Source>;
  /** Verifies the size before it is relied on; UnsupportedError if it differs. */
  confirmSize?(signal?: AbortSignal): Promise<void>;
  /** The bytes from `start` up to `end` (undefined: to the end), in chunks. */
  read(start: number, end: number | undefined, signal?: AbortSignal): Chunks;
  /** Closes what is open. */
  close(): void;
}

/** Options of requests for a URL. */
export interface FetchOptions {
  /** Headers of requests, e.g. an Authorization. */
  headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Retries of a request that failed, or returned no byte; default 4. Progress restarts the count,
   * for 16 times as many in all. Each waits twice as long as the one before: 0.1 to 5 seconds.
   */
  retries?: number | undefined;
}

/** @internal A response's compression, if visible; null: none. */
export function encodingOf({ headers }: Response): string | null {
  const encoding = headers.get("content-encoding");
  return encoding === "" || encoding?.toLowerCase() === "identity" ? null : encoding;
}

/** @internal The length of a response; undefined if its header counts compressed bytes. */
export function sizeOfResponse(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  if (length === null || !/^\d{1,15}$/.test(length)) return undefined;
  return encodingOf(response) === null ? Number(length) : undefined;
}

/** Memory that a stream of bytes is read into. */
const ROOM = 1 << 20;

/** The rest of a stream; a byte stream is read into the same memory each time. */
function readerOf(stream: ReadableStream) {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = stream.getReader({ mode: "byob" });
  } catch {
    return stream.getReader();
  }
  let memory = new ArrayBuffer(ROOM);
  return {
    async read() {
      const { done, value } = await reader.read(new Uint8Array(memory));
      if (value) memory = value.buffer;
      return { done, value };
    },
    cancel: (reason?: unknown) => reader.cancel(reason),
  };
}

/**
 * @internal The chunks of a stream, each valid until the next one is requested. The stream is
 * cancelled at the end of the iteration.
 */
export async function* chunksOf(stream: ReadableStream, signal?: AbortSignal): Chunks {
  const reader = readerOf(stream);
  const stop = () => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", stop);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted(); // this ends the stream like its regular end
      if (done) return;
      if (!ArrayBuffer.isView(value)) {
        throw new TypeError(`the stream gives ${tagOf(value)}, and not bytes`);
      }
      if (value.byteLength > 0) {
        yield new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

export type Signals = readonly (AbortSignal | undefined)[];

/** A signal that is aborted with any of these. */
export function anyOf(...signals: Signals): AbortSignal {
  const given = signals.filter((each) => each !== undefined);
  return globalThis.AbortSignal.any(given as globalThis.AbortSignal[]);
}
