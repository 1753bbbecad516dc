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
