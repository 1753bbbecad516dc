// What a kernel's source declares.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBindings, stripComments } from "../../js/dist/webgpu/wgsl.js";

test("bindings are found in any order and spelling", () => {
  const found = parseBindings(`
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;
    @binding(0) @group(0)
    var<storage, read> in: array<f32>; // @group(0) @binding(7) var<storage> no: u32;
    /* @group(0) @binding(8) var<storage> /* nested */ no: u32; */
    @group(0u) @binding(2,) var<storage> more: array<u32>;
    @group(0) @binding(3) var<uniform> größe: vec4u;
    var<workgroup> tile: array<f32, 64>;
    var<private> mine: f32;
    @compute @workgroup_size(8, 8) fn main() { var local = 1; }`);
  assert.deepEqual(found, [
    { index: 0, name: "in", type: "read-only-storage", value: undefined },
    { index: 1, name: "out", type: "storage", value: undefined },
    { index: 2, name: "more", type: "read-only-storage", value: undefined },
    { index: 3, name: "größe", type: "uniform", value: "vec4u" },
  ]);
});

for (const [what, source] of [
  ["a gap", "@group(0) @binding(1) var<storage> x: u32;"],
  ["another group", "@group(1) @binding(0) var<storage> x: u32;"],
  ["a texture", "@group(0) @binding(0) var x: texture_2d<f32>;"],
  ["a named binding", "const B = 0; @group(0) @binding(B) var<storage> x: u32;"],
]) {
  test(`${what} is left to the browser`, () => assert.equal(parseBindings(source), null));
}

test("no bindings are no bindings", () => {
  assert.deepEqual(parseBindings("@compute @workgroup_size(1) fn main() {}"), []);
});

test("comments go, and division stays", () => {
  assert.equal(stripComments("a / b * c"), "a / b * c");
  assert.equal(stripComments("a/*x*/b//c\nd"), "ab \nd");
});
