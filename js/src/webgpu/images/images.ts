/**
 * images/: images and frames of the page as tensors, and tensors on canvases and textures.
 *
 * No other folder uses it.
 */
import { classOf, dtypeNamed } from "../../core/dtype.js";
import { tagOf, textOf, UnsupportedError } from "../../core/errors.js";
import type {
  GPUDevice,
  GPUTexture,
  HTMLCanvasElement,
  HTMLImageElement,
  HTMLVideoElement,
  ImageBitmap,
  ImageData,
  OffscreenCanvas,
  VideoFrame,
} from "../../core/globals.js";
import type { ManagedTensor } from "../../core/managed.js";
import { checkOptions, type Names } from "../../core/options.js";
import { Tensor } from "../../core/tensor.js";
import { tensorOn } from "../buffers/buffers.js";
import { managedIn, refuseRecorded } from "../buffers/checks.js";
import { allocate } from "../buffers/pool.js";
import { slotOf } from "../buffers/table.js";
import { checkAlive, type DeviceRecord, nameOf, workingDevice } from "../device/device.js";
import { ask } from "../errors/errors.js";
import { withWords } from "../kernels/arguments.js";
import * as messages from "../messages.js";
import { paint, pull } from "./texture.js";

/**
 * Sources of `webgpu.fromImage`: a canvas of either kind, `ImageBitmap`, `ImageData`, `VideoFrame`,
 * `<img>`, `<video>`, or a `GPUTexture` of the same device: rgba8unorm or bgra8unorm with
 * `GPUTextureUsage.TEXTURE_BINDING`, 2d, of one layer and one sample (its first mip level counts).
 */
export type ImageSource =
  | GPUTexture
  | HTMLCanvasElement
  | HTMLImageElement
  | HTMLVideoElement
  | ImageBitmap
  | ImageData
  | OffscreenCanvas
  | VideoFrame;

/** Options of `webgpu.fromImage`. */
export interface FromImageOptions {
  /** "uint8": 0 to 255, the default; "float32": 0 to 1. */
  dtype?: "uint8" | "float32" | undefined;
  /** 4: red, green, blue, alpha, the default; 3: without alpha. */
  channels?: 3 | 4 | undefined;
}

/** `GPUTextureUsage`, which is a global only where WebGPU is. */
const COPY_SRC = 1;
const COPY_DST = 2;
const TEXTURE_BINDING = 4;
const STORAGE_BINDING = 8;
const RENDER_ATTACHMENT = 16;

const FORMATS = ["rgba8unorm", "bgra8unorm"] as const;
const DTYPES: readonly string[] = ["uint8", "float32"];

/**
 * An image of the page as a tensor of shape [height, width, channels], without a copy through the
 * CPU. The pixels are those that the user sees: sRGB of 8 bits (also of a file of 16, or a canvas of
 * float16), turned as the
 * file says (EXIF), in the size of the file, however densely a `srcset` shows them (Firefox 153
 * scales an `<img>` by the density in its EXIF data). They are not
 * premultiplied by alpha, the first row is on top. Opaque canvases
 * and bitmaps, `ImageData`, and an `ImageBitmap` made with `premultiplyAlpha: "none"` (but in
 * Firefox) keep every byte; translucent canvases hold premultiplied colours, which have fewer
 * values.
 *
 * @param gpu - the device of the tensor
 * @param source - read at the time of the call; keep it open until this resolves
 * @param options - `dtype` "uint8" or "float32", `channels` 4 or 3
 * @returns a tensor on `device`, which the caller releases
 * @throws UnsupportedError for sources without pixels (closed, not loaded, cross-origin), `ImageData` of
 * float16, one larger than `maxTextureDimension2D`, or a `GPUTexture` that shaders cannot read; DeviceLostError;
 * TypeError for other sources; RangeError for other channels. Later GPU errors, such as for
 * another device's texture, are thrown by reading the tensor
 */
export async function fromImage(
  gpu: GPUDevice,
  source: ImageSource,
  options: FromImageOptions = {},
): Promise<Tensor> {
  // Everything up to the first `await`, which only <img> and Firefox's videos need, runs synchronously.
  const device = workingDevice(gpu);
  checkImageOptions<FromImageOptions>(options, "fromImage()", { dtype: 1, channels: 1 });
  const scratch: Scratch = { texture: null };
  try {
    return await takeImage(device, source, options, scratch, "fromImage");
  } finally {
    scratch.texture?.destroy(); // the queue keeps it until its work is done
  }
}

