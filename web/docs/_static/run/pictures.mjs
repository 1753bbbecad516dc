// Pictures that the GPU drew, which stay there.
export const PICTURE = "application/vnd.dlpack-web.picture+json";

const waiting = new Map(); // number -> ImageBitmap that no element shows yet

/** The kernel drew a picture; the output that shows it comes next. */
export function keepPicture({ number, bitmap }) {
  waiting.set(number, bitmap);
}

/** Outputs go away, perhaps before they were shown. */
export function forget(outputs) {
  for (const { data } of outputs) {
    const { number } = data?.[PICTURE] ?? {};
    waiting.get(number)?.close();
    waiting.delete(number);
  }
}

/** The kernel has ended: no output comes for the pictures that wait. */
export function endAll() {
  for (const bitmap of waiting.values()) bitmap.close();
  waiting.clear();
}

/** A canvas with the picture of an output; the one `before` shows it where there is one. */
export function picture(output, before) {
  const bitmap = waiting.get(output.data[PICTURE].number);
  if (!bitmap) return null;
  waiting.delete(output.data[PICTURE].number);
  const canvas = before?.matches("canvas.picture") ? before : document.createElement("canvas");
  canvas.className = "picture";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${output.data["text/plain"]}`);
  canvas.title = `${output.data["text/plain"]}`;
  const { width, height } = bitmap;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext("bitmaprenderer").transferFromImageBitmap(bitmap); // stays on the GPU
  return canvas;
}
