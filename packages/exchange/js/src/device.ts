/** Bytes of `GPUBuffer`s, read and written through the device's queue. */
import { skip } from "./report.js";
import type { BufferLike, DeviceLike } from "./types.js";

/**
 * The bytes from `from` on and up to `to`. The copy is submitted before this returns, so it is
 * ordered like any consumer's work.
 */
export function readBuffer(
  device: DeviceLike,
  buffer: BufferLike,
  from: number,
  to: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!(buffer.usage & 4)) skip("its GPUBuffer lacks COPY_SRC, by which this suite reads");
  const start = from - (from % 4);
  const size = Math.min(Math.ceil((to - start) / 4) * 4, buffer.size - start);
  const copy: BufferLike = device.createBuffer({ size: Math.max(size, 4), usage: 1 | 8 });
  device.pushErrorScope("validation");
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, start, copy, 0, size);
  device.queue.submit([encoder.finish()]);
  const checked = device.popErrorScope();
  return (async () => {
    try {
      const error = await checked;
      if (error) throw new Error(`the GPUBuffer cannot be read: ${error.message}`);
      await copy.mapAsync(1);
      return new Uint8Array(copy.getMappedRange()).slice(from - start, to - start);
    } finally {
      copy.destroy();
    }
  })();
}

/** Writes whole words. */
export function writeBuffer(
  device: DeviceLike,
  buffer: BufferLike,
  at: number,
  bytes: Uint8Array,
): void {
  if (!(buffer.usage & 8)) skip("its GPUBuffer lacks COPY_DST, by which this suite writes");
  if (at % 4 || bytes.length % 4) skip("its elements are not whole words, which can be written");
  device.queue.writeBuffer(buffer, at, bytes);
}
