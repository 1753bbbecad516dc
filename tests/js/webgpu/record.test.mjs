// The record of a GPUBuffer by itself: what is known of which bytes, and records of copies of the
// library that are older or newer. What a GPU does is tested in tests/browser/cases/js/record_cases.mjs.
// Looks inside: records of older and newer copies of the library are made by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Tensor, webgpu } from "../../../js/dist/index.js";
import { isReusable } from "../../../js/dist/webgpu/buffers/pool.js";
import { slotOf } from "../../../js/dist/webgpu/buffers/table.js";
import {
  migrate,
  newRecord,
  openOutcomes,
  recordOf,
  setOutcome,
} from "../../../js/dist/webgpu/errors/record.js";
import { fakeBuffer, fakeDevice } from "../fake_device.mjs";
import { random } from "../random.mjs";

const outcome = (fault) => ({ fault, done: Promise.resolve(fault) });
const bad = () => outcome({ error: new Error("bad"), reported: false });

for (const seed of [1, 2, 3]) {
  test(`what is known of each byte is what was found last of it, seed ${seed}`, () => {
    const next = random(seed);
    const size = 300;
    const buffer = newRecord(fakeBuffer(size), "tensors");
    const bytes = new Array(size).fill(null);
    for (let step = 0; step < 3000; step++) {
      const start = next(size);
      const end = Math.min(size, start + next(next(4) === 0 ? size : 12));
      const found = [null, bad(), outcome(undefined)][next(3)];
      setOutcome({ buffer, start, end }, found);
      bytes.fill(found, start, end);
      if (next(10) === 0)
        for (const each of bytes) if (each?.fault === undefined && each) each.fault = null;
      const from = next(size);
      const to = from + next(40);
      const expected = new Set(bytes.slice(from, to).filter((each) => each && each.fault !== null));
      assert.deepEqual(new Set(openOutcomes({ buffer, start: from, end: to })), expected);
      const { writes } = buffer;
      for (let i = 0; i < writes.length; i++) {
        assert.ok(
          writes[i].start < writes[i].end && (i === 0 || writes[i - 1].end <= writes[i].start),
        );
      }
    }
  });
}

test("what turned out well is forgotten, however many writes there were", () => {
  const buffer = newRecord(fakeBuffer(1 << 20), "tensors");
  for (let i = 0; i < 5000; i++) {
    const found = outcome(undefined);
    setOutcome({ buffer, start: 8 * i, end: 8 * i + 4 }, found);
    found.fault = null;
  }
  assert.ok(buffer.writes.length <= 64, `${buffer.writes.length} are kept`);
});

test("of no bytes nothing is known but that the buffer was made", () => {
  const creation = outcome(undefined);
  const buffer = newRecord(fakeBuffer(16), "tensors", { creation });
  setOutcome({ buffer, start: 4, end: 4 }, bad());
  assert.deepEqual(buffer.writes, []);
  setOutcome({ buffer, start: 0, end: 16 }, bad());
  assert.deepEqual(openOutcomes({ buffer, start: 8, end: 8 }), [creation]);
  creation.fault = null;
  assert.deepEqual(openOutcomes({ buffer, start: 8, end: 8 }), []);
});

test("a buffer has one record, whoever asks", () => {
  const [ours, theirs] = [fakeBuffer(16), fakeBuffer(16)];
  const made = newRecord(ours, "tensors");
  assert.equal(recordOf(ours), made);
  const found = recordOf(theirs);
  assert.equal(recordOf(theirs), found);
  assert.notEqual(found.id, made.id);
  assert.deepEqual(
    [found.origin, found.escaped, found.exposed, found.dirty],
    ["others", true, true, 16],
  );
});

test("a newer copy sees that an older one has had the record", () => {
  const record = newRecord(fakeBuffer(64), "tensors");
  const { format } = record;
  Object.assign(record, { format: format + 3, news: "kept by newer ones" });
  migrate(record);
  assert.deepEqual(
    [record.format, record.news, record.escaped],
    [format, "kept by newer ones", false],
  );
});

