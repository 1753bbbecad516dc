// Apache Arrow and zarrita (the real ones) where there is a Float16Array; the rest is in tests/js.
import { fromArrow, toArrow } from "/js/adapters/arrow.js";
import { fromNdarray, toNdarray } from "/js/adapters/ndarray.js";
import * as arrow from "/libraries/arrow.mjs";
import * as zarr from "/libraries/zarrita.mjs";
import { equal, ok, Skip } from "./expect.mjs";

/** The class, or an end to the case. */
function half() {
  if (!globalThis.Float16Array) throw new Skip("this browser has no Float16Array");
  return globalThis.Float16Array;
}

export async function float16_vectors_keep_their_numbers(context) {
  const array = half().of(1, -2, 0.5);
  const { Tensor } = context.library;
  const tensor = Tensor.fromTypedArray(array);
  const vector = toArrow(arrow, tensor, { copy: false });
  equal([...vector], [...array]);
  ok(vector.data[0].values.buffer === array.buffer, "the same memory");
  const other = toArrow(arrow, tensor, { copy: true });
  const joined = fromArrow(arrow, vector.concat(other));
  equal([joined.dtype, [...joined]], ["float16", [1, -2, 0.5, 1, -2, 0.5]]);
  const copied = fromArrow(arrow, vector, { copy: true });
  equal([copied.data.constructor.name, [...copied]], ["Float16Array", [1, -2, 0.5]]);
  const own = arrow.makeVector(
    arrow.makeData({ type: new arrow.Float16(), length: 2, data: Uint16Array.of(0x3400, 0x4400) }),
  );
  const taken = fromArrow(arrow, own, { copy: false });
  equal([...taken], [0.25, 4]);
  for (const value of [vector, other]) value.data[0].values = null;
  for (const each of [tensor, joined, copied, taken]) each.release();
}

export async function float16_chunks_keep_their_numbers(context) {
  const array = half().of(1, -2, 0.5, 3);
  const stored = await zarr.create(new Map(), {
    shape: [4],
    chunkShape: [3],
    dtype: "float16",
  });
  const tensor = context.library.Tensor.fromTypedArray(array);
  const chunk = toNdarray(null, tensor);
  await zarr.set(stored, null, chunk);
  const back = fromNdarray(null, await zarr.get(stored));
  equal([back.dtype, [...back]], ["float16", [1, -2, 0.5, 3]]);
  chunk.data = null;
  for (const each of [tensor, back]) each.release();
}

export async function nulls_go_to_python_as_a_second_tensor(context) {
  const { bridge, pyodide } = context;
  const data = Float32Array.of(1, 0, 3, 0);
  const nulls = { nullCount: 2, nullBitmap: Uint8Array.of(0b0101) };
  const vector = arrow.makeVector(
    arrow.makeData({ type: new arrow.Float32(), length: 4, data, ...nulls }),
  );
  const { values, valid } = fromArrow(arrow, vector, { nulls: "mask" });
  const proxies = [values, valid].map((tensor) => bridge.toPython(tensor));
  for (const each of [values, valid]) each.release();
  const seen = pyodide.runPython("lambda values, valid: values.numpy()[valid.numpy()].tolist()");
  const list = seen(...proxies);
  equal(list.toJs(), [1, 3]);
  const back = proxies.map((proxy) => bridge.tensor(proxy));
  const again = toArrow(arrow, back[0], { valid: back[1] });
  equal([...again], [1, null, 3, null]);
  const direct = toArrow(arrow, proxies[0], { valid: proxies[1] });
  equal([...direct], [1, null, 3, null]);
  for (const each of [again, direct]) each.data[0].values = null;
  for (const each of back) each.release();
  for (const each of proxies) {
    each.release();
    each.destroy();
  }
  for (const each of [list, seen]) each.destroy();
}
