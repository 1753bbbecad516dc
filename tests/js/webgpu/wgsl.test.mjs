// What a kernel's source declares. Python's reader is compared with this one by tests/fuzz/twins.
// Looks inside: what was read of a source, which a Kernel uses and does not show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseShader, withLines } from "../../../js/dist/webgpu/kernels/wgsl.js";

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

test("comments are blanks, and division stays", () => {
  for (const [before, found] of [
    ["/* // */", true],
    ["// /* \n", true],
    ["/* /* x */ // \n y */", true],
    ["/**//*/**/*/", true],
    ["/*/ */", true],
    ["const x = 8 / 4 * 2; ", true],
    ["/* open ", false],
    ["// \u200e", false],
    ...[..."\n\v\f\r\u0085\u2028\u2029"].map((end) => [`// x${end}`, true]),
  ]) {
    const source = `${before}@group(0) @binding(0) var<storage> x: u32;`;
    assert.equal(bindingsOf(source)?.length, found ? 1 : 0, JSON.stringify(before));
  }
});

test("every blank of WGSL separates, and nothing else does", () => {
  for (const blank of " \t\n\v\f\r\u0085\u200e\u200f\u2028\u2029") {
    const source = ["@group(0)", "@binding(0)", "var<storage>", "x:", "u32;"].join(blank);
    assert.deepEqual(brief(source)?.[0]?.name, "x", JSON.stringify(blank));
  }
  for (const other of "\u00a0\ufeff\u001c\u2003") {
    assert.equal(bindingsOf(`@group(0) @binding(0)${other}var<storage> x: u32;`)?.length, 0);
  }
});

test("a line ends where WGSL says", () => {
  const source = "a\r\nb\rc\vd\fe\u0085f\u2028g\u2029h\n\r\ni";
  assert.equal(withLines(source), "a\nb\nc\nd\ne\nf\ng\nh\n\ni");
});

test("names of Object.prototype are names like others", () => {
  for (const name of ["constructor", "valueOf", "toString", "__proto__", "hasOwnProperty"]) {
    const source = `
      struct ${name} { ${name}: f32 }
      @group(0) @binding(0) var<storage> x: array<${name}>;
      @compute @workgroup_size(4) fn main() { var ${name} = 1; if (${name} < 2) { } }
      @group(0) @binding(1) var<uniform> ${name}_: u32;`;
    const { bindings, workgroup } = parseShader(source, "main");
    assert.deepEqual(
      [bindings?.map(({ scalar }) => scalar), workgroup],
      [
        ["f32", "u32"],
        [4, 1, 1],
      ],
    );
    assert.deepEqual(layout(name), UNKNOWN);
    assert.deepEqual(layout(`array<f32, ${name}>`), UNKNOWN);
  }
});

/** [scalar, atomic, stride, element, align, runtime] of a type; WGSL 14.4 has the rules. */
function layout(type, before = "") {
  const source = `${before} @group(0) @binding(0) var<storage, read_write> x: ${type};`;
  const [{ scalar, atomic, stride, element, align, runtime }] = bindingsOf(source);
  return [scalar, atomic, stride, element, align, runtime];
}

