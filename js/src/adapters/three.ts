// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * three.js: CPU tensors are the arrays of attributes and textures, GPU tensors the buffers that a
 * WebGPURenderer keeps for attributes.
 */

import {
  type DType,
  type DTypeName,
  dtypeNamed,
  dtypeOfArray,
  type TypedArray,
  viewAs,
} from "../core/dtype.js";
import { DeviceError, UnsupportedError } from "../core/errors.js";
import type { GPUBuffer, GPUDevice } from "../core/globals.js";
import { shared } from "../core/realm.js";
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
  DataTexture?: new (...args: any[]) => any;
  Data3DTexture?: new (...args: any[]) => any;
  DataArrayTexture?: new (...args: any[]) => any;
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

/** A `DataTexture`, `Data3DTexture` or `DataArrayTexture`, as far as it is used here. */
export interface Texture {
  readonly image: { data: unknown; width: number; height: number; depth?: number };
  readonly format: number;
  readonly type: number;
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
export interface ToThreeOptions<K extends Kind = Kind> extends common.GiveOptions {
  /**
   * The class of the result: an attribute is the default. A "DataTexture" is for a CPU tensor of shape
   * [height, width, channels], the others for [depth, height, width, channels].
   */
  kind?: K | undefined;
  /** The renderer that a GPU tensor is for. */
  renderer?: Renderer | undefined;
  /**
   * Usage flags of its GPUBuffer: default STORAGE, for computing; add VERTEX for drawing, which
   * float16 needs.
   */
  usage?: number | undefined;
  /** Elements of an item; default the last of several axes. */
  itemSize?: number | undefined;
}

const STORAGE = 128;
const VERTEX = 32;
const ON_GPU = ["float32", "int32", "uint32", "float16"];
const ON_CPU = [...ON_GPU, "int8", "uint8", "int16", "uint16"];

const NEEDED = "a BufferAttribute or a texture of data";

/** Axes of a texture's tensor, the last one its channels. */
const AXES = { DataTexture: 3, Data3DTexture: 4, DataArrayTexture: 4 };
const KINDS = Object.keys(AXES);
type TextureKind = keyof typeof AXES;
type Kind = "BufferAttribute" | TextureKind;
/** The constants of three.js for textures with one to four channels. */
const FORMATS = [
  ["RedFormat", "RedIntegerFormat", "AlphaFormat"],
  ["RGFormat", "RGIntegerFormat"],
  ["RGBFormat", "RGBIntegerFormat"],
  ["RGBAFormat", "RGBAIntegerFormat"],
];
/** Those for a texture's elements; the first three can be made here. */
const TYPES: Partial<Record<DTypeName, string>> = {
  uint8: "UnsignedByteType",
  float16: "HalfFloatType",
  float32: "FloatType",
  int8: "ByteType",
  int16: "ShortType",
  uint16: "UnsignedShortType",
  int32: "IntType",
  uint32: "UnsignedIntType",
};
const constantOf = (three: Three, name = "") => (three as { [name: string]: any })[name];
const IN_TEXTURES = Object.keys(TYPES).slice(0, 3);

/**
 * Starts a renderer on a device.
 *
 * @param renderer - a `WebGPURenderer` whose `init()` was not called
 * @param device - the one to run on
 * @throws DeviceError if it has started on another device, or on WebGL
 */
export async function useDevice(renderer: Renderer, device: GPUDevice): Promise<void> {
  common.checkLibrary(renderer, "backend", "a WebGPURenderer");
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
 * its integers. three.js pads items of 3 in storage attributes, whose `itemSize` is 4 then. A texture's data have the shape [height, width, channels], after [depth] if it has
 * one. Nothing is copied.
 *
 * @param three - the module `three/webgpu`
 * @param attribute - a `BufferAttribute` or a texture of data, or another object with the exchange
 * protocol
 * @param options - `renderer`, and `copy`: true always copies, false never does
 * @throws UnsupportedError if the renderer has no buffer for it yet, or has
 * replaced the bits of a `Float16BufferAttribute` by integers; for a texture with a renderer, and for
 * other than elements of a format's channels; RangeError for a texture with another number of them;
 * CopyError
 */
export function fromThree(
  three: Three,
  attribute: Attribute | Texture | Exchangeable,
  options: FromThreeOptions = {},
): Tensor {
  if (isTexture(attribute)) return ofTexture(three, attribute, options);
  if (!isAttribute(attribute)) return common.takeOther(attribute, NEEDED, options);
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
  const found: { buffer?: GPUBuffer; _paddedItemSize?: number } | undefined = backend.get?.(owner);
  const buffer = found?.buffer;
  if (!buffer) {
    throw new UnsupportedError(
      "this renderer has no GPUBuffer for the attribute: render or compute with it first, on WebGPU",
    );
  }
  const step = found?._paddedItemSize ?? itemSize; // where items are not of whole words
  common.checkDType("three.js on WebGPU", type.name, ON_GPU);
  if (step !== itemSize) place.strides = [step, 1];
  watchDestroy(backend);
  const made = common.lending(borrow(owner), (release) =>
    Tensor.fromGPUBuffer(buffer, {
      device: backend.device,
      shape,
      strides: place.strides,
      byteOffset: (place.offset ?? 0) * type.step,
      dtype: type.name,
      // Elements of another attribute, or padding, follow those of the last item.
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
  const owner = ownerOf(attribute) as { isFloat16BufferAttribute?: unknown };
  if (owner.isFloat16BufferAttribute !== true) return type;
  // three.js has the raw bits of float16, which its WebGPURenderer takes for integers.
  if (type.step === 2) return dtypeNamed("float16");
  throw new UnsupportedError(
    "a WebGPURenderer has replaced the bits of this Float16BufferAttribute by 32-bit integers, which it " +
      "draws wrong: use a BufferAttribute of a Float16Array",
    { given: type.name, needed: "float16" },
  );
}

function isTexture(x: Attribute | Texture | Exchangeable): x is Texture {
  return KINDS.some((kind) => (x as { [is: string]: any } | null)?.[`is${kind}`]);
}

function ofTexture(three: Three, texture: Texture, { renderer, copy }: FromThreeOptions): Tensor {
  const { image, format, type } = texture;
  const is = (value: number, name?: string) => constantOf(three, name) === value;
  const channels = 1 + FORMATS.findIndex((names) => names.some((name) => is(format, name)));
  const dtype = Object.entries(TYPES).find(([, name]) => is(type, name))?.[0] as DTypeName;
  if (renderer) {
    throw new UnsupportedError(
      "fromThree takes a texture's data without a renderer: webgpu.fromImage() takes the GPUTexture, " +
        "renderer.backend.get(texture).texture",
    );
  }
  const { data, depth, height, width } = image ?? {};
  if (!ArrayBuffer.isView(data) || !channels || !dtype) {
    throw new UnsupportedError(
      `this texture has no typed array with 1 to 4 elements for each pixel (format ${format}, type ` +
        `${type} of three.js)`,
    );
  }
  const shape = [...(depth === undefined ? [] : [depth]), height, width, channels];
  const made =
    common.shareOf(image, shape) ?? Tensor.fromTypedArray(data as TypedArray, { dtype, shape });
  return common.copiedIf(copy, made);
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

/** Of all copies of this library: the first that meets a backend watches it for the others. */
const { lent, borrowed } = shared("three", () => ({
  /** Tensors whose buffers three.js has. */
  lent: new WeakMap<object, { release(): void }>(),
  /** Buffers of three.js that our tensors hold, and actions for when they are released. */
  borrowed: new WeakMap<object, { holds: number; destroy: (() => void) | null }>(),
}));

/** A hold on the buffer of three.js, which destroying the attribute does not end. */
function borrow(owner: object): () => void {
  const loan = borrowed.get(owner) ?? { holds: 0, destroy: null };
  borrowed.set(owner, loan);
  loan.holds++;
  return () => {
    if (--loan.holds === 0) loan.destroy?.();
  };
}

/**
 * An attribute of a tensor's elements: a `BufferAttribute` over its memory for a CPU tensor, or a
 * `StorageBufferAttribute` whose GPUBuffer the tensor's is; or with `kind` a texture of a CPU tensor's.
 * It holds the memory until the renderer destroys the attribute, or it is garbage-collected.
 *
 * @param three - the module `three/webgpu`
 * @param x - a tensor, or another object with the exchange protocol
 * @param options - `kind`, `renderer`, `usage`, `itemSize`, and `copy`: true always copies, false
 * never does
 * @throws CopyError, UnsupportedError for other dtypes and for GPU items of 3, DeviceError;
 * RangeError for an `itemSize` that does not divide the elements, and for a texture's shape
 */
export function toThree<L extends Three, K extends Kind = "BufferAttribute">(
  three: L,
  x: Exchangeable,
  options: ToThreeOptions<K> = {},
): InstanceType<NonNullable<L[K]>> {
  common.checkLibrary(three, "BufferAttribute", "the module three");
  const { copy, kind, renderer, usage = STORAGE } = options;
  return keeping(fit(x, { copy, needs: { offset: 0, usage } }), (held) => {
    if (kind && kind !== "BufferAttribute") return giveTexture(three, held, kind);
    const { dtype, shape, size } = held;
    const { View } = held._managed.dtype;
    const isHalf = dtype === "float16";
    const areBits = isHalf && View.name !== "Float16Array";
    const itemSize = options.itemSize ?? (shape.length > 1 ? (shape.at(-1) as number) : 1);
    if (!(itemSize >= 1 && size % itemSize === 0)) {
      throw new RangeError(
        `${held.toString()} is not a whole number of items of ${itemSize} elements`,
      );
    }
    if (!held.device.gpu) {
      common.checkDType("three.js", dtype, ON_CPU);
      return areBits ? giveHalves(three, held, itemSize) : give(three, held, itemSize);
    }
    const { StorageBufferAttribute } = three;
    if (!renderer || !StorageBufferAttribute) {
      throw new UnsupportedError(
        "a GPU tensor needs `three/webgpu` and its renderer: toThree(THREE, tensor, { renderer })",
      );
    }
    const { backend } = renderer;
    common.checkDevice("this renderer", held, backend.device);
    common.checkDType("three.js on WebGPU", dtype, ON_GPU);
    if (itemSize === 3) {
      throw new UnsupportedError(
        "three.js pads storage items of 3 elements to 4, as WGSL's vec3 is: use itemSize 1 or 4",
        { given: 3 },
      );
    }
    if (isHalf && (areBits || !(usage & VERTEX))) {
      throw new UnsupportedError(
        "three.js has float16 on WebGPU for drawing: pass usage: GPUBufferUsage.VERTEX, in an engine with " +
          "Float16Array, or float32",
        { given: dtype },
      );
    }
    // three.js only reads the class of an empty array.
    const made = new StorageBufferAttribute(new View(0), itemSize);
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
  common.alias(made, "array", held, () => viewAs(Uint16Array, held.data));
  return made;
}

/** A texture over a CPU tensor's elements, which is uploaded when it is first drawn. */
function giveTexture(three: Three, held: Tensor, kind: TextureKind): any {
  const { dtype, shape } = held;
  const [channels = 0, width, height, depth] = [...shape].reverse();
  const [name] = FORMATS[channels - 1] ?? [];
  const Texture = Object.hasOwn(AXES, kind) && three[kind];
  if (!Texture)
    throw new TypeError(`three.js has no "${kind}" in this module: kind is one of ${KINDS}`);
  if (shape.length !== AXES[kind] || !name) {
    throw new RangeError(
      `a ${kind} is of a tensor [${AXES[kind] > 3 ? "depth, " : ""}height, width, channels] with 1 to 4 ` +
        `channels, not [${shape}]`,
    );
  }
  common.onCPU(`a ${kind}`, held);
  common.checkDType("a texture of three.js", dtype, IN_TEXTURES);
  const made = new Texture(null, width, height, depth);
  const isHalf = dtype === "float16"; // of which WebGL takes the bits alone
  common.alias(made.image, "data", held, () =>
    isHalf ? viewAs(Uint16Array, held.data) : held.data,
  );
  return Object.assign(made, {
    format: constantOf(three, name),
    type: constantOf(three, TYPES[dtype]),
    needsUpdate: true,
  });
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
