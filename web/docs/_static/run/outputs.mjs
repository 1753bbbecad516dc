// What a block gave, on the page: added to while it runs, shown once a frame.

import { addOutput, outputElement, updateOutputs } from "./output.mjs";
import { forget } from "./pictures.mjs";

export class Outputs {
  /** As notebook files have them (nbformat 4). */
  list;
  #area;
  #clearNext = false;
  #drawing = 0;
  #shown = new Map(); // output -> element, as they are on the page

  /** @param area - the element that they are shown in */
  constructor(area, list = []) {
    this.#area = area;
    this.list = list;
    this.show();
  }

  /** One message of the kernel while the block runs; `count` is the number of the run. */
  hear(message, count) {
    if (message.type === "start") {
      this.#clearNext = false;
      return;
    }
    if (message.type === "clear") {
      this.#clearNext = message.wait;
      if (!message.wait) this.#drop();
    } else {
      if (this.#clearNext) this.#drop();
      this.#clearNext = false;
      addOutput(this.list, message, count);
    }
    this.#showSoon();
  }

  /** What was shown with a display id is something else now. */
  update(message) {
    if (updateOutputs(this.list, message)) this.#showSoon();
  }

  clear() {
    this.#drop();
    this.show();
  }

  show() {
    cancelAnimationFrame(this.#drawing);
    this.#drawing = 0;
    const shown = new Map(this.list.map((output) => [output, this.#shown.get(output)]));
    const gone = [...this.#shown].flatMap(([output, old]) => (shown.has(output) ? [] : old));
    for (const old of gone) old.remove();
    for (const [output, before] of shown) {
      const element = before ?? outputElement(output, gone.shift());
      element.tabIndex = 0; // what is wide is scrolled by keys
      shown.set(output, element);
    }
    // Existing elements stay in place: a frame that is moved loads again.
    for (const [i, element] of [...shown.values()].entries()) {
      const there = this.#area.children[i];
      if (there !== element) this.#area.insertBefore(element, there ?? null);
    }
    this.#shown = shown;
  }

  #drop() {
    forget(this.list);
    this.list = [];
  }

  /** Once a frame, however much there is. */
  #showSoon() {
    this.#drawing ||= requestAnimationFrame(() => this.show());
  }
}
