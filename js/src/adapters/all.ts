/** Generated from tools/tables by `make generate`: do not edit. */

import * as arrow from "./arrow.js";
import * as jax from "./jax.js";
import * as litert from "./litert.js";
import * as ndarray from "./ndarray.js";
import * as opencv from "./opencv.js";
import * as ort from "./ort.js";
import * as tfjs from "./tfjs.js";
import * as three from "./three.js";
import * as transformers from "./transformers.js";

export { shareDevice } from "./devices.js";

/** All adapters, for Python, with the same names in each. */
export const adapters = {
  arrow: { give: arrow.toArrow, take: arrow.fromArrow, install: arrow.install },
  jax: { give: jax.toJax, take: jax.fromJax, install: jax.install, use: jax.useDevice },
  litert: {
    give: litert.toLiteRT,
    take: litert.fromLiteRT,
    install: litert.install,
    use: litert.useDevice,
  },
  ndarray: { give: ndarray.toNdarray, take: ndarray.fromNdarray },
  opencv: { give: opencv.toMat, take: opencv.fromMat, install: opencv.install },
  ort: { give: ort.toOrt, take: ort.fromOrt, install: ort.install, use: ort.useDevice },
  tfjs: { give: tfjs.toTfjs, take: tfjs.fromTfjs, install: tfjs.install, use: tfjs.useDevice },
  three: { give: three.toThree, take: three.fromThree, use: three.useDevice },
  transformers: {
    give: transformers.toTransformers,
    take: transformers.fromTransformers,
    install: transformers.install,
    use: transformers.useDevice,
  },
};
