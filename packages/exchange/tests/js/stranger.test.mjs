// One-line faults in the producer and the consumer of a stranger: the suite finds each by its rule.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { conformance, consumerConformance } from "../../js/dist/index.js";
import { fakeDevice } from "./conformance_parts.mjs";
import { FAULTS, faultsOf, loaded, ON_GPU } from "./stranger_faults.mjs";
import { READER_FAULTS } from "./stranger_reader_faults.mjs";
import { VARIANTS } from "./stranger_variants.mjs";

const textOf = (name) => readFile(new URL(name, import.meta.url), "utf8");
const [PRODUCER, CONSUMER] = [await textOf("stranger.mjs"), await textOf("stranger_consumer.mjs")];
const devices = () => ({ device: fakeDevice(), requestDevice: fakeDevice });
const brokenOf = ({ rules }) => rules.filter((rule) => !rule.ok);

function produced({ make, makeFaulty }, options = {}) {
  return conformance({ make, makeFaulty, ...devices(), dtypes: ["float32", "uint8"], ...options });
}

const consumed = ({ consume }) =>
  consumerConformance({ consume, ...devices(), dtypes: ["float32", "int16", "uint64"] });

test("the stranger's producer and consumer break nothing, and leave no rule of theirs out", async () => {
  const report = await produced(loaded(PRODUCER));
  assert.deepEqual(brokenOf(report), []);
  const skipped = report.rules.filter((rule) => rule.skipped).map(({ id }) => id);
  assert.deepEqual(skipped, ["F13", "S2", "O5"]); // no packed elements, no memory that grows
  const { rules } = await consumed(loaded(CONSUMER));
  assert.deepEqual(
    rules.filter((rule) => !rule.ok || rule.skipped),
    [],
  );
});

// Several at once, as most of them wait.
describe("faults of a producer", { concurrency: 6 }, () => {
  for (const { id, what, text } of faultsOf(PRODUCER, FAULTS + ON_GPU)) {
    test(`${id}: ${what}`, async () => {
      const report = await produced(loaded(text), { timeoutMs: 4000 });
      const broken = brokenOf(report);
      const found = broken.map((rule) => rule.id);
      // Memory that goes later is missed by a rule that waits, too, on a slow machine.
      const expected = what.includes(" ms after ") && found.includes("M3") ? ["M3", id] : [id];
      assert.deepEqual(found, expected, JSON.stringify(broken));
    });
  }
});

describe("faults of a consumer", { concurrency: 6 }, () => {
  for (const { id, what, text } of faultsOf(CONSUMER, READER_FAULTS)) {
    test(`${id}: ${what}`, async () => {
      const broken = brokenOf(await consumed(loaded(text)));
      assert.deepEqual(
        broken.map((rule) => rule.id),
        [id],
        JSON.stringify(broken),
      );
    });
  }
});

test("there is a faulty consumer for each rule", async () => {
  const { rules } = await consumed(loaded(CONSUMER));
  const seen = new Set(faultsOf(CONSUMER, READER_FAULTS).map(({ id }) => id));
  assert.deepEqual(
    rules.map(({ id }) => id).filter((id) => !seen.has(id)),
    [],
  );
});

describe("right producers", { concurrency: 6 }, () => {
  for (const [what, variant] of Object.entries(VARIANTS)) {
    test(what, async () => {
      const { Class, options } = variant(loaded(PRODUCER).Stranger);
      const make = ({ dtype, ...rest }) =>
        ["float32", "uint8"].includes(dtype) ? new Class({ dtype, ...rest }) : undefined;
      const report = await produced({ make }, options);
      assert.deepEqual(brokenOf(report), []);
    });
  }
});

test("without the hooks, rules of faults and lost devices are skipped with the reason", async () => {
  const { rules } = await produced(loaded(PRODUCER), {
    makeFaulty: undefined,
    requestDevice: undefined,
  });
  const reasonOf = (name) => rules.find(({ id }) => id === name).message;
  assert.equal(reasonOf("E1"), "GPU: makeFaulty was not given");
  assert.equal(reasonOf("E4"), "GPU: requestDevice was not given");
});
