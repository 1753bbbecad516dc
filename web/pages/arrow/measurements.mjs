#!/usr/bin/env node
// measurements.mjs OUT: the file that the arrow page reads, OUT/measurements.arrow. A weather station's
// two million measurements, made up, the same bytes each time: of numbers that no machine rounds
// differently. Run by make, where Apache Arrow is.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as arrow from "../../../build/libraries/site/arrow.mjs";

const ROWS = 2_000_000;
const A_DAY = 2000; // rows
const A_YEAR = ROWS / 2;

let state = 1;

/** From 0 up to 1, by xorshift. */
function random() {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) / 2 ** 32;
}

/** -1 to 1 and back, of parabolas. */
function wave(phase) {
  const half = (phase % 1) * 2 - 1;
  return 4 * half * (1 - Math.abs(half));
}

const noise = () => random() + random() + random() + random() - 2;

const temperature = new Float32Array(ROWS);
const wind = new Float32Array(ROWS);
const bitmap = new Uint8Array(Math.ceil(ROWS / 8));
let missing = 0;
let broken = 0; // rows that the thermometer is still broken for
for (let i = 0; i < ROWS; i++) {
  temperature[i] = 9 + 11 * wave(i / A_YEAR) + 4 * wave(i / A_DAY) + 3 * noise();
  wind[i] = 4 * (random() + random() * random()) ** 2;
  if (broken === 0 && random() < 0.0002) broken = 1 + Math.floor(random() * 100);
  if (broken > 0) {
    broken--;
    missing++;
    temperature[i] = 0; // whatever lies there has no meaning
  } else {
    bitmap[i >> 3] |= 1 << (i & 7);
  }
}

const vector = (data, nulls = {}) =>
  arrow.makeVector(arrow.makeData({ type: new arrow.Float32(), length: ROWS, data, ...nulls }));
const table = new arrow.Table({
  temperature: vector(temperature, { nullCount: missing, nullBitmap: bitmap }),
  wind: vector(wind),
});
const [, , out] = process.argv;
mkdirSync(out, { recursive: true });
writeFileSync(join(out, "measurements.arrow"), arrow.tableToIPC(table, "file"));
