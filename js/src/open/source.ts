import { tagOf } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";

/** @internal Bytes, from any place on or from the start on. */
export interface Source {
  /** Names it in messages. */
  readonly name: string;
  /** Bytes of all of it; undefined where nobody says. */
  readonly size: number | undefined;
  /**
   * "any": reads from any place; "again": from the start, as often as is asked; "once": from the
   * start, once.
   */
  readonly way: "any" | "again" | "once";
  /** The media type that a server gives it. */
  readonly contentType?: string | null;
  /** Why `size` may be wrong, for the message of a file that is not as long as its header says. */
  readonly doubt?: string | undefined;
  /** Makes sure of a size on which all depends; UnsupportedError where it is another. */
  confirmSize?(signal?: AbortSignal): Promise<void>;
  /** The bytes from `start` up to `end` (all that are left, where that is undefined), in chunks. */
  read(
    start: number,
    end: number | undefined,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined>;
  /** Lets go of what is open. */
  close(): void;
}

/** How a URL is asked for. */
export interface FetchOptions {
  /** Headers of requests, e.g. an Authorization. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** How often a request is repeated that failed, or gave no byte; default 4. Bytes start the count again. */
  retries?: number | undefined;
}

/** @internal How a response is compressed, where that can be seen; null: it is not. */
export function encodingOf({ headers }: Response): string | null {
  const encoding = headers.get("content-encoding");
  return encoding === "" || encoding?.toLowerCase() === "identity" ? null : encoding;
}

/** @internal The bytes that a response has; undefined where its length counts compressed ones. */
export function sizeOfResponse(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  if (length === null || !/^\d{1,15}$/.test(length)) return undefined;
  return encodingOf(response) === null ? Number(length) : undefined;
}

/** Memory that a stream of bytes is read into. */
const ROOM = 1 << 20;

/** What is left to read of a stream; of one of bytes into the same memory again and again. */
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
 * @internal The chunks of a stream, each valid until the next one is asked for. The stream is cancelled
 * when that ends, however it ends.
 */
export async function* chunksOf(
  stream: ReadableStream,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = readerOf(stream);
  const stop = () => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", stop);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted(); // which ends the stream as if that were its end
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
