// The bridge's producers and consumers by the suite: its tensors and take() on a GPU that is all arrays, memory of a
// module in C, and Mats of OpenCV.js.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";
import { install } from "../../../../js/dist/adapters/opencv.js";
import { EXCHANGE } from "../../../../js/dist/exchange/index.js";
import { Tensor } from "../../../../js/dist/index.js";
import { device } from "../../../../tests/js/array_device.mjs";
import { load } from "../../../../wasm/example/example.mjs";
import { conformance, consumerConformance } from "../../js/dist/index.js";
import { breaksNothing, consumeByTake } from "./reports.mjs";

const BAD = { filter: "validation", message: "the GPU does not like it" };
const source = await readFile(new URL("../../../../build/example/example.wasm", import.meta.url));
const require = createRequire(new URL("../../../../build/libraries/package.json", import.meta.url));

test("this library's tensors and take() break no rule on a GPU", async (context) => {
  context.mock.method(console, "error", () => {}); // errors of release() are reported there
  const gpu = device();
  const make = ({ dtype, shape, bytes, device }) => {
    const host = Tensor.fromTypedArray(bytes, { dtype, shape });
    if (!device) return undefined;
    const made = host.to(device);
    host.release();
    return made;
  };
  const makeFaulty = (wanted) => {
    const [made, from] = [make(wanted), make(wanted)];
    gpu.fails = BAD;
    made?.write(from);
    from?.release();
    return made;
  };
  const dtypes = ["float32", "complex64"];
  const hooks = { makeFaulty, requestDevice: device };
  const reports = [
    await conformance({ make, device: gpu, dtypes, ...hooks }),
    await consumerConformance({ consume: consumeByTake, device: gpu, dtypes, ...hooks }),
  ];
  for (const report of reports) breaksNothing(report);
  const [made, taken] = reports.map(({ rules }) =>
    rules.filter((rule) => !rule.skipped).map((rule) => rule.id),
  );
  for (const id of ["M3", "S5", "S6", "S9", "E1", "E2", "E4", "O7", "X2"])
    assert.ok(made.includes(id), id);
  for (const id of ["S9", "E3", "E4", "O6", "O7", "N1"]) assert.ok(taken.includes(id), id);
});

/** Rules that memory without threads, GPU and padding has nothing to do with; F13 is not counted. */
const NOT_OURS = ["D1", "E1", "E2", "E4", "F13", "M3", "O5", "S3", "S6", "T1"];

test("tensors over the memory of a module in C break no rule", async () => {
  const c = await load(source, Tensor);
  const tensors = [];
  const make = ({ dtype, shape, bytes }) => {
    const host = Tensor.fromTypedArray(bytes, { dtype, shape });
    const tensor = c.copy(host);
    host.release();
    tensors.push(tensor);
    return {
      [EXCHANGE]: (request) => tensor[EXCHANGE](request),
      release: () => tensor.release(),
      grow: () => c.memory.grow(1),
    };
  };
  const { ok, rules } = await conformance({ make });
  assert.ok(ok, JSON.stringify(rules.filter((rule) => !rule.ok)));
  const skipped = rules.filter((rule) => rule.skipped).map(({ id }) => id);
  assert.deepEqual(
    skipped.filter((id) => !NOT_OURS.includes(id)),
    [],
  );
  for (const tensor of tensors) tensor.release();
  assert.equal(c.liveTensors(), 0);
});

/** OpenCV's numbers of the dtypes that DLPack has, too. */
const DTYPES = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  int32: 4,
  float32: 5,
  float64: 6,
  float16: 7,
  bfloat16: 8,
  bool: 9,
  uint64: 10,
  int64: 11,
  uint32: 12,
};

test("Mats of OpenCV.js break no rule", async () => {
  const cv = await require("opencv-5");
  install(cv);
  const mats = [];
  const make = ({ dtype, shape, bytes }) => {
    const [rows, cols, channels = 1] = shape;
    const several = shape.length === 2 || (shape.length === 3 && channels > 1);
    if (!several || !(dtype in DTYPES)) return undefined;
    const mat = new cv.Mat(rows, cols, DTYPES[dtype] + (channels - 1) * 32);
    mat.data.set(bytes);
    mats.push(mat);
    return Object.assign(mat, { release: () => mat.isDeleted() || mat.delete() });
  };
  const { ok, rules } = await conformance({ make });
  assert.ok(ok, JSON.stringify(rules.filter((rule) => !rule.ok)));
  assert.ok(rules.filter(({ skipped }) => !skipped).length > 25);
  for (const mat of mats) mat.release();
  delete cv.Mat.prototype[EXCHANGE];
});
