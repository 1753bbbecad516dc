/** Which version was written where: ranges of integers, each with a version; the rest has 0. */
export class Spans {
  #spans: readonly (readonly [begin: number, end: number, version: number])[] = [];

  /** Number of ranges. */
  get count(): number {
    return this.#spans.length;
  }

  /** The end of a range that begins at or before `position`, else `position`. */
  endAt(position: number): number {
    const found = this.#spans.find(([begin, end]) => begin <= position && position < end);
    return found ? found[1] : position;
  }

  /** The parts of begin to end that have a lower version, in order. */
  below(begin: number, end: number, version: number): [begin: number, end: number][] {
    const parts: [number, number][] = [];
    let at = begin;
    for (const [from, to, has] of this.#spans) {
      if (has < version || to <= at || from >= end) continue;
      if (from > at) parts.push([at, from]);
      at = to;
    }
    if (at < end) parts.push([at, end]);
    return parts;
  }

  /** Raises what is lower there to this version. */
  mark(begin: number, end: number, version: number): void {
    const raised = this.below(begin, end, version);
    const cut: [number, number, number][] = raised.map(([from, to]) => [from, to, version]);
    for (const [from, to, has] of this.#spans) {
      if (has >= version || to <= begin || from >= end) cut.push([from, to, has]);
      else {
        if (from < begin) cut.push([from, begin, has]);
        if (to > end) cut.push([end, to, has]);
      }
    }
    cut.sort((a, b) => a[0] - b[0]);
    const spans: [number, number, number][] = [];
    for (const span of cut) {
      const last = spans.at(-1);
      if (last && last[1] === span[0] && last[2] === span[2]) last[1] = span[1];
      else spans.push(span);
    }
    this.#spans = spans;
  }

  /** Forgets ranges of these versions, which then have version 0. */
  forget(upTo: number): void {
    this.#spans = this.#spans.filter(([, , version]) => version > upTo);
  }
}
