/**
 * Plays the sequences from number `first` on, until the time is over or one goes wrong, which is
 * then made as short as possible.
 *
 * @param play - resolves to what goes wrong with steps; null: nothing
 * @param sequence - the steps of a sequence, by its number
 * @param options - `only: { steps }` plays these alone; `patience`: seconds for making one shorter
 */
export async function playAll(play, sequence, { first, seconds, only, patience }) {
  if (only) return { sequences: 1, steps: 0, problem: await play(only.steps) };
  const end = performance.now() + 1000 * seconds;
  let steps = 0;
  let number = first;
  do {
    const all = sequence(number++);
    const problem = await play(all);
    steps += all.length;
    if (problem !== null) {
      const less = await shrink(play, all, patience);
      const failed = { number: number - 1, ...less, problem: less.problem ?? problem };
      return { sequences: number - first, steps, failed };
    }
  } while (performance.now() < end);
  return { sequences: number - first, steps };
}

/**
 * The shortest sequence found in which something goes wrong, by leaving out halves and less.
 *
 * @param play - resolves to what goes wrong with steps; null: nothing
 */
export async function shrink(play, steps, seconds) {
  const end = performance.now() + 1000 * seconds;
  let best = steps;
  let problem = await play(steps);
  if (problem === null) return { steps, problem, again: false };
  for (let part = Math.ceil(best.length / 2); part >= 1; ) {
    let shorter = false;
    for (let at = 0; at < best.length && performance.now() < end; ) {
      const less = best.toSpliced(at, part);
      const other = less.length > 0 && (await play(less));
      if (other) {
        [best, problem, shorter] = [less, other, true];
      } else at += part;
    }
    if (part === 1 && !shorter) break;
    part = part === 1 ? 1 : Math.ceil(part / 2);
    if (performance.now() > end) break;
  }
  return { steps: best, problem, again: true };
}
