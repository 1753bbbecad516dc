// What the pages with a Run button share: one task at a time, what it says, counted hops, tables.
import { formatCopies } from "./steps.mjs";
import { opensByItself, publish, showMissing, webgpuProblem } from "./support.mjs";

export const $ = (id) => document.getElementById(id);

export function say(text) {
  $("status").textContent = text;
}

export function showProblem(error) {
  say("It did not work.");
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

/** Whether a task runs; the Run button may be disabled for other reasons. */
export const isBusy = () => !$("progress").hidden;

/** The page's tasks. Only one runs at a time; `controls` are disabled meanwhile. */
export class Tasks {
  #page;
  #controls;
  #forget;

  /** @param forget - called when a task failed: what it began is made again by the next one */
  constructor(page, { controls = [], forget = () => {} } = {}) {
    this.#page = page;
    this.#controls = ["run", ...controls];
    this.#forget = forget;
  }

  /** Does nothing while another task runs; shows what `task` throws, and passes it to `failed`. */
  async alone(task, failed = () => {}) {
    if (isBusy()) return;
    this.#busy(true);
    $("problem").hidden = true;
    try {
      const problem = await webgpuProblem();
      if (problem) throw new Error(problem);
      await task();
    } catch (error) {
      this.#forget();
      showProblem(error);
      failed(error);
    }
    this.#busy(false);
  }

  /** Publishes what `task` resolves to, or its error. */
  run(task) {
    const page = this.#page;
    return this.alone(
      async () => publish({ page, ...(await task()) }),
      (error) => publish({ page, ok: false, error: error.message }),
    );
  }

  #busy(now) {
    for (const picture of document.querySelectorAll(".recorded")) picture.remove();
    for (const id of this.#controls) $(id).disabled = now;
    $("progress").hidden = !now;
  }
}

/** Runs when the form is sent, and at once if the page was opened to run automatically. */
export async function offer(run, preview = async () => {}) {
  $("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  if (opensByItself()) return run();
  try {
    await preview();
  } catch (error) {
    showProblem(error);
    return undefined;
  }
  return showMissing($("problem"), $("run"));
}

async function fetched(path, advice = "") {
  const response = await fetch(path);
  if (response.ok) return response;
  throw new Error(`${path} is missing (${response.status})${advice}`);
}

export async function textOf(path) {
  return (await fetched(path)).text();
}

/** The bytes of a file that `make demo PAGE=…` makes. */
export async function madeBytes(path, page) {
  const response = await fetched(path, `: \`make demo PAGE=${page}\` makes it`);
  return new Uint8Array(await response.arrayBuffer());
}

/** `{ name: held }` of checks, as results are published. */
export const heldOf = (checks) => Object.fromEntries(checks.map(({ name, held }) => [name, held]));

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Fills a table body; each row is an array of its cells' texts. */
export function fillTable(body, rows) {
  body.replaceChildren(
    ...rows.map((texts) => {
      const row = document.createElement("tr");
      for (const text of texts) row.insertCell().textContent = text;
      return row;
    }),
  );
}

/** Shows what was copied between two stations of the picture. */
export function showHop(hop, copies, text) {
  hop.dataset.copies = copies;
  hop.replaceChildren(
    Object.assign(document.createElement("b"), { textContent: formatCopies(copies) }),
    Object.assign(document.createElement("small"), { textContent: text }),
  );
}
