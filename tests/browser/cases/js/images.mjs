// What the cases of images have in common.
import { context2d, equal } from "./expect.mjs";
import { deviceOf } from "./gpu.mjs";

/** RGBA bytes with every channel different, as ImageData. */
export function pattern(width, height, { opaque = true } = {}) {
  const image = new ImageData(width, height);
  image.data.forEach((_, i) => {
    image.data[i] = opaque && i % 4 === 3 ? 255 : (i * 37 + (i >> 5)) % 256;
  });
  return image;
}

/** A canvas with these pixels, of the 2d kind. */
export function painted(image, canvas = new OffscreenCanvas(image.width, image.height)) {
  Object.assign(canvas, { width: image.width, height: image.height });
  context2d(canvas).putImageData(image, 0, 0);
  return canvas;
}

/** The RGBA bytes that anything drawable shows. */
export function pixels(source, { width, height } = source) {
  const context = context2d(new OffscreenCanvas(width, height));
  context.drawImage(source, 0, 0);
  return context.getImageData(0, 0, width, height).data;
}

export const withoutAlpha = (data) => [...data].filter((_, i) => i % 4 !== 3);

/** The elements of `fromImage`, and its shape; the tensor is gone then. */
export async function taken(context, source, options) {
  const tensor = await context.library.webgpu.fromImage(await deviceOf(context), source, options);
  try {
    return { shape: tensor.shape, dtype: tensor.dtype, data: await tensor.read() };
  } finally {
    tensor.release();
  }
}

export async function expectBytes(context, source, { width, height, data }) {
  const four = await taken(context, source);
  equal([four.dtype, four.shape], ["uint8", [height, width, 4]]);
  equal(four.data, data);
  const three = await taken(context, source, { channels: 3 });
  equal([three.dtype, three.shape], ["uint8", [height, width, 3]]);
  equal(three.data, withoutAlpha(data));
}
