/**
 * The directory of a zip file, as `np.savez` writes them: entries that are stored or deflated, with
 * or without the 64-bit fields. It must describe entries within the file that do not overlap.
 */

import { cut } from "../core/errors.js";
import { Cursor } from "./cursor.js";
import { malformed } from "./entry.js";
import { type Chunks, chunksOf, type Source } from "./source.js";

/** One file within a zip file. */
export interface Member {
  readonly name: string;
  /** Whether it is deflated. */
  readonly deflated: boolean;
  readonly crc: number;
  /** Bytes in the file, and uncompressed. */
  readonly packed: number;
  readonly size: number;
  /** Where its own header begins. */
  readonly header: number;
  /** Where its bytes begin, once they were entered. */
  data: number;
  /** Where something else begins. */
  limit: number;
  /** Why it cannot be read. */
  why: string | undefined;
}

const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const MEMBER = 0x02014b50;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
/** A flag: the sizes follow the bytes, and are in the directory. */
const HAS_DESCRIPTOR = 8;
/** No deflated data expands to more times its size: 258 bytes of 2 bits. */
const MOST_RATIO = 1032;
const OVERLAPS = "it overlaps the next entry";
const RECORD_64_BYTES = 56;
const LOCATOR_64_BYTES = 20;
/** The end has 22 bytes, and a comment of at most 65535; the 64-bit records precede it. */
const TAIL = RECORD_64_BYTES + LOCATOR_64_BYTES + 22 + 65535;
/** A directory of this size has half a million entries. */
const MAX_DIRECTORY = 1 << 26;

/** A directory's position, in bytes from the start of the file. */
interface Directory {
  count: number;
  bytes: number;
  at: number;
  end: number;
}

/** The entries of a zip file, in the order of their data. */
export async function zipMembers(
  source: Source,
  size: number,
  signal?: AbortSignal,
): Promise<Member[]> {
  const { name } = source;
  const from = Math.max(0, size - TAIL);
  const tail = await bytesAt(source, from, size, signal);
  const { at, bytes, count, end } = findDirectory(tail, from, name);
  // Other readers use the bytes before the end as the directory, ignoring its offset.
  if (at + bytes !== end) {
    throw malformed(
      name,
      `its directory of ${bytes} bytes at ${at} does not end at ${end}, where the record of it begins`,
    );
  }
  if (bytes > MAX_DIRECTORY || count * 46 > bytes) {
    throw malformed(name, `its directory of ${bytes} bytes for ${count} entries is not one`);
  }
  const directory = await bytesAt(source, at, at + bytes, signal);
  const members = parseDirectory(directory, count, name);
  return ordered(members, at);
}

async function bytesAt(source: Source, start: number, end: number, signal?: AbortSignal) {
  const cursor = Cursor.at(source, start, end, signal);
  try {
    const bytes = await cursor.take(end - start, "the directory of the zip file");
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } finally {
    await cursor.close();
  }
}

/** The directory's position from the end of a file, and where it ends. */
function findDirectory(tail: DataView, from: number, name: string): Directory {
  let end = tail.byteLength - 22;
  // The comment behind the end may look like another one: it must reach to the end of the file.
  const isEnd = (at: number) =>
    tail.getUint32(at, true) === END && at + 22 + tail.getUint16(at + 20, true) === tail.byteLength;
  while (end >= 0 && !isEnd(end)) end--;
  if (end < 0) throw malformed(name, "no directory of a zip file at its end: it is cut off");
  if (tail.getUint32(end + 4, true) !== 0) throw malformed(name, "a zip file of several parts");
  const locator = end - LOCATOR_64_BYTES;
  if (locator < 0 || tail.getUint32(locator, true) !== LOCATOR_64) {
    return {
      count: tail.getUint16(end + 10, true),
      bytes: tail.getUint32(end + 12, true),
      at: tail.getUint32(end + 16, true),
      end: from + end,
    };
  }
  const record = locator - RECORD_64_BYTES;
  if (
    record < 0 ||
    tail.getUint32(record, true) !== END_64 ||
    wide(tail, locator + 8) !== from + record
  ) {
    throw malformed(name, "the 64-bit end of its directory is not where it should be");
  }
  if (tail.getUint32(locator + 4, true) !== 0 || tail.getUint32(locator + 16, true) > 1) {
    throw malformed(name, "a zip file of several parts");
  }
  const [count, bytes, at] = [32, 40, 48].map((offset) => wide(tail, record + offset));
  return { count, bytes, at, end: from + record } as Directory;
}

/** A name, including a byte order mark, which decoders drop by default. */
const decoded = (bytes: Uint8Array) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** 64 bits; an impossible size if they exceed a number. */
const wide = (view: DataView, at: number) =>
  Math.min(Number(view.getBigUint64(at, true)), Number.MAX_SAFE_INTEGER);

function parseDirectory(view: DataView, count: number, name: string): Member[] {
  const members: Member[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== MEMBER) {
      throw malformed(name, `entry ${i} of its directory is not there`);
    }
    const [nameBytes, extra, comment] = [28, 30, 32].map((o) => view.getUint16(at + o, true)) as [
      number,
      number,
      number,
    ];
    const next = at + 46 + nameBytes + extra + comment;
    if (next > view.byteLength) throw malformed(name, `entry ${i} of its directory is cut off`);
    members.push(memberAt(view, at, nameBytes, extra, name));
    at = next;
  }
  if (at !== view.byteLength) throw malformed(name, "its directory has more than its entries");
  return members;
}

