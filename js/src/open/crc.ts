/** The CRC-32 of zip files, eight bytes at a time. */
let tables: Int32Array[] | null = null;

function makeTables(): Int32Array[] {
  const made = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    (made[0] as Int32Array)[byte] = crc;
  }
  for (let t = 1; t < 8; t++) {
    for (let byte = 0; byte < 256; byte++) {
      const before = made[t - 1]?.[byte] as number;
      (made[t] as Int32Array)[byte] = (before >>> 8) ^ (made[0]?.[before & 255] as number);
    }
  }
  return made;
}

/**
 * The CRC of bytes after earlier ones.
 *
 * @param before - the CRC of the earlier bytes; 0 if there are none
 */
export function crc32(bytes: Uint8Array, before = 0): number {
  tables ??= makeTables();
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array, // biome-ignore format: two lines
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  const at = (table: Int32Array, byte: number) => table[byte] as number;
  let crc = ~before;
  let i = 0;
  for (const end = bytes.length - 7; i < end; i += 8) {
    const b = (offset: number) => bytes[i + offset] as number;
    const low = crc ^ (b(0) | (b(1) << 8) | (b(2) << 16) | (b(3) << 24));
    crc =
      at(t7, low & 255) ^ at(t6, (low >>> 8) & 255) ^ at(t5, (low >>> 16) & 255) ^
      at(t4, low >>> 24) ^ at(t3, b(4)) ^ at(t2, b(5)) ^ at(t1, b(6)) ^ at(t0, b(7)); // biome-ignore format: by fours
  }
  for (; i < bytes.length; i++) crc = (crc >>> 8) ^ at(t0, (crc ^ (bytes[i] as number)) & 255);
  return ~crc >>> 0;
}
