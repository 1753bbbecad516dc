// The suite of dlpack-web-exchange: right ones pass, and whoever breaks one rule is found by it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { Tensor } from "../../../../js/dist/index.js";
import { conformance, consumerConformance } from "../../js/dist/index.js";
import { EXCHANGE, fakeDevice, Right } from "./conformance_parts.mjs";
import { BREAKS, ON_CPU, RIGHT } from "./conformance_producers.mjs";
import { breaksNothing, consumeByTake } from "./reports.mjs";
import { FAULTS, faultsOf, loaded, ON_GPU } from "./stranger_faults.mjs";

/** Rules for consumers that the CPU does not show. */
const ONLY_GPU = ["F15", "E3", "E4", "N1"];
const WHOLE = /^(u?int(8|16|32|64)|b?float\d+|complex\d+|bool)$/;
const textOf = (name) => readFile(new URL(name, import.meta.url), "utf8");
const idsOf = ({ rules }, which) => rules.filter(which).map((rule) => rule.id);
const broken = (report) => idsOf(report, (rule) => !rule.ok);
const skipped = (report) => idsOf(report, (rule) => rule.skipped);
const messageOf = ({ rules }, id) => rules.find((rule) => rule.id === id).message;

/** What is found out about producers of a class. */
function producers(Class, { device = null, dtypes = ["float32", "int16"], ...options } = {}) {
  const make = (wanted) => (WHOLE.test(wanted.dtype) ? new Class(wanted) : undefined);
  return conformance({ make, device, dtypes, ...options });
}

describe("right producers", { concurrency: 6 }, () => {
  for (const [name, Class] of Object.entries(RIGHT)) {
    for (const device of ON_CPU.includes(name) ? [null] : [null, fakeDevice()]) {
      test(`a right producer breaks nothing: ${name} on ${device ? "a GPU" : "the CPU"}`, async () => {
        const report = await producers(Class, { device, dtypes: undefined });
        breaksNothing(report);
        assert.ok(report.ok);
      });
    }
  }
});

/** Rules of faults, which the stranger's producers keep and break. */
const OF_FAULTS = ["E1", "E2", "E4"];

test("all rules that can be tested are, one way or another", async () => {
  const device = fakeDevice();
  const all = Object.entries(RIGHT).map(([name, Class]) => {
    const on = ON_CPU.includes(name) ? null : device;
    return producers(Class, { device: on });
  });
  const never = (await Promise.all(all)).map(skipped);
  // Packed elements are those of this library's tensors, below.
  assert.deepEqual(
    never.reduce((a, b) => a.filter((id) => b.includes(id))),
    ["F13", ...OF_FAULTS],
  );
});

describe("broken producers", { concurrency: 6 }, () => {
  for (const [id, what, Class, { on, all, dtypes = ["float32"], ...options } = {}] of BREAKS) {
    test(`a producer that breaks ${id}: ${what}`, async () => {
      const fits = ({ dtype, device }) =>
        (all || WHOLE.test(dtype)) && (on === "gpu" ? device : !device || options.device);
      const make = (wanted) => (fits(wanted) ? new Class(wanted) : undefined);
      const report = await conformance({ make, dtypes, ...options });
      assert.deepEqual(
        report.rules.filter((rule) => !rule.ok).map((rule) => [rule.id]),
        [[id]],
        JSON.stringify(report.rules.filter((rule) => !rule.ok)),
      );
      assert.equal(report.ok, false);
    });
  }
});

test("there is a broken producer for each rule, here or in stranger_faults.mjs", async () => {
  const { rules } = await producers(Right);
  const faults = faultsOf(await textOf("./stranger.mjs"), FAULTS + ON_GPU);
  const seen = new Set([...BREAKS.map(([id]) => id), ...faults.map(({ id }) => id)]);
  assert.deepEqual(
    rules.map(({ id }) => id).filter((id) => !seen.has(id)),
    [],
  );
});

const { consume } = loaded(await textOf("./stranger_consumer.mjs"));

/** What is found out about a right consumer, of elements that are enough for most. */
const consumers = (options = {}) =>
  consumerConformance({ consume, dtypes: ["float32", "int16"], ...options });

for (const device of [null, fakeDevice()]) {
  test(`a right consumer breaks nothing on ${device ? "a GPU" : "the CPU"}`, async () => {
    const report = await consumers({ device, dtypes: undefined });
    breaksNothing(report);
    assert.deepEqual(skipped(report), device ? [] : ONLY_GPU);
  });
}

const UNFIT = [
  [
    "throws",
    () => {
      throw new Error("no factory today");
    },
    /threw Error: no factory today/,
  ],
  [
    "rejects",
    async () => {
      throw new Error("not now");
    },
    /threw Error: not now/,
  ],
  ["never settles", () => new Promise(() => {}), /did not end within 2000 ms/],
  ["gives null", () => null, /gave null, without \[Symbol.for\("dlpack.exchange"\)\]/],
  ["gives a number", () => 5, /gave 5, without/],
  ["gives an empty object", () => ({}), /gave \[object Object\], without/],
  [
    "gives an exchange",
    (wanted) => new Right(wanted)[EXCHANGE](),
    /gave \[object Object\], without/,
  ],
  ["makes nothing", () => undefined, /make made nothing that could be tested/],
];
for (const [what, make, message] of UNFIT) {
  test(`a factory that ${what} is told of, and the suite ends`, async () => {
    const report = await conformance({ make, device: fakeDevice(), timeoutMs: 2000 });
    assert.deepEqual(broken(report), ["M1"]);
    assert.match(messageOf(report, "M1"), message);
    assert.equal(skipped(report).length, report.rules.length - 1);
  });
}

