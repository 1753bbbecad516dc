// Frames of WIRE.md that both languages share: tests/wire/vectors.json.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { open } from "../../../../../js/dist/open/index.js";
import { decode, encode, joined } from "../../../js/dist/wire/frame.js";

const file = new URL("../../wire/vectors.json", import.meta.url);
const VECTORS = JSON.parse(readFileSync(file, "utf8"));

test("open() reads a tensor of one piece, from its bytes and from a stream", async () => {
  const { name, frame, means } = VECTORS[0];
  assert.equal(name, "a tensor of one piece is a safetensors file");
  const bytes = new Uint8Array(Buffer.from(frame, "base64"));
  for (const source of [bytes, new Blob([bytes]).stream()]) {
    const file = await open(source);
    const tensor = await file.get(means.name);
    assert.deepEqual([tensor.dtype, [...tensor.shape]], [means.dtype, means.shape]);
    assert.deepEqual(tensor._managed.bytes(), decode(bytes).payload);
    tensor.release();
    file.close();
  }
});

for (const { name, frame, means, error } of VECTORS) {
  test(`a frame: ${name}`, () => {
    const bytes = new Uint8Array(Buffer.from(frame, "base64"));
    if (error) {
      const isOurs = (thrown) =>
        thrown.name === "UnsupportedError" && new RegExp(error).test(thrown.message);
      assert.throws(() => decode(bytes), isOurs);
      return;
    }
    const { from, to, payload, ...found } = decode(bytes);
    const { type, ...facts } = found;
    assert.deepEqual(type ? { ...facts, dtype: type.name } : facts, means);
    const header = encode({ ...found, from, to });
    assert.deepEqual(joined(header, payload), bytes);
    assert.deepEqual(decode(header, payload), decode(bytes));
  });
}