function memberAt(view: DataView, at: number, nameBytes: number, extra: number, file: string) {
  const bytes = new Uint8Array(view.buffer, view.byteOffset + at + 46, nameBytes);
  const name = decoded(bytes);
  const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)];
  // Values of more than 32 bits are in the extra field 1, in this order.
  const sizes = [24, 20, 42].map((offset) => view.getUint32(at + offset, true));
  const end = at + 46 + nameBytes + extra;
  for (let field = at + 46 + nameBytes; field + 4 <= end; ) {
    const stop = field + 4 + view.getUint16(field + 2, true);
    if (stop > end) throw malformed(file, `the extra fields of "${cut(name)}" are cut off`);
    if (view.getUint16(field, true) === 1) {
      let place = field + 4;
      sizes.forEach((value, i) => {
        if (value !== 0xffffffff) return;
        if (place + 8 > stop) throw malformed(file, `the sizes of "${cut(name)}" are cut off`);
        sizes[i] = wide(view, place);
        place += 8;
      });
    }
    field = stop;
  }
  const [size, packed, header] = sizes as [number, number, number];
  const crc = view.getUint32(at + 16, true);
  const why = whyNot(flags, method, size, packed);
  return { name, deflated: method === 8, crc, packed, size, header, data: 0, limit: 0, why };
}

/** Why an entry cannot be read, from what its directory says. */
function whyNot(flags: number, method: number, size: number, packed: number): string | undefined {
  if (flags & 1) return "it is encrypted";
  if (method !== 0 && method !== 8) {
    return `it is compressed with method ${method}: 0 and 8 are supported`;
  }
  if (method === 0 && size !== packed) {
    return `it is stored uncompressed, but has sizes ${packed} and ${size}`;
  }
  if (size > MOST_RATIO * packed) return `its ${size} bytes cannot be deflated to ${packed}`;
  return undefined;
}

/** By position; overlapping entries can make a small file expand without end. */
function ordered(members: Member[], end: number): Member[] {
  members.sort((a, b) => a.header - b.header);
  const times = new Map<string, number>();
  for (const { name } of members) times.set(name, (times.get(name) ?? 0) + 1);
  members.forEach((member, i) => {
    const { name, header, packed } = member;
    member.limit = members[i + 1]?.header ?? end;
    const count = times.get(name) as number;
    if (count > 1) member.why = `it is in the archive ${count} times`;
    if (header + LOCAL_BYTES + packed > member.limit) member.why ??= OVERLAPS;
  });
  return members;
}

/** Moves a cursor from the header of an entry to its bytes. */
async function enter(cursor: Cursor, member: Member): Promise<void> {
  const { name, deflated, packed, size, limit } = member;
  const what = `the header of "${cut(name)}"`;
  const head = await cursor.take(LOCAL_BYTES, what);
  const view = new DataView(head.buffer, head.byteOffset, LOCAL_BYTES);
  if (view.getUint32(0, true) !== LOCAL || view.getUint16(8, true) !== (deflated ? 8 : 0)) {
    throw malformed(cursor.name, `${what} is not where its directory says`);
  }
  const sizes = [view.getUint32(18, true), view.getUint32(22, true)];
  const elsewhere = view.getUint16(6, true) & HAS_DESCRIPTOR || sizes.includes(0xffffffff);
  if (!elsewhere && (sizes[0] !== packed || sizes[1] !== size)) {
    throw malformed(cursor.name, `${what} has other sizes than its directory`);
  }
  const [nameBytes, extra] = [view.getUint16(26, true), view.getUint16(28, true)];
  if (decoded(await cursor.take(nameBytes, what)) !== name) {
    throw malformed(cursor.name, `${what} has another name than its directory`);
  }
  await cursor.take(extra, what);
  if (cursor.position + packed > limit) throw malformed(cursor.name, `"${cut(name)}": ${OVERLAPS}`);
  member.data = cursor.position;
}

/**
 * The bytes of an entry of a zip file, from a cursor that is at its header: never more than the
 * directory says, even if the packed bytes unpack to more. The CRC is compared at the end.
 */
export async function* unpacked(cursor: Cursor, member: Member, signal?: AbortSignal): Chunks {
  const { name, size, packed, crc, deflated } = member;
  const what = `"${cut(name)}"`;
  await enter(cursor, member);
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

/** For the CRC-32 of zip files; a table for each of eight bytes is slower in V8. */
let table: Int32Array | null = null;

function makeTable(): Int32Array {
  return Int32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    return crc;
  });
}

/** The CRC of bytes after earlier ones, whose CRC is `before`. */
export function crc32(bytes: Uint8Array, before = 0): number {
  table ??= makeTable();
  let crc = ~before;
  for (let i = 0; i < bytes.length; i++) {
    crc = (crc >>> 8) ^ (table[(crc ^ (bytes[i] as number)) & 255] as number);
  }
  return ~crc >>> 0;
}
