// The WGSL around formulas. Python's is compared with this one by tests/fuzz/twins, and that it
// computes what it should by the cases of kernels in tests/browser/cases.
// Looks inside: the text of a shader, which the public names run and do not show.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as formulas from "../../../js/dist/webgpu/formulas/formulas.js";
import { IN_REDUCTIONS } from "../../../js/dist/webgpu/formulas/generated.js";

const { elementwise, formula, identityOf, parse, reduction } = formulas;

test("parts are the lines of the formulas, whatever ends them", () => {
  for (const end of ["\n", "\r\n", "\r", "\v", "\f", "\u0085", "\u2028", "\u2029"]) {
    const text = formula(["let t = 1;", "", "y = t"].join(end), "operation");
    const what = { map: text, reduce: "a + b", postMap: "y = a", identity: "0", type: "f32" };
    const [inputs, outputs] = parse("raw f32 x, f16 k", "f32 y");
    const names = ["map", "reduce", "postMap"];
    const reduced = (pass) => reduction({ ...what, inputs, outputs, names }, ["r", "n"], pass);
    const sources = [
      [elementwise(inputs, outputs, text, ["r", "n"]), ["operation"]],
      [reduced("whole"), ["identity", ...names]],
      [reduced("first"), ["identity", "map", "reduce"]],
      [reduced("last"), ["identity", "reduce", "postMap"]],
    ];
    const texts = { ...what, operation: text };
    for (const [{ wgsl, parts }, shown] of sources) {
      assert.equal(`${parts.map(([name]) => name)}`, `${shown}`);
      for (const [name, first, count] of parts) {
        const lines = wgsl.split("\n").slice(first - 1, first - 1 + count);
        assert.equal(lines.join("\n"), texts[name]);
      }
    }
  }
});

