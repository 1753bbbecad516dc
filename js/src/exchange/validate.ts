import { CPU, IS_SUBBYTE_TYPE_PADDED, READ_ONLY, WEBGPU } from "../core/dlpack.js";
import { dtypeOfTriple } from "../core/dtype.js";
import { textOf, UnsupportedError } from "../core/errors.js";
import type { GPUDevice } from "../core/globals.js";
import { checkShape, checkStrides, spanOf } from "../core/shape.js";
import type { Exchange } from "./types.js";

/** The fields of an exchange, each read once and checked. */
export type Checked = ReturnType<typeof check>;

/** The minor version; throws for another major one, of which nothing else may be touched. */
export function checkVersion(exchange: Exchange): number {
  if (typeof exchange !== "object" || exchange === null) {
    throw new UnsupportedError(`an exchange must be an object, not ${textOf(exchange)}`);
  }
  const { version } = exchange;
  const [major, minor] = Array.isArray(version) && version.length === 2 ? version : [];
  if (major === 1 && isCount(minor)) return minor;
  throw wrong("version", version, "a pair of integers, [1, 0] or newer with the same 1,");
}

/** The function that ends the hold. Without it a hold could not be ended. */
export function releaseOf(exchange: Exchange): Exchange["release"] {
  return functionOf("release", exchange.release);
}

function functionOf<F>(field: string, given: F): F {
  if (typeof given === "function") return given;
  throw wrong(field, given, "a function");
}

/**
 * The fields of an exchange, each read once: a getter or Proxy may return another value next time.
 * Throws UnsupportedError naming a wrong one.
 */
export function check(exchange: Exchange, minor: number) {
  const { device, dtype, strides, byteOffset, data, capacity, flags } = exchange;
  const given = exchange.shape;
  const flush = functionOf("flush", exchange.flush);
  const fault = minor > 0 ? (exchange.fault ?? null) : null; // version 1.0 had none
  if (fault !== null) functionOf("fault", fault);
  if (!isCount(flags)) throw wrong("flags", flags, "a bit mask");
  const { code, bits, lanes } = Object(dtype) as Exchange["dtype"];
  const type = dtypeOfTriple(code, bits, lanes, (flags & IS_SUBBYTE_TYPE_PADDED) !== 0);
  if (type === undefined) {
    const told = `code ${textOf(code)}, bits ${textOf(bits)}, lanes ${textOf(lanes)}`;
    throw wrong("dtype", told, "a dtype of DLPack 1.3");
  }
  const shape = checked("shape", given, () => checkShape(given));
  const steps = checked("strides", strides, () => checkStrides(shape, strides ?? undefined));
  if (steps !== null && type.step % 1 !== 0) {
    throw wrong("strides", steps, `null, row-major: packed ${type.name} has no others`);
  }
  for (const [field, n] of Object.entries({ byteOffset, capacity })) {
    if (!isCount(n)) throw wrong(field, n, "a non-negative integer");
  }
  const { start, bytes } = spanOf(type, shape, steps, 0);
  if (bytes > 0 && capacity < start + bytes) {
    throw wrong(
      "capacity",
      capacity,
      `at least ${start + bytes} bytes, to the end of the elements,`,
    );
  }
  if (typeof data !== "object" || data === null) throw wrong("data", data, "an object");
  return {
    gpu: deviceOf(device),
    type,
    shape,
    strides: steps, // null: row-major
    // S9: without elements and padding it has no meaning, and may be outside of all memory.
    byteOffset: capacity === 0 ? 0 : byteOffset,
    data,
    capacity,
    readOnly: (flags & READ_ONLY) !== 0,
    flags,
    flush,
    fault, // null: the producer watches no work
  };
}

/** The `GPUDevice`; null for the CPU. */
function deviceOf(device: Exchange["device"]): GPUDevice | null {
  const { type, gpu } = Object(device) as Exchange["device"];
  if (type === CPU && (gpu ?? null) === null) return null;
  if (type === CPU) throw wrong("device.gpu", gpu, "null, as the type is 1 (CPU),");
  if (type !== WEBGPU) throw wrong("device.type", type, "1 (CPU) or 15 (WebGPU)");
  if (typeof gpu === "object" && gpu !== null) return gpu;
  throw wrong("device.gpu", gpu, "the GPUDevice");
}

function isCount(n: unknown): n is number {
  return Number.isSafeInteger(n) && (n as number) >= 0;
}

function checked<T>(field: string, given: unknown, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const { message } = cause as Error;
    throw new UnsupportedError(`this exchange's ${field} is ${textOf(given)}: ${message}`, {
      given,
      cause,
    });
  }
}

/** The error for a wrong field. */
export function wrong(field: string, given: unknown, needed: string): UnsupportedError {
  return new UnsupportedError(`this exchange's ${field} is ${textOf(given)}; ${needed} is needed`, {
    given,
    needed,
  });
}
