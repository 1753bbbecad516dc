// The rules of tests/wire/rules: the lines below a step are its results. tests/native/wire reads them, too.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Player } from "../../wire/player.mjs";

const FOLDER = new URL("../../wire/rules/", import.meta.url);
const RULES = readdirSync(FOLDER).map((name) => {
  const rules = readFileSync(new URL(name, FOLDER), "utf8").trimEnd().split("\n\n");
  return { name, rules: rules.map((rule) => rule.split(/\n(?! )/)) };
});

/** "…" stands for any text. */
const patternOf = (text) =>
  new RegExp(`^${text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("…", ".*")}$`, "s");

for (const { name, rules } of RULES) {
  for (const [title, ...steps] of rules) {
    test(`${name}: ${title.slice(2)}`, async () => {
      const player = new Player();
      for (const text of steps) {
        const [line, ...more] = text.split("\n  ");
        const [step, ...results] = line.split(/ → | \| /);
        const expected = [...results, ...more];
        const found = await player.play(step);
        const isSame = patternOf(expected.join("\n")).test(found.join("\n"));
        if (!isSame) assert.deepEqual([step, ...found], [step, ...expected]);
      }
      await player.play("close");
      assert.deepEqual(await player.play("state"), ["has nothing; 0 live"]);
    });
  }
}
