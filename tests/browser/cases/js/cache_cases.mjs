// A few programs of cached_calls.mjs.
import { program, twoWorlds } from "./cached_calls.mjs";
import { equal } from "./expect.mjs";

async function compare(context, language, programs) {
  const { play, end } = await twoWorlds(context);
  try {
    for (let i = 0; i < programs; i++)
      equal(await play(program(1, i), language), null, `program ${i}`);
  } finally {
    end();
  }
}

export async function cached_calls_do_what_checked_ones_do(context) {
  await compare(context, "JavaScript", 20);
}

export async function cached_calls_of_python_do_what_checked_ones_do(context) {
  await compare(context, "Python", 10);
}
