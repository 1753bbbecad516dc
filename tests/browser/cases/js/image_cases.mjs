// Images to tensors and back, from JavaScript; each function is a test (hosts/harness.mjs).
import { equal, isFirefox, ok, Skip } from "./expect.mjs";
import { deviceOf, keep, upload } from "./gpu.mjs";
import { expectBytes, painted, pattern, pixels, taken, withoutAlpha } from "./images.mjs";

const SIZES = [
  [1, 1],
  [3, 5],
  [257, 3],
];

/** Whether large arrays have the same bytes. */
const same = (a, b) => indexedDB.cmp(a, b) === 0;

export async function opaque_canvases_keep_every_byte(context) {
  for (const size of SIZES) {
    const image = pattern(...size);
    await expectBytes(context, painted(image), image);
    await expectBytes(context, painted(image, document.createElement("canvas")), image);
  }
}

export async function image_data_keeps_every_byte_of_any_alpha(context) {
  for (const size of SIZES) {
    const image = pattern(...size, { opaque: false });
    await expectBytes(context, image, image);
  }
}

export async function bitmaps_that_are_not_premultiplied_keep_every_byte(context) {
  if (isFirefox) throw new Skip("Firefox premultiplies any bitmap on its way to a texture");
  if (!GPUQueue.prototype.copyExternalImageToTexture)
    throw new Skip("this WebGPU takes no bitmaps");
  const options = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
  for (const size of SIZES) {
    const image = pattern(...size, { opaque: false });
    const bitmap = await createImageBitmap(image, options);
    await expectBytes(context, bitmap, image);
    bitmap.close();
  }
}

export async function translucent_canvases_are_as_near_as_the_browser_keeps_them(context) {
  const canvas = painted(pattern(16, 16, { opaque: false }));
  const expected = pixels(canvas);
  const { data } = await taken(context, canvas);
  data.forEach((value, i) => {
    const alpha = expected[i | 3];
    // A premultiplied byte stands for 255 / alpha of those it is divided into.
    const tolerance = i % 4 === 3 ? 0 : Math.ceil(255 / Math.max(alpha, 1));
    const near = Math.abs(value - expected[i]) <= tolerance;
    ok(near || alpha === 0, `${expected[i]} of alpha ${alpha} at ${i}, got ${value}`);
  });
}

export async function video_frames_give_the_part_that_is_shown(context) {
  const image = pattern(16, 6);
  const canvas = painted(image);
  const frame = new VideoFrame(canvas, { timestamp: 0 });
  await expectBytes(context, frame, image);
  const visibleRect = { x: 4, y: 2, width: 8, height: 4 };
  const part = new VideoFrame(frame, { timestamp: 0, visibleRect });
  const cut = canvas.getContext("2d").getImageData(4, 2, 8, 4);
  await expectBytes(context, part, cut);
  part.close();
  frame.close();
}

export async function pictures_have_their_own_size_and_not_their_boxes(context) {
  const picture = new Image(30, 50);
  picture.src = "/photo.jpg";
  await picture.decode();
  const { naturalWidth: width, naturalHeight: height } = picture;
  const { shape, data } = await taken(context, picture);
  equal(shape, [height, width, 4]);
  // A JPEG is not RGB; who decodes it for the canvas rounds in its own way.
  const expected = pixels(picture, { width, height });
  ok(
    data.every((value, i) => Math.abs(value - expected[i]) <= 1),
    "the same picture",
  );
}

export async function videos_give_the_frame_they_show(context) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 32, height: 16 });
  const video = document.createElement("video");
  Object.assign(video, { muted: true, srcObject: canvas.captureStream() });
  const context2d = canvas.getContext("2d");
  context2d.fillStyle = "rgb(200 100 50)";
  context2d.fillRect(0, 0, 32, 16);
  const frame = new Promise((resolve) => video.requestVideoFrameCallback(resolve));
  await video.play();
  await frame;
  const { shape, data } = await taken(context, video, { channels: 3 });
  for (const track of video.srcObject.getTracks()) track.stop();
  equal(shape, [16, 32, 3]);
  // Videos are in other colours than RGB, which come back nearly the same.
  data.forEach((value, i) => {
    ok(Math.abs(value - [200, 100, 50][i % 3]) <= 3, `a colour like 200, 100, 50, got ${value}`);
  });
}

