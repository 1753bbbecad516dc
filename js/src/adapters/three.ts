// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * three.js: CPU tensors are the arrays of attributes, GPU tensors the buffers that a
 * WebGPURenderer keeps for storage attributes.
 */

import { type DType, dtypeNamed, dtypeOfArray, type TypedArray } from "../core/dtype.js";
import { DeviceError, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { keeping } from "../core/releasing.js";
import { Tensor } from "../core/tensor.js";
import { fit } from "../exchange/fit.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";
import { handed, joined } from "./faults.js";

/** The part of `three` (or `three/webgpu`, for GPU tensors) that is used here. */
export interface Three {
  BufferAttribute: new (array: any, itemSize: number) => any;
  Float16BufferAttribute?: new (array: any, itemSize: number) => any;
  StorageBufferAttribute?: new (array: any, itemSize: number) => any;
}

/** A `WebGPURenderer`, as far as it is used here. */
export interface Renderer {
  backend: any;
  init?(): Promise<any>;
}

/** A `BufferAttribute` or `InterleavedBufferAttribute`, as far as it is used here. */
export interface Attribute {
  readonly array: unknown;
  readonly count: number;
  readonly itemSize: number;
}

/** An `InterleavedBufferAttribute`: every `stride` elements of its buffer, some from `offset` on. */
interface Interleaved extends Attribute {
  readonly data: { readonly stride: number };
  readonly offset: number;
}

/** Options of {@link fromThree}. */
export interface FromThreeOptions extends common.TakeOptions {
  /** Use the buffer that this renderer has on the GPU. */
  renderer?: Renderer | undefined;
}

/** Options of {@link toThree}. */
export interface ToThreeOptions extends common.GiveOptions {
  /** The renderer that a GPU tensor is for. */
  renderer?: Renderer | undefined;
  /** Usage flags of its GPUBuffer: default STORAGE, for computing; add VERTEX for drawing. */
  usage?: number | undefined;
  /** Elements of an item; default the last of several axes. */
  itemSize?: number | undefined;
}

const STORAGE = 128;
const ON_GPU = ["float32", "int32", "uint32"];
const ON_CPU = [...ON_GPU, "int8", "uint8", "int16", "uint16", "float16"];

/**
 * Starts a renderer on a device.
 *
 * @param renderer - a `WebGPURenderer` whose `init()` was not called
 * @throws DeviceError if it has started on another device, or on WebGL
 */
export async function useDevice(renderer: Renderer, device: GPUDevice): Promise<void> {
  const { backend } = renderer;
  if (!backend.device && backend.parameters) backend.parameters.device = device;
  await renderer.init?.();
  if (renderer.backend.device !== device) {
    throw new DeviceError(
      renderer.backend.isWebGPUBackend
        ? "this renderer already runs on another GPUDevice: call useDevice() before its init()"
        : "this renderer does not run on WebGPU",
    );
  }
}

/**
 * A tensor over the elements of an attribute, of shape [count, itemSize] ([count] for 1): its
 * array, or with a renderer the buffer on the GPU, which stays when the attribute is destroyed. One
 * of an interleaved buffer is strided, a `Float16BufferAttribute` is float16, and a normalized one has
 * its integers. Nothing is copied.
 *
 * @throws UnsupportedError if the renderer has no buffer for it yet, or pads its items to 16 bytes;
 * CopyError
 */
export function fromThree(
  _three: Three,
  attribute: Attribute | Exchangeable,
  options: FromThreeOptions = {},
): Tensor {
  if (!isAttribute(attribute)) return common.takeOther(attribute, "a BufferAttribute", options);
  const { count, itemSize } = attribute;
  const { renderer, copy } = options;
  const shape = itemSize === 1 ? [count] : [count, itemSize];
  const ours = common.shareOf(attribute, shape);
  if (ours && (ours.device.gpu !== null) === (renderer !== undefined))
    return common.copiedIf(copy, ours);
  ours?.release();
  const type = typeOf(attribute);
  const place = { shape, ...placeOf(attribute) };
  if (!renderer) {
    const described = { ...place, dtype: type.name };
    return common.copiedIf(copy, Tensor.fromTypedArray(attribute.array as TypedArray, described));
  }
  const { backend } = renderer;
  const owner = ownerOf(attribute);
  const buffer: GPUBuffer | undefined = backend.get?.(owner)?.buffer;
  if (!buffer) {
    throw new UnsupportedError(
      "this renderer has no GPUBuffer for the attribute: render or compute with it first, on WebGPU",
    );
  }
  checkItem(type.name, isInterleaved(attribute) ? 1 : itemSize);
  watchDestroy(backend);
  const made = common.lending(borrow(owner), (release) =>
    Tensor.fromGPUBuffer(buffer, {
      device: backend.device,
      shape,
      strides: place.strides,
      byteOffset: (place.offset ?? 0) * type.step,
      dtype: type.name,
      // An interleaved attribute's elements are followed by another attribute's.
      capacity: place.strides ? undefined : buffer.size,
      release,
    }),
  );
  return common.copiedIf(copy, joined(backend, "three.js", made));
}

function isAttribute(x: Attribute | Exchangeable): x is Attribute {
  return typeof (x as Partial<Attribute> | null)?.itemSize === "number";
}

function isInterleaved(x: Attribute): x is Interleaved {
  return (x as { isInterleavedBufferAttribute?: unknown }).isInterleavedBufferAttribute === true;
}

function typeOf(attribute: Attribute): DType {
  const { array } = attribute;
  const type = ArrayBuffer.isView(array) ? dtypeOfArray(array) : undefined;
  if (type === undefined) throw new UnsupportedError("this attribute has no typed array");
  // three.js has the raw bits of float16.
  const owner = ownerOf(attribute) as { isFloat16BufferAttribute?: unknown };
  const isHalf = owner.isFloat16BufferAttribute === true && type.name === "uint16";
  return isHalf ? dtypeNamed("float16") : type;
}

/** The object that three.js keeps the buffer for: interleaved attributes share it. */
function ownerOf(attribute: Attribute): object {
  return isInterleaved(attribute) ? attribute.data : attribute;
}

/** Where an interleaved attribute's elements are in the array; nothing for others. */
function placeOf(attribute: Attribute): { strides?: number[]; offset?: number } {
  if (!isInterleaved(attribute)) return {};
  const { data, offset, itemSize } = attribute;
  return { strides: itemSize === 1 ? [data.stride] : [data.stride, 1], offset };
}

/** A hold on the buffer of three.js, which destroying the attribute does not end. */
function borrow(owner: object): () => void {
  const loan = borrowed.get(owner) ?? { holds: 0, destroy: null };
  borrowed.set(owner, loan);
  loan.holds++;
  return () => {
    if (--loan.holds === 0) loan.destroy?.();
  };
}

/** Buffers of three.js that our tensors hold, and actions for when they are released. */
const borrowed = new WeakMap<object, { holds: number; destroy: (() => void) | null }>();

function checkItem(dtype: string, itemSize: number): void {
  common.checkDType("three.js on WebGPU", dtype, ON_GPU);
  if (itemSize !== 3) return;
  throw new UnsupportedError(
    "three.js pads storage items of 3 elements to 4, as WGSL's vec3 is: use itemSize 1 or 4",
    { given: 3 },
  );
}

/** Tensors whose buffers three.js has. */
const lent = new WeakMap<object, Tensor>();

/**
 * An attribute of a tensor's elements: a `BufferAttribute` over its memory for a CPU tensor, or a
 * `StorageBufferAttribute` whose GPUBuffer the tensor's is. It holds the memory until the renderer
 * destroys the attribute, or it is garbage-collected.
 *
 * @throws CopyError, UnsupportedError for other dtypes and for GPU items of 3, DeviceError;
 * RangeError for an `itemSize` that does not divide the elements
 */
export function toThree<L extends Three>(
  three: L,
  x: Exchangeable,
  options: ToThreeOptions = {},
): InstanceType<L["BufferAttribute"]> {
  const { copy, renderer, usage = STORAGE } = options;
  return keeping(fit(x, { copy, needs: { offset: 0, usage } }), (held) => {
    const { dtype, shape, size } = held;
    const itemSize = options.itemSize ?? (shape.length > 1 ? (shape.at(-1) as number) : 1);
    if (!(itemSize >= 1 && size % itemSize === 0)) {
      throw new RangeError(
        `${held.toString()} is not a whole number of items of ${itemSize} elements`,
      );
    }
    if (!held.device.gpu) {
      common.checkDType("three.js", dtype, ON_CPU);
      return dtype === "float16" ? giveHalves(three, held, itemSize) : give(three, held, itemSize);
    }
    const { StorageBufferAttribute } = three;
    if (!renderer || !StorageBufferAttribute) {
      throw new UnsupportedError(
        "a GPU tensor needs `three/webgpu` and its renderer: toThree(THREE, tensor, { renderer })",
      );
    }
    const { backend } = renderer;
    common.checkDevice("this renderer", held, backend.device);
    checkItem(dtype, itemSize);
    // three.js only reads the class of an empty array.
    const made = new StorageBufferAttribute(new held._managed.dtype.View(0), itemSize);
    made.count = size / itemSize;
    backend.get(made).buffer = held.buffer;
    lent.set(made, held);
    common.releaseWith(made, held);
    watchDestroy(backend);
    handed(backend, "three.js", held);
    return made;
  });
}

function give({ BufferAttribute }: Three, held: Tensor, itemSize: number): any {
  const made = new BufferAttribute(held.data, itemSize);
  common.alias(made, "array", held);
  return made;
}

/** The bits of float16, which the constructor would copy. */
function giveHalves({ Float16BufferAttribute }: Three, held: Tensor, itemSize: number): any {
  if (!Float16BufferAttribute) {
    throw new UnsupportedError(
      "three.js has float16 in its Float16BufferAttribute: pass a module that has it",
    );
  }
  const made = new Float16BufferAttribute(new Uint16Array(0), itemSize);
  made.count = held.size / itemSize;
  common.alias(made, "array", held, () => common.viewAs(Uint16Array, held.data));
  return made;
}

/** Makes destroying an attribute end only its own hold on a buffer. */
function watchDestroy(backend: any): void {
  if (Object.hasOwn(backend, "destroyAttribute")) return;
  const { destroyAttribute } = backend;
  backend.destroyAttribute = (attribute: Attribute) => {
    const owner = ownerOf(attribute);
    const tensor = lent.get(owner);
    const loan = borrowed.get(owner);
    if (!tensor && !loan?.holds) return destroyAttribute.call(backend, attribute);
    const { buffer } = backend.get(owner);
    if (loan && !tensor) loan.destroy = () => buffer.destroy();
    lent.delete(owner);
    backend.delete(owner);
    tensor?.release();
  };
}