test("a consumer that throws, hangs or gives nothing is told of", async () => {
  const throws = await consumerConformance({ consume: () => Promise.reject(new Error("never")) });
  assert.deepEqual(broken(throws), ["X1"]);
  const never = await consumerConformance({
    consume: () => new Promise(() => {}),
    timeoutMs: 2000,
  });
  assert.deepEqual(broken(never), ["M1"]);
  assert.match(messageOf(never, "M1"), /consume did not end within 2000 ms/);
  const nothing = await consumerConformance({ consume() {} });
  assert.deepEqual(broken(nothing), ["M1"]);
});

test("options that make no sense are told of", async () => {
  for (const report of [
    await conformance(),
    await conformance({ make: 5 }),
    await consumerConformance({}),
  ]) {
    assert.deepEqual(broken(report), ["M1"]);
  }
  const report = await producers(Right, { dtypes: ["float32", "float31"] });
  assert.deepEqual(broken(report), ["F3"]);
  assert.match(messageOf(report, "F3"), /"float31"/);
});

test("hostile options do not reject the promise", async () => {
  const hostile = {
    get [EXCHANGE]() {
      throw new Error("a getter");
    },
  };
  const thrown = Object.defineProperty(new Error(), "name", {
    get() {
      throw new Error("a name");
    },
  });
  for (const make of [
    () => hostile,
    () => ({ [EXCHANGE]: () => ({ __proto__: null }) }),
    () => ({ [EXCHANGE]: () => new Proxy({}, { get: () => Symbol("?") }) }),
    () => ({
      [EXCHANGE]() {
        throw thrown;
      },
    }),
    () => ({
      [EXCHANGE]() {
        throw null;
      },
    }),
  ]) {
    assert.equal((await conformance({ make })).ok, false);
  }
});

test("one that never settles costs its own time, and others none", async () => {
  const began = performance.now();
  await Promise.all([producers(Right), consumers()]);
  assert.ok(performance.now() - began < 60_000);
});

const text = await textOf("../../EXCHANGE.md");

/** What a snippet of the text declares. */
function snippet(kind, name) {
  const [, code] = text.match(new RegExp(`\`\`\`js\n// ${kind}\n(.*?)\`\`\``, "s"));
  return new Function(`${code}; return ${name};`)();
}

test("the producer of the text breaks nothing", async () => {
  const Picture = snippet("producer", "Picture");
  const make = ({ dtype, shape, bytes, device }) => {
    if (!device || dtype !== "float32" || shape.length !== 2) return undefined;
    const [height, width] = shape;
    const buffer = device.createBuffer({ size: bytes.length + 16, usage: 128 | 4 | 8 });
    device.queue.writeBuffer(buffer, 0, bytes);
    return new Picture(device, buffer, { height, width });
  };
  const report = await conformance({ make, device: fakeDevice() });
  assert.deepEqual(broken(report), []);
  for (const id of ["T1", "R2", "R7", "O1", "O7", "X1", "X2", "X3"]) {
    assert.ok(!skipped(report).includes(id), id);
  }
});

test("the consumer of the text breaks nothing", async () => {
  const withBuffer = snippet("consumer", "withBuffer");
  const device = fakeDevice();
  const read = (buffer, bytes) => new Float32Array(buffer.bytes.slice(0, bytes).buffer);
  const consume = (x, { copy }) => withBuffer(device, x, read, copy);
  const report = await consumerConformance({ consume, device, dtypes: ["float32"] });
  breaksNothing(report);
  for (const id of ["M1", "S9", "E3", "E4", "O6", "O7", "X2"]) {
    assert.ok(!skipped(report).includes(id), id);
  }
});

test("every rule of the text is tested, or is one that nobody can see", async () => {
  const ids = [...text.matchAll(/\*\*([A-Z]\d+)\*\*/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length, "each has a number of its own");
  const [made, taken] = [await producers(Right), await consumers()];
  const tested = new Set([...made.rules, ...taken.rules].map(({ id }) => id));
  assert.deepEqual(
    [...tested].filter((id) => !ids.includes(id)),
    [],
  );
  assert.deepEqual(
    ids.filter((id) => !tested.has(id)),
    ["M4", "D2", "D3", "D4", "D5", "N2"],
  );
});

test("this library's tensors break nothing, in all dtypes", async () => {
  const make = ({ dtype, shape, bytes }) => Tensor.fromTypedArray(bytes, { dtype, shape });
  const report = await conformance({ make });
  breaksNothing(report);
  assert.match(messageOf(report, "S8"), /float32.*float4_e2m1fn.*uint4/);
  assert.ok(!skipped(report).includes("F13"));
});

test("this library's take() breaks nothing", async (context) => {
  context.mock.method(console, "error", () => {}); // errors of release() are reported there
  const report = await consumerConformance({ consume: consumeByTake });
  breaksNothing(report);
  assert.deepEqual(skipped(report), ONLY_GPU);
});
