// The adapters with the libraries' own types: what goes in fits, and what comes out is theirs;
// test_declarations.py checks that this has no errors.
import type { AsyncDuckDBConnection } from "@duckdb/duckdb-wasm";
import * as transformers from "@huggingface/transformers";
import * as jax from "@jax-js/jax";
import * as tf from "@tensorflow/tfjs-core";
import * as litert from "@litertjs/core";
import * as cv from "@techstark/opencv-js";
import type { Table } from "@uwdata/flechette";
import * as arrow from "apache-arrow";
import type { Tensor } from "dlpack-web";
import { fromArrow, toArrow } from "dlpack-web/arrow";
import { fromJax, toJax, useDevice as useJax } from "dlpack-web/jax";
import { fromLiteRT, toLiteRT, useDevice as useLiteRT } from "dlpack-web/litert";
import { fromNdarray, toNdarray } from "dlpack-web/ndarray";
import { fromMat, toMat } from "dlpack-web/opencv";
import { fromOrt, toOrt, useDevice as useOrt } from "dlpack-web/ort";
import { shareDevice } from "dlpack-web/share";
import { fromTfjs, toTfjs, useDevice as useTfjs } from "dlpack-web/tfjs";
import { fromTransformers, toTransformers, useDevice } from "dlpack-web/transformers";
import type { load } from "npyjs";
import type { NDArray } from "numpy-ts";
import * as ort from "onnxruntime-web";
import * as transformers3 from "transformers-3";
import type { Chunk } from "zarrita";

export async function all(
  tensor: Tensor<"float32">,
  device: GPUDevice,
  connection: AsyncDuckDBConnection,
  [table, file, numbers]: [Table, Awaited<ReturnType<typeof load>>, NDArray],
): Promise<Tensor[]> {
  await shareDevice({ ort, tf, jax, litert }, { device });
  await Promise.all([useJax(jax, device), useOrt(ort, device), useTfjs(tf, device)]);
  const vector: arrow.Vector = toArrow(arrow, tensor);
  const array: jax.Array = toJax(jax, tensor, { dtype: "bool" });
  const feed: ort.Tensor = toOrt(ort, tensor);
  const results = await (await ort.InferenceSession.create("")).run({ x: feed });
  const mat: cv.Mat = toMat(cv, tensor, { copy: true });
  const t: tf.Tensor = toTfjs(tf, tensor);
  const chunk: Chunk<"float32"> = toNdarray(null, tensor);
  await useLiteRT(litert, device);
  const environment = await litert.Environment.create({ webGpuDevice: device });
  const input: litert.Tensor = toLiteRT(litert, tensor, { environment, copy: false });
  const network = await litert.loadAndCompile("", { environment });
  const [output] = await network.run([input]);
  const session_options = await useDevice(transformers, device);
  const options = { session_options, device: "webgpu" as const };
  const model = await transformers.AutoModel.from_pretrained("name", options);
  const value: transformers.Tensor = toTransformers(transformers, tensor);
  const older: transformers3.Tensor = toTransformers(transformers3, tensor);
  await transformers3.AutoModel.from_pretrained("name", {
    session_options: await useDevice(transformers3, device),
    device: "webgpu",
  });
  await model({ value });
  return [
    fromArrow(arrow, vector, { copy: true }),
    fromArrow(arrow, new arrow.Table({ x: vector }), { nulls: "refuse" }),
    fromArrow(null, await connection.query("SELECT 1 AS x"), { column: "x" }),
    fromArrow(null, table, { column: "x" }),
    fromJax(jax, array),
    fromLiteRT(litert, output as litert.Tensor, { copy: true }),
    fromMat(cv, mat, { copy: false }),
    fromNdarray(null, chunk, { dtype: "bool" }),
    fromNdarray(null, file),
    fromNdarray(null, numbers),
    fromOrt(ort, results.y as ort.Tensor),
    fromTfjs(tf, tf.relu(t)),
    fromTransformers(transformers, value),
    fromTransformers(transformers3, older),
  ];
}

export function wrong(tensor: Tensor<"float32">): void {
  // @ts-expect-error: no such option
  fromOrt(ort, toOrt(ort, tensor), { dtype: "bool" });
  // @ts-expect-error: float32 is not int8
  const chunk: Chunk<"int8"> = toNdarray(null, tensor);
  // @ts-expect-error: not the library
  toTransformers(ort, tensor);
  const made = [
    toArrow(arrow, tensor),
    toJax(jax, tensor),
    toLiteRT(litert, tensor),
    toMat(cv, tensor),
    toOrt(ort, tensor),
    toTfjs(tf, tensor),
    toTransformers(transformers, tensor),
    toTransformers(transformers3, tensor),
  ] as const;
  type Known<T> = { [K in keyof T]: 0 extends 1 & T[K] ? never : T[K] };
  const known: Known<typeof made> = made; // none is `any`
  console.log(chunk, known);
}
