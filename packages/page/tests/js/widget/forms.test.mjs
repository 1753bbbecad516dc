// Operations of a wrong form: one failure is one answer, or is reported, and the queue goes on.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { dtypeNamed } from "../../../../../js/dist/core/dtype.js";
import { liveTensors } from "../../../../../js/dist/index.js";
import { emptyOnDevice } from "../../../../../js/dist/webgpu/buffers/buffers.js";
import { useDevice } from "../../../../../js/dist/webgpu/device/device.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { fractions } from "../../../../../tests/js/random.mjs";
import { NamedTensors } from "../../../js/dist/widget/tensors.js";
import { Work } from "../../../js/dist/widget/work.js";

const WGSL = `
  @group(0) @binding(0) var<storage, read_write> x: array<f32>;
  @compute @workgroup_size(1) fn main() { x[0] = 1; }`;
mock.method(console, "error", () => {});

const elements = { shape: [4], dtype: "float32", padded: false };
const view = (id) => ({ id, ...elements, offset: 0, strides: null, readOnly: false });
const source = { wgsl: WGSL, entry: "main", label: "", check: true, parts: [], site: 1 };
const call = (id) => ({ kernel: 9, args: [view(id)], groups: [1], writes: [id], site: 5 });

/** Right operations of each kind; tensors have the ids 1 and 2. */
const RIGHT = [
  { op: "empty", id: 3, shape: [4], dtype: "float32" },
  { op: "take", id: 3, name: "a", ...elements },
  { op: "write", to: view(1), site: 4, name: "a", ...elements },
  { op: "write", to: view(1), site: 4, source: view(2) },
  { op: "free", what: [["tensor", 3]] },
  { op: "kernel", id: 8, ...source },
  { op: "run", calls: [call(1), call(2)] },
  { op: "time", call: call(1) },
  { op: "ready", kernel: 9 },
  { op: "read", what: [view(1), view(2)], names: ["r", "s"], site: 6 },
  { op: "settle" },
  { op: "canvas", what: view(1) },
  { op: "give", key: "x", what: view(1), site: 7 },
  { op: "give", key: "x", what: null, site: 7 },
  { op: "cancel", name: "a", why: "given up", to: 1 },
];
/** Those that are answered. */
const ASKED = ["time", "ready", "read", "settle", "canvas"];
/** What JSON can carry, in place of what is right. */
const WRONG = [
  undefined,
  null,
  true,
  0,
  -1,
  0.5,
  5,
  1e9,
  2 ** 53,
  1e308,
  "",
  "a",
  "float32",
  "constructor",
  "-0x1",
  [],
  [null],
  [[]],
  [1e9, 1e9],
  [-4],
  ["tensor"],
  ["tensor", 99],
  ["nothing", 1],
  {},
  { id: 99 },
  { toString: 1 },
  { length: 1e9 },
  view(99),
];

/** Changes a value somewhere in an operation, but for its reply. */
function spoilt(operation, rng) {
  const one = (list) => list[Math.floor(rng() * list.length)];
  const copy = structuredClone(operation);
  let place = copy;
  let keys = Object.keys(copy).filter((key) => key !== "reply");
  for (;;) {
    const key = one(keys);
    const inner = place[key];
    const isDeep = typeof inner === "object" && inner !== null && Object.keys(inner).length > 0;
    if (!isDeep || rng() < 0.4) {
      if (rng() < 0.3 && !Array.isArray(place)) delete place[key];
      else place[key] = structuredClone(one(WRONG));
      return copy;
    }
    place = inner;
    keys = Object.keys(place);
  }
}

/** A page's work, and what it told. `rng`: what it needs of the page fails at random. */
function made(rng = () => 1) {
  const device = fakeDevice();
  const [replies, reports] = [[], []];
  const fails = () => {
    if (rng() < 0.3) throw new Error("the channel is closed");
  };
  const work = new Work(device, {
    send: async () => fails(),
    reply: (number, value, error) => {
      replies.push([number, value, error]);
      fails();
    },
    report: (error, site) => {
      reports.push([error, site]);
      fails();
    },
    draw: rng() < 0.5 ? fails : async () => fails(),
    tensors: new NamedTensors(fails),
  });
  for (const id of [1, 2, 7]) work.add({ op: "empty", id, shape: [4], dtype: "float32" });
  work.add({ op: "kernel", id: 9, ...source });
  const arrive = (name) => {
    const tensor = emptyOnDevice(useDevice(device), [4], dtypeNamed("float32"));
    work.arrive(name, tensor);
    tensor.release();
  };
  return { work, replies, reports, arrive };
}

