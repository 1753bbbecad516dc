// What frames take, as it goes: their rate, time, bytes and copies.
import * as counters from "../counters.mjs";
import { median } from "../page.mjs";
import { formatBytes } from "../steps.mjs";

const SHOW_MS = 250;
const RECENT = 50; // frames, whose copies are shown

export class Meter {
  frames = 0;
  copies = 0;
  copiedBytes = 0;
  mapAsync = 0;
  /** Frames a second, over all that was counted. */
  #began = 0;
  #ended = 0;
  #times = [];
  #recent = [];
  #counting = false;
  #shownAt = 0;
  #elements;

  constructor(elements) {
    this.#elements = elements;
  }

  /** Restarts the counts with the next frame, for copies of `bytes` and more at once. */
  restart(bytes) {
    this.pause();
    Object.assign(this, { frames: 0, copies: 0, copiedBytes: 0, mapAsync: 0 });
    this.#times = [];
    this.#recent = [];
    this.least = bytes;
  }

  /** What happens now belongs to no frame. */
  pause() {
    if (this.#counting) counters.stop();
    this.#counting = false;
  }

  /** A frame was shown; while Python loads, what is copied is not the frame's. */
  shown({ fps, ms, bytes, moved }, counting) {
    const now = performance.now();
    if (!counting) this.pause();
    else if (this.#counting) {
      const counted = counters.stop();
      const { copied_bytes, map_async } = counted;
      // What the device moved was a call as well, which was counted if it was large.
      const copies = counted.copies || (moved >= this.least ? 1 : 0);
      this.frames += 1;
      this.copies += copies;
      this.#recent.push(copies);
      if (this.#recent.length > RECENT) this.#recent.shift();
      this.copiedBytes += copied_bytes;
      this.mapAsync += map_async;
      this.#times.push(ms);
      if (this.#times.length > 200) this.#times.shift();
    } else this.#began = now;
    this.#ended = now;
    if (counting) counters.start(this.least);
    this.#counting = counting;
    if (now - this.#shownAt < SHOW_MS) return;
    this.#shownAt = now;
    const { fps: rate, ms: time, bytes: size, copies } = this.#elements;
    rate.textContent = fps ? fps.toFixed(0) : "…";
    time.textContent = ms ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : "…";
    size.textContent = formatBytes(bytes);
    const each = this.#recent.reduce((sum, one) => sum + one, 0) / (this.#recent.length || 1);
    copies.textContent = Number(each.toFixed(1));
    copies.dataset.copies = each === 0 ? 0 : 1;
  }

  get copiesPerFrame() {
    return this.frames ? this.copies / this.frames : 0;
  }

  /** Over all that was counted. */
  get fps() {
    const seconds = (this.#ended - this.#began) / 1000;
    return seconds > 0 ? this.frames / seconds : 0;
  }

  get medianMs() {
    return median(this.#times) ?? 0;
  }
}