test("an identity is a literal that its type has", () => {
  const most = (2 - 2 ** -23) * 2 ** 127;
  for (const [value, type, text] of [
    [0, "f32", "0"],
    [-0, "f32", "-0.0"],
    [-0, "i32", "0"],
    [0.5, "vec2f", "0.5"],
    [-2.25, "f16", "-2.25"],
    [1000, "u32", "1000"],
    [1e15, "f32", "1000000000000000"],
    [1e16, "f32", "1e+16"],
    [1e20, "f32", "1e+20"],
    [1e20, "vec4f", "1e+20"],
    [0.0001, "f32", "0.0001"],
    [0.00001, "f32", "1e-5"],
    [1e-40, "f32", "9.99994610111476e-41"],
    [5e-324, "f32", "0"],
    [most, "f32", "3.4028234663852886e+38"],
    [3.4028235e38, "f32", "3.4028234663852886e+38"],
    [65504, "f16", "65504"],
    [2 ** 31 - 1, "i32", "2147483647"],
    [-(2 ** 31), "vec2i", "-2147483648"],
    [2 ** 32 - 1, "vec4u", "4294967295"],
    ["0x1p3f", "f32", "0x1p3f"],
    [" u32()\r", "u32", " u32()\n"],
  ]) {
    assert.equal(identityOf(value, type), text);
  }
  for (const [value, type, message] of [
    [2 ** 31, "i32", /^identity 2147483648 is not an i32: .* from -2147483648 to 2147483647$/],
    [-1, "vec2u", /^identity -1 is not an u32: those are the integers from 0 to 4294967295$/],
    [0.5, "u32", /^identity 0.5 is not an u32/],
    [1e20, "i32", /^identity 1e\+20 is not an i32/],
    [Number.NaN, "i32", /^identity NaN is not an i32/],
    [1e39, "f32", /^identity 1e\+39 is not an f32: the largest is 0x1.fffffep\+127f$/],
    [65520, "f16", /^identity 65520 is not an f16: the largest is 0x1.ffcp\+15h$/],
    [Number.NaN, "f32", /^WGSL has no literal for NaN: use the largest finite number, "0x1/],
    [Number.NEGATIVE_INFINITY, "f16", /^WGSL has .* -Infinity: .*"-0x1.ffcp\+15h" for f16$/],
    [" ", "f32", /^identity is empty$/],
  ]) {
    assert.throws(() => identityOf(value, type), { name: "RangeError", message });
  }
  assert.throws(() => identityOf(null, "f32"), {
    name: "TypeError",
    message: /not \[object Null\]$/,
  });
});

test("names that would fail in the generated source are refused", () => {
  for (const [params, why] of [
    ["f32 _x", "_x is reserved"],
    ["f32 n", "n is reserved"],
    ["i32 main", "main is reserved"],
    ["raw f32 storage", "storage is reserved"],
    ["raw f32 min", "min is reserved"],
  ]) {
    const message = `"${params}": the name ${why}, so choose another`;
    assert.throws(() => parse(params, "f32 y"), { name: "RangeError", message });
  }
  for (const name of ["a", "b", "vec2f", "vec2i"]) {
    assert.throws(() => parse(`f32 ${name}`, "f32 y", IN_REDUCTIONS), / is reserved, so choose/);
    parse(`f32 ${name}`, "f32 y");
  }
  parse("f32 select, f32 min, raw f32 step, raw f32 constructor, raw f32 mindless", "f32 length");
  // The compiler refuses these: tests/browser/cases/py/gpu_elementwise.py.
  parse("f32 let, f32 self, raw f32 target", "f32 filter");
});

test("definitions that are none", () => {
  for (const [inputs, outputs, message] of [
    ["f32", "f32 y", '"f32" is not a parameter: write a type and a name, such as "f32 x"'],
    ["f32 x y", "f32 y", '"f32 x y" is not a parameter: write a type and a name, such as "f32 x"'],
    ["f32 x,", "f32 y", '"" is not a parameter: write a type and a name, such as "f32 x"'],
    ["f32 é", "f32 y", '"f32 é" is not a parameter: write a type and a name, such as "f32 x"'],
    [
      "f32\u00a0x",
      "f32 y",
      '"f32\u00a0x" is not a parameter: write a type and a name, such as "f32 x"',
    ],
    ["T x", "f32 y", '"T x": the type of a parameter is f32, i32, u32 or f16, not T'],
    [
      "rawf32 x",
      "f32 y",
      '"rawf32 x": the type of a parameter is f32, i32, u32 or f16, not rawf32',
    ],
    ["f32 x", " ", 'there is no output parameter, such as "f32 y"'],
    ["f32 x", "raw f32 y", '"raw f32 y": only inputs can be raw'],
    ["f32 x, i32 y", "f32 y, f32 x", 'two parameters have the name "y"'],
  ]) {
    assert.throws(() => parse(inputs, outputs), { name: "RangeError", message });
  }
  assert.equal(parse("\u2028float32\tx\u0085,\vraw  i32\u200ek ", "f32 y")[0].length, 2);
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

test("what WGSL reads otherwise is refused", () => {
  const floor =
    "operation: // begins a comment in WGSL: write floor(x / y), or the comment in /* */";
  const whole = (given, instead) =>
    `operation: ${given} is an integer division in WGSL: write ${instead}`;
  for (const [text, message] of [
    ...["y = x // 2", "y = x[i]//2", "y = (x)\n// 2", "y = 1. // 2", "y = x /* // */ // 2"].map(
      (text) => [text, floor],
    ),
    ["y = 1 / 2 * x", whole("1 / 2", "1.0 / 2")],
    ["y = x - 7/\n3", whole("7 / 3", "7.0 / 3")],
    ["y = x * 2 - -7 / /* 2 */ 3", whole("7 / 3", "7.0 / 3")],
    ["y = x * (1 / -2)", whole("1 / 2", "1.0 / 2")],
    ["y = 3 * 1 / 2 * x", whole("1 / 2", "1.0 / 2")],
    ["y = 8 / 4 / -3 * x", whole("4 / 3", "4.0 / 3")],
    ["y = x / y - 1 / 2", whole("1 / 2", "1.0 / 2")],
  ]) {
    assert.throws(() => formula(text, "operation"), { name: "RangeError", message }, text);
  }
  for (const text of [
    ...["// half of it\ny = x / 2; // that is all\n", "if (x > 1) { // more\ny = x; } // end\n"],
    ...["y = /* x // 2 */ x", "y = x * 1 / 2", "y = x * -1 / 2", "y = x % 3 / 2", "y = x / 1 / 2"],
    ...[
      "y = 3 * 2 / 3 * x",
      "y = x + 9 % 5 / 2",
      "y = 4 / 2 * x",
      "y = 1.0 / 2",
      "y = 1 / 2.0",
      "y = .1 / 2",
      "y = 1e-3 / 2",
      "y = 1 / 2f",
    ],
    ...["y = 1e+1 / 3", "i = 1u / 2u", "y = x1 / 2", "y = v[1] / 2", "y = f32(1) / 2", "y = 1 / x"],
    ...["y = 0 / 2", "y = 0x1p-1 / 3", "y = 1 / 0", "/"],
  ]) {
    assert.equal(formula(text, "operation"), text);
  }
});