/** The intermediate texture of an image, kept for the next of the same size. */
export interface Scratch {
  texture: GPUTexture | null;
}

/** Done once by `fromImage`, and for each picture by `frames`; the caller destroys the scratch. */
export async function takeImage(
  device: DeviceRecord,
  source: ImageSource,
  { dtype = "uint8", channels = 4 }: FromImageOptions,
  scratch: Scratch,
  verb: string,
): Promise<Tensor> {
  const { what: image, width, height, texture, element } = describe(source, verb);
  const what = `${verb} of ${image}`;
  if (element) {
    const bitmap = await bitmapOf(element).catch((cause) => {
      checkSize(device, image, width, height); // 0 x 0 if it is not loaded
      throw noPixels(image, cause);
    });
    try {
      return await takeImage(device, bitmap, { dtype, channels }, scratch, verb);
    } finally {
      bitmap.close();
    }
  }
  checkSize(device, image, width, height);
  checkAlive(device);
  const type = dtypeNamed(dtype);
  const slot = allocate(device, height * width * channels * type.step);
  const tensor = tensorOn(slot, 0, type, [height, width, channels]);
  const pullFrom = (from: GPUCopyExternalImageSource) =>
    withWords(device, tensor, "storage", (bound) =>
      pull(device, what, () => texture ?? upload(device, from, image, tensor, scratch), bound),
    );
  try {
    try {
      pullFrom(source as GPUCopyExternalImageSource);
    } catch (cause) {
      if (!(cause instanceof TypeError && /Video/.test(image))) throw cause;
      // Firefox does not support videos and their frames: use a bitmap of the picture.
      const bitmap = await createImageBitmap(source as VideoFrame);
      try {
        pullFrom(bitmap);
      } finally {
        bitmap.close();
      }
    }
    return new Tensor(tensor);
  } catch (error) {
    tensor.release();
    checkAlive(device);
    throw error;
  }
}

/**
 * All pixels of an `<img>`, as it is now. Its natural size is in CSS pixels: the density of a
 * `srcset`, or of the file, divides it.
 */
async function bitmapOf(image: HTMLImageElement): Promise<ImageBitmap> {
  return createImageBitmap(image, { premultiplyAlpha: "none" });
}

function noPixels(what: string, cause: Error): UnsupportedError {
  const { message } = cause;
  return new UnsupportedError(`the browser gives no pixels of ${what}: ${message}`, { cause });
}

/** Throws for unsupported dtypes and channels. */
export function checkImageOptions<O extends FromImageOptions>(
  options: O,
  of: string,
  names: Names<O>,
): void {
  checkOptions<O>(options, of, names, "channels: 3");
  const { dtype = "uint8", channels = 4 } = options;
  checkDType(`an image as ${dtype}`, dtype);
  if (channels !== 3 && channels !== 4) {
    throw new RangeError(messages.wrongChannels(textOf(channels)));
  }
}

/**
 * A tensor as a texture of its device: rgba8unorm, for binding, rendering and copying. It takes
 * the same tensors as {@link toCanvas}, with the same errors.
 *
 * @param tensor - as of {@link toCanvas}
 * @returns a new texture, which the caller destroys
 */
export async function toTexture(tensor: Tensor): Promise<GPUTexture> {
  const [device, image] = checkImage(tensor);
  const usage = COPY_SRC | COPY_DST | TEXTURE_BINDING | STORAGE_BINDING | RENDER_ATTACHMENT;
  const what = `toTexture of ${tensor.toString()}`;
  let texture: GPUTexture | undefined;
  const make = () => {
    texture = createTexture(device, image, usage);
    return texture;
  };
  try {
    await draw(device, what, image, make, FORMATS[0], false);
    return texture as GPUTexture;
  } catch (error) {
    texture?.destroy();
    throw error;
  }
}

