import { cut } from "../core/errors.js";
import { crc32 } from "./crc.js";
import type { Cursor } from "./cursor.js";
import { malformed } from "./entry.js";
import { type Chunks, chunksOf } from "./source.js";
import type { Member } from "./zip.js";

/**
 * The bytes of an entry of a zip file, from a cursor that is at them: never more than the directory
 * says, even if the packed bytes unpack to more. The CRC is compared at the end.
 */
export async function* unpacked(cursor: Cursor, member: Member, signal?: AbortSignal): Chunks {
  const { name, size, packed, crc, deflated } = member;
  const what = `"${cut(name)}"`;
  const raw = cursor.chunks(packed, what);
  let [count, sum] = [0, 0];
  for await (const chunk of deflated ? inflated(raw, `${cursor.name}: ${what}`, signal) : raw) {
    count += chunk.length;
    if (count > size) break;
    sum = crc32(chunk, sum);
    yield chunk;
  }
  if (count !== size) {
    const found = count > size ? "more" : `only ${count}`;
    throw malformed(cursor.name, `${what} unpacks to ${found}, not to the ${size} bytes it claims`);
  }
  if (sum !== crc) throw malformed(cursor.name, `${what} is damaged: its CRC-32 does not match`);
}

/**
 * Bytes that are inflated at once: browsers inflate all of a chunk, to 1032 times its size, before
 * any of it is read.
 */
const PIECE = 1 << 14;

async function* inflated(raw: Chunks, what: string, signal?: AbortSignal): Chunks {
  let failure: { error: unknown } | undefined;
  let left: Uint8Array = new Uint8Array(0);
  const packed = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        if (left.length === 0) {
          const { done, value } = await raw.next();
          if (done) return controller.close();
          left = value;
        }
        controller.enqueue(left.slice(0, PIECE)); // a copy: the stream may move it to another thread
        left = left.subarray(PIECE);
      } catch (error) {
        failure = { error };
        controller.error(error);
      }
    },
    async cancel() {
      await raw.return();
    },
  });
  try {
    yield* chunksOf(packed.pipeThrough(new DecompressionStream("deflate-raw")), signal);
  } catch (error) {
    if (failure) throw failure.error;
    signal?.throwIfAborted();
    throw malformed(what, `its deflated bytes are damaged (${(error as Error).message})`);
  }
}
