// The notebook page: cells, their order, the keys and the files. The kernel is in kernel.mjs.
import { opensByItself, publish } from "../support.mjs";
import { Cell } from "./cell.mjs";
import { Drafts } from "./drafts.mjs";
import { parse, serialize } from "./ipynb.mjs";
import { commandOf } from "./keys.mjs";
import { endAll, forFile, keepPicture } from "../docs/_static/run/live.mjs";
import { offerDrafts, showLink } from "./offers.mjs";
import { textOf } from "../docs/_static/run/safe.mjs";
import { fromLink, isShared } from "./share.mjs";
import { kernel } from "./start.mjs";

const $ = (id) => document.querySelector(`#${id}`);
const list = $("cells");
const STATES = {
  starting: "Python is loading",
  idle: "Python is ready",
  busy: "Python is busy",
  interrupting: "Interrupting… Restart ends it now",
  dead: "Python has stopped: Restart",
};

const DRAFT_MS = 800;
const STUCK_MS = 3000;
const cells = [];
const deleted = []; // { data, index }, the last one at the end
let selected = null;
let clipboard = null;
let changed = false;
let writing = 0; // a timer
let stuck = 0; // a timer
const drafts = new Drafts();

kernel.listen((message) => {
  switch (message.type) {
    case "state":
      $("kernel").textContent = STATES[message.state];
      $("kernel").dataset.state = message.state;
      $("interrupt").disabled = !["busy", "interrupting"].includes(message.state);
      $("loading").hidden = message.state !== "starting";
      if (message.state === "dead") endAll();
      clearTimeout(stuck);
      if (message.state === "interrupting") stuck = setTimeout(tellStuck, STUCK_MS);
      break;
    case "progress":
      Object.assign($("loading").querySelector("progress"), {
        max: 1,
        value: message.part,
      });
      $("loading").querySelector("span").textContent = message.text;
      break;
    case "note":
      $("kernel").textContent = /^Loading/.test(message.text) ? message.text : STATES.busy;
      break;
    case "ready":
      if (message.problem) tell(message.problem);
      break;
    case "quit":
      tell("quit() has ended Python, and with it all variables. Press Restart to start it again.");
      break;
    case "update":
      for (const cell of cells) cell.update(message);
      break;
    case "picture":
      keepPicture(message);
      break;
    case "failed":
      tell(`Python did not start: ${message.message}`);
      break;
    case "problem":
      tell(message.message);
      break;
    case "memory":
      showMemory(message);
  }
});

function tell(problem) {
  $("problem").hidden = !problem;
  $("problem").firstElementChild.textContent = problem ?? "";
}

function tellStuck() {
  tell(
    "Python does not stop: it is inside one long call (of NumPy, say, or of a GPU driver), and such " +
      "calls cannot be interrupted. It stops when the call is over; Restart ends it now, with all variables.",
  );
}

/** Something would be lost if the tab were closed now: soon the browser keeps it. */
function touch() {
  changed = true;
  writing ||= setTimeout(async () => {
    writing = 0;
    if (!changed) return;
    try {
      await drafts.write($("name").value, serialize(cells));
      $("draft").textContent = "kept by this browser";
    } catch (error) {
      $("draft").textContent = `not kept by this browser: ${error.message}`;
    }
  }, DRAFT_MS);
}

/** Nothing is left that is not in a file. */
function untouch() {
  changed = false;
  clearTimeout(writing);
  writing = 0;
  $("draft").textContent = "";
  drafts.clear().catch(() => {}); // then there is none
}

// --- cells ----------------------------------------------------------------------------

const notebook = {
  complete: (code, position) => kernel.complete(code, position),
  help: (code, position) => kernel.help(code, position),
  /** What the keys and buttons of one cell ask for. */
  key(name, cell) {
    if (name !== "changed") select(cell);
    commands[name]?.(cell);
  },
};

const dataOf = ({ type, source, outputs, count, metadata, kept }) => {
  return { type, source, outputs: outputs.map(forFile), count, metadata, kept };
};

function place(cell, index) {
  cell.element.addEventListener("focusin", () => select(cell));
  list.insertBefore(cell.element, cells[index]?.element ?? null);
  cells.splice(index, 0, cell);
}

function insert(index, data) {
  const cell = new Cell(notebook, data);
  place(cell, index);
  renumber();
  return cell;
}

function remove(cell) {
  const index = cells.indexOf(cell);
  deleted.push({ data: dataOf(cell), index });
  cells.splice(index, 1);
  cell.remove();
  if (cells.length === 0) insert(0);
  renumber();
  touch();
  focus(cells[Math.min(index, cells.length - 1)]);
}

function renumber() {
  for (const [i, cell] of cells.entries()) cell.number(i, cells.length);
}

