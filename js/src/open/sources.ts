/** Where bytes come from: memory, a Blob, a file of OPFS, a stream; http.ts has URLs. */
import { cut, tagOf, textOf, UnsupportedError } from "../core/errors.js";
import type {
  AbortSignal,
  Blob as AnyBlob,
  FileSystemDirectoryHandle as AnyDirectoryHandle,
  FileSystemFileHandle as AnyFileHandle,
  ReadableStream as AnyReadableStream,
  Response as AnyResponse,
  URL as AnyURL,
} from "../core/globals.js";
import { abortable } from "../exchange/produce.js";
import { httpSource } from "./http.js";
import { nameOf } from "./request.js";
import { chunksOf, type FetchOptions, type Source, sizeOfResponse } from "./source.js";

/** A file of the origin's own file system, opened by a worker: the members used here. */
export interface SyncAccessHandle {
  getSize(): number;
  read(buffer: Uint8Array, options?: { at?: number }): number;
}

/** The sources that `open` reads from. */
export type OpenSource =
  | string
  | AnyURL
  | AnyBlob
  | AnyFileHandle
  | AnyDirectoryHandle
  | Iterable<AnyBlob & { readonly name: string }>
  | SyncAccessHandle
  | AnyResponse
  | AnyReadableStream
  | ArrayBufferLike
  | ArrayBufferView;

/** Bytes that are kept of a source of unknown length. */
const MOST = 1 << 29;

/** Bytes of a chunk of a source that has everything at once. */
const CHUNK = 4 << 20;

/**
 * @internal The source for a user's argument; TypeError for anything else. `isPart` says whether only
 * some of the bytes of a file of that name are needed.
 */
export async function sourceOf(
  given: OpenSource,
  options: FetchOptions,
  isPart: (name: string) => boolean,
  signal?: AbortSignal,
): Promise<Source> {
  const url = tagOf(given) === "[object URL]" ? (given as AnyURL).href : given;
  if (typeof url === "string") {
    const [scheme] = /^(?:data|blob):/.exec(url) ?? [];
    if (scheme === undefined) return httpSource(url, options, isPart(nameOf(url)), signal);
    // Data already in this program, as a Blob.
    const response = await fetch(url, signal ? { signal: signal as globalThis.AbortSignal } : {});
    return blobSource(await response.blob(), `the ${scheme} URL`);
  }
  if (ArrayBuffer.isView(given)) return arraySource(given);
  switch (tagOf(given)) {
    case "[object ArrayBuffer]":
    case "[object SharedArrayBuffer]":
      return arraySource(new Uint8Array(given as ArrayBuffer));
    case "[object Blob]":
    case "[object File]":
      return blobSource(given as Blob);
    case "[object FileSystemFileHandle]": {
      const handle = given as FileSystemFileHandle;
      return fileSource(handle.name, () => handle.getFile(), signal);
    }
    case "[object FileSystemDirectoryHandle]":
      return folderSource(given as FileSystemDirectoryHandle, signal);
    case "[object FileList]":
    case "[object Array]": {
      const files = [...(given as Iterable<File>)];
      if (files.length > 0 && files.every((file) => tagOf(file) === "[object File]")) {
        return listSource(files);
      }
      break;
    }
    case "[object Response]":
      return streamOfResponse(given as Response);
    case "[object ReadableStream]":
      return streamSource(given as ReadableStream, "the stream");
  }
  const { getSize, read } = Object(given) as Partial<SyncAccessHandle>;
  if (typeof getSize === "function" && typeof read === "function") {
    return handleSource(given as SyncAccessHandle);
  }
  throw new TypeError(
    "open() takes a URL, File, Blob, file handle, Response, ReadableStream, ArrayBuffer or typed " +
      `array, and the files or the directory handle of a sharded model, not ${tagOf(given)}`,
  );
}

async function fileSource(name: string, open: () => Promise<File>, signal?: AbortSignal) {
  const file = open().catch((cause: unknown) => {
    throw new UnsupportedError(`${cut(name)} cannot be opened (${textOf(cause)})`, { cause });
  });
  return blobSource(await abortable(file, signal));
}

/** The error for a file that can no longer be read; browsers throw different ones. */
function unreadable(name: string, cause: unknown): UnsupportedError {
  return new UnsupportedError(
    `${cut(name)} cannot be read (${textOf(cause)}): it changed since it was opened, or is gone; open it again`,
    { cause },
  );
}

function streamOfResponse(response: Response): Source {
  const { ok, status, statusText, url, body, bodyUsed, type } = response;
  const name = nameOf(url) || "the response";
  if (type === "opaque") {
    throw new UnsupportedError(
      `${name} is opaque, of a request with mode: "no-cors": its bytes cannot be read; its server has to ` +
        "allow this page by CORS",
      { given: type },
    );
  }
  if (!ok) {
    throw new UnsupportedError(`${name}: ${status} ${cut(statusText)}`.trim(), { given: status });
  }
  if (bodyUsed) throw new TypeError(`${name} was already read`);
  const size = sizeOfResponse(response);
  const contentType = response.headers.get("content-type");
  return streamSource(body ?? new Blob([]).stream(), name, { size, contentType });
}

