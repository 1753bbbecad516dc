// Do the counters behind "0 copies" see a copy when there is one? Each function is a test.
import { equal } from "./expect.mjs";

/** What `run` copied, as `[copies, bytes]`. */
function counted({ counters }, run) {
  counters.start();
  run();
  const { copies, copied_bytes } = counters.stop();
  return [copies, copied_bytes];
}

export async function copies_of_typed_arrays_are_counted(context) {
  const source = new Float32Array(100);
  const target = new Float64Array(100);
  const copies = [
    [() => target.set(source), 800],
    [() => source.slice(50), 200],
    [() => source.copyWithin(0, 50), 400],
    [() => Float32Array.from(source), 400],
    [() => new Float32Array(source), 400],
    [() => source.buffer.slice(0, 40), 40],
  ];
  for (const [copy, bytes] of copies) equal(counted(context, copy), [1, bytes], `${copy}`);
}

export async function views_and_fresh_arrays_are_not(context) {
  const { buffer } = new Float32Array(100);
  const run = () => [new Float32Array(buffer, 40, 2), new Uint8Array(8), new Uint8Array(buffer)];
  equal(counted(context, run), [0, 0]);
  equal(new Uint8Array(2).subarray(1).constructor === Uint8Array, true);
}

export async function nothing_is_counted_outside_a_step(context) {
  new Float32Array(4).slice();
  const nothing = () => {};
  equal(counted(context, nothing), [0, 0]);
}

export async function write_buffer_is_counted_in_its_own_units(context) {
  const device = await context.library.webgpu.requestDevice();
  const buffer = device.createBuffer({ size: 64, usage: GPUBufferUsage.COPY_DST });
  const data = new Float32Array(16);
  const each = (...args) => counted(context, () => device.queue.writeBuffer(buffer, 0, ...args));
  equal(each(data), [1, 64]);
  equal(each(data, 4), [1, 48]);
  equal(each(data, 4, 2), [1, 8]);
  equal(each(data.buffer, 8, 12), [1, 12]);
  device.destroy();
}
