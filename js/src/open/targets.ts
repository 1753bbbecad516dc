/** Targets to which a file is written. */
import { DLPackError, tagOf } from "../core/errors.js";
import type {
  FileSystemFileHandle as AnyFileHandle,
  WritableStream as AnyWritableStream,
} from "../core/globals.js";

/** A file of the origin's own file system, opened by a worker: the members used here. */
export interface SyncWriteHandle {
  write(buffer: Uint8Array, options?: { at?: number }): number;
  truncate(size: number): void;
  flush(): void;
}

/** The targets that `save` writes to. */
export type SaveTarget = AnyWritableStream | AnyFileHandle | SyncWriteHandle;

/** @internal Takes a file from its start to its end. */
export interface Writer {
  write(bytes: Uint8Array): Promise<void>;
  /** Ends it successfully. */
  close(): Promise<Blob | undefined>;
  /** Ends it after an error. Never throws. */
  abort(reason: unknown): Promise<void>;
}

/** @internal The writer for a user's argument; TypeError for anything else. */
export async function writerFor(target: SaveTarget | undefined): Promise<Writer> {
  if (target === undefined) return blobWriter();
  const tag = tagOf(target);
  if (tag === "[object FileSystemFileHandle]") {
    // Writes go to a temporary file until it is closed.
    return streamWriter(await (target as FileSystemFileHandle).createWritable());
  }
  if (tag === "[object WritableStream]" || tag === "[object FileSystemWritableFileStream]") {
    return streamWriter(target as WritableStream);
  }
  const { write, truncate, flush } = Object(target) as Partial<SyncWriteHandle>;
  if ([write, truncate, flush].every((method) => typeof method === "function")) {
    return handleWriter(target as SyncWriteHandle);
  }
  throw new TypeError(`save() takes a WritableStream or a file handle, not ${tag}`);
}

function blobWriter(): Writer {
  const parts: Blob[] = [];
  return {
    async write(bytes) {
      parts.push(new Blob([bytes as Uint8Array<ArrayBuffer>])); // which the browser may move out of memory
    },
    async close() {
      return new Blob(parts);
    },
    async abort() {
      parts.length = 0;
    },
  };
}

function streamWriter(stream: WritableStream): Writer {
  const writer = stream.getWriter();
  writer.closed.catch(() => {}); // write() and close() report errors
  return {
    async write(bytes) {
      await writer.ready;
      await writer.write(bytes);
    },
    async close() {
      await writer.close();
      return undefined;
    },
    async abort(reason) {
      await writer.abort(reason).catch(() => {});
    },
  };
}

/** Such a file has no temporary file: on errors it is left empty. */
function handleWriter(handle: SyncWriteHandle): Writer {
  let at = 0;
  return {
    async write(bytes) {
      for (let done = 0; done < bytes.length; ) {
        const count = handle.write(bytes.subarray(done), { at });
        if (!(count > 0)) throw new DLPackError(`the file took ${at} bytes, and no more`);
        done += count;
        at += count;
      }
    },
    async close() {
      handle.truncate(at);
      handle.flush();
      return undefined;
    },
    async abort() {
      try {
        handle.truncate(0);
      } catch {
        // The first error says why.
      }
    },
  };
}
