/** All adapters, for Python, with the same names in each. */
import { type Arrow, fromArrow, install as installArrow, toArrow } from "./arrow.js";
import { fromJax, install as installJax, toJax, useDevice as useJax } from "./jax.js";
import {
  fromLiteRT,
  install as installLiteRT,
  toLiteRT,
  useDevice as useLiteRT,
} from "./litert.js";
import { fromNdarray, toNdarray } from "./ndarray.js";
import { fromMat, install as installOpencv, toMat } from "./opencv.js";
import { fromOrt, install as installOrt, toOrt, useDevice as useOrt } from "./ort.js";
import { fromTfjs, install as installTfjs, toTfjs, useDevice as useTfjs } from "./tfjs.js";
import { fromThree, toThree, useDevice as useThree } from "./three.js";
import {
  fromTransformers,
  install as installTransformers,
  toTransformers,
  useDevice as useTransformers,
} from "./transformers.js";

export { shareDevice } from "./devices.js";

export const adapters = {
  arrow: {
    give: toArrow,
    take: fromArrow,
    // DuckDB-wasm does not export its Arrow: then nothing is passed.
    install: (arrow: Arrow | null | undefined) => arrow && installArrow(arrow),
  },
  jax: { give: toJax, take: fromJax, install: installJax, use: useJax },
  litert: { give: toLiteRT, take: fromLiteRT, install: installLiteRT, use: useLiteRT },
  ndarray: { give: toNdarray, take: fromNdarray },
  opencv: { give: toMat, take: fromMat, install: installOpencv },
  ort: { give: toOrt, take: fromOrt, install: installOrt, use: useOrt },
  tfjs: { give: toTfjs, take: fromTfjs, install: installTfjs, use: useTfjs },
  three: { give: toThree, take: fromThree, use: useThree },
  transformers: {
    give: toTransformers,
    take: fromTransformers,
    install: installTransformers,
    use: useTransformers,
  },
};
