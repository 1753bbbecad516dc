// The adapters as TypeScript sees them.
import {
  type Bridge,
  CopyError,
  connect,
  type DTypeName,
  Tensor,
  webgpu,
} from "dlpack-web";
import {
  type Arrow,
  type ArrowTable,
  type FromArrowOptions,
  fromArrow,
  type Masked,
  toArrow,
} from "dlpack-web/arrow";
import { EXCHANGE, type Exchange, type Exchangeable, fit, take } from "dlpack-web/exchange";
import { fromJax, type Jax, toJax } from "dlpack-web/jax";
import { fromLiteRT, type LiteRT, toLiteRT } from "dlpack-web/litert";
import { fromNdarray, toNdarray } from "dlpack-web/ndarray";
import { fromMat, type OpenCV, toMat } from "dlpack-web/opencv";
import { fromOrt, type Ort, toOrt, useDevice } from "dlpack-web/ort";
import { shareDevice } from "dlpack-web/share";
import { fromTfjs, type Tf, toTfjs } from "dlpack-web/tfjs";
import { fromThree, type Three, toThree } from "dlpack-web/three";
import { fromTransformers, type Transformers, toTransformers } from "dlpack-web/transformers";

export async function all(
  pyodide: Parameters<typeof connect>[0],
  libraries: {
    arrow: Arrow;
    table: ArrowTable;
    cv: OpenCV;
    jax: Jax;
    litert: LiteRT;
    ort: Ort;
    tf: Tf;
    three: Three;
    transformers: Transformers;
  },
): Promise<void> {
  const { arrow, table, cv, jax, litert, ort, tf, three, transformers } = libraries;
  const bridge: Bridge = await connect(pyodide);
  const device = await shareDevice({ jax, litert, ort, tf });
  const name: "webgpu" = (await useDevice(ort, device)).name;
  const dtype: DTypeName = "float32x4";
  const tensor: Tensor<"float32"> = bridge.empty([2, 3]);
  const gpu: Tensor<"float32"> = tensor.to(device);
  const values: Float32Array = await gpu.read();
  const halves: Tensor<"float16"> = tensor.to(device, { dtype: "float16" });
  const bytes: Uint8Array = await tensor.to(device, { dtype: "bfloat16" }).read();
  const other: Exchangeable = { [EXCHANGE]: (request): Exchange => tensor[EXCHANGE](request) };
  const fitted: Tensor = fit(take(other), { device, copy: false, needs: { offset: 0, padTo: 16 } });
  const message = tensor.transfer();
  const received: Tensor = Tensor.receive(message);
  const vector = toArrow(arrow, received, { copy: false });
  const named: FromArrowOptions = { column: "x", nulls: "refuse", copy: false };
  const either: Tensor | Masked = fromArrow(null, table, named);
  const mask: Masked = fromArrow(null, table, { column: "x", nulls: "mask" });
  const bools: Uint8Array = mask.valid.data;
  toArrow(arrow, mask.values, { valid: mask.valid });
  const tensors: Tensor[] = [
    fromArrow(arrow, vector),
    fromArrow(null, table, { nulls: "refuse", copy: false }),
    fromJax(jax, toJax(jax, gpu, { dtype: "bool" })),
    fromLiteRT(litert, toLiteRT(litert, gpu)),
    fromNdarray(null, toNdarray(null, tensor)),
    fromMat(cv, toMat(cv, tensor)),
    fromOrt(ort, toOrt(ort, gpu)),
    fromTfjs(tf, toTfjs(tf, gpu)),
    fromThree(three, toThree(three, gpu, { itemSize: 4 })),
    fromThree(three, toThree(three, halves, { kind: "DataTexture" })),
    fromTransformers(transformers, toTransformers(transformers, gpu)),
  ];
  // @ts-expect-error: no such option
  toOrt(ort, gpu, { copies: true });
  // @ts-expect-error: no such class
  toThree(three, gpu, { kind: "CubeTexture" });
  // @ts-expect-error: not a tensor
  toOrt(ort, values);
  // @ts-expect-error: "refuse" or "mask"
  fromArrow(null, table, { nulls: "drop" });
  for (const each of [...tensors, fitted]) each.release();
  if (new CopyError("") instanceof Error) void [webgpu.stats(), name, dtype, values, halves, bytes, bools, either];
}
