// What a library's object says is bounded before it is read, and what is no tensor names its adapter.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLiteRT } from "../../../js/dist/adapters/litert.js";
import { fromNdarray } from "../../../js/dist/adapters/ndarray.js";
import { fromMat } from "../../../js/dist/adapters/opencv.js";
import { take } from "../../../js/dist/exchange/index.js";
import { ENDLESS, isShort } from "../bounds.mjs";

const bytes = new Uint8Array(8);

test("lists of a billion of other libraries are not copied", async () => {
  for (const list of Object.values(ENDLESS)) {
    class Mat {
      elemSize1 = () => 1;
      isDeleted = () => false;
      delete() {}
      depth = () => 0;
      channels = () => 1;
      empty = () => false;
      isContinuous = () => true;
      matSize = list;
      step = list;
      data = bytes;
    }
    await isShort(async () => fromMat({ Mat, HEAPU8: bytes }, new Mat()));
    class LiteTensor {
      type = { dtype: "float32", layout: { dimensions: list } };
      toTypedArray = () => new Float32Array(2);
    }
    for (const fields of [
      { shape: list, stride: [1] },
      { shape: [8], stride: list },
    ])
      await isShort(async () => fromNdarray(null, { data: bytes, offset: 0, ...fields }));
    await isShort(async () => fromLiteRT({ Tensor: LiteTensor }, new LiteTensor()));
  }
});

test("what is no tensor names the adapter that makes one of it", () => {
  for (const [x, name] of [
    [{ dims: 1 }, "ort"],
    [{ dataId: {} }, "tfjs"],
  ])
    assert.throws(() => take(x), {
      name: "TypeError",
      message: `[object Object] is not a tensor: it lacks [Symbol.for("dlpack.exchange")]; "dlpack-web/${name}" makes one of it`,
    });
});
