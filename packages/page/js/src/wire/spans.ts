type Span = readonly [begin: number, end: number, version: number];

/** Ranges that are few: to look for those to forget costs more than they do. */
const FEW = 32;

/**
 * Which version was written where: ranges of integers, each with a version; the rest has 0. A call
 * takes the time of a search and of the ranges that it changes.
 */
export class Spans {
  /** Disjoint and in order; neighbours that touch have different versions. */
  #spans: Span[] = [];
  #enough = FEW;

  /** Number of ranges. */
  get count(): number {
    return this.#spans.length;
  }

  /** The end of what has at least this version from `position` on. */
  reach(position: number, version: number): number {
    let at = position;
    for (let i = this.#index(position); i < this.#spans.length; i++) {
      const [from, to, has] = this.#spans[i] as Span;
      if (from > at || has < version) break;
      at = to;
    }
    return at;
  }

  /** The parts of begin to end that have a lower version, in order. */
  below(begin: number, end: number, version: number): [begin: number, end: number][] {
    const parts: [number, number][] = [];
    let at = begin;
    for (let i = this.#index(begin); i < this.#spans.length; i++) {
      const [from, to, has] = this.#spans[i] as Span;
      if (from >= end) break;
      if (has < version) continue;
      if (from > at) parts.push([at, from]);
      at = to;
    }
    if (at < end) parts.push([at, end]);
    return parts;
  }

  /** Raises what is lower there to this version. */
  mark(begin: number, end: number, version: number): void {
    if (begin >= end) return;
    const spans = this.#spans;
    const low = this.#index(begin);
    const before = Math.max(low - 1, 0);
    const cut = spans.slice(before, low);
    let [at, high] = [begin, low];
    for (; high < spans.length; high++) {
      const [from, to, has] = spans[high] as Span;
      if (from >= end) break;
      const both = [Math.max(from, begin), Math.min(to, end), Math.max(has, version)] as const;
      cut.push([from, begin, has], [at, from, version], both, [end, to, has]);
      at = to;
    }
    cut.push([at, end, version], ...spans.slice(high, high + 1));
    spans.splice(before, high + 1 - before, ...merged(cut));
  }

  /**
   * Ranges of these versions may have version 0 from now on: they are dropped as soon as there are
   * twice as many as the last time.
   */
  forget(upTo: number): void {
    if (this.#spans.length <= this.#enough) return;
    this.#spans = this.#spans.filter(([, , version]) => version > upTo);
    this.#enough = Math.max(2 * this.#spans.length, FEW);
  }

  clear(): void {
    this.#spans = [];
    this.#enough = FEW;
  }

  /** Of the first range that ends after `position`. */
  #index(position: number): number {
    let [low, high] = [0, this.#spans.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#spans[middle] as Span)[1] > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Ranges in order, without empty ones, those that touch and are equal as one. */
function merged(cut: readonly Span[]): Span[] {
  const spans: Span[] = [];
  for (const [from, to, has] of cut) {
    if (from >= to) continue;
    const last = spans.at(-1);
    if (last && last[1] === from && last[2] === has) spans[spans.length - 1] = [last[0], to, has];
    else spans.push([from, to, has]);
  }
  return spans;
}