/**
 * Draws a tensor on a canvas, without a copy through the CPU. The canvas takes the tensor's size,
 * and its "webgpu" context is configured for the tensor's device.
 *
 * @param tensor - on a GPU, shape [height, width, channels], uint8 (0 to 255) or float32 (0 to 1,
 * clipped); channels: 1 grey, 3 red, green, blue, or 4 with alpha, not premultiplied. It is drawn
 * as of the time of the call; you may release it right after
 * @param canvas - of the page or offscreen
 * @throws UnsupportedError for other tensors, and for a canvas that has a context of another kind
 * or was transferred; ReleasedError, DeviceLostError; TypeError for anything but a canvas; the
 * tensor's fault
 */
export async function toCanvas(
  tensor: Tensor,
  canvas: HTMLCanvasElement | OffscreenCanvas,
): Promise<void> {
  const [device, image] = checkImage(tensor);
  if (typeof canvas?.getContext !== "function") {
    throw new TypeError(`toCanvas needs a canvas, not ${tagOf(canvas)}`);
  }
  const [height, width] = image.shape as [number, number, number];
  const context = contextOf(canvas);
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const { gpu } = device;
  const what = `toCanvas of ${tensor.toString()}`;
  const format = navigator.gpu.getPreferredCanvasFormat();
  const make = () => {
    // Configuring again would discard the canvas's textures.
    const now = context.getConfiguration?.();
    if (
      now?.device !== gpu ||
      now.format !== format ||
      now.alphaMode !== "premultiplied" ||
      !((now.usage as number) & RENDER_ATTACHMENT)
    ) {
      const usage = RENDER_ATTACHMENT | COPY_SRC;
      context.configure({ device: gpu, format, usage, alphaMode: "premultiplied" });
    }
    return context.getCurrentTexture();
  };
  await draw(device, what, image, make, format, true);
}

/** Paints a tensor on a texture; throws its errors, and those of the painting. */
function draw(
  device: DeviceRecord,
  what: string,
  image: ManagedTensor,
  make: () => GPUTexture,
  format: GPUTextureFormat,
  premultiplied: boolean,
): Promise<void> {
  const outcome = withWords(device, image, "read-only-storage", (bound) =>
    paint(device, what, bound, make, format, premultiplied),
  );
  return ask(device, [outcome]);
}

function contextOf(canvas: HTMLCanvasElement | OffscreenCanvas): GPUCanvasContext {
  let context: GPUCanvasContext | null;
  try {
    context = canvas.getContext("webgpu") as GPUCanvasContext | null;
  } catch (cause) {
    const { message } = cause as Error;
    throw new UnsupportedError(`the canvas cannot be drawn on (${message})`, { cause });
  }
  if (context) return context;
  throw new UnsupportedError(
    'the canvas has a context of another kind, and toCanvas needs its "webgpu" context: use ' +
      "another canvas, which drawImage() of a 2d context takes",
  );
}

/** Size of a source and its name in messages; `texture` or `element` if it is a texture or `<img>`. */
function describe(source: ImageSource, verb: string) {
  const kind = tagOf(source).slice(8, -1);
  const texture = kind === "GPUTexture" ? (source as GPUTexture) : null;
  // An element's width is that of its box: use these instead where they exist.
  const sizes = Object(source) as { readonly [side: string]: number | undefined };
  const width = sizes.displayWidth ?? sizes.videoWidth ?? sizes.naturalWidth ?? sizes.width;
  const height = sizes.displayHeight ?? sizes.videoHeight ?? sizes.naturalHeight ?? sizes.height;
  if (typeof width !== "number" || typeof height !== "number") {
    throw new TypeError(
      `${verb} takes a canvas, ImageBitmap, ImageData, VideoFrame, <img>, <video> or GPUTexture, ` +
        `not ${kind === "Object" ? textOf(source) : kind}`,
    );
  }
  if (texture) checkTexture(texture);
  if (kind === "ImageData" && classOf((source as ImageData).data) === "Float16Array") {
    throw new UnsupportedError(
      `${verb} would round this ImageData of float16 to 8 bits: use Tensor.from(image.data, ` +
        `{ shape: [${height}, ${width}, 4] })`,
    );
  }
  const element = kind === "HTMLImageElement" ? (source as HTMLImageElement) : null;
  return { what: `${kind} of ${width} x ${height}`, width, height, texture, element };
}

