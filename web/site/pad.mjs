// A sheet of paper to draw a digit on, which comes out as the photograph's digits are: 8 x 8 cells
// of ink, filled from top to bottom, with paper around; and the section of the page around it.
import { $, isBusy, say, showProblem } from "./page.mjs";

const CELL = 4; // pixels of a cell
const MARGIN = 2 * CELL; // paper around, as in the photograph
const INSIDE = 8 * CELL;
const SIDE = INSIDE + 2 * MARGIN;
const PAPER = "#f7f0de";
const INK = "#14205a";

class Pad {
  #canvas;
  #context;
  #drawn = false;
  #last = null;
  #sample = null;

  /** @param done - called when a stroke is over */
  constructor(canvas, done) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d", { willReadFrequently: true });
    this.clear();
    canvas.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      if (this.#sample) this.clear();
      this.#last = this.#at(event);
      this.#line(this.#last);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.#last === null) return;
      const at = this.#at(event);
      this.#line(at);
      this.#last = at;
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        if (this.#last === null) return;
        this.#last = null;
        done();
      });
    }
  }

  clear() {
    const { width, height } = this.#canvas;
    this.#context.fillStyle = PAPER;
    this.#context.fillRect(0, 0, width, height);
    this.#drawn = false;
    this.#sample = null;
  }

  /** Puts digit `i` of the photograph on the paper. */
  take({ pixels, width, height }, { rows, columns }, i) {
    const [w, h] = [width / columns, height / rows];
    const sheet = new OffscreenCanvas(width, height);
    const image = new ImageData(new Uint8ClampedArray(pixels), width, height);
    sheet.getContext("2d").putImageData(image, 0, 0);
    const [x, y] = [(i % columns) * w, Math.floor(i / columns) * h];
    this.#context.drawImage(sheet, x, y, w, h, 0, 0, this.#canvas.width, this.#canvas.height);
    this.#drawn = true;
    this.#sample = { sheet, x, y, w, h };
  }

  /** `{ pixels, width, height, sheet }`, a photograph of one digit; null if there is none. */
  picture() {
    if (!this.#drawn) return null;
    const small = new OffscreenCanvas(SIDE, SIDE);
    const context = small.getContext("2d", { willReadFrequently: true });
    context.fillStyle = PAPER;
    context.fillRect(0, 0, SIDE, SIDE);
    context.imageSmoothingQuality = "high";
    if (this.#sample) {
      const { sheet, x, y, w, h } = this.#sample;
      context.drawImage(sheet, x, y, w, h, 0, 0, SIDE, SIDE);
    } else {
      const { x, y, w, h } = this.#inked();
      const scale = INSIDE / Math.max(w, h);
      const left = MARGIN + (INSIDE - scale * w) / 2;
      const top = MARGIN + (INSIDE - scale * h) / 2;
      context.drawImage(this.#canvas, x, y, w, h, left, top, scale * w, scale * h);
    }
    const { data } = context.getImageData(0, 0, SIDE, SIDE);
    const sheet = { rows: 1, columns: 1, margin: MARGIN };
    return { pixels: new Uint8Array(data.buffer), width: SIDE, height: SIDE, sheet };
  }

  /** The rectangle that has ink. */
  #inked() {
    const { width, height } = this.#canvas;
    const { data } = this.#context.getImageData(0, 0, width, height);
    let [left, top, right, bottom] = [width, height, 0, 0];
    for (let i = 0; i < width * height; i++) {
      if (data[4 * i] > 200) continue; // paper
      const [x, y] = [i % width, Math.floor(i / width)];
      left = Math.min(left, x);
      right = Math.max(right, x + 1);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y + 1);
    }
    return { x: left, y: top, w: Math.max(right - left, 1), h: Math.max(bottom - top, 1) };
  }

  #at({ offsetX, offsetY }) {
    const { width, clientWidth } = this.#canvas;
    return [(offsetX * width) / clientWidth, (offsetY * width) / clientWidth];
  }

  #line([x, y]) {
    const context = this.#context;
    context.strokeStyle = INK;
    context.lineWidth = this.#canvas.width / 9;
    context.lineCap = "round";
    context.lineJoin = "round";
    context.beginPath();
    context.moveTo(...(this.#last ?? [x, y]));
    context.lineTo(x, y);
    context.stroke();
    this.#drawn = true;
  }
}

/**
 * Buttons, one for each digit, which put the photograph's next one of those on the paper; `done` is
 * called then.
 */
function offerSamples(pad, { picture, facts }, done) {
  const given = new Map();
  $("samples").replaceChildren(
    ...Array.from({ length: 10 }, (_, digit) => {
      const button = Object.assign(document.createElement("button"), {
        type: "button",
        className: "small",
        textContent: digit,
      });
      button.addEventListener("click", () => {
        const those = facts.labels.flatMap((label, i) => (label === digit ? [i] : []));
        const next = given.get(digit) ?? 0;
        given.set(digit, next + 1);
        pad.take(picture, facts, those[next % those.length]);
        done();
      });
      return button;
    }),
  );
}

/**
 * The section "One of yours". `read(picture)` resolves to the label of the digit on the paper and
 * its score; if `isLoaded()`, the end of a stroke calls it. `libraries` are what it loads else.
 */
export function offerOwnDigit(tasks, photo, { libraries, isLoaded, read }) {
  const pad = new Pad($("pad"), () => isLoaded() && readOwn());

  async function readOwn() {
    if (isBusy()) return;
    const picture = pad.picture();
    if (picture === null) {
      $("own").textContent = "The paper is empty: draw a digit first.";
      return;
    }
    await tasks.alone(async () => {
      if (!isLoaded()) $("own").textContent = `Loading Python and ${libraries}…`;
      const { label, score } = await read(picture);
      $("own").textContent = `A ${label}, with ${(100 * score).toFixed(0)} %.`;
      $("own").dataset.read = label;
      say("Ready.");
    });
  }

  $("read-own").addEventListener("click", readOwn);
  $("read-own").disabled = false; // nobody heard a click before
  $("clear").addEventListener("click", () => {
    pad.clear();
    $("own").textContent = "";
  });
  photo.then((there) => offerSamples(pad, there, readOwn)).catch(showProblem);
}
