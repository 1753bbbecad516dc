// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * OpenCV.js 4 and 5: tensors over the elements of a `cv.Mat`, in OpenCV's own WebAssembly memory.
 * The other way they are copied into that memory, once, unless they are there already.
 */

import type { DTypeName } from "../core/dtype.js";
import { ReleasedError, UnsupportedError } from "../core/errors.js";
import { releasing } from "../core/releasing.js";
import { listOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import { take } from "../exchange/take.js";
import type { Exchangeable } from "../exchange/types.js";
import * as common from "./common.js";

/** The part of OpenCV.js that is used here. */
export interface OpenCV {
  Mat: { new (...args: any[]): any; prototype: any };
  CV_8UC1: number;
  CV_8UC2: number;
}

/** A `cv.Mat`, as far as it is used here. */
export interface Mat {
  readonly data: Uint8Array;
  /** Extents without the channels; its declarations do not know it. */
  readonly matSize?: any;
  /** Bytes from one element to the next, along each of those. */
  readonly step: any;
  channels(): number;
  depth(): number;
  empty(): boolean;
  elemSize1(): number;
  isDeleted(): boolean;
  delete(): void;
}

/** By `depth()`; OpenCV 4 has the first eight. */
const DEPTHS: readonly DTypeName[] = [
  "uint8",
  "int8",
  "uint16",
  "int16",
  "int32",
  "float32",
  "float64",
  "float16",
  "bfloat16",
  "bool",
  "uint64",
  "int64",
  "uint32",
];

/** Headers of Mats, by their tensors' storage. */
const lent = new WeakMap<object, any>();

// --- from it ----------------------------------------------------------------------------------------

/**
 * A tensor over the elements of a Mat, without a copy: of shape [rows, cols], or [rows, cols,
 * channels] where there are several. Parts of Mats (`roi`, `col`, …) come as strides. It has a hold
 * of its own: you may delete the Mat, or give it other elements (`create`, a result), before you
 * release the tensor.
 *
 * @param _cv - not needed
 * @param value - of any copy of the library. A Mat over foreign memory (`new cv.Mat(rows, cols,
 * type, ptr)`) has no owner to hold: free that memory later
 * @param options - `copy`: true always copies, false never does
 * @throws ReleasedError for a deleted Mat; UnsupportedError for elements that DLPack lacks
 */
export function fromMat(
  _cv: OpenCV,
  value: Mat | Exchangeable,
  { copy }: common.TakeOptions = {},
): Tensor {
  if (!isMat(value)) return common.takeOther(value, "a cv.Mat", { copy });
  if (value.isDeleted())
    throw new ReleasedError("this cv.Mat was deleted: make the tensor before deleting it");
  // A second header of the same elements, which are counted; clone() is the same one, or a copy.
  const header: Mat = new (value as any).constructor(value);
  const made = common.lending(
    () => header.delete(),
    (release) => {
      // From the header, as not every build exports its memory.
      let { buffer } = header.data;
      const memory = {
        get buffer() {
          if (!header.isDeleted()) ({ buffer } = header.data);
          return buffer;
        },
      };
      const layout = layoutOf(header);
      const tensor = Tensor.fromMemory(memory, header.data.byteOffset, { ...layout, release });
      lent.set(tensor._managed.storage, header);
      return tensor;
    },
  );
  return common.copiedIf(copy, made);
}

function isMat(x: Mat | Exchangeable): x is Mat {
  return "elemSize1" in Object(x) && "isDeleted" in x;
}

function layoutOf(mat: Mat): { dtype: DTypeName; shape: number[]; strides?: number[] } {
  const dtype = DEPTHS[mat.depth()];
  if (dtype === undefined) {
    throw new UnsupportedError(
      `a cv.Mat of depth ${mat.depth()} is not a tensor: convertTo() makes it one of ${DEPTHS}`,
      { given: mat.depth(), needed: DEPTHS },
    );
  }
  const shape = listOf(mat.matSize, "matSize");
  const channels = mat.channels();
  if (mat.empty()) {
    // A Mat without a size has no axes.
    const extents = shape.length > 0 ? shape : [0, 0];
    return { dtype, shape: channels > 1 ? [...extents, channels] : extents };
  }
  const size = mat.elemSize1();
  const strides = listOf(mat.step as ArrayLike<number>, "step").map((bytes) => bytes / size);
  return channels > 1
    ? { dtype, shape: [...shape, channels], strides: [...strides, 1] }
    : { dtype, shape, strides };
}

// --- to it ------------------------------------------------------------------------------------------

/**
 * A Mat with the elements of a tensor of shape [rows, cols, channels], [rows, cols] or [rows]: one
 * copy into OpenCV's memory, strided or not. The elements of a Mat of the same copy of OpenCV, or of
 * some of its rows and columns, are shared. The caller deletes the Mat.
 *
 * @param cv - the module, started
 * @param x - a tensor, or another object with the exchange protocol, on the CPU
 * @param options - `copy`: true always copies, false never does
 * @throws UnsupportedError for a WebGPU tensor, and for dtypes and shapes that Mats lack; CopyError
 */
export function toMat<L extends OpenCV>(
  cv: L,
  x: Exchangeable,
  { copy }: common.GiveOptions = {},
): InstanceType<L["Mat"]> {
  common.checkLibrary(cv, "Mat", "the module OpenCV.js");
  // Where a copy is asked for, it is made once, into the Mat.
  return releasing(common.onCPU("OpenCV.js", take(x, copy === false ? { copy } : {})), (held) => {
    const shared = copy ? undefined : partOf(cv, held);
    if (shared) return shared;
    common.refuseCopy(
      copy,
      `${held.toString()} is not in the memory of OpenCV.js: a copy is needed`,
    );
    return copiedTo(cv, held);
  });
}

/** The Mat that a tensor is over, or its rows and columns; undefined if it is not part of one. */
function partOf(cv: OpenCV, held: Tensor): any {
  const header = lent.get(held._managed.storage);
  if (!(header instanceof cv.Mat) || held.size === 0) return undefined;
  const { shape, strides, itemsize } = held;
  const [height = 1, width = 1, channels = 1] = shape;
  const steps: number[] = header.step;
  const [pitch = 0, size = 0] = steps;
  const wanted = [pitch, size, itemsize];
  // Along an axis of one element there are no steps.
  const even = shape.every((n, i) => n === 1 || (strides[i] as number) * itemsize === wanted[i]);
  if (steps.length !== 2 || !even || header.channels() !== channels) return undefined;
  const offset = held._managed.start - header.data.byteOffset;
  const [x, y] = [(offset % pitch) / size, Math.floor(offset / pitch)];
  // A reshaped tensor may begin within an element, or continue in the next row.
  const inside = x % 1 === 0 && x + width <= header.cols && y + height <= header.rows;
  return inside ? header.roi({ x, y, width, height }) : undefined;
}

function copiedTo(cv: OpenCV, held: Tensor): any {
  const { dtype, shape } = held;
  const unit = cv.CV_8UC2 - cv.CV_8UC1; // how types count channels, which OpenCV 5 changed
  common.checkDType("OpenCV.js", dtype, unit === 8 ? DEPTHS.slice(0, 8) : DEPTHS);
  const [rows = 1, cols = 1, channels = 1] = shape;
  const most = 4096 / unit;
  if (shape.length > 3 || channels < 1 || channels > most) {
    throw new UnsupportedError(
      `a cv.Mat is [rows, cols], or [rows, cols, channels] with 1 to ${most} channels, and not ` +
        `[${shape}]: reshape() or slice() the tensor`,
      { given: shape },
    );
  }
  const mat = create(cv, [rows, cols, DEPTHS.indexOf(dtype) + (channels - 1) * unit], held);
  try {
    // Only now: the memory, which may be the tensor's too, may have grown.
    if (held.size > 0) held._managed.copyTo(mat.data);
    return mat;
  } catch (error) {
    mat.delete();
    throw error;
  }
}

function create(cv: OpenCV, args: readonly number[], held: Tensor): any {
  try {
    return new cv.Mat(...args);
  } catch (cause) {
    // C++ throws the address of an exception.
    const { exceptionFromPtr } = cv as any;
    const told = typeof cause === "number" ? exceptionFromPtr?.(cause).msg.trim() : cause;
    throw new UnsupportedError(`OpenCV.js cannot make a Mat for ${held.toString()}: ${told}`, {
      cause,
    });
  }
}

/**
 * Lets every consumer of the exchange protocol, including `bridge.tensor()`, take Mats.
 *
 * @param cv - the module, started
 */
export function install(cv: OpenCV): void {
  common.makeExchangeable(cv, cv.Mat, fromMat);
}