/** Until that is answered. `names`: elements that an operation may wait for. */
async function answered({ replies, arrive }, reply, names = []) {
  for (let i = 0; i < 1000 && !replies.some(([number]) => number === reply); i++) {
    for (const name of names) arrive(name);
    await turn();
  }
  return replies.filter(([number]) => number === reply);
}

/** Until everything before it is done. */
function settled(page, reply, names) {
  page.work.add({ op: "settle", reply });
  return answered(page, reply, names);
}

for (const isBroken of [false, true]) {
  test(`random forms, ${isBroken ? "and a channel that fails" : "each answered once"}`, async () => {
    const before = liveTensors();
    for (let seed = 0; seed < 400; seed++) {
      const rng = fractions(seed);
      const page = made(isBroken ? rng : undefined);
      const { work, replies, arrive } = page;
      const [asked, names] = [[], []];
      for (let reply = 1; reply < 12; reply++) {
        const right = structuredClone(RIGHT[Math.floor(rng() * RIGHT.length)]);
        if (right.name) right.name = `${right.op === "cancel" ? Math.ceil(12 * rng()) : reply}`;
        const given = { ...right, ...(rng() < 0.7 ? { reply } : {}) };
        const operation = rng() < 0.8 ? spoilt(given, rng) : given;
        if (operation.reply && ASKED.includes(operation.op)) asked.push(reply);
        if (typeof operation.name === "string") names.push(operation.name);
        if (names.length > 0 && rng() < 0.5) arrive(names.at(-1));
        work.add(operation);
        if (rng() < 0.3) await turn();
      }
      const [last] = await settled(page, 100, names);
      assert.ok(last, `seed ${seed}: it hangs`);
      for (const reply of asked) {
        assert.equal((await answered(page, reply)).length, 1, `seed ${seed}: ${reply}`);
      }
      const numbers = replies.map(([number]) => number);
      assert.equal(new Set(numbers).size, numbers.length, `seed ${seed}: answered twice`);
      work.add({ op: "canvas", what: view(7), reply: 101 }); // nobody named that
      const [[, , error]] = await answered(page, 101);
      if (!isBroken) assert.equal(error, undefined);
      work.end();
      assert.equal(liveTensors(), before, `seed ${seed}`);
    }
  });
}

for (const operation of [
  { op: "write" },
  { op: "write", to: null, source: view(1), site: 3 },
  { op: "write", to: view(99), source: view(1) },
  { op: "write", to: view(1), source: null },
  { op: "write", to: view(1), source: { ...view(2), shape: [1e9] } },
  { op: "run" },
  { op: "run", calls: [null] },
  { op: "run", calls: [{ ...call(1), writes: null, groups: "" }] },
  { op: "take", id: 3 },
  { op: "take", id: {}, name: "a", ...elements },
  { op: "empty", id: "3", shape: [4], dtype: "float32" },
  { op: "empty" },
  { op: "kernel" },
  { op: "kernel", id: 0.5, ...source },
  { op: "free" },
  { op: "free", what: [["both", 1]] },
  { op: "give", what: view(1) },
  { op: "give", key: "x", what: view(99) },
  { op: "nothing of that name" },
  {},
]) {
  test(`one failure, with and without an answer: ${JSON.stringify(operation)}`, async () => {
    const page = made();
    const { work, replies, reports, arrive } = page;
    if (operation.name) arrive(operation.name);
    work.add({ ...operation, reply: 1 });
    await settled(page, 2);
    assert.deepEqual(
      replies.map(([number, , error]) => [number, error instanceof Error]),
      [
        [1, true],
        [2, false],
      ],
    );
    if (operation.name) arrive(operation.name);
    work.add(operation);
    await settled(page, 3);
    const kept = [1, 2, 3].map((id) => ({ op: "canvas", what: view(id), reply: 10 + id }));
    for (const each of kept) work.add(each);
    await settled(page, 4);
    const failed = replies.filter(([number, , error]) => number > 10 && error && number !== 13);
    const isMade = operation.id === 3;
    assert.equal(reports.length, failed.length > 0 || isMade ? 0 : 1);
    assert.ok(reports.every(([error]) => error instanceof Error));
    work.end();
  });
}

