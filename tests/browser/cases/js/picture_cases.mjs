// Pictures of files as the user sees them: all of their pixels, turned as they are shown.
import { context2d, equal, isFirefox, ok, Skip } from "./expect.mjs";
import { deviceOf, keep } from "./gpu.mjs";
import { expectBytes, painted, pattern, pixels, taken } from "./images.mjs";

/** Four blocks of 16 x 8 pixels in different colours, which survive JPEG. */
function blocks() {
  const canvas = new OffscreenCanvas(32, 16);
  const context = context2d(canvas);
  ["#f00", "#0f0", "#00f", "#ff0"].forEach((colour, i) => {
    context.fillStyle = colour;
    context.fillRect(16 * (i % 2), 8 * (i >> 1), 16, 8);
  });
  return canvas;
}

/** A file as a URL, which pages may show by their policy. */
function urlOf(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** An <img> that has loaded. */
async function loaded(attributes) {
  const image = Object.assign(new Image(), attributes);
  await image.decode();
  return image;
}

const DENSITIES = ["1x", "2x", "1.5x", "3x", "0.5x", "0.7x", "100x"];

export async function pictures_have_all_pixels_of_their_file_at_any_density(context) {
  const { frames } = context.library.webgpu;
  const device = await deviceOf(context);
  const shown = pattern(17, 9);
  const url = await urlOf(await painted(shown).convertToBlob());
  const srcsets = DENSITIES.map((density) => ({ srcset: `${url} ${density}` }));
  for (const sizes of ["4px", "17px", "100px"]) srcsets.push({ sizes, srcset: `${url} 17w` });
  for (const attributes of srcsets) {
    const picture = await loaded(attributes);
    await expectBytes(context, picture, shown);
    const several = frames(picture, { device });
    const { value } = await several.next();
    equal([value.shape, await value.read()], [[9, 17, 4], shown.data]);
    several.stop();
  }
  const nested = document.createElement("picture");
  const source = document.createElement("source");
  source.srcset = `${url} 2x`;
  const picture = new Image();
  nested.append(source, picture);
  document.body.append(nested);
  picture.src = url;
  await picture.decode();
  ok(picture.naturalHeight < 9, "it is shown smaller");
  await expectBytes(context, picture, shown);
  nested.remove();
}

/** EXIF data of an orientation and, of more than 1, of a density: pixels per CSS pixel. */
function exif(orientation, density = 1, width = 0, height = 0) {
  const entries = [
    [0x0112, 3, orientation],
    [0x011a, 5, 0], // the resolutions are behind the entries
    [0x011b, 5, 8],
    [0x0128, 3, 2], // in dots per inch
    [0x8769, 4, 16],
  ];
  const bytes = new Uint8Array(8 + 2 + 12 * entries.length + 4 + 16 + 2 + 24 + 4);
  const view = new DataView(bytes.buffer);
  let at = 0;
  const put = (...values) => {
    for (const [size, value] of values) {
      view[size === 2 ? "setUint16" : "setUint32"](at, value);
      at += size;
    }
  };
  put([2, 0x4d4d], [2, 42], [4, 8], [2, entries.length]);
  const behind = 8 + 2 + 12 * entries.length + 4;
  for (const [tag, type, value] of entries) {
    put([2, tag], [2, type], [4, 1]);
    if (type === 3) put([2, value], [2, 0]);
    else put([4, behind + value]);
  }
  put([4, 0], [4, 72 * density], [4, 1], [4, 72 * density], [4, 1]);
  put([2, 2], [2, 0xa002], [2, 4], [4, 1], [4, width], [2, 0xa003], [2, 4], [4, 1], [4, height]);
  return bytes;
}

/** A JPEG of a canvas with EXIF data. */
async function jpegOf(canvas, data) {
  const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 1 });
  const length = data.length + 8;
  const head = Uint8Array.of(0xff, 0xd8, 0xff, 0xe1, length >> 8, length & 255);
  const name = new TextEncoder().encode("Exif\0\0");
  const parts = [head, name, data, blob.slice(2)];
  return new Blob(parts, { type: "image/jpeg" });
}

/** The colours of a picture's corners, rounded. */
function corners([height, width], data) {
  const at = [0, width - 1, (height - 1) * width, height * width - 1];
  return at.map((i) => [...data.slice(4 * i, 4 * i + 3)].map((value) => Math.round(value / 128)));
}

export async function pictures_are_turned_as_their_file_says(context) {
  const [red, green, blue, yellow] = [
    [2, 0, 0],
    [0, 2, 0],
    [0, 0, 2],
    [2, 2, 0],
  ];
  const turned = [
    [red, green, blue, yellow],
    [green, red, yellow, blue],
    [yellow, blue, green, red],
    [blue, yellow, red, green],
    [red, blue, green, yellow],
    [blue, red, yellow, green],
    [yellow, green, blue, red],
    [green, yellow, red, blue],
  ];
  for (const [i, expected] of turned.entries()) {
    const blob = await jpegOf(blocks(), exif(i + 1));
    const url = await urlOf(blob);
    const size = i < 4 ? [16, 32, 4] : [32, 16, 4];
    const bitmap = await createImageBitmap(blob);
    const dense = { srcset: `${url} 2x` };
    for (const source of [await loaded({ src: url }), await loaded(dense), bitmap]) {
      const { shape, data } = await taken(context, source);
      equal([i + 1, shape, corners(shape, data)], [i + 1, size, expected]);
    }
    bitmap.close();
  }
}

export async function the_density_of_a_file_takes_nothing_of_it(context) {
  if (isFirefox) throw new Skip("Firefox 153 gives the pixels of the natural size alone");
  const url = await urlOf(await jpegOf(blocks(), exif(1, 2, 16, 8)));
  const picture = await loaded({ src: url });
  equal([picture.naturalWidth, picture.naturalHeight], [16, 8]);
  const { shape, data } = await taken(context, picture);
  equal(shape, [16, 32, 4]);
  equal(corners(shape, data), [
    [2, 0, 0],
    [0, 2, 0],
    [0, 0, 2],
    [2, 2, 0],
  ]);
}

export async function a_picture_is_what_it_was_at_the_call(context) {
  const { fromImage } = context.library.webgpu;
  const urls = [];
  for (const canvas of [painted(pattern(8, 4)), blocks()]) {
    urls.push(await urlOf(await canvas.convertToBlob()));
  }
  const picture = await loaded({ src: urls[0] });
  const taking = fromImage(await deviceOf(context), picture);
  picture.src = urls[1];
  const tensor = keep(await taking);
  equal([tensor.shape, await tensor.read()], [[4, 8, 4], pattern(8, 4).data]);
}

export async function video_frames_are_turned_and_stretched(context) {
  if (!("rotation" in VideoFrame.prototype)) throw new Skip("frames that are not turned");
  const frame = new VideoFrame(blocks(), { timestamp: 0 });
  for (const init of [
    { rotation: 90 },
    { rotation: 180 },
    { rotation: 270, flip: true },
    { displayWidth: 64, displayHeight: 16 },
    { displayWidth: 16, displayHeight: 8, rotation: 90 },
  ]) {
    const turned = new VideoFrame(frame, { timestamp: 0, ...init });
    const { displayWidth: width, displayHeight: height } = turned;
    const { shape, data } = await taken(context, turned);
    equal(shape, [height, width, 4]);
    equal(corners(shape, data), corners(shape, pixels(turned, { width, height })));
    turned.close();
  }
  frame.close();
}