function checkTexture(texture: GPUTexture): void {
  const { format, usage, dimension, depthOrArrayLayers, sampleCount } = texture;
  const flat = dimension === "2d" && depthOrArrayLayers === 1 && sampleCount === 1;
  if ((FORMATS as readonly string[]).includes(format) && usage & TEXTURE_BINDING && flat) return;
  throw new UnsupportedError(
    `fromImage needs a GPUTexture of format ${FORMATS.join(" or ")} with ` +
      "GPUTextureUsage.TEXTURE_BINDING, 2d, of one layer and one sample; this is " +
      `${format} with usage ${usage}, ${dimension}, of ${depthOrArrayLayers} and ${sampleCount}`,
    { given: format, needed: FORMATS },
  );
}

function checkDType(what: string, dtype: string): void {
  if (DTYPES.includes(dtype)) return;
  throw new UnsupportedError(`${what} is not supported: use uint8 (0 to 255) or float32 (0 to 1)`, {
    given: dtype,
    needed: DTYPES,
  });
}

function checkSize(device: DeviceRecord, what: string, width: number, height: number): void {
  if (width === 0 || height === 0) {
    throw new UnsupportedError(`${what} has no pixels: it is empty, closed, or not loaded yet`);
  }
  const { maxTextureDimension2D: needed } = device.gpu.limits;
  const given = Math.max(width, height);
  if (given <= needed) return;
  throw new UnsupportedError(
    `${what}: ${nameOf(device)} has textures of up to ${needed} x ${needed}; use a device from ` +
      `requestDevice({ maxTextureDimension2D: ${given} })`,
    { given, needed, device: device.named },
  );
}

/** A tensor that can be drawn, and the record of its device. */
function checkImage(given: Tensor): [DeviceRecord, ManagedTensor] {
  const tensor = managedIn(given);
  tensor.check();
  const { shape, dtype } = tensor;
  if (!tensor.isOnGPU) {
    throw new UnsupportedError(
      `${tensor.toString()} is not on a GPU: upload it with to(gpuDevice)`,
      { device: tensor.device },
    );
  }
  const slot = slotOf(tensor.handle);
  refuseRecorded(slot, tensor, false);
  checkDType(`${tensor.toString()} as an image`, dtype.name);
  const [height = 0, width = 0, channels = 0] = shape;
  if (shape.length !== 3 || ![1, 3, 4].includes(channels)) {
    const needed = "[height, width, channels], channels being 1, 3 or 4";
    throw new UnsupportedError(
      `${tensor.toString()} is not an image: its shape must be ${needed}`,
      { given: shape, needed },
    );
  }
  const { device } = slot;
  checkAlive(device);
  checkSize(device, tensor.toString(), width, height);
  return [device, tensor];
}

/** A texture of a tensor's height and width. */
function createTexture({ gpu }: DeviceRecord, tensor: ManagedTensor, usage: number): GPUTexture {
  const [height, width] = tensor.shape as [number, number];
  return gpu.createTexture({ size: [width, height], format: FORMATS[0], usage });
}

/** An image of the page as a texture, which the scratch has. */
function upload(
  device: DeviceRecord,
  source: GPUCopyExternalImageSource,
  what: string,
  tensor: ManagedTensor,
  scratch: Scratch,
): GPUTexture {
  const { queue } = device.gpu;
  const { data, colorSpace } = source as Partial<ImageData>;
  const bytes = data instanceof Uint8ClampedArray && (colorSpace ?? "srgb") === "srgb";
  if (!bytes && typeof queue.copyExternalImageToTexture !== "function") {
    throw new UnsupportedError(
      `${what}: queue.copyExternalImageToTexture is missing: pass ImageData in sRGB, or a tensor`,
      { needed: "ImageData" },
    );
  }
  // copyExternalImageToTexture may draw, which requires the flag.
  const usage = COPY_DST | TEXTURE_BINDING | RENDER_ATTACHMENT;
  const [height, width] = tensor.shape as [number, number];
  const last = scratch.texture;
  if (last?.width !== width || last.height !== height) {
    last?.destroy();
    scratch.texture = createTexture(device, tensor, usage);
  }
  const texture = scratch.texture as GPUTexture;
  try {
    if (bytes) {
      // These are already the bytes; Firefox supports no other way.
      queue.writeTexture({ texture }, data, { bytesPerRow: 4 * width }, [width, height]);
    } else queue.copyExternalImageToTexture({ source }, { texture }, [width, height]);
    return texture;
  } catch (cause) {
    if (cause instanceof TypeError) throw cause;
    throw noPixels(what, cause as Error);
  }
}