function select(cell) {
  if (selected === cell) return;
  if (selected) selected.element.tabIndex = -1;
  selected?.element.classList.remove("selected");
  selected = cell;
  cell.element.tabIndex = 0;
  cell.element.classList.add("selected");
}

/** Command mode: the cell has the keyboard, and not its editor. */
function focus(cell) {
  select(cell);
  cell.element.focus({ preventScroll: true });
  cell.element.scrollIntoView({ block: "nearest" });
}

function convert(cell, type) {
  if (cell.type === type) return cell;
  const index = cells.indexOf(cell);
  const source = cell.source;
  cells.splice(index, 1);
  cell.remove();
  const made = insert(index, { type, source });
  touch();
  focus(made);
  return made;
}

async function run(cell) {
  if (kernel.state === "idle") tell(); // what it says is of an earlier cell
  if (cell.type !== "code") {
    cell.render();
    return "ok";
  }
  if (cell.state !== "idle") return "stopped";
  if (kernel.state === "dead") {
    tell("Python has stopped: press Restart, then run the cell.");
    return "stopped";
  }
  cell.clear();
  cell.become("waiting");
  renumber();
  touch();
  const outcome = await kernel.run(cell.source, (message) => {
    cell.hear(message);
    if (message.type === "start") renumber();
  });
  cell.become("idle");
  renumber();
  touch();
  return outcome;
}

async function runAll() {
  const outcomes = await Promise.all(cells.map(run));
  return outcomes.every((outcome) => outcome === "ok");
}

function restart() {
  tell();
  endAll();
  $("left").replaceChildren();
  kernel.restart();
}

/** Puts a cell one place on, or back. */
function move(cell, by) {
  const from = cells.indexOf(cell);
  const to = from + by;
  if (to < 0 || to >= cells.length) return;
  cells.splice(to, 0, ...cells.splice(from, 1));
  list.insertBefore(cell.element, cells[to + 1]?.element ?? null);
  renumber();
  touch();
  focus(cell);
}

const below = (cell) => cells.indexOf(cell) + 1;

const commands = {
  run: (cell) => {
    run(cell);
    if (cell.type !== "code") focus(cell);
  },
  "run-next": (cell) => {
    run(cell);
    const next = cells[below(cell)];
    if (next) focus(next);
    else insert(cells.length).edit();
  },
  "run-insert": (cell) => {
    run(cell);
    insert(below(cell)).edit();
  },
  command: (cell) => focus(cell),
  changed: touch,
  edit: (cell) => cell.edit(),
  up: (cell) => focus(cells[Math.max(0, below(cell) - 2)]),
  down: (cell) => focus(cells[Math.min(cells.length - 1, below(cell))]),
  above: (cell) => focus(insert(below(cell) - 1)),
  below: (cell) => focus(insert(below(cell))),
  "move-up": (cell) => move(cell, -1),
  "move-down": (cell) => move(cell, 1),
  kind: (cell) => convert(cell, cell.type === "code" ? "markdown" : "code"),
  delete: remove,
  undo: () => {
    const last = deleted.pop();
    if (last) focus(insert(Math.min(last.index, cells.length), last.data));
  },
  cut: (cell) => {
    clipboard = dataOf(cell);
    remove(cell);
  },
  copy: (cell) => {
    clipboard = dataOf(cell);
  },
  paste: (cell) => {
    if (clipboard) focus(insert(below(cell), clipboard));
  },
  text: (cell) => convert(cell, "markdown"),
  code: (cell) => convert(cell, "code"),
  interrupt,
  restart,
  save,
  help: () => $("keys").showModal(),
};

list.addEventListener("keydown", (event) => {
  if (!event.target.classList.contains("cell")) return;
  const name = commandOf(event);
  if (!name) return;
  event.preventDefault();
  commands[name](selected);
});

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
  if (event.altKey || event.shiftKey) return;
  event.preventDefault();
  save();
});

function interrupt() {
  kernel.interrupt();
  if (kernel.canSignal) return;
  tell(
    "This page is not cross-origin isolated, so only cells that await can be interrupted; " +
      "Restart ends any. Serve it with the headers COOP: same-origin and COEP: require-corp.",
  );
}

// --- memory ---------------------------------------------------------------------------

function showMemory({ html, left, count }) {
  $("held").replaceChildren(textOf(html));
  for (const text of left) {
    const item = document.createElement("li");
    item.textContent = `[${count}] ${text}`;
    $("left").append(item);
  }
}

// --- files ----------------------------------------------------------------------------

function show(name, made) {
  // All of the new ones before any of the old ones goes: if one fails, nothing has happened.
  const fresh = (made.length ? made : [{}]).map((data) => new Cell(notebook, data));
  kernel.interrupt();
  for (const cell of cells.splice(0)) cell.remove();
  for (const cell of fresh) place(cell, cells.length);
  renumber();
  $("name").value = name;
  document.title = `${name} · dlpack-web`;
  deleted.length = 0;
  untouch();
  select(cells[0]);
}

