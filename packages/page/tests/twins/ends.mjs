// The JavaScript side of ends.py: tests/fuzz/twins/other.mjs imports it.
import { Player } from "../wire/player.mjs";

export async function end(steps) {
  const player = new Player();
  const found = [];
  await player.play("wire"); // a part of the steps may have none
  for (const [step] of steps) found.push(await player.play(step));
  return found;
}