const upload = (device) => Tensor.fromTypedArray(new Float32Array(4)).to(device);

test("a buffer goes when the last tensor over it goes, whichever that is", () => {
  const device = fakeDevice();
  const x = upload(device);
  const { buffer } = slotOf(x._managed.handle);
  // What a consumer has that is another copy of this library.
  const over = { device, shape: [4], dtype: "float32" };
  const again = Tensor.fromGPUBuffer(buffer.gpu, over);
  x.release();
  const y = upload(device);
  assert.notEqual(slotOf(y._managed.handle).buffer.gpu, buffer.gpu);
  again.release();
  const z = upload(device);
  assert.equal(slotOf(z._managed.handle).buffer.gpu, buffer.gpu);
  const single = Tensor.fromTypedArray(new Float32Array(4)).to(device, { usage: 32 });
  const { buffer: only } = slotOf(single._managed.handle);
  const held = Tensor.fromGPUBuffer(only.gpu, over);
  single.release();
  assert.equal(only.gpu.destroyed, 0);
  held.release();
  assert.equal(only.gpu.destroyed, 1);
  for (const each of [y, z]) each.release();
});

test("uploads are counted in bytes and copies", () => {
  upload(fakeDevice()).release();
  const { up, copies, taken } = webgpu.stats().at(-1);
  assert.deepEqual([up, copies, taken], [16, 1, 0]);
});

test("a tensor's record is looked at whichever copy made it", () => {
  const x = upload(fakeDevice());
  const { buffer } = slotOf(x._managed.handle);
  const { format } = buffer;
  buffer.format = format + 1;
  assert.equal(slotOf(x._managed.handle).buffer.format, format);
  x.release();
});

test("a buffer that others have is written under watch, however small", () => {
  const device = fakeDevice();
  const scopes = [];
  device.pushErrorScope = (filter) => scopes.push(filter);
  const x = upload(device);
  x.write(new Float32Array(4));
  assert.deepEqual(scopes, []);
  assert.equal(x.buffer, slotOf(x._managed.handle).buffer.gpu);
  x.write(new Float32Array(4));
  assert.deepEqual(scopes, ["validation"]);
  x.release();
});

test("a source may release the tensor that it is written to", () => {
  const device = fakeDevice();
  const x = upload(device);
  const written = [];
  device.queue.writeBuffer = (buffer) => written.push(buffer);
  let other;
  const memory = { buffer: new ArrayBuffer(16) };
  const source = Tensor.fromMemory(memory, 0, { shape: [4], dtype: "float32" });
  const get = () => {
    x.release();
    other ??= upload(device);
    return new ArrayBuffer(16);
  };
  x.write(Object.defineProperty(memory, "buffer", { get }) && source);
  assert.notEqual(slotOf(other._managed.handle).buffer.gpu, written.at(-1));
  other.release();
});

test("a buffer whose last work failed does not wait in the pool", () => {
  const device = fakeDevice();
  const x = upload(device);
  const { buffer } = slotOf(x._managed.handle);
  setOutcome({ buffer, start: 0, end: 16 }, bad());
  x.release();
  assert.equal(buffer.gpu.destroyed, 1);
});

test("a buffer is reusable while nothing speaks against it", () => {
  const reusable = (fields, errors, now) =>
    isReusable({ ...newRecord(fakeBuffer(16), "tensors", { errors }), ...fields }, now);
  assert.equal(reusable({}, 2, 2), true);
  assert.equal(reusable({}, 2, 3), false); // its creation was not watched
  assert.equal(reusable({ creation: outcome(null) }, 2, 3), true);
  assert.equal(reusable({ creation: outcome(undefined) }, 2, 3), false);
  assert.equal(reusable({ creation: outcome(null), exposed: true }, 2, 3), false);
  assert.equal(reusable({ creation: bad() }, 2, 2), false);
  assert.equal(reusable({ writes: [{ start: 0, end: 4, outcome: bad() }] }, 2, 2), false);
  assert.equal(
    reusable({ writes: [{ start: 0, end: 4, outcome: outcome(undefined) }] }, 2, 2),
    true,
  );
});