const mayLeave = () => !changed || confirm("Discard the changes of this notebook?");

async function openExample(name) {
  if (!mayLeave()) return;
  const answer = await fetch(new URL(`../examples/${name}.ipynb`, import.meta.url));
  if (!answer.ok) {
    tell(`There is no example "${name}" on this site.`);
    if (cells.length === 0) show("notebook.ipynb", []);
    return;
  }
  show(`${name}.ipynb`, parse(await answer.text(), name));
}

/** Opens the blocks of a page of the documentation; the one of that number is selected. */
async function openDocs(name, number) {
  const page = new URL(`../docs/${name}.html`, import.meta.url);
  const answer = await fetch(page);
  if (!answer.ok) {
    tell(`The documentation has no page "${name}" on this site.`);
    return false;
  }
  if (!mayLeave()) return true;
  const { cellsOf } = await import("../docs/_static/run/listing.mjs");
  const root = new DOMParser().parseFromString(await answer.text(), "text/html");
  show(`${name.split("/").at(-1)}.ipynb`, cellsOf(root, page.href));
  const code = cells.filter(({ type }) => type === "code");
  focus(code[number - 1] ?? cells[0]);
  return true;
}

async function openFile(file) {
  try {
    const made = parse(await file.text(), file.name);
    if (!mayLeave()) return;
    show(file.name, made);
    tell();
  } catch (error) {
    tell(error.message);
  }
}

function save() {
  const url = URL.createObjectURL(
    new Blob([serialize(cells)], { type: "application/x-ipynb+json" }),
  );
  const link = document.createElement("a");
  link.href = url;
  link.download = $("name").value.replace(/(\.ipynb)?$/, ".ipynb");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  untouch();
}

// --- links and drafts -----------------------------------------------------------------

/** Opens what a link holds; says so where that is nothing, and leaves all as it is. */
async function openShared(hash) {
  try {
    const { name, cells: made } = await fromLink(hash);
    if (!mayLeave()) return true;
    show(name, made);
    tell("This notebook came by a link. None of it has run: look at it before you run it.");
    return true;
  } catch (error) {
    tell(error.message);
    return false;
  }
}

/** Opens what another tab did not save; false where the reader would rather not. */
function restore({ name, text }) {
  const made = parse(text, name);
  if (!mayLeave()) return false;
  show(name, made);
  touch();
  return true;
}

// --- the page -------------------------------------------------------------------------

$("run").onclick = () => commands["run-next"](selected);
$("run-all").onclick = runAll;
$("interrupt").onclick = interrupt;
$("restart").onclick = restart;
$("add-code").onclick = () => insert(below(selected)).edit();
$("add-text").onclick = () => insert(below(selected), { type: "markdown" }).edit();
$("new").onclick = () => {
  if (!mayLeave()) return;
  show("untitled.ipynb", []);
  cells[0].edit();
};
$("open").onclick = () => $("file").click();
$("save").onclick = save;
$("share").onclick = () => showLink($("name").value, cells);
$("problem").lastElementChild.onclick = () => tell();
$("name").oninput = touch;
$("help").onclick = commands.help;
$("file").onchange = async ({ target }) => {
  if (target.files[0]) await openFile(target.files[0]);
  target.value = "";
};
$("examples").onchange = async ({ target }) => {
  const { value } = target;
  target.value = "";
  if (value) await openExample(value);
};
$("memory").onclick = () => {
  const panel = $("panel");
  panel.hidden = !panel.hidden;
  $("memory").setAttribute("aria-expanded", String(!panel.hidden));
};
addEventListener("beforeunload", (event) => {
  if (changed) event.preventDefault();
});
list.addEventListener("slide", ({ detail }) => kernel.slide(detail.number, detail.value));
list.addEventListener("answer", ({ detail }) => kernel.answer(detail));
addEventListener("hashchange", () => {
  if (isShared(location.hash)) openShared(location.hash);
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
});

const { hash } = location;
const byLink = isShared(hash);
const [, page, number] = /^#docs\/([\w/-]+):(\d+)$/.exec(hash) ?? [];
const opens = byLink ? openShared(hash) : page && openDocs(page, number);
if (!(await opens)) await openExample(/^#(?!auto$)(\w+)$/.exec(hash)?.[1] ?? "tour");
await offerDrafts(drafts, restore, tell);
document.body.dataset.ready = "";
// Only what is this site's own.
if (opensByItself() && !byLink) {
  const began = performance.now();
  const ok = await runAll();
  untouch();
  publish({
    page: "notebook",
    ok,
    cells: cells.length,
    seconds: (performance.now() - began) / 1000,
    problem: $("problem").firstElementChild.textContent || null,
  });
}
