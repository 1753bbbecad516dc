// Pictures in and out of the page: decoding by the browser, drawing from tensors.

const LONGEST_SIDE = 1600; // a phone's photograph would need gigabytes as float32

/** Decodes an image blob to `{pixels, width, height}`; pixels are RGBA bytes. */
export async function decode(blob) {
  const bitmap = await createImageBitmap(blob);
  const scale = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const width = Math.round(bitmap.width * scale);
  const height = Math.round(bitmap.height * scale);
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  return { pixels: new Uint8Array(data.buffer), width, height };
}

/** Draws a CPU tensor with values 0..1, (height, width) or (height, width, 4), on a canvas. */
export function draw(canvas, tensor) {
  const [height, width, channels = 1] = tensor.shape;
  const { data } = tensor;
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 4; c++) {
      const value = channels === 4 ? data[4 * i + c] : data[i];
      image.data[4 * i + c] = c === 3 ? 255 : 255 * value; // the clamped array rounds and clips
    }
  }
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
