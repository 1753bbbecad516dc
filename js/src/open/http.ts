/**
 * A file at a URL. The first request asks for a range, all of it or its start: the answer says whether
 * ranges are supported, and the file's size and version. Reading from the start, as for an array, needs
 * no other request. An interrupted read resumes where it stopped, also if the server sends less than
 * requested, which RFC 9110 (15.3.7) allows.
 *
 * Every later answer must be of the same version, by its ETag, date and size, and where these do not
 * identify it, by its bytes (joint.ts). No If-Range is sent: a server of another origin would have to
 * allow that header first.
 *
 * Bytes of a wrong position are never used. A 206 is trusted to be the requested range if it begins
 * at 0, or if its Content-Length is that of the range. Otherwise the body is counted before use, in
 * pieces of 4 MiB: a server that answers with the whole file sends too much.
 */
import { concat } from "../core/bytes.js";
import { textOf, UnsupportedError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { Joint } from "./joint.js";
import { type Answer, ask, bytesOf, HIDDEN, nameOf, type Version } from "./request.js";
import { Broken, Retries, withRetries } from "./retries.js";
import type { Chunks, FetchOptions, Source } from "./source.js";

/** Bytes per request if the server does not say how many it sends. */
const PIECE = 4 << 20;
/** A server that sends fewer at a time is asked again as after an error: after a pause. */
const LEAST = 4096;
/** Bytes of the first request for a file of which only some are read: most headers have fewer. */
const BEGIN = 1 << 17;

/** @param few - whether the first request is for the start of the file, not for all of it */
export async function httpSource(
  url: string,
  options: FetchOptions,
  few: boolean,
  signal?: AbortSignal,
): Promise<Source> {
  const name = nameOf(url);
  try {
    new URL(url, globalThis.location?.href);
  } catch (cause) {
    const help = "open() reads a file on disk as a Blob, e.g. from Node's fs.openAsBlob(path)";
    throw new TypeError(`"${name}" is not a URL: ${help}`, { cause });
  }
  const request = (end?: number) =>
    withRetries(name, options, signal, () => ask(url, 0, end, options, signal));
  let begun = few ? BEGIN : undefined;
  /** The first answer, until it is read. */
  let first: Answer | null = await request(begun);
  if (few && first.version.size === undefined && first.ranges) {
    // Content-Range is hidden: the length of an answer with everything is that of the file.
    first.body.cancel().catch(() => {});
    begun = undefined;
    first = await request();
  }
  const { ranges, placed, contentType, doubt } = first;
  /** The facts known so far. */
  let version: Version = first.version;
  const { size } = version;
  const way = ranges ? "any" : "again";
  /** The server does not report the length of ranges. */
  let inPieces = false;

  /** What one answer brings. Returns whether the file ends with it. */
  async function* some(
    joint: Joint,
    stop: number | undefined,
    tries: Retries,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, boolean, undefined> {
    const { at, place } = joint;
    const most = inPieces ? Math.min(stop ?? Infinity, place + PIECE) : stop;
    const answer = await answerFrom(place, most, tries.count > 0, signal);
    const placed = !answer.ranges || place === 0 || answer.counted;
    const small = most !== undefined && most - place <= PIECE;
    if (!placed && !small) inPieces = true;
    if (!joint.accepts(answer.version.strong) || (!placed && !small)) {
      answer.body.cancel().catch(() => {});
      return false;
    }
    let chunks = bytesOf(answer, place, most, name, signal);
    if (!placed) chunks = atOnce(chunks);
    for await (const chunk of chunks) {
      const part = joint.take(chunk, (stop ?? Infinity) - joint.at);
      if (part.length === 0) continue;
      tries.progress();
      yield part;
      // The rest of an answer that declares more than was requested is not read.
      if (joint.at === stop && (answer.end ?? stop) > stop) return true;
    }
    if (stop === undefined && (!answer.ranges || (await endsAt(joint.place, signal)))) {
      return true;
    }
    const came = joint.place - place;
    const isNew = joint.comparing || joint.at > at;
    if (joint.at !== stop && (came < LEAST || !isNew)) {
      throw new Broken(
        `the answer ended at byte ${joint.place}, after ${came} of the bytes asked for`,
      );
    }
    return false;
  }

  /**
   * Whether the file ends where an answer ended: then a request for the bytes around it gets only
   * one.
   */
  async function endsAt(at: number, signal?: AbortSignal): Promise<boolean> {
    if (at === 0) return true;
    return withRetries(name, options, signal, async () => {
      const answer = await answerFrom(at - 1, at + 1, false, signal);
      let count = 0;
      for await (const chunk of bytesOf(answer, at - 1, at + 1, name, signal)) {
        count += chunk.length;
      }
      if (count === 1) return true;
      if (answer.placed) return false;
      throw new UnsupportedError(`${name} is sent in parts; ${HIDDEN}`);
    });
  }

  /** An answer that begins at `start`, or before. */
  async function answerFrom(
    start: number,
    end: number | undefined,
    again: boolean,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const unread = first;
    first = null;
    if (unread !== null) {
      if (start === 0 || !unread.ranges) return unread;
      unread.body.cancel().catch(() => {});
    }
    const answer = await ask(url, start, end, options, signal, again);
    const given = answer.version;
    const known = version;
    const changed = (["etag", "modified", "size"] as const).find(
      (fact) => (given[fact] ?? known[fact]) !== (known[fact] ?? given[fact]),
    );
    let why: string | undefined;
    if (changed !== undefined) {
      why =
        ` changed while it was read (${changed}: ${textOf(known[changed])}, then ` +
        `${textOf(given[changed])}): open it again`;
    } else if (!answer.ranges && way === "any") {
      why = ": the server no longer supports ranges: open it again";
    } else if (!answer.placed && end === undefined && start > 0) {
      why = ` broke off after ${start} bytes; ${HIDDEN}`; // it alone says where this begins
    }
    if (why === undefined) {
      const { etag, modified, size, strong } = given;
      version = {
        etag: known.etag ?? etag,
        modified: known.modified ?? modified,
        size: known.size ?? size,
        strong: known.strong && strong,
      };
      return answer;
    }
    answer.body.cancel().catch(() => {});
    throw new UnsupportedError(name + why, {
      given: changed && textOf(given[changed]),
      needed: changed && textOf(known[changed]),
    });
  }

  return {
    name,
    way,
    size,
    remote: true,
    get unversioned() {
      return version.strong === null;
    },
    begun: ranges ? begun : undefined,
    sibling(other, signal) {
      const base = new URL(url, globalThis.location?.href);
      return httpSource(new URL(encodeURIComponent(other), base).href, options, true, signal);
    },
    contentType,
    doubt,
    async *read(start: number, end: number | undefined, signal?: AbortSignal): Chunks {
      const stop = end ?? size;
      const tries = new Retries(name, options);
      const joint = new Joint(name, start);
      while (stop === undefined || joint.at < stop) {
        try {
          if (yield* some(joint, stop, tries, signal)) break;
          if (joint.at !== stop) joint.ended();
        } catch (error) {
          await tries.again(error, signal);
          joint.broke();
        }
      }
      joint.finish();
    },
    /** Throws unless the size is right, which is a guess where Content-Range is hidden. */
    async confirmSize(signal) {
      if (!placed && size !== undefined) await endsAt(size, signal);
    },
    close() {
      first?.body.cancel().catch(() => {});
      first = null;
    },
  };
}

/** The bytes that came before it failed, in one chunk, or its error. */
async function* atOnce(chunks: Chunks): Chunks {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk.slice());
  const whole = concat(parts);
  if (whole.length > 0) yield whole;
}
