// Files of tensors in memory, as the tests of open() need them.
import { deflateRawSync } from "node:zlib";
import { Tensor } from "../../../js/dist/index.js";
import { save } from "../../../js/dist/open/index.js";

/** The bytes that save() writes of an array or tensor, or of several by their names; tensors are released. */
export async function saved(given, options) {
  const isOne = given instanceof Tensor || ArrayBuffer.isView(given);
  const held = Object.entries(isOne ? { one: given } : given).map(([name, each]) => [
    name,
    each instanceof Tensor ? each : Tensor.fromTypedArray(each),
  ]);
  try {
    const blob = await save(isOne ? held[0][1] : held, options);
    return new Uint8Array(await blob.arrayBuffer());
  } finally {
    for (const [, tensor] of held) tensor.release();
  }
}

/** A zip file of entries [name, bytes, size that it says], deflated with sums of 0, or stored. */
export function archiveOf(entries, isStored = false) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [name, bytes, size] of entries) {
    const packed = isStored ? bytes : deflateRawSync(bytes);
    const method = isStored ? 0 : 8;
    const facts = [20, 0, method, 0, 33, 0, 0, packed.length, size ?? bytes.length, name.length];
    const local = Buffer.from(`PK\x03\x04${"\0".repeat(26)}${name}`, "latin1");
    const central = Buffer.from(`PK\x01\x02${"\0".repeat(42)}${name}`, "latin1");
    for (const [view, from] of [
      [local, 4],
      [central, 6],
    ]) {
      facts.slice(0, 5).forEach((value, i) => void view.writeUInt16LE(value, from + 2 * i));
      if (isStored) view.writeUInt32LE(crc32(bytes), from + 10);
      view.writeUInt32LE(facts[7], from + 14);
      view.writeUInt32LE(facts[8], from + 18);
      view.writeUInt16LE(facts[9], from + 22);
    }
    central.writeUInt32LE(at, 42);
    parts.push(local, packed);
    directory.push(central);
    at += local.length + packed.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.from(`PK\x05\x06${"\0".repeat(18)}`, "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(at, 16);
  return new Uint8Array(Buffer.concat([...parts, listed, end]));
}

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
