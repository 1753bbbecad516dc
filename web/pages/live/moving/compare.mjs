// The usual way against tensors: the same edges of the same picture, of which nothing moves.
import * as counters from "../counters.mjs";
import { fillTable, median } from "../page.mjs";
import { formatBytes, formatTime } from "../steps.mjs";

const FRAMES = 20;

/** getImageData, NumPy, putImageData. */
function usually(python, picture, [width, height], numbers) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const from = canvas.getContext("2d", { willReadFrequently: true });
  const to = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
  const times = [];
  counters.start(width * height);
  for (let i = 0; i < FRAMES; i++) {
    const at = performance.now();
    from.drawImage(picture, 0, 0, width, height);
    const { data } = from.getImageData(0, 0, width, height);
    const bytes = python.usual(data, height, width, ...numbers);
    to.putImageData(new ImageData(new Uint8ClampedArray(bytes.buffer), width, height), 0, 0);
    times.push(performance.now() - at);
  }
  const { copies, copied_bytes } = counters.stop();
  const { data } = to.getImageData(0, 0, width, height);
  return { ms: median(times), copies: copies / FRAMES, bytes: copied_bytes / FRAMES, data };
}

/** webgpu.frames, a kernel, a canvas. */
async function shared(python, device, picture, [width, height], text) {
  const canvas = document.createElement("canvas");
  counters.start(width * height);
  let counts;
  let times;
  try {
    times = (await python.measured(device, picture, canvas, text, FRAMES)).toJs();
  } finally {
    counts = counters.stop();
  }
  const context = Object.assign(document.createElement("canvas"), { width, height }).getContext(
    "2d",
  );
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const bytes = counts.copied_bytes / FRAMES;
  return { ms: median(times), copies: counts.copies / FRAMES, bytes, data };
}

/** Both ways; the largest difference is of values from 0 to 1. */
export async function compare({ python, device, picture, text, numbers }) {
  const size = [picture.width, picture.height];
  const usual = usually(python, picture, size, numbers);
  const ours = await shared(python, device, picture, size, text);
  const difference = ours.data.reduce(
    (most, value, i) => Math.max(most, Math.abs(value - usual.data[i])),
    0,
  );
  const without = ({ ms, copies, bytes }) => ({ ms, copies, bytes });
  return { usual: without(usual), ours: without(ours), difference: difference / 255, size };
}

/** Fills a table body. */
export function showComparison(body, { usual, ours }) {
  const rows = [
    ["getImageData → NumPy → putImageData", usual],
    ["webgpu.frames → Kernel → canvas", ours],
  ];
  fillTable(
    body,
    rows.map(([name, { ms, copies, bytes }]) => [
      name,
      formatTime(ms),
      Number(copies.toFixed(1)),
      formatBytes(Math.round(bytes)),
    ]),
  );
  for (const [i, [, { copies }]] of rows.entries()) body.rows[i].dataset.copies = copies;
}
