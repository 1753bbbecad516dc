// The WGSL around formulas: tests/elementwise.json has what Python writes, too
// (tests/desktop/test_formulas.py).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as formulas from "../../../js/dist/webgpu/formulas/formulas.js";

const cases = JSON.parse(readFileSync(new URL("../../elementwise.json", import.meta.url), "utf8"));
const { elementwise, formula, grid, identityOf, parse, plan, planLast, reduction } = formulas;

for (const [i, { inputs, outputs, operation, kinds, ...expected }] of cases.elementwise.entries()) {
  test(`elementwise ${i} of tests/elementwise.json`, () => {
    const text = formula(operation, "operation");
    assert.deepEqual(elementwise(...parse(inputs, outputs), text, kinds), expected);
  });
}

for (const [i, { kinds, pass, wgsl, parts, ...what }] of cases.reductions.entries()) {
  test(`reduction ${i} of tests/elementwise.json`, () => {
    const [inputs, outputs] = parse(what.inputs, what.outputs, "a b");
    const names = ["map", "reduce", "postMap"];
    const found = reduction({ ...what, inputs, outputs, names }, kinds, pass);
    assert.deepEqual(found, { wgsl, parts });
  });
}

test("parts are the lines of the formulas", () => {
  for (const { wgsl, parts, ...what } of [...cases.elementwise, ...cases.reductions]) {
    for (const [name, first, count] of parts) {
      const lines = wgsl.split("\n").slice(first - 1, first - 1 + count);
      assert.equal(lines.join("\n"), what[name].replaceAll("\r\n", "\n"));
    }
  }
});

test("plans of passes", () => {
  for (const { given, plan: expected } of cases.plans) {
    const { lanes, chunk, chunks } = plan(...given);
    assert.deepEqual([lanes, chunk, chunks], expected, `plan(${given})`);
  }
  for (const { given, plan: expected } of cases.last) {
    const { lanes, chunk, chunks } = planLast(...given);
    assert.deepEqual([lanes, chunk, chunks], expected, `planLast(${given})`);
  }
  for (const { given, grid: expected } of cases.grids) assert.deepEqual(grid(given), expected);
});

test("identities", () => {
  for (const { given, text } of cases.identities) assert.equal(identityOf(given), text);
  assert.throws(() => identityOf(Number.NEGATIVE_INFINITY), {
    name: "RangeError",
    message:
      "WGSL has no literal for -Infinity: use the largest finite number, " +
      '"-0x1.fffffep+127f" for f32',
  });
  assert.throws(() => identityOf(null), { name: "TypeError", message: /not \[object Null\]$/ });
  assert.throws(() => identityOf(" "), { name: "RangeError", message: "identity is empty" });
});

test("definitions that are none", () => {
  for (const { inputs, outputs, message } of cases.errors) {
    assert.throws(() => parse(inputs, outputs, "a b"), { name: "RangeError", message });
  }
  assert.throws(() => parse(["f32 x"], "f32 y"), {
    name: "TypeError",
    message: 'parameters are a string such as "f32 x, f32 k", not [object Array]',
  });
  assert.throws(() => formula(7, "operation"), {
    name: "TypeError",
    message: "operation is a string of WGSL, not [object Number]",
  });
  assert.throws(() => formula("\n ", "map"), { name: "RangeError", message: "map is empty" });
});
