// Random programs of cached_calls.mjs, in both languages, and without end: kernels that cache their calls
// beside fresh ones. A program in which they differ is made as short as possible.
import { program, twoWorlds } from "../../browser/cases/js/cached_calls.mjs";
import { playAll } from "./shrink.mjs";

/** As the other parts; programs with odd numbers are Python's. */
export async function run(context, { seed, ...options }) {
  context.calls ??= await twoWorlds(context);
  const languages = ["JavaScript", "Python"];
  const sequence = (number) => [languages[number % 2], ...program(seed, number)];
  const play = ([first, ...steps]) =>
    languages.includes(first) ? context.calls.play(steps, first) : null;
  return playAll(play, sequence, { ...options, patience: 60 });
}
