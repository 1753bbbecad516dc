/** Targets for the elements of a file: CPU memory, with or without conversion; gpu.ts has GPUs. */
import { concat } from "../core/bytes.js";
import { convertElements } from "../core/convert.js";
import { bytesOf, type CopyOf, type DType, type DTypeName } from "../core/dtype.js";
import { UnsupportedError } from "../core/errors.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";

/** Takes the bytes of a tensor, chunk by chunk. */
export interface Sink {
  /** Takes a chunk; the caller may reuse it when this resolves. */
  put(chunk: Uint8Array): Promise<void> | void;
  /** The tensor, once it has all bytes; the caller's. */
  finish(): Promise<Tensor>;
  /** Releases everything instead; a put() in progress writes nothing after it. */
  drop(): void;
}

/** Makes the memory for the elements of a CPU tensor. */
export type Place = (shape: readonly number[], type: DType) => Tensor;

const inJavaScript: Place = (shape, type) => {
  let array: CopyOf<DTypeName>;
  try {
    array = new type.View(Math.ceil(sizeOf(shape) * type.components));
  } catch (cause) {
    const given = bytesOf(type, sizeOf(shape));
    throw new UnsupportedError(`${given} bytes are more than one array can have`, { given, cause });
  }
  return Tensor.fromTypedArray(array, { shape, dtype: type.name });
};

/** Memory for a known number of bytes. */
export function memorySink(
  shape: readonly number[],
  type: DType,
  place: Place = inJavaScript,
): Sink {
  const tensor = place(shape, type);
  let at = 0;
  return {
    put(chunk) {
      // Read again each time: wasm memory moves when it grows.
      tensor._managed.bytes().set(chunk, at);
      at += chunk.length;
    },
    finish: async () => tensor,
    drop: () => tensor.release(),
  };
}

/** Memory that grows, for an unknown number of bytes; without a shape they are one axis. */
export function growingSink(
  shape: readonly number[] | null,
  type: DType,
  place: Place = inJavaScript,
): Sink {
  const parts: Uint8Array[] = [];
  return {
    put(chunk) {
      parts.push(chunk.slice());
    },
    async finish() {
      const bytes = concat(parts);
      const size = Math.floor(bytes.length / type.step);
      if (bytesOf(type, size) !== bytes.length) {
        throw new UnsupportedError(
          `${bytes.length} bytes are not a whole number of ${type.name} elements`,
        );
      }
      const tensor = place(shape ?? [size], type);
      tensor._managed.bytes().set(bytes);
      return tensor;
    },
    drop() {
      parts.length = 0;
    },
  };
}

/** Bytes that are converted at once. */
const BLOCK = 1 << 20;

/** Converts elements for another sink, which has the new dtype. */
export function convertingSink(inner: Sink, from: DType, to: DType, name: string): Sink {
  const block = new Uint8Array(BLOCK); // elements of 16 bytes at most: whole ones
  let filled = 0;
  let done = 0;
  let dropped = false;
  const flush = async () => {
    const size = filled / from.step;
    const values = new from.View(block.buffer, 0, size * from.components);
    const what = done > 0 ? `${name}[${done}:] (flat)` : name;
    const made = convertElements(values, from, to, size, what);
    done += size;
    filled = 0;
    await inner.put(new Uint8Array(made.buffer, made.byteOffset, made.byteLength));
  };
  return {
    async put(chunk) {
      for (let at = 0; at < chunk.length && !dropped; ) {
        const part = chunk.subarray(at, at + BLOCK - filled);
        block.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled === BLOCK) await flush();
      }
    },
    async finish() {
      if (filled > 0) await flush();
      return inner.finish();
    },
    drop() {
      dropped = true;
      inner.drop();
    },
  };
}
