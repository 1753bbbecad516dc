/** Mulberry32: the same numbers everywhere; `rng(n)` is an integer below n. */
export function random(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Numbers from 0 to 1, without 1. */
export function fractions(seed) {
  const below = random(seed);
  return () => below(2 ** 32) / 2 ** 32;
}
