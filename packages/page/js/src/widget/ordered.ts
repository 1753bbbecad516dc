/**
 * Messages in order, each once, over a channel that may lose, repeat or reorder them
 * (py/dlpack_web_page/_page/ordered.py).
 */
import { UnsupportedError } from "dlpack-web/core";

/** What travels: the number of a message, its body, and what has arrived of the other side. */
export interface Numbered {
  readonly n?: number;
  readonly got: number;
  readonly do?: unknown;
}

/** Messages after a gap that are kept until it is filled, and characters of them. */
const [MOST_EARLY, MOST_TEXT] = [4096, 1 << 26];

export class Ordered {
  #last = 0;
  /** Bodies that are not acknowledged. */
  readonly #sent = new Map<number, unknown>();
  #got = 0;
  /** What was acknowledged of that. */
  #told = 0;
  readonly #early = new Map<number, unknown>();
  #text = 0;

  constructor(private readonly post: (message: Numbered) => void) {}

  send(body: unknown): void {
    this.#sent.set(++this.#last, body);
    this.#put(this.#last);
  }

  /** @returns the bodies that are next; @throws UnsupportedError for numbers that cannot be */
  receive({ n, got, do: body }: Partial<Numbered>): unknown[] {
    if (!isCount(got) || got > this.#last) {
      throw new UnsupportedError(`a message acknowledges ${String(got)} of ${this.#last}`);
    }
    for (const sent of this.#sent.keys()) {
      if (sent > got) break;
      this.#sent.delete(sent);
    }
    if (n === undefined) return [];
    if (!isCount(n) || n === 0 || n > this.#got + MOST_EARLY) {
      throw new UnsupportedError(`message ${String(n)} after ${this.#got}`);
    }
    if (n <= this.#got) {
      this.#told = -1; // the acknowledgement was lost
      return [];
    }
    const isEarly = n > this.#got + 1;
    if (isEarly && !this.#early.has(n)) this.#text += JSON.stringify(body)?.length ?? 0;
    if (isEarly && this.#text > MOST_TEXT) {
      throw new UnsupportedError(`message ${n} after ${this.#got}, and too many others`);
    }
    this.#early.set(n, body);
    const bodies: unknown[] = [];
    while (this.#early.has(this.#got + 1)) {
      bodies.push(this.#early.get(++this.#got));
      this.#early.delete(this.#got);
    }
    if (this.#early.size === 0) this.#text = 0;
    return bodies;
  }

  /** Acknowledges what has arrived, unless that was done. */
  acknowledge(): void {
    if (this.#told === this.#got) return;
    this.#told = this.#got;
    this.post({ got: this.#got });
  }

  /** Whether something was not acknowledged. */
  get isWaiting(): boolean {
    return this.#sent.size > 0;
  }

  /** Sends again what was not acknowledged. */
  resend(): void {
    for (const n of this.#sent.keys()) this.#put(n);
  }

  #put(n: number): void {
    this.#told = this.#got;
    this.post({ n, got: this.#got, do: this.#sent.get(n) });
  }
}

function isCount(n: unknown): n is number {
  return Number.isSafeInteger(n) && (n as number) >= 0;
}