export async function textures_of_both_formats_are_read_as_rgba(context) {
  const device = await deviceOf(context);
  for (const format of ["rgba8unorm", "bgra8unorm"]) {
    const { width, height, data } = pattern(3, 5, { opaque: false });
    const usage = GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.COPY_DST;
    const size = [width, height];
    const texture = device.createTexture({ size, format, usage, mipLevelCount: 2 });
    const stored = data.map((_, i) => data[format[0] === "b" && i % 2 === 0 ? i ^ 2 : i]);
    device.queue.writeTexture({ texture }, stored, { bytesPerRow: 4 * width }, size);
    await expectBytes(context, texture, { width, height, data });
    texture.destroy();
  }
}

export async function float32_is_between_0_and_1(context) {
  for (const channels of [4, 3]) {
    const image = pattern(3, 5, { opaque: false });
    const expected = channels === 4 ? [...image.data] : withoutAlpha(image.data);
    const { shape, dtype, data } = await taken(context, image, { dtype: "float32", channels });
    equal([dtype, shape], ["float32", [5, 3, channels]]);
    data.forEach((value, i) => {
      ok(Math.abs(value - expected[i] / 255) < 1 / 510, `${expected[i]} / 255, got ${value}`);
    });
  }
}

export async function what_lies_behind_the_elements_is_zero(context) {
  const { library } = context;
  const device = await deviceOf(context);
  // A used buffer of the same size, which is taken again.
  upload(context, new Uint8Array(16).fill(9), device).release();
  const white = new ImageData(Uint8ClampedArray.of(255, 255, 255, 255), 1);
  const tensor = keep(await library.webgpu.fromImage(device, white, { channels: 3 }));
  const whole = keep(
    library.Tensor.fromGPUBuffer(tensor.buffer, {
      device,
      shape: [16],
      dtype: "uint8",
    }),
  );
  equal(await whole.read(), [255, 255, 255, ...new Array(13).fill(0)]);
}

export async function tensors_come_back_on_canvases(context) {
  const { fromImage, toCanvas } = context.library.webgpu;
  const device = await deviceOf(context);
  for (const canvas of [new OffscreenCanvas(1, 1), document.createElement("canvas")]) {
    for (const [width, height] of SIZES) {
      for (const options of [{}, { channels: 3 }, { dtype: "float32" }]) {
        const image = pattern(width, height);
        const tensor = await fromImage(device, image, options);
        await toCanvas(tensor, canvas);
        tensor.release();
        equal([canvas.width, canvas.height], [width, height]);
        equal(pixels(canvas), image.data);
      }
    }
  }
}

export async function translucent_tensors_are_premultiplied_for_canvases(context) {
  const device = await deviceOf(context);
  const canvas = new OffscreenCanvas(1, 1);
  const host = keep(context.bridge.empty([1, 3, 4], "uint8"));
  host.data.set([255, 0, 50, 51, 9, 9, 9, 0, 255, 255, 255, 102]);
  const tensor = keep(host.to(device));
  await context.library.webgpu.toCanvas(tensor, canvas);
  equal(pixels(canvas), [255, 0, 50, 51, 0, 0, 0, 0, 255, 255, 255, 102]);
}

export async function grey_and_float_values_are_drawn_and_clipped(context) {
  const device = await deviceOf(context);
  const canvas = new OffscreenCanvas(1, 1);
  const host = keep(context.bridge.empty([2, 3, 1], "float32"));
  host.data.set([-1, 0, 0.2, 0.4, 1, 1e9]);
  const tensor = keep(host.to(device));
  await context.library.webgpu.toCanvas(tensor, canvas);
  const expected = [0, 0, 51, 102, 255, 255].flatMap((grey) => [grey, grey, grey, 255]);
  equal(pixels(canvas), expected);
}

export async function textures_of_tensors_keep_every_byte(context) {
  const { fromImage, toTexture } = context.library.webgpu;
  const device = await deviceOf(context);
  const image = pattern(257, 3, { opaque: false });
  const tensor = await fromImage(device, image);
  const texture = await toTexture(tensor);
  tensor.release();
  equal([texture.format, texture.width, texture.height], ["rgba8unorm", 257, 3]);
  await expectBytes(context, texture, image);
  texture.destroy();
}

