// The editor: a text area, numbers of its lines beside it, and what is wrong in which of them.

const DEBOUNCE_MS = 400;

/**
 * @param parts - `{ area, gutter, fault, go }`, elements of the page
 * @param changed - called with the text when its writer pauses
 */
export class Editor {
  #parts;
  #timer;
  #line = null;

  constructor(parts, changed) {
    this.#parts = parts;
    const { area, go } = parts;
    const tell = () => {
      clearTimeout(this.#timer);
      changed(area.value);
    };
    area.addEventListener("input", () => {
      this.#lay();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(tell, DEBOUNCE_MS);
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        tell();
      }
    });
    go.addEventListener("click", () => this.#goTo(this.#line));
  }

  get text() {
    return this.#parts.area.value;
  }

  set text(value) {
    clearTimeout(this.#timer);
    this.#parts.area.value = value;
    this.clear();
  }

  /** Says what is wrong, at its line where that is known. */
  blame(message, line) {
    const { fault, area, go } = this.#parts;
    this.#line = line ?? null;
    const text = line ? `Line ${line}: ${message}` : message;
    if (fault.textContent !== text) fault.textContent = text;
    area.setAttribute("aria-invalid", "true");
    go.hidden = !line;
    this.#lay();
  }

  clear() {
    const { fault, area, go } = this.#parts;
    this.#line = null;
    fault.textContent = "";
    area.removeAttribute("aria-invalid");
    go.hidden = true;
    this.#lay();
  }

  /** Sizes the area to its text, which keeps the numbers beside their lines. */
  #lay() {
    const { area, gutter } = this.#parts;
    const lines = area.value.split("\n");
    const count = lines.length;
    area.rows = count;
    area.cols = Math.max(...lines.map((line) => line.length)) + 2; // the box around scrolls
    gutter.replaceChildren(
      ...Array.from({ length: count }, (_, i) =>
        Object.assign(document.createElement("span"), {
          textContent: `${i + 1}\n`,
          className: i + 1 === this.#line ? "at-fault" : "",
        }),
      ),
    );
  }

  #goTo(line) {
    if (line === null) return;
    const { area, gutter } = this.#parts;
    const before = area.value.split("\n").slice(0, line - 1);
    const start = before.reduce((sum, each) => sum + each.length + 1, 0);
    const end = area.value.indexOf("\n", start);
    area.focus();
    area.setSelectionRange(start, end < 0 ? area.value.length : end);
    gutter.children[line - 1]?.scrollIntoView({ block: "center" });
  }
}
