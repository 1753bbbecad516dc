// Images that cannot become tensors, and the reverse; each function is a test.
import { context2d, equal, isFirefox, ok, Skip, throws } from "./expect.mjs";
import { deviceOf, gpu, keep, upload } from "./gpu.mjs";

const READABLE = { format: "rgba8unorm", usage: 4 }; // GPUTextureUsage.TEXTURE_BINDING

async function refused(context, source, options, name, pattern) {
  const device = await deviceOf(context);
  return throws(() => context.library.webgpu.fromImage(device, source, options), name, pattern);
}

export async function closed_and_empty_sources_have_no_pixels(context) {
  const canvas = new OffscreenCanvas(2, 2);
  context2d(canvas);
  const bitmap = await createImageBitmap(canvas);
  const frame = new VideoFrame(canvas, { timestamp: 0 });
  bitmap.close();
  frame.close();
  const empty = new OffscreenCanvas(0, 3);
  const loading = new Image();
  const video = document.createElement("video");
  for (const source of [bitmap, frame, empty, loading, video]) {
    await refused(context, source, {}, "UnsupportedError", /has no pixels: .*closed/);
  }
}

export async function transferred_canvases_are_refused(context) {
  const canvas = document.createElement("canvas");
  canvas.transferControlToOffscreen();
  // Firefox gives what the canvas shows.
  if (!isFirefox) await refused(context, canvas, {}, "UnsupportedError", /browser gives no pixels/);
  const { empty, toCanvas } = await gpu(context);
  const draw = () => toCanvas(empty([2, 2, 4], "uint8"), canvas);
  await throws(draw, "UnsupportedError", /cannot be drawn on/);
}

export async function other_things_are_no_sources(context) {
  for (const source of [null, undefined, "picture.png", new Uint8Array(4), { width: 1 }]) {
    await refused(context, source, {}, "TypeError", /fromImage takes a canvas/);
  }
  const none = GPUQueue.prototype.copyExternalImageToTexture ? "TypeError" : "UnsupportedError";
  await refused(context, { width: 1, height: 1 }, {}, none, /copyExternalImageToTexture/);
}

export async function images_beyond_the_limit_say_the_limit(context) {
  const { device, empty, toCanvas, toTexture } = await gpu(context);
  const { maxTextureDimension2D: limit } = device.limits;
  const canvas = new OffscreenCanvas(limit + 1, 1);
  const error = await refused(context, canvas, {}, "UnsupportedError", /maxTextureDimension2D/);
  equal([error.given, error.needed], [limit + 1, limit]);
  const tensor = empty([limit + 1, 1, 3], "uint8");
  const target = new OffscreenCanvas(1, 1);
  await throws(() => toCanvas(tensor, target), "UnsupportedError", /maxTextureDimension2D/);
  await throws(() => toTexture(tensor), "UnsupportedError", /maxTextureDimension2D/);
  equal([target.width, target.height], [1, 1], "the canvas is as it was");
}

export async function textures_of_another_device_come_with_the_next_read(context) {
  const { requestDevice, fromImage } = context.library.webgpu;
  const device = await deviceOf(context);
  const other = await requestDevice();
  const texture = other.createTexture({ size: [2, 2], ...READABLE });
  const tensor = keep(await fromImage(device, texture));
  await throws(() => tensor.read(), "DeviceError", /fromImage of GPUTexture of 2 x 2 failed/);
  other.destroy();
}

export async function canvases_that_are_taken_or_none(context) {
  const { empty, toCanvas } = await gpu(context);
  const tensor = empty([2, 2, 4], "uint8");
  const canvas = new OffscreenCanvas(5, 5);
  context2d(canvas);
  await throws(() => toCanvas(tensor, canvas), "UnsupportedError", /another kind/);
  equal([canvas.width, canvas.height], [5, 5], "the canvas is as it was");
  await throws(() => toCanvas(tensor, null), "TypeError", /needs a canvas/);
}

export async function canvases_of_float16_are_read_as_their_numbers(context) {
  const canvas = new OffscreenCanvas(2, 1);
  const settings = { colorType: "float16", colorSpace: "display-p3" };
  const drawing = canvas.getContext("2d", settings);
  if (drawing?.getContextAttributes?.().colorType !== "float16") {
    throw new Skip("canvases have 8 bits a channel here");
  }
  const colours = Float16Array.of(1, 0.3333, 0.1, 1, 1.5, -0.25, 0.001, 1);
  const kind = { pixelFormat: "rgba-float16", colorSpace: "display-p3" };
  drawing.putImageData(new ImageData(colours, 2, 1, kind), 0, 0);
  const read = (colorSpace) => {
    const { data } = drawing.getImageData(0, 0, 2, 1, { ...kind, colorSpace });
    return context.library.Tensor.from(data, { shape: [1, 2, 4] });
  };
  const [p3, srgb] = [read("display-p3"), read("srgb")];
  equal([p3.dtype, p3.shape], ["float16", [1, 2, 4]]);
  equal([...p3], [...colours], "colours that 8 bits would round");
  ok(srgb.at(0, 0, 0) > 1 && srgb.at(0, 0, 2) < 0, "colours outside sRGB are not clipped");
  const onGPU = p3.to(await deviceOf(context));
  equal([...new Float16Array((await onGPU.read()).buffer)], [...colours], "on the GPU");
  for (const each of [p3, srgb, onGPU]) each.release();
}

export async function a_canvas_moves_from_device_to_device(context) {
  const { requestDevice, toCanvas } = context.library.webgpu;
  const canvas = new OffscreenCanvas(1, 1);
  for (const value of [51, 102]) {
    const device = await requestDevice();
    const tensor = upload(context, Uint8Array.of(value), device, { shape: [1, 1, 1] });
    await toCanvas(tensor, canvas);
    const flat = context2d(new OffscreenCanvas(1, 1));
    flat.drawImage(canvas, 0, 0);
    equal(flat.getImageData(0, 0, 1, 1).data, [value, value, value, 255]);
  }
}