function arraySource(bytes: ArrayBufferView): Source {
  const size = bytes.byteLength;
  return {
    name: "the array",
    way: "any",
    size,
    async *read(start, end = size) {
      const stop = Math.min(end, size);
      for (let at = start; at < stop; at += CHUNK) {
        const { buffer, byteOffset, byteLength } = bytes;
        if (byteLength < size) {
          throw new UnsupportedError("the array was detached or shrank while it was read");
        }
        yield new Uint8Array(buffer, byteOffset + at, Math.min(CHUNK, stop - at));
      }
    },
    close() {},
  };
}

function blobSource(blob: Blob, name = cut((blob as File).name ?? "", 500) || "the Blob"): Source {
  const { size } = blob;
  return {
    name,
    way: "any",
    size,
    async *read(start, end = size, signal) {
      let count = 0;
      try {
        for await (const chunk of chunksOf(blob.slice(start, end).stream(), signal)) {
          count += chunk.length;
          yield chunk;
        }
      } catch (error) {
        signal?.throwIfAborted();
        throw unreadable(name, error);
      }
      const needed = Math.max(Math.min(end, size) - start, 0);
      if (count !== needed) {
        throw unreadable(name, new RangeError(`${count} of ${needed} bytes arrived`));
      }
    },
    close() {},
  };
}

/** The index among the names of a folder. */
function indexIn(names: readonly string[], what: string): string {
  const found = names.filter((name) => name.endsWith(".index.json"));
  if (found.length === 1) return found[0] as string;
  const some = found.map((name) => cut(name, 100)).slice(0, 4);
  throw new UnsupportedError(
    `${what} needs one index of a sharded model, *.index.json, and has ${some.join(", ") || "none"}`,
  );
}

/** The index among files, which are those of a folder. */
function listSource(all: readonly File[]): Source {
  // A directory picker lists those of folders within it, too.
  const folderOf = (file: File) => file.webkitRelativePath?.replace(/[^/]*$/, "");
  const called = indexIn(
    all.map(({ name }) => name),
    "the list of files",
  );
  const index = all.find(({ name }) => name === called) as File;
  const files = new Map<string, File>();
  for (const file of all) if (folderOf(file) === folderOf(index)) files.set(file.name, file);
  return {
    ...blobSource(index),
    beside: [...files.keys()],
    async sibling(name) {
      const file = files.get(name);
      if (file) return blobSource(file);
      throw new UnsupportedError(`${cut(name)} is not among the files`);
    },
  };
}

/** The index in a folder. */
async function folderSource(
  folder: FileSystemDirectoryHandle,
  signal?: AbortSignal,
): Promise<Source> {
  const names: string[] = [];
  const keys = folder as unknown as { keys(): AsyncIterable<string> };
  for await (const name of keys.keys()) names.push(name);
  const open = (name: string) =>
    fileSource(name, async () => (await folder.getFileHandle(name)).getFile(), signal);
  const index = indexIn(names, `the folder ${cut(folder.name)}`);
  return { ...(await open(index)), beside: names, sibling: open };
}

function handleSource(handle: SyncAccessHandle): Source {
  const name = "the file";
  const size = handle.getSize();
  return {
    name,
    way: "any",
    size,
    async *read(start, end = size) {
      const block = new Uint8Array(Math.min(CHUNK, Math.max(end - start, 0)));
      const stop = Math.min(end, size);
      for (let at = start; at < stop; ) {
        const part = block.subarray(0, Math.min(block.length, stop - at));
        let count = 0;
        try {
          if (handle.getSize() === size) count = handle.read(part, { at });
        } catch (cause) {
          throw unreadable(name, cause); // it was closed
        }
        if (!(count > 0)) {
          const why = `it has ${handle.getSize()} bytes, and had ${size}`;
          throw unreadable(name, new RangeError(why));
        }
        yield part.subarray(0, count);
        at += count;
      }
    },
    close() {},
  };
}

/** A stream is read once, from its start. */
function streamSource(
  stream: ReadableStream,
  name: string,
  facts: Pick<Source, "size" | "contentType"> = { size: undefined },
): Source {
  if (stream.locked) throw new TypeError(`${name} is locked: another reader has it`);
  return {
    name,
    way: "once",
    ...facts,
    read: (_start, _end, signal) => chunksOf(stream, signal),
    close() {
      if (!stream.locked) stream.cancel().catch(() => {});
    },
  };
}

/** @internal The rest of a source as a Blob, which can be read from any position. */
export async function spooled(source: Source, chunks: AsyncIterable<Uint8Array>): Promise<Source> {
  const parts: Blob[] = [];
  // Small Blobs, joined: the browser moves them out of memory if there are many.
  let pending: Uint8Array<ArrayBuffer>[] = [];
  let held = 0;
  let all = 0;
  for await (const chunk of chunks) {
    all += chunk.length;
    if (source.size === undefined && all > MOST) {
      throw new UnsupportedError(
        `${source.name} has more than ${MOST} bytes, and its length is not known: a zip file's directory ` +
          "is at its end; open its Blob (await response.blob()), or have the server send Content-Length",
      );
    }
    pending.push(chunk.slice());
    held += chunk.length;
    if (held < CHUNK) continue;
    parts.push(new Blob(pending));
    pending = [];
    held = 0;
  }
  const blob = new Blob([...parts, ...pending]);
  if (source.size !== undefined && blob.size !== source.size) {
    throw new UnsupportedError(`${source.name} ends after ${blob.size} of ${source.size} bytes`);
  }
  source.close();
  return blobSource(blob, source.name);
}
