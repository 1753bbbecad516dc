// What a block gave, on the page: added to while it runs, shown as often as the page can.

import { addOutput, outputElement, updateOutputs } from "./output.mjs";
import { forget } from "./pictures.mjs";

export class Outputs {
  /** As notebook files have them (nbformat 4). */
  list;
  #area;
  #clearNext = false;
  #drawing = 0;
  #cost = 0; // milliseconds that the browser took to show it
  #soon = null; // a promise that ends then
  #shown = new Map(); // output -> element, as they are on the page

  /** @param area - the element that they are shown in */
  constructor(area, list = []) {
    this.#area = area;
    this.list = list;
    this.show();
  }

  /**
   * One message of the kernel while the block runs; `count` is the number of the run. Resolves when
   * outputs that are elements of their own are shown; lines cost little.
   */
  hear(message, count) {
    if (message.type === "start") {
      this.#clearNext = false;
      return null;
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
    return message.type === "stream" || document.hidden ? null : this.#soon.promise;
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
    clearTimeout(this.#drawing);
    this.#drawing = 0;
    const begun = performance.now();
    const measure = () => {
      this.#cost = performance.now() - begun;
    };
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
    measure();
    requestAnimationFrame(() => setTimeout(measure)); // with layout and paint
    this.#soon?.resolve();
    this.#soon = null;
  }

  #drop() {
    forget(this.list);
    this.list = [];
  }

  /** The page does other things for most of the time, however much there is. */
  #showSoon() {
    this.#soon ??= Promise.withResolvers();
    this.#drawing ||= setTimeout(() => this.show(), Math.max(16, 3 * this.#cost));
  }
}