const UNKNOWN = [null, false, 0, 0, 0, false];
for (const [type, expected, before] of [
  ["f32", ["f32", false, 4, 0, 0, false]],
  ["array<f32>", ["f32", false, 4, 4, 0, true]],
  ["array<f16>", ["f16", false, 2, 2, 0, true]],
  ["array<vec3f>", ["f32", false, 16, 16, 16, true]],
  ["array<vec3<f16>>", ["f16", false, 8, 8, 8, true]],
  ["array<vec4<u32>>", ["u32", false, 16, 16, 0, true]],
  ["array<vec2i>", ["i32", false, 8, 8, 0, true]],
  ["array<mat3x3f>", ["f32", false, 48, 48, 16, true]],
  ["array<mat3x2f, 2>", ["f32", false, 48, 24, 8, false]],
  ["mat4x3h", ["f16", false, 32, 8, 8, false]],
  ["mat3x4f", ["f32", false, 48, 16, 0, false]],
  ["array<mat2x4<f16>>", ["f16", false, 16, 16, 8, true]],
  ["array<atomic<u32>>", ["u32", true, 4, 4, 0, true]],
  ["atomic<i32>", ["i32", true, 4, 0, 0, false]],
  ["array<f32, 10>", ["f32", false, 40, 4, 0, false]],
  ["array<vec3f, 2u>", ["f32", false, 32, 16, 16, false]],
  ["array<array<vec3f, 2>>", ["f32", false, 32, 32, 16, true]],
  ["array<f32, N>", ["f32", false, 24, 4, 0, false], "const N: u32 = 6u;"],
  ["array<f32, 0x10>", ["f32", false, 64, 4, 0, false]],
  ["array<Row>", ["f32", false, 16, 16, 0, true], "alias Row = array<f32, 4>;"],
  ["P", ["f32", false, 16, 0, 0, false], "struct P { a: vec3f, b: f32 }"],
  ["P", [null, false, 16, 0, 0, false], "struct P { a: vec3f, b: u32, }"],
  ["array<P>", [null, false, 32, 32, 16, true], "struct P { a: u32, @align(16) b: vec3<f32>, };"],
  ["array<P>", ["f32", false, 32, 32, 4, true], "struct P { @size(32) a: f32 }"],
  ["P", [null, false, 20, 4, 0, false], "struct P { n: u32, @align(16) x: array<f32> }"],
  ["P", [null, false, 32, 16, 16, false], "struct P { n: u32, x: array<vec3f> }"],
  ["Unknown", UNKNOWN],
  ["array<f32, N>", UNKNOWN, "override N = 6;"],
  ["array<f32, 0Xfi>", ["f32", false, 60, 4, 0, false]],
  ["f32", ["u32", false, 4, 0, 0, false], "alias f32 = u32;"],
  ["vec3f", ["f32", false, 12, 0, 0, false], "struct vec3f { x: f32, y: f32, z: f32 }"],
  ["array<vec3<f32,>, 2,>", ["f32", false, 32, 16, 16, false]],
  ["P", ["f32", false, 8, 0, 0, false], "struct P { @align(4,) a: f32, @size(4) b: f32 }"],
  // What WGSL refuses is unknown here, and the compiler's.
  ...["mat4f", "vec2x3f", "mat2x2i", "mat2x2<u32>", "atomic<f32>", "atomic<vec2u>", "vec2<vec2f>"],
  ...["array<array<f32>>", "array<f32, 0>", "array<f32, 1, 2>", "array<f32, 07>", "array<f32, ٤>"],
  ...["array<f32, 4294967296>", "array<vec4f, 4294967295>", "array<f32, 1.0>", "vec3", "ptr<f32>"],
  ...[`${"array<".repeat(21)}f32${", 1>".repeat(21)}`, "bool", "vec2<f32, 2>", "array<f32"],
  ["A", UNKNOWN, "alias A = B; alias B = A;"],
  ["A", UNKNOWN, "struct A { a: array<A, 2> }"],
  ...["@align(0)", "@align(2)", "@size(3)", "@align(N)", "@size(1, 2)"].map((mark) => [
    "P",
    UNKNOWN,
    `struct P { ${mark} a: f32 }`,
  ]),
].map((one) => (typeof one === "string" ? [one, UNKNOWN] : one))) {
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
  ["@workgroup_size(1, 2, 3, 4)", null],
  ["@workgroup_size(0)", null],
  ["@workgroup_size()", null],
  ["@workgroup_size(8,,8)", null],
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

test("a structure of structures is read once each", () => {
  const most = 20;
  let source = "struct S0 { a: f32 } ";
  for (let i = 1; i < most; i++)
    source += `struct S${i} { a: S${i - 1}, b: S${i - 1}, c: S${i - 1} } `;
  assert.deepEqual(layout("array<S3, 2>", source), ["f32", false, 216, 108, 4, false]);
  assert.deepEqual(layout(`S${most - 1}`, source), UNKNOWN); // more than 4 GiB
});
