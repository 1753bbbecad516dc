// Tensors by name: what a kernel gives, what scripts get, and for how long. The device is a fake.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { liveTensors } from "../../../../../js/dist/index.js";
import { fakeDevice } from "../../../../../tests/js/fake_device.mjs";
import { NamedTensors } from "../../../js/dist/widget/tensors.js";
import { Work } from "../../../js/dist/widget/work.js";

const WGSL = `
  @group(0) @binding(0) var<storage, read_write> x: array<f32>;
  @compute @workgroup_size(1) fn main() { x[0] = 1; }`;

const view = (id, shape = [4]) => ({
  id,
  offset: 0,
  shape,
  strides: null,
  dtype: "float32",
  padded: false,
  readOnly: false,
});

let tensors;
let work;
let reports;
let errors;
const logged = mock.method(console, "error", () => {});

beforeEach(() => {
  errors = [];
  tensors = new NamedTensors(({ message }) => errors.push(message));
  reports = [];
  logged.mock.resetCalls();
  work = new Work(fakeDevice(), {
    send: async () => {},
    reply: () => {},
    draw: async () => {},
    report: ({ message }, site) => reports.push([message, site]),
    tensors,
  });
  for (const id of [1, 2]) work.add({ op: "empty", id, shape: [4], dtype: "float32" });
  const source = { wgsl: WGSL, entry: "main", label: "", check: true, parts: [], site: 1 };
  work.add({ op: "kernel", id: 3, ...source });
});

const give = (key, what) => work.add({ op: "give", key, what, site: 7 });
const run = (...ids) =>
  work.add({
    op: "run",
    calls: ids.map((id) => ({ kernel: 3, args: [view(id)], groups: [1], writes: [id], site: 5 })),
  });

/** What a listener is called with. */
function watched(name) {
  const seen = [];
  return { seen, stop: tensors.shown.watch(name, (tensor) => seen.push(tensor)) };
}

test("a tensor is there under its name, is replaced, and ends", () => {
  const { seen } = watched("x");
  give("x", view(1));
  const first = tensors.shown.get("x");
  assert.deepEqual([first.dtype, first.shape, first.readOnly], ["float32", [4], false]);
  give("x", view(2, [2]));
  const second = tensors.shown.get("x");
  assert.deepEqual([first.released, second.released, second.shape], [true, false, [2]]);
  give("x", null);
  assert.deepEqual([second.released, tensors.shown.get("x")], [true, undefined]);
  assert.deepEqual(
    seen.map((tensor) => [undefined, first, second].indexOf(tensor)),
    [0, 1, 2, 0],
  );
  work.end();
});

test("listeners still have the tensor before while they are called", () => {
  let now;
  let before;
  const released = [];
  tensors.shown.watch("x", (tensor) => {
    before = now;
    now = tensor;
    released.push(before?.released);
  });
  give("x", view(1));
  give("x", view(2));
  give("x", null);
  assert.deepEqual(released, [undefined, undefined, false, false]);
  assert.equal(before.released, true);
  work.end();
});

test("a listener is called at once, and no more after it ended that", () => {
  give("x", view(1));
  const one = watched("x");
  const other = watched("y");
  assert.equal(one.seen[0], tensors.shown.get("x"));
  assert.deepEqual(other.seen, [undefined]);
  one.stop();
  one.stop();
  give("x", null);
  assert.equal(one.seen.length, 1);
  assert.equal(other.seen.length, 1);
  work.end();
});

test("one function may watch twice, and each is ended alone", () => {
  let calls = 0;
  const listener = () => calls++;
  const stop = tensors.shown.watch("x", listener);
  tensors.shown.watch("x", listener);
  stop();
  give("x", view(1));
  assert.equal(calls, 3);
  work.end();
});

test("listeners that throw, end themselves or each other harm nobody", () => {
  const seen = [];
  let [stop, stopThird] = [() => {}, () => {}];
  tensors.shown.watch("x", () => {
    throw new Error("of the script");
  });
  stop = tensors.shown.watch("x", () => {
    seen.push("second");
    stop();
    stopThird();
  });
  stopThird = tensors.shown.watch("x", () => seen.push("third"));
  tensors.shown.watch("x", () => seen.push("fourth"));
  seen.length = 0;
  give("x", view(1));
  assert.deepEqual(seen, ["second", "fourth"]);
  assert.equal(logged.mock.callCount(), 2);
  assert.equal(logged.mock.calls[1].arguments[0].message, "of the script");
  const failed = 'the page\'s script failed with tensor "x": Error: of the script';
  assert.deepEqual(errors, [failed, failed]);
  run(1); // and the work goes on
  assert.deepEqual(reports, []);
  work.end();
});

test("a promise of a listener that rejects is an error, too", async () => {
  const error = new TypeError("of the script, later");
  tensors.shown.watch("y", () => Promise.reject(error));
  assert.deepEqual(errors, []);
  await null;
  await null;
  assert.deepEqual(logged.mock.calls[0].arguments, [error]);
  assert.deepEqual(errors, [`the page's script failed with tensor "y": ${error}`]);
  work.end();
});

test("what Python writes calls listeners with the same tensor, once for each operation", async () => {
  give("x", view(1));
  give("same", view(1));
  give("y", view(2));
  const [x, same, y] = ["x", "same", "y"].map(watched);
  run(1, 1);
  work.add({ op: "write", to: view(1), site: 4, source: view(2) });
  assert.deepEqual([x.seen.length, same.seen.length, y.seen.length], [3, 3, 1]);
  assert.ok(x.seen.every((tensor) => tensor === tensors.shown.get("x")));
  give("same", null);
  run(1);
  assert.deepEqual([x.seen.length, same.seen.length, y.seen.length], [4, 4, 1]);
  work.end();
});

test("what is given has a hold of its own", () => {
  const before = liveTensors();
  give("x", view(1));
  work.add({ op: "free", what: [["tensor", 1]] });
  assert.equal(tensors.shown.get("x").released, false);
  assert.ok(tensors.shown.get("x").buffer);
  const { seen } = watched("x");
  work.end(); // as when the device is lost, or the page is given up
  assert.deepEqual(seen.slice(1), [undefined]);
  assert.equal(seen[0].released, true);
  assert.equal(liveTensors(), before - 2);
});

test("a tensor that cannot be given ends the one before, and is reported", () => {
  give("x", view(1));
  const { seen } = watched("x");
  give("x", view(99));
  assert.deepEqual(seen.slice(1), [undefined]);
  assert.deepEqual(reports, [["the page has no tensor 99", 7]]);
  give("x", view(2));
  assert.equal(seen.at(-1), tensors.shown.get("x"));
  work.end();
});

test("scripts cannot replace what they share, and watch() takes a function", () => {
  assert.deepEqual(Object.keys(tensors.shown), ["get", "watch"]);
  assert.ok(Object.isFrozen(tensors.shown));
  assert.throws(() => tensors.shown.watch("x"), {
    name: "TypeError",
    message: "watch() takes a name and a function, not [object Undefined]",
  });
});
