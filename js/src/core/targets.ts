/** Where elements are copied to: the outs of `read()`, and the tensors of `write()`. */
import { canConvert, checkConversion, misfitOf } from "./convert.js";
import { type AnyTypedArray, checkHolds } from "./dtype.js";
import { putBytes } from "./elements.js";
import { UnsupportedError } from "./errors.js";
import { deviceLayer } from "./layers.js";
import type { ManagedTensor } from "./managed.js";
import { sameShape } from "./shape.js";

/** A typed array, or a tensor. */
export type Out = AnyTypedArray | ManagedTensor;

/** Checks that `out` can take the elements of `source`, before anything is started. */
export function checkOut(source: ManagedTensor, out: Out): void {
  const isArray = ArrayBuffer.isView(out);
  if (!isArray) out.check();
  if (!isArray && (out.isOnGPU || out.strides !== null || out.readOnly)) {
    throw new UnsupportedError(
      `out must be a writable, row-major CPU tensor, not ${out.readOnly ? "read-only " : ""}` +
        `${out.toString()} with strides [${out.layout.strides}]`,
    );
  }
  // In the last byte of packed elements, neighbours may begin.
  const [has, needed] = isArray ? [out.byteLength, source.nbytes] : [out.exact, source.exact];
  if (has !== needed) {
    throw new RangeError(
      `out has ${has} bytes (0: detached); ${source.toString()} needs ${needed}`,
    );
  }
  if (isArray) checkHolds(out, source.dtype);
}

/**
 * Throws if `out` is a tensor of another dtype, and of the right size. Python checks its arrays, which
 * have bits of dtypes that NumPy lacks.
 */
export function checkSameDType(source: ManagedTensor, out: Out): Out {
  if (ArrayBuffer.isView(out) || out.dtype === source.dtype || out.exact !== source.exact)
    return out;
  throw new UnsupportedError(
    `${source.toString()} cannot be read into out: ${misfitOf(source.dtype, out.dtype)}; read() it, ` +
      "and write() that with convert: true",
  );
}

/** The bytes of an out. Call it right before copying: `as()` of other memory may make wasm memory grow. */
export function bytesOfOut(out: Out): Uint8Array {
  if (!ArrayBuffer.isView(out)) return out.bytes();
  return new Uint8Array(out.buffer, out.byteOffset, out.byteLength);
}

/** Reads a CPU tensor. */
export function readInto(out: Out, source: ManagedTensor): void {
  checkOut(source, out);
  const elements = source.as(source.dtype);
  putBytes(bytesOfOut(out), elements, source.exact);
}

/** Throws unless a tensor's elements may be written over those of another. */
export function checkWrite(target: ManagedTensor, source: ManagedTensor, convert = false): void {
  source.check();
  const same = source.dtype === target.dtype;
  const fits = sameShape(source.shape, target.shape);
  if (!fits || !(same || convert)) {
    const why = fits ? misfitOf(source.dtype, target.dtype) : "shape and dtype must be the same";
    const converts = fits && !source.isOnGPU && canConvert(source.dtype, target.dtype);
    const way = converts ? "; convert: true converts" : "";
    throw new UnsupportedError(
      `${source.toString()} cannot be written over ${target.toString()}: ${why}${way}`,
      { given: source.dtype.name, needed: target.dtype.name },
    );
  }
  if (!same) checkConversion(source.dtype, target.dtype, source.toString());
  if (target.readOnly || target.strides !== null) {
    throw new UnsupportedError(
      `${target.toString()} cannot be written to: it is read-only or strided`,
    );
  }
}

/** Implements `Tensor.write`. */
export function writeOver(target: ManagedTensor, source: ManagedTensor, convert: boolean): void {
  checkWrite(target, source, convert);
  if (target.isOnGPU) {
    deviceLayer().write(target, source);
    return;
  }
  if (source.isOnGPU) {
    throw new UnsupportedError(
      `${source.toString()} is on a GPU: await its read(out) into this tensor`,
    );
  }
  const elements = source.as(target.dtype);
  putBytes(target.bytes(), elements, target.exact);
}