export async function tensors_inside_a_buffer_are_drawn(context) {
  const { Tensor, webgpu } = context.library;
  const device = await deviceOf(context);
  const host = keep(Tensor.fromTypedArray(Uint8Array.from({ length: 32 }, (_, i) => i)));
  const whole = keep(host.to(device));
  const options = { device, shape: [2, 1, 3], dtype: "uint8", byteOffset: 8 };
  const part = keep(Tensor.fromGPUBuffer(whole.buffer, options));
  const texture = await webgpu.toTexture(part);
  equal((await taken(context, texture)).data, [8, 9, 10, 255, 11, 12, 13, 255]);
  texture.destroy();
}

export async function more_words_than_one_row_of_workgroups(context) {
  const device = await deviceOf(context);
  const { maxComputeWorkgroupsPerDimension: row } = device.limits;
  const width = 4096;
  const height = Math.floor((64 * row) / width) + 2;
  const image = new ImageData(width, height);
  new Uint32Array(image.data.buffer).forEach((_, i, words) => {
    words[i] = (i * 2654435761) | 0xff000000;
  });
  const { data } = await taken(context, image);
  ok(same(data, image.data), "the same bytes");
}

export async function an_image_is_what_it_was_at_the_call(context) {
  const { fromImage } = context.library.webgpu;
  const device = await deviceOf(context);
  const before = pattern(17, 5);
  const canvas = painted(before);
  const other = new ImageData(17, 5);
  const promises = [fromImage(device, canvas)];
  canvas.getContext("2d").putImageData(other, 0, 0);
  promises.push(fromImage(device, canvas));
  canvas.width = 3; // what is drawn, and its size
  const bitmap = await createImageBitmap(before);
  promises.push(fromImage(device, bitmap));
  bitmap.close();
  const [first, second, third] = (await Promise.all(promises)).map(keep);
  equal([await first.read(), first.shape], [before.data, [5, 17, 4]]);
  equal([await second.read(), second.shape], [other.data, [5, 17, 4]]);
  equal([await third.read(), third.shape], [before.data, [5, 17, 4]]);
}

export async function a_tensor_is_drawn_as_it_was_at_the_call(context) {
  const { fromImage, toCanvas, toTexture } = context.library.webgpu;
  const device = await deviceOf(context);
  const image = pattern(17, 5);
  const canvas = new OffscreenCanvas(1, 1);
  const tensor = await fromImage(device, image);
  const drawn = toCanvas(tensor, canvas);
  const texturing = toTexture(tensor);
  const zeros = keep(context.bridge.empty([5, 17, 4], "uint8"));
  zeros.data.fill(0);
  tensor.write(zeros);
  tensor.release(); // before it is drawn
  await drawn;
  equal(pixels(canvas), image.data);
  const texture = await texturing;
  equal((await taken(context, texture)).data, image.data);
  texture.destroy();
}

export async function the_cpu_sees_no_pixel(context) {
  const { fromImage, toCanvas, toTexture } = context.library.webgpu;
  const device = await deviceOf(context);
  const source = painted(pattern(257, 3));
  const canvas = new OffscreenCanvas(1, 1);
  context.counters.start();
  const tensor = keep(await fromImage(device, source, { channels: 3 }));
  await toCanvas(tensor, canvas);
  const texture = await toTexture(tensor);
  keep(await fromImage(device, texture, { dtype: "float32" }));
  equal(context.counters.stop(), {
    copies: 0,
    copied_bytes: 0,
    gpu_copies: 0,
    gpu_bytes: 0,
    map_async: 0,
  });
  texture.destroy();
}

export async function shaders_are_compiled_once_for_each_device(context) {
  const device = await deviceOf(context);
  const source = pattern(2, 2);
  await taken(context, source);
  const compile = device.createComputePipeline;
  device.createComputePipeline = () => ok(false, "no shader to be compiled");
  try {
    await taken(context, source);
  } finally {
    device.createComputePipeline = compile;
  }
}
