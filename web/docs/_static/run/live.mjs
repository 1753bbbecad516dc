// Outputs that live as long as the kernel does: pictures that the GPU drew, sliders. In notebook
// files pictures are PNG, and sliders their text.
export const PICTURE = "application/vnd.dlpack-web.picture+json";
export const SLIDER = "application/vnd.dlpack-web.slider+json";

const waiting = new Map(); // number -> ImageBitmap that no element shows yet
const canvases = new WeakMap(); // output -> canvas
const alive = new WeakSet(); // outputs that the running kernel sent

/** The kernel drew a picture; the output that shows it comes next. */
export function keepPicture({ number, bitmap }) {
  waiting.set(number, bitmap);
}

/** An output came from the kernel, and not from a file. */
export function enliven(output) {
  alive.add(output);
  return output;
}

/** Outputs go away, perhaps before they were shown. */
export function forget(outputs) {
  for (const { data } of outputs) {
    const { number } = data?.[PICTURE] ?? {};
    waiting.get(number)?.close();
    waiting.delete(number);
  }
}

/** Every picture and slider is of a kernel that has ended. */
export function endAll() {
  for (const bitmap of waiting.values()) bitmap.close();
  waiting.clear();
  for (const each of document.querySelectorAll(".slider input")) each.disabled = true;
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
  canvases.set(output, canvas);
  return canvas;
}

/** A slider; each move is an event "slide" of it. */
export function slider(output) {
  const { id, label, min, max, step, value } = output.data[SLIDER];
  const element = document.createElement("label");
  element.className = "slider";
  const name = Object.assign(document.createElement("span"), { textContent: label || "value" });
  const input = Object.assign(document.createElement("input"), { type: "range" });
  for (const [key, number] of Object.entries({ min, max, step, value })) {
    input.setAttribute(key, Number(number));
  }
  const told = document.createElement("output");
  const tell = () => {
    told.textContent = `${Number(Number(input.value).toPrecision(4))}`;
  };
  let asked = 0;
  input.addEventListener("input", () => {
    tell();
    if (asked) return; // once a frame
    asked = requestAnimationFrame(() => {
      asked = 0;
      const detail = { number: id, value: Number(input.value) };
      element.dispatchEvent(new CustomEvent("slide", { bubbles: true, detail }));
    });
  });
  input.disabled = !alive.has(output);
  if (input.disabled) element.title = "Run the cell: then it moves";
  tell();
  element.append(name, input, told);
  return element;
}

/** An output as files have it. */
export function forFile(output) {
  const { [PICTURE]: drawn, [SLIDER]: moved, ...data } = output.data ?? {};
  if (!drawn && !moved) return output;
  const canvas = drawn && canvases.get(output);
  if (canvas) data["image/png"] = canvas.toDataURL("image/png").split(",")[1];
  return { ...output, data };
}
