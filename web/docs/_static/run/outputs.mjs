// What a block gave, on the page: added to while it runs, shown once a frame.

import { addOutput, outputElement, updateOutputs } from "./output.mjs";
import { forget } from "./pictures.mjs";

export class Outputs {
  /** As notebook files have them (nbformat 4). */
  list;
  #area;
  #clearNext = false;
  #drawing = 0;
  #shown = []; // { output, element }, as they are on the page

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
    const before = this.#shown;
    this.#shown = this.list.map((output, i) => {
      if (before[i]?.output === output) return before[i];
      const element = outputElement(output, before[i]?.element);
      element.tabIndex = 0; // what is wide is scrolled by keys
      return { output, element };
    });
    // Existing elements stay in place: a frame that is moved loads again.
    for (const [i, { element }] of this.#shown.entries()) {
      const there = this.#area.children[i];
      if (there === element) continue;
      if (there) there.replaceWith(element);
      else this.#area.append(element);
    }
    while (this.#area.children.length > this.#shown.length) this.#area.lastChild.remove();
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
