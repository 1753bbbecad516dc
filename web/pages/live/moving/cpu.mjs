// Frames without WebGPU: the pixels of a canvas go through NumPy, in arrays that Python and the
// page share. Until Python is there, they are shown as they are.

const SECOND_MS = 1000;

export class CpuPlayer {
  python = null;
  device = null;
  lost = "Python runs it on the CPU.";
  paused = false;
  #page;
  #source;
  #show = null;
  #program = "";
  #frames = 0;
  #gate = null;

  /** @param page - as the other Player's; @param source - a canvas that is animated */
  constructor(page, source) {
    this.#page = page;
    this.#source = source;
  }

  /** What run.py calls. */
  get forPython() {
    const { sliders, took, broken } = this.#page;
    return {
      value: (name) => sliders.value(name),
      slider: (name, low, high, start) => sliders.add(name, low, high, start),
      took,
      broken,
    };
  }

  get inPython() {
    return this.#show !== null;
  }

  get shown() {
    return this.#frames;
  }

  play() {
    this.paused = false;
    this.#source.play();
    this.step();
  }

  pause() {
    this.paused = true;
    this.#source.pause();
  }

  step() {
    this.#gate?.();
  }

  async program(text) {
    this.#program = text;
    if (this.#show === null) return;
    this.#page.sliders.begin();
    await this.#show.take(text);
    this.step();
  }

  async usePython(python) {
    const { width, height } = this.#source.source;
    this.#show = python.showOnCpu(width, height);
    await this.program(this.#program);
  }

  /** Plays for ever. */
  async run() {
    const { width, height } = this.#source.source;
    const { canvas } = this.#page;
    Object.assign(canvas, { width, height });
    const to = canvas.getContext("2d");
    const from = Object.assign(document.createElement("canvas"), { width, height }).getContext(
      "2d",
      { willReadFrequently: true },
    );
    const times = [];
    for (;;) {
      const began = performance.now();
      from.drawImage(this.#source.source, 0, 0);
      const show = this.#show;
      if (show === null) to.drawImage(from.canvas, 0, 0);
      else {
        show.image().set(from.getImageData(0, 0, width, height).data);
        await show.draw();
        to.putImageData(new ImageData(show.result(), width, height), 0, 0);
      }
      const now = performance.now();
      this.#frames += 1;
      while (times[0] < now - SECOND_MS) times.shift();
      times.push(now);
      const stats = { fps: times.length, ms: now - began, bytes: 4 * width * height, moved: 0 };
      this.#page.shown(stats, show !== null);
      await this.#next();
    }
  }

  async #next() {
    await new Promise((resolve) => {
      this.#gate = resolve;
      if (!this.paused) requestAnimationFrame(resolve);
    });
    this.#gate = null;
  }
}
