// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * transformers.js 3 and 4: its tensors are wrapped `ort.Tensor`s, of the copy of onnxruntime-web that
 * it brings. A page may have another copy beside it, of another version and on another device.
 */
import type { GPUDevice } from "../core/globals.js";
import type { Tensor } from "../core/tensor.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";
import {
  fromOrt,
  type Ort,
  type OrtTensor,
  type Provider,
  toOrt,
  useDevice as useOrt,
} from "./ort.js";

/** The part of `@huggingface/transformers` that is used here. */
export interface Transformers {
  Tensor: new (...args: any[]) => any;
  env: { backends: { onnx?: any } };
}

/** A `Tensor` of transformers.js, as far as it is used here. */
export interface TransformersTensor {
  readonly ort_tensor: unknown;
}

/** The result of {@link useDevice}: the `session_options` of a model. */
export interface SessionOptions {
  executionProviders: Provider[];
}

/**
 * Makes models loaded with the returned `session_options` run on a device. Results stay on the GPU
 * if the options ask for it:
 *
 * ```ts
 * const options = await useDevice(transformers, device);
 * const session_options = { ...options, preferredOutputLocation: "gpu-buffer" };
 * const model = await AutoModel.from_pretrained(name, { device: "webgpu", session_options });
 * ```
 *
 * @param transformers - the module `@huggingface/transformers`
 * @param device - the one to run on
 * @throws DeviceError if its onnxruntime-web runs on another device already; DeviceLostError
 */
export async function useDevice(
  transformers: Transformers,
  device: GPUDevice,
): Promise<SessionOptions> {
  const provider = await useOrt(ortOf(transformers), device);
  install(transformers);
  return { executionProviders: [provider] };
}

/** The copy of onnxruntime-web that transformers.js uses, which it does not export. */
function ortOf(transformers: Transformers): Ort {
  common.checkLibrary(transformers, "env", "the module @huggingface/transformers");
  const { Tensor: Class, env } = transformers;
  const { ort_tensor: inner } = new Class("uint8", new Uint8Array(0), [0]);
  return { Tensor: inner.constructor, env: env.backends.onnx ?? {} };
}

/**
 * A tensor over the memory of a `Tensor` of transformers.js, or of an `ort.Tensor` of its sessions,
 * without a copy. It has a hold of its own: disposing of the value does not end it.
 *
 * @param transformers - the module that made the tensor
 * @param value - a `Tensor` or `ort.Tensor`, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws the errors of {@link fromOrt}
 */
export function fromTransformers(
  transformers: Transformers,
  value: TransformersTensor | OrtTensor | Exchangeable,
  options: common.TakeOptions = {},
): Tensor {
  const inner = ((Object(value) as any).ort_tensor ?? value) as OrtTensor;
  const ort = ortOf(transformers);
  // Sessions may make theirs with a class of their own.
  const Class = inner?.location === undefined ? ort.Tensor : inner.constructor;
  return fromOrt({ ...ort, Tensor: Class as Ort["Tensor"] }, inner, options);
}

/**
 * A `Tensor` of transformers.js over a tensor's memory, which it holds until its `dispose()`.
 * Copies and errors are as for {@link toOrt}.
 *
 * @param transformers - the module `@huggingface/transformers`
 * @param x - a tensor, or another object with the exchange protocol
 * @param options - `copy`: true always copies, false never does
 * @throws CopyError, UnsupportedError for other dtypes, DeviceError for another device's tensors
 */
export function toTransformers<L extends Transformers>(
  transformers: L,
  x: Exchangeable,
  options: common.GiveOptions = {},
): InstanceType<L["Tensor"]> {
  const inner = toOrt(ortOf(transformers), x, options);
  return common.keepingMade(inner, () => {
    // Where the page has set a copy of onnxruntime-web, the constructor takes that copy's alone.
    const made = new transformers.Tensor("uint8", new Uint8Array(0), [0]);
    made.ort_tensor = inner;
    return made;
  });
}

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take its tensors.
 *
 * @param transformers - the module `@huggingface/transformers`
 */
export function install(transformers: Transformers): void {
  common.makeExchangeable(transformers, transformers.Tensor as any, fromTransformers);
}
