// The steps of a run: what each moved, as counted, and how long it took; shown in a table.
import * as counters from "./counters.mjs";

const UNITS = ["B", "KB", "MB", "GB"];

/** 4915200 -> "4.92 MB" (powers of ten). */
export function formatBytes(bytes) {
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit ? value.toPrecision(3) : value} ${UNITS[unit]}`;
}

export const formatCopies = (copies) => (copies === 1 ? "1 copy" : `${copies} copies`);

export const formatTime = (ms) => (ms < 1 ? `${(ms * 1000).toFixed(0)} µs` : `${ms.toFixed(1)} ms`);

/** Records steps; `begin` and `end` enclose each of them. */
export class Steps {
  rows = [];
  mapAsync = 0;
  #open = null;
  #least;

  /** @param least - copies of fewer bytes, such as of uniforms, are not counted */
  constructor(least = 0) {
    this.#least = least;
  }

  begin(name, bytes) {
    this.#open = { name, bytes };
    counters.start(this.#least);
    this.#open.at = performance.now();
  }

  end() {
    const { name, bytes, at } = this.#open;
    const ms = performance.now() - at;
    const { map_async, ...counts } = counters.stop();
    this.mapAsync += map_async;
    this.rows.push({ name, bytes, ...counts, ms });
  }

  find(name) {
    return this.rows.find((row) => row.name === name);
  }

  /** Fills a table body, one row for each step. */
  show(body) {
    body.replaceChildren(
      ...this.rows.map(({ name, bytes, copies, copied_bytes, ms }) => {
        const row = document.createElement("tr");
        const size = bytes ? formatBytes(bytes) : "–";
        const cells = [name, size, copies, formatBytes(copied_bytes), formatTime(ms)];
        for (const text of cells) row.insertCell().textContent = text;
        row.dataset.copies = copies;
        return row;
      }),
    );
  }
}

/** Lists `{ name, held }` in a `<details>`, which opens automatically if one failed. */
export function showChecks(box, checks) {
  const broken = checks.filter(({ held }) => !held).length;
  box.hidden = false;
  box.open = broken > 0;
  box.querySelector("summary").textContent = broken
    ? `${broken} of ${checks.length} checks failed`
    : `All ${checks.length} checks passed`;
  box.querySelector("ul").replaceChildren(
    ...checks.map(({ name, held }) =>
      Object.assign(document.createElement("li"), {
        className: held ? "held" : "broken",
        textContent: name,
      }),
    ),
  );
}
