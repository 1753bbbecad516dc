// What a kernel's source declares.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseShader, stripComments } from "../../../js/dist/webgpu/wgsl.js";

const bindingsOf = (source) => parseShader(source, "main").bindings;
const brief = (source) =>
  bindingsOf(source)?.map(({ index, name, type, value }) => ({ index, name, type, value }));

test("bindings are found in any order and spelling", () => {
  const found = brief(`
    enable f16;
    const_assert 1 < 2;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;
    @binding(0) @group(0)
    var<storage, read> in: array<f32>; // @group(0) @binding(7) var<storage> no: u32;
    /* @group(0) @binding(8) var<storage> /* nested */ no: u32; // */
    @group(0u) @binding(2,) var<storage> more: array<u32>;
    @group(0) @binding(3) var<uniform> größe: vec4u;
    var<workgroup> tile: array<f32, 64>;
    var<private> mine: f32;
    @compute @workgroup_size(8, 8) fn main() { var local = 1; if (local < 2) { local = 3 >> 1; } }
    fn other(a: ptr<function, f32>) -> vec2<f32> { return vec2<f32>(1); }
    @group(0) @binding(4) var<storage> last: array<array<vec2<f32>, 3>>;`);
  assert.deepEqual(found, [
    { index: 0, name: "in", type: "read-only-storage", value: "array<f32>" },
    { index: 1, name: "out", type: "storage", value: "array<f32>" },
    { index: 2, name: "more", type: "read-only-storage", value: "array<u32>" },
    { index: 3, name: "größe", type: "uniform", value: "vec4u" },
    { index: 4, name: "last", type: "read-only-storage", value: "array<array<vec2<f32>, 3>>" },
  ]);
});

for (const [what, source] of [
  ["a gap", "@group(0) @binding(1) var<storage> x: u32;"],
  ["another group", "@group(1) @binding(0) var<storage> x: u32;"],
  ["a texture", "@group(0) @binding(0) var x: texture_2d<f32>;"],
  ["an overridden binding", "override B = 0; @group(0) @binding(B) var<storage> x: u32;"],
]) {
  test(`${what} is left to the browser`, () => assert.equal(bindingsOf(source), null));
}

test("no bindings are no bindings", () => {
  assert.deepEqual(bindingsOf("@compute @workgroup_size(1) fn main() {}"), []);
});

test("comments go, and division stays", () => {
  assert.equal(stripComments("a / b * c"), "a / b * c");
  assert.equal(stripComments("a/*x*/b//c\nd"), "a b\nd");
  assert.equal(stripComments("a/* // */b"), "a b");
  assert.equal(stripComments("a/* /* x */ // \n y */b"), "a\n b");
  assert.equal(stripComments("a// /* \nb // */\nc"), "a\nb \nc");
  assert.equal(stripComments("a /* open"), "a ");
});

/** [scalar, atomic, stride, size, runtime] of a type; WGSL 14.4 has the rules. */
function layout(type, before = "") {
  const source = `${before} @group(0) @binding(0) var<storage, read_write> x: ${type};`;
  const [{ scalar, atomic, stride, size, runtime }] = bindingsOf(source);
  return [scalar, atomic, stride, size, runtime];
}

for (const [type, expected, before] of [
  ["f32", ["f32", false, 4, 4, false]],
  ["array<f32>", ["f32", false, 4, 4, true]],
  ["array<f16>", ["f16", false, 2, 2, true]],
  ["array<vec3f>", ["f32", false, 16, 12, true]],
  ["array<vec3<f16>>", ["f16", false, 8, 6, true]],
  ["array<vec4<u32>>", ["u32", false, 16, 16, true]],
  ["array<vec2i>", ["i32", false, 8, 8, true]],
  ["array<mat3x3f>", ["f32", false, 48, 48, true]],
  ["array<mat2x4<f16>>", ["f16", false, 16, 16, true]],
  ["array<atomic<u32>>", ["u32", true, 4, 4, true]],
  ["atomic<i32>", ["i32", true, 4, 4, false]],
  ["array<f32, 10>", ["f32", false, 40, 40, false]],
  ["array<vec3f, 2u>", ["f32", false, 32, 32, false]],
  ["array<f32, N>", ["f32", false, 24, 24, false], "const N: u32 = 6u;"],
  ["array<f32, 0x10>", ["f32", false, 64, 64, false]],
  ["array<Row>", ["f32", false, 16, 16, true], "alias Row = array<f32, 4>;"],
  ["P", ["f32", false, 16, 16, false], "struct P { a: vec3f, b: f32 }"],
  ["P", [null, false, 16, 16, false], "struct P { a: vec3f, b: u32, }"],
  ["array<P>", [null, false, 32, 32, true], "struct P { a: u32, @align(16) b: vec3<f32>, };"],
  ["array<P>", ["f32", false, 32, 32, true], "struct P { @size(32) a: f32 }"],
  ["P", [null, false, 16, 16, false], "struct P { n: u32, @align(16) x: array<f32> }"],
  ["Unknown", [null, false, 0, 0, false]],
  ["array<f32, N>", [null, false, 0, 0, false], "override N = 6;"],
]) {
  test(`the layout of ${type} ${before ?? ""}`, () => {
    assert.deepEqual(layout(type, before), expected);
  });
}

for (const [attribute, expected] of [
  ["@workgroup_size(64)", [64, 1, 1]],
  ["@workgroup_size(8, 8)", [8, 8, 1]],
  ["@workgroup_size(2u, 3, N)", [2, 3, 5]],
  ["@workgroup_size(64,)", [64, 1, 1]],
  ["@workgroup_size(W)", null],
  ["@workgroup_size(2 * 4)", null],
]) {
  test(`the workgroups of ${attribute}`, () => {
    const source = `const N = 5; override W = 4; fn other() {} @compute ${attribute} fn main() {}`;
    assert.deepEqual(parseShader(source, "main").workgroup, expected);
  });
}

test("a source that is no WGSL comes to an end", () => {
  for (const source of [
    "",
    "}{",
    "@",
    "@group(",
    "var<",
    "struct {",
    "fn (",
    "((((",
    "@group(0)",
  ]) {
    parseShader(source, "main");
  }
});

// The desktop's Python reads shaders by itself: tests/desktop/test_wgsl.py reads the same table.
for (const [i, { source, entry, ...found }] of JSON.parse(
  readFileSync(new URL("../../wgsl.json", import.meta.url), "utf8"),
).entries()) {
  test(`shader ${i} of tests/wgsl.json`, () => assert.deepEqual(parseShader(source, entry), found));
}
