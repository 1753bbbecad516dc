/**
 * A file at a URL. The first request asks for all of it as a range: the answer says whether ranges
 * are supported, and the file's size and version. Reading from the start, as for an array, needs no
 * other request. An interrupted read resumes where it stopped, also if the server sends less than
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
import { Broken, patiently, Tries } from "./retries.js";
import type { Chunks, FetchOptions, Source } from "./source.js";

/** Bytes per request if the server does not say how many it sends. */
const PIECE = 4 << 20;
/** A server that sends fewer at a time is asked again as after an error: after a pause. */
const LEAST = 4096;

export class HttpSource implements Source {
  readonly name: string;
  readonly way: "any" | "again";
  readonly size: number | undefined;
  readonly contentType: string | null;
  readonly doubt: string | undefined;
  readonly #url: string;
  readonly #options: FetchOptions;
  /** The facts known so far. */
  #version: Version;
  /** The size is a guess: Content-Range is hidden. */
  readonly #guessed: boolean;
  /** The first answer, until it is read. */
  #first: Answer | null;
  /** The server does not report the length of ranges. */
  #inPieces = false;

  private constructor(url: string, options: FetchOptions, first: Answer) {
    this.name = nameOf(url);
    this.#url = url;
    this.#options = options;
    this.#first = first;
    this.#version = first.version;
    this.#guessed = !first.placed;
    this.size = first.version.size;
    this.contentType = first.contentType;
    this.doubt = first.doubt;
    this.way = first.ranges ? "any" : "again";
  }

  static async open(url: string, options: FetchOptions, signal?: AbortSignal): Promise<Source> {
    const name = nameOf(url);
    try {
      new URL(url, globalThis.location?.href);
    } catch (cause) {
      const help = "open() reads a file on disk as a Blob, e.g. from Node's fs.openAsBlob(path)";
      throw new TypeError(`"${name}" is not a URL: ${help}`, { cause });
    }
    const request = () => ask(url, 0, undefined, options, signal);
    return new HttpSource(url, options, await patiently(name, options, signal, request));
  }

  async *read(start: number, end: number | undefined, signal?: AbortSignal): Chunks {
    const stop = end ?? this.size;
    const tries = new Tries(this.name, this.#options);
    const joint = new Joint(this.name, start);
    while (stop === undefined || joint.at < stop) {
      try {
        if (yield* this.#some(joint, stop, tries, signal)) break;
        if (joint.at !== stop) joint.ended();
      } catch (error) {
        await tries.again(error, signal);
        joint.broke();
      }
    }
    joint.finish();
  }

  /** What one answer brings. Returns whether the file ends with it. */
  async *#some(
    joint: Joint,
    stop: number | undefined,
    tries: Tries,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, boolean, undefined> {
    const { at, place } = joint;
    const most = this.#inPieces ? Math.min(stop ?? Infinity, place + PIECE) : stop;
    const answer = await this.#answer(place, most, tries.count > 0, signal);
    const placed = !answer.ranges || place === 0 || answer.counted;
    const small = most !== undefined && most - place <= PIECE;
    if (!placed && !small) this.#inPieces = true;
    if (!joint.accepts(answer.version.strong) || (!placed && !small)) {
      answer.body.cancel().catch(() => {});
      return false;
    }
    let chunks = bytesOf(answer, place, most, this.name, signal);
    if (!placed) chunks = atOnce(chunks);
    for await (const chunk of chunks) {
      const part = joint.take(chunk, (stop ?? Infinity) - joint.at);
      if (part.length === 0) continue;
      tries.progress();
      yield part;
      // The rest of an answer that declares more than was requested is not read.
      if (joint.at === stop && (answer.end ?? stop) > stop) return true;
    }
    if (stop === undefined && (!answer.ranges || (await this.#endsAt(joint.place, signal)))) {
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

  /** Throws unless the guessed size is right. */
  async confirmSize(signal?: AbortSignal): Promise<void> {
    if (this.#guessed && this.size !== undefined) await this.#endsAt(this.size, signal);
  }

  close(): void {
    this.#first?.body.cancel().catch(() => {});
    this.#first = null;
  }

  /**
   * Whether the file ends where an answer ended: then a request for the bytes around it gets only
   * one.
   */
  async #endsAt(at: number, signal?: AbortSignal): Promise<boolean> {
    if (at === 0) return true;
    return patiently(this.name, this.#options, signal, async () => {
      const answer = await this.#answer(at - 1, at + 1, false, signal);
      let count = 0;
      for await (const chunk of bytesOf(answer, at - 1, at + 1, this.name, signal)) {
        count += chunk.length;
      }
      if (count === 1) return true;
      if (answer.placed) return false;
      throw new UnsupportedError(`${this.name} is sent in parts; ${HIDDEN}`);
    });
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
      first.body.cancel().catch(() => {});
    }
    const answer = await ask(this.#url, start, end, this.#options, signal, again);
    const { version } = answer;
    const known = this.#version;
    const changed = (["etag", "modified", "size"] as const).find(
      (fact) => (version[fact] ?? known[fact]) !== (known[fact] ?? version[fact]),
    );
    let why: string | undefined;
    if (changed !== undefined) {
      why =
        ` changed while it was read (${changed}: ${textOf(known[changed])}, then ` +
        `${textOf(version[changed])}): open it again`;
    } else if (!answer.ranges && this.way === "any") {
      why = ": the server no longer supports ranges: open it again";
    } else if (!answer.placed && end === undefined && start > 0) {
      why = ` broke off after ${start} bytes; ${HIDDEN}`; // it alone says where this begins
    }
    if (why === undefined) {
      const { etag, modified, size } = version;
      this.#version = {
        etag: known.etag ?? etag,
        modified: known.modified ?? modified,
        size: known.size ?? size,
        strong: null,
      };
      return answer;
    }
    answer.body.cancel().catch(() => {});
    throw new UnsupportedError(this.name + why, {
      given: changed && textOf(version[changed]),
      needed: changed && textOf(known[changed]),
    });
  }
}

/** The bytes that came before it failed, in one chunk, or its error. */
async function* atOnce(chunks: Chunks): Chunks {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk.slice());
  const whole = concat(parts);
  if (whole.length > 0) yield whole;
}