test("views outside of a tensor are refused", async () => {
  const page = made();
  const { work, replies } = page;
  const wrong = [
    { shape: [5] },
    { shape: [1e9, 1e9] },
    { shape: [2], offset: 12 },
    { offset: -4 },
    { offset: 0.5 },
    { offset: 2 ** 53 },
    { offset: "0" },
    { shape: [2], strides: [4] },
    { shape: [2], strides: [-1] },
    { shape: [2], strides: [0.5] },
    { shape: [2], strides: [1, 1] },
    { dtype: "float64" },
    { dtype: "float31" },
    { dtype: "int4", strides: [2] },
  ];
  wrong.forEach((each, i) => {
    work.add({ op: "canvas", what: { ...view(1), ...each }, reply: i });
  });
  const right = [
    { shape: [0], offset: 16 },
    { shape: [2], strides: [3] },
    { shape: [2], offset: 12, strides: [-3] },
    { dtype: "int4", shape: [32] },
    { dtype: "int4", shape: [16], padded: true },
  ];
  right.forEach((each, i) => {
    work.add({ op: "canvas", what: { ...view(1), ...each }, reply: 100 + i });
  });
  await settled(page, 1000);
  for (const [number, , error] of replies) assert.equal(error instanceof Error, number < 100);
  assert.equal(replies.length, wrong.length + right.length + 1);
  work.end();
});

test("an id that is used again has the newer tensor, and the older one is released", async () => {
  const before = liveTensors();
  const page = made();
  const { work, replies, arrive } = page;
  for (const shape of [[8], [2], [4]]) work.add({ op: "empty", id: 3, shape, dtype: "float32" });
  assert.equal(liveTensors(), before + 4);
  arrive("a");
  work.add({ op: "take", id: 3, name: "a", ...elements });
  await settled(page, 1);
  assert.equal(liveTensors(), before + 4);
  work.add({ op: "empty", id: 3, shape: [-1], dtype: "float32" });
  assert.equal(liveTensors(), before + 3);
  work.add({ op: "canvas", what: view(3), reply: 2 });
  await settled(page, 3);
  assert.match(replies.find(([number]) => number === 2)[2].message, /-1 is not/);
  work.end();
  assert.equal(liveTensors(), before);
});

test("a message of one wrong entry frees the other tensors, and reports it", async () => {
  const before = liveTensors();
  const page = made();
  const what = [["tensor", 1], null, ["buffer", 2], ["tensor", 7], 5, ["tensor", 2]];
  page.work.add({ op: "free", what });
  await settled(page, 1);
  assert.equal(liveTensors(), before);
  assert.equal(page.reports.length, 1);
  page.work.end();
});

test("nothing is answered, made or kept after the end", async () => {
  const before = liveTensors();
  const page = made();
  const { work, replies, arrive } = page;
  const read = { op: "read", what: [view(1)], names: ["r"], site: 1, reply: 1 };
  work.add(read);
  work.add({ op: "take", id: 3, name: "a", ...elements });
  await turn();
  const [done] = [replies.length];
  work.add({ ...read, reply: 2 });
  arrive("a");
  work.end();
  await turn();
  await turn();
  assert.equal(replies.length, done);
  assert.equal(liveTensors(), before);
});

test("the names of many cancelled elements that never come are forgotten", async () => {
  const before = liveTensors();
  const page = made();
  for (let i = 0; i < 4100; i++) {
    page.work.add({ op: "take", id: 3, name: `t${i}`, ...elements });
    page.work.add({ op: "cancel", name: `t${i}`, why: "given up" });
  }
  await settled(page, 1);
  page.arrive("t4099");
  assert.equal(liveTensors(), before + 3);
  page.arrive("t0"); // as if it was never cancelled
  assert.equal(liveTensors(), before + 4);
  page.work.end();
  assert.equal(liveTensors(), before);
});
