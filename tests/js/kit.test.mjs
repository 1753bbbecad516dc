// What the kit (tests/kit) takes for a GPU, and the order of what it measures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { advice, refusal } from "../kit/adapters.mjs";
import { plan } from "../kit/figures.mjs";

const told = (webgpu, more) => ({
  webgpu,
  compiler: "expected global item, found",
  adapter: { device: "", isFallbackAdapter: false, ...more },
});

test("real GPUs are taken, by the names that both implementations give them", () => {
  for (const name of [
    "4318 NVIDIA H200",
    "nvidia hopper",
    "AMD Radeon RX 7900 XTX (RADV NAVI31)",
    "intel xe-2lpg Intel(R) Arc(tm) Graphics",
  ]) {
    assert.equal(refusal(told(name), "expected global item", false), null, name);
  }
});

test("software is refused unless it is asked for, and what has no name with it", () => {
  const software = [
    told("65541 llvmpipe (LLVM 15.0.6, 256 bits)"),
    told("google swiftshader SwiftShader driver 5.0.0"),
    told("6880 SwiftShader Device (Subzero)"),
    told("mesa", { device: "lavapipe" }),
    told("a driver of somebody's", { isFallbackAdapter: true }),
    told(""),
  ];
  for (const each of software) {
    assert.match(refusal(each, "expected global item", false), /^only a software adapter: ./);
    assert.equal(refusal(each, "expected global item", true), null);
  }
});

test("no adapter, and another implementation, are refused whatever is asked for", () => {
  const none = { webgpu: "", compiler: "", adapter: null };
  assert.equal(refusal(none, "expected global item", true), "no adapter");
  assert.match(refusal(told("NVIDIA H200"), "unexpected token", true), /another implementation/);
});

test("advice on software is given only where there is some", () => {
  assert.match(advice(true), /--software/);
  assert.doesNotMatch(advice(false), /--software/);
});

test("a run that is cut short has small sizes of all paths", () => {
  const steps = plan({ quick: false, sizes: null });
  const paths = (list) => new Set(list.map(({ path, layout }) => `${path} ${layout}`));
  assert.equal(paths(steps).size, 9);
  assert.deepEqual(paths(steps.filter(({ bytes }) => bytes <= 4 << 20)), paths(steps));
  assert.deepEqual(
    steps.map(({ bytes }) => bytes),
    steps.map(({ bytes }) => bytes).sort((a, b) => a - b),
  );
  assert.equal(steps.at(-1).bytes, 2 ** 30);
  assert.equal(Math.max(...steps.filter((s) => s.layout === "f64").map((s) => s.bytes)), 2 ** 28);
});
