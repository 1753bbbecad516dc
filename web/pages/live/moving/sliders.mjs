// Sliders that programs ask for; a number that was set stays when its program changes.

export class Sliders {
  #box;
  #values = new Map();

  constructor(box) {
    this.#box = box;
  }

  /** A new program: what it does not ask for goes. */
  begin() {
    for (const each of this.#box.querySelectorAll("label")) each.dataset.old = "yes";
  }

  end() {
    for (const each of this.#box.querySelectorAll("[data-old]")) each.remove();
    this.#box.hidden = this.#box.querySelector("label") === null;
  }

  /** The new program does not work: all of them stay. */
  keep() {
    for (const each of this.#box.querySelectorAll("[data-old]")) delete each.dataset.old;
  }

  add(name, low, high, start) {
    const found = [...this.#box.querySelectorAll("label")].find((each) => each.title === name);
    const input = found?.querySelector("input") ?? document.createElement("input");
    const output = found?.querySelector("output") ?? document.createElement("output");
    if (!found) {
      const label = Object.assign(document.createElement("label"), { title: name });
      input.type = "range";
      label.append(`${name} `, input, output);
      input.addEventListener("input", () => this.#set(name, input, output));
      this.#box.append(label);
    }
    const before = found ? Number(input.value) : start;
    Object.assign(input, { min: low, max: high, step: (high - low) / 200 });
    input.value = before >= low && before <= high ? before : start;
    if (found) delete found.dataset.old;
    this.#set(name, input, output);
    this.#box.hidden = false;
  }

  #set(name, input, output) {
    this.#values.set(name, Number(input.value));
    output.textContent = Number(Number(input.value).toPrecision(3));
  }

  /** The number that a slider stands at. */
  value(name) {
    return this.#values.get(name) ?? 0;
  }
}
