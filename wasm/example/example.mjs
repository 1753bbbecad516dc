// example.c for JavaScript: its own functions, beside what every module has of dlpack_web.mjs.
import { loadModule } from "./dlpack_web.mjs";

/** @param source - the bytes of example.wasm */
export async function load(source) {
  const { exports, Tensor } = await loadModule(source);
  return {
    memory: exports.memory,
    Tensor,
    fromExchange: Tensor.fromExchange,

    /** How many tensors C has whose deleter was not called. */
    liveTensors: () => exports.live_tensors(),

    /** A tensor that C made: a strided uint8 picture. RangeError where there is no memory. */
    picture: (height, width) => new Tensor(exports.picture(height, width)),

    /** The sum of all elements; NaN for a dtype that C does not know. */
    sum: (tensor) => exports.sum(tensor.address),

    /** Multiplies float32 in place, and lets whoever lent them know. */
    scale(tensor, factor) {
      if (!exports.scale(tensor.address, factor)) {
        throw Object.assign(new Error("scale() needs float32 that may be written to"), {
          name: "UnsupportedError",
        });
      }
      tensor.wrote();
    },
  };
}
