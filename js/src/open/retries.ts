/** Resumes interrupted reads. */
import { cut, DLPackError } from "../core/errors.js";
import type { AbortSignal } from "../core/globals.js";
import { abortable } from "../exchange/produce.js";
import type { FetchOptions } from "./source.js";

const RETRIES = 4;
/** Retries in all, for each of those without progress. */
const IN_ALL = 16;
/** Milliseconds before the first retry, twice as many before each further one, and at most. */
const [FIRST, LONGEST] = [100, 5000];

/** A lost connection, or a server that is temporarily unavailable. */
export class Broken extends DLPackError {}

/**
 * Counts tries since the last progress, and in all: a server that breaks after every byte must not
 * set the pace.
 */
export class Retries {
  count = 0;
  #all = 0;
  readonly #most: number;

  constructor(
    private readonly name: string,
    { retries = RETRIES }: FetchOptions,
  ) {
    this.#most = retries;
  }

  /** Bytes came. */
  progress(): void {
    this.count = 0;
  }

  /**
   * Waits before each retry, twice as long each time, whatever came in between. Throws the error, unless
   * it is temporary, and DLPackError after too many tries.
   */
  async again(error: unknown, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    // Bodies of fetch() throw a TypeError if the network fails; our errors have other classes.
    const passing = error instanceof Broken || (error as Error)?.name === "TypeError";
    if (!passing) throw error;
    if (this.count++ >= this.#most || this.#all >= IN_ALL * this.#most) {
      const count = Math.max(this.count, this.#all + 1);
      const tries = count === 1 ? "1 try" : `${count} tries`;
      const why = cut((error as Error).message, 1000);
      throw new DLPackError(`${this.name} could not be read, after ${tries}: ${why}`, {
        cause: error,
      });
    }
    await pause(Math.min(FIRST * 2 ** this.#all++, LONGEST), signal);
  }
}

/** The result of a request, which is repeated after temporary failures. */
export async function withRetries<R>(
  name: string,
  options: FetchOptions,
  signal: AbortSignal | undefined,
  request: () => Promise<R>,
): Promise<R> {
  const tries = new Retries(name, options);
  for (;;) {
    try {
      return await request();
    } catch (error) {
      await tries.again(error, signal);
    }
  }
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  await abortable(over, signal).finally(() => clearTimeout(timer));
}
