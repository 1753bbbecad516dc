/** Numbers that follow from a seed, by mulberry32. */
export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 to `count` - 1. */
  below(count) {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * count);
  }

  /** One of a list, or of the characters of a string. */
  of(list) {
    return list[this.below(list.length)];
  }

  /** Whether something that happens one time in `count` does. */
  oneIn(count) {
    return this.below(count) === 0;
  }

  /** Puts a list in another order. */
  shuffle(list) {
    for (let i = list.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [list[i], list[j]] = [list[j], list[i]];
    }
  }
}
