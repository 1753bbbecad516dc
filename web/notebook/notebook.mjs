// The notebook page: cells, their order, the keys and the files. The kernel is in kernel.mjs.
import { opensByItself, publish } from "../support.mjs";
import { Cell } from "./cell.mjs";
import { parse, serialize } from "./ipynb.mjs";
import { Kernel } from "./kernel.mjs";
import { textOf } from "./safe.mjs";

const $ = (id) => document.querySelector(`#${id}`);
const list = $("cells");
const STATES = {
  starting: "Python is loading",
  idle: "Python is ready",
  busy: "Python is busy",
  dead: "Python has stopped: Restart",
};

const cells = [];
const deleted = []; // { data, index }, the last one at the end
let selected = null;
let clipboard = null;
let changed = false;
let lastKey = { key: "", at: 0 };

const kernel = new Kernel((message) => {
  switch (message.type) {
    case "state":
      $("kernel").textContent = STATES[message.state];
      $("kernel").dataset.state = message.state;
      $("interrupt").disabled = message.state !== "busy";
      $("loading").hidden = message.state !== "starting";
      break;
    case "progress":
      Object.assign($("loading").querySelector("progress"), {
        max: message.steps,
        value: message.step,
      });
      $("loading").querySelector("span").textContent = message.text;
      break;
    case "note":
      $("kernel").textContent = /^Loading/.test(message.text) ? message.text : STATES.busy;
      break;
    case "ready":
      tell(message.problem);
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
  $("problem").textContent = problem ?? "";
}

// --- cells ----------------------------------------------------------------------------

const notebook = {
  complete: (code, position) => kernel.complete(code, position),
  /** What the keys and buttons of one cell ask for. */
  key(name, cell) {
    if (name !== "changed") select(cell);
    commands[name]?.(cell);
  },
};

const dataOf = ({ type, source, outputs, count, metadata }) => {
  return { type, source, outputs: structuredClone(outputs), count, metadata };
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
  changed = true;
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
  changed = true;
  focus(made);
  return made;
}

async function run(cell) {
  if (cell.type !== "code") {
    cell.render();
    return "ok";
  }
  if (cell.state !== "idle") return "stopped";
  cell.clear();
  cell.become("waiting");
  renumber();
  changed = true;
  const outcome = await kernel.run(cell.source, (message) => {
    cell.hear(message);
    if (message.type === "start") renumber();
  });
  cell.become("idle");
  renumber();
  return outcome;
}

async function runAll() {
  const outcomes = await Promise.all(cells.map(run));
  return outcomes.every((outcome) => outcome === "ok");
}

function restart() {
  tell();
  $("left").replaceChildren();
  kernel.restart();
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
  changed: () => {
    changed = true;
  },
  edit: (cell) => cell.edit(),
  up: (cell) => focus(cells[Math.max(0, below(cell) - 2)]),
  down: (cell) => focus(cells[Math.min(cells.length - 1, below(cell))]),
  above: (cell) => focus(insert(below(cell) - 1)),
  below: (cell) => focus(insert(below(cell))),
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

const KEYS = {
  Enter: "edit",
  "Shift+Enter": "run-next",
  "Control+Enter": "run",
  "Meta+Enter": "run",
  "Alt+Enter": "run-insert",
  "Control+s": "save",
  "Meta+s": "save",
  ArrowUp: "up",
  ArrowDown: "down",
  k: "up",
  j: "down",
  a: "above",
  b: "below",
  "d d": "delete",
  z: "undo",
  x: "cut",
  c: "copy",
  v: "paste",
  m: "text",
  y: "code",
  "i i": "interrupt",
  "0 0": "restart",
  h: "help",
};

list.addEventListener("keydown", (event) => {
  if (!event.target.classList.contains("cell")) return;
  const { key } = event;
  const modifier = ["Shift", "Control", "Meta", "Alt"].find((name) => event.getModifierState(name));
  const twice = lastKey.key === key && event.timeStamp - lastKey.at < 800;
  const name =
    KEYS[modifier ? `${modifier}+${key}` : key] ?? (twice && !modifier && KEYS[`${key} ${key}`]);
  lastKey = { key: name ? "" : key, at: event.timeStamp };
  if (!name) return;
  event.preventDefault();
  commands[name](selected);
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
  changed = false;
  select(cells[0]);
}

const mayLeave = () => !changed || confirm("Leave the changes of this notebook?");

async function openExample(name) {
  if (!mayLeave()) return;
  const answer = await fetch(new URL(`../examples/${name}.ipynb`, import.meta.url));
  if (!answer.ok) throw new Error(`there is no example ${name}`);
  show(`${name}.ipynb`, parse(await answer.text(), name));
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
  changed = false;
}

// --- the page -------------------------------------------------------------------------

$("run").onclick = () => commands["run-next"](selected);
$("run-all").onclick = runAll;
$("interrupt").onclick = interrupt;
$("restart").onclick = restart;
$("add-code").onclick = () => insert(below(selected)).edit();
$("add-text").onclick = () => insert(below(selected), { type: "markdown" }).edit();
$("open").onclick = () => $("file").click();
$("save").onclick = save;
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
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
});

restart();
await openExample(/^#(\w+)$/.exec(location.hash)?.[1] ?? "tour");
document.body.dataset.ready = "";
if (opensByItself()) {
  const began = performance.now();
  const ok = await runAll();
  changed = false;
  publish({
    page: "notebook",
    ok,
    cells: cells.length,
    seconds: (performance.now() - began) / 1000,
    problem: $("problem").textContent || null,
  });
}
