// DuckDB-wasm, OpenCV.js, a module in C and Python (the real ones), each in a memory of its own, hand
// tensors to each other: by one copy, into the memory of who takes; each function is a test.
import { fromArrow } from "/js/adapters/arrow.js";
import { equal, ok, throws } from "../cases/js/expect.mjs";
import { COUNT, modules, ROWS, sumOf, sumOfTensor } from "./modules.mjs";

const NAMES = ["duckdb", "opencv", "c", "python"];
const BYTES = 4 * COUNT;

/**
 * Awaits `call`, and says how many copies of all elements were made meanwhile, from one memory to
 * another: what moves within its own (`copyWithin`) is a module's work.
 */
async function copiesOf({ counters }, call) {
  const { prototype } = Object.getPrototypeOf(Uint8Array);
  const { copyWithin } = prototype;
  let within = 0;
  prototype.copyWithin = function (...args) {
    if (this.byteLength >= BYTES) within++;
    return copyWithin.apply(this, args);
  };
  counters.start(BYTES);
  try {
    const result = await call();
    return { result, copies: counters.stop().copies - within };
  } finally {
    counters.stop();
    prototype.copyWithin = copyWithin;
  }
}

const leftOf = (all) => Object.fromEntries(NAMES.map((name) => [name, all[name].left()]));

export async function every_module_hands_tensors_to_every_other_by_one_copy(context) {
  const all = await modules(context);
  const before = leftOf(all);
  const seen = {};
  for (const [i, from] of NAMES.entries()) {
    for (const to of NAMES) {
      if (to === from && to !== "opencv" && to !== "python") continue; // shares, or asks itself
      const first = 10 * i;
      const { result: tensor, copies: made } = await copiesOf(context, () =>
        all[from].make(context, first),
      );
      if (from === "duckdb" || from === "python") equal(made, 0, `copies out of ${from}`);
      ok(tensor.data.buffer === all[from].memory(), `the elements lie in the memory of ${from}`);
      const { result: given, copies } = await copiesOf(context, () => all[to].receive(tensor));
      seen[`${from} to ${to}`] = copies;
      tensor.release();
      equal(given.sum(), sumOf(first), `${from} to ${to}`);
      given.release();
    }
  }
  const expected = Object.fromEntries(
    Object.keys(seen).map((pair) => {
      const [from, to] = pair.split(" to ");
      return [pair, from === to ? 0 : 1];
    }),
  );
  equal(Object.keys(seen).length, 14);
  equal(seen, expected, "copies");
  equal(leftOf(all), before, "what is left");
}

export async function memories_that_grow_make_nothing_stale(context) {
  const all = await modules(context);
  const before = leftOf(all);
  const sources = NAMES.map((name, i) => [name, all[name].make(context, i), sumOf(i)]);
  const given = [];
  for (const grown of NAMES) {
    const views = sources.map(([, tensor]) => tensor.data);
    ok(all[grown].grow(), `${grown} grows`);
    for (const [i, [name, tensor, sum]] of sources.entries()) {
      equal(views[i].length === 0, name === grown, `the old view of ${name}`);
      equal(sumOfTensor(tensor), sum, `${name}, after ${grown} grew`);
    }
    // And what is handed over then is right.
    for (const [name, tensor, sum] of sources) {
      const to = NAMES[(NAMES.indexOf(name) + 1 + given.length) % 3 === 0 ? 2 : 3]; // C or Python
      given.push([await all[to].receive(tensor), sum]);
    }
  }
  for (const name of NAMES) all[name].grow();
  for (const [each, sum] of given) equal(each.sum(), sum, "what was handed over");
  // In any order: every other one first, then the sources, then the rest, from the end.
  const [odd, even] = [1, 0].map((rest) => given.filter((_, i) => i % 2 === rest));
  for (const [each] of odd) each.release();
  for (const [, tensor] of sources) tensor.release();
  for (const [each, sum] of even.reverse()) {
    equal(each.sum(), sum, "after its source was released");
    each.release();
  }
  equal(leftOf(all), before, "what is left");
}

export async function a_tensor_goes_round_all_modules(context) {
  const all = await modules(context);
  const before = leftOf(all);
  // DuckDB computes, OpenCV blurs what it gave, C scales that in place, NumPy has it.
  const rows = all.duckdb.make(context, 0);
  const { cv } = all.opencv;
  const { fromMat, toMat } = await import("/js/adapters/opencv.js");
  const mat = toMat(cv, rows);
  rows.release();
  const flipped = new cv.Mat();
  cv.flip(mat, flipped, 0); // its rows, from the last on
  mat.delete();
  const pixels = fromMat(cv, flipped, { copy: false });
  flipped.delete();
  const { c } = all.c;
  c.scale(pixels, 2); // and copies back what it has changed
  const array = context.bridge.toPython(pixels);
  const [corner, sum] = context.pyodide
    .runPython("lambda t: (float(np.asarray(t)[0, 0]), float(np.asarray(t).sum(dtype='f8')))")(
      array,
    )
    .toJs();
  equal([corner, sum], [2 * (COUNT - COUNT / ROWS), 2 * sumOf(0)]);
  pixels.release();
  array.release();
  array.destroy();
  equal(leftOf(all), before, "what is left");
}

export async function a_query_goes_to_the_gpu_by_one_copy(context) {
  const { duckdb } = await modules(context);
  const device = await context.library.webgpu.requestDevice();
  const { result: tensor, copies: own } = await copiesOf(context, () => duckdb.query(3));
  equal(own, 1, "DuckDB's own copy of a result"); // out of its memory
  const { result: gpu, copies } = await copiesOf(context, () => tensor.to(device));
  equal(copies, 1, "copies to the GPU");
  const back = await gpu.read();
  equal(
    back.reduce((a, b) => a + b, 0),
    sumOf(3),
  );
  for (const each of [tensor, gpu]) each.release();

  // Numbers of DuckDB's own, NULL among them, against what it says of them itself.
  const sql = "CASE WHEN i % 5 = 2 THEN NULL ELSE CAST(sqrt(i) AS FLOAT) END";
  const from = `(SELECT ${sql} AS x FROM range(10000) AS _(i))`;
  const result = duckdb.connection.query(`FROM ${from}`);
  const column = fromArrow(null, result, { column: "x", nulls: "mask" });
  const there = column.values.to(device);
  const values = await there.read();
  const valid = column.valid.data;
  const found = values.reduce((most, value, i) => (valid[i] ? Math.max(most, value) : most), 0);
  const told = duckdb.connection.query(`SELECT max(x) AS most, count(x) AS n FROM ${from}`).get(0);
  equal([found, valid.reduce((a, b) => a + b, 0)], [told.most, Number(told.n)]);
  for (const each of [column.values, column.valid, there]) each.release();
  await throws(
    () => fromArrow(null, duckdb.connection.query("SELECT 'text' AS x")),
    "UnsupportedError",
    /Utf8.*encode it/,
  );
}
