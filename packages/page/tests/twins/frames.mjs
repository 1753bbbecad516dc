// The JavaScript side of frames.py, by subject: tests/fuzz/twins/other.mjs imports it.
import { decode, encode } from "../../js/dist/wire/frame.js";
import { Spans } from "../../js/dist/wire/spans.js";

const bytesOf = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hexOf = (bytes) => Buffer.from(bytes).toString("hex");

export function frame(hex) {
  const { payload, ...fields } = decode(bytesOf(hex));
  const { from, to, type, ...facts } = fields;
  const told = type ? { ...facts, dtype: type.name } : facts;
  return { from, to, payload: hexOf(payload), again: hexOf(encode(fields)), ...told };
}

export function spans(operations) {
  const ranges = new Spans();
  return operations.map(([what, ...args]) => {
    const found = ranges[what](...args);
    return [found ?? null, ranges.count];
  });
}
