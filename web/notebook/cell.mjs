// One cell: an editor, or rendered Markdown, and what running it gave.
import {
  EditorState,
  EditorView,
  HighlightStyle,
  indentLess,
  keymap,
  python,
  syntaxHighlighting,
} from "../libraries/notebook.mjs";
import { COLOURED, editing } from "../docs/_static/run/editing.mjs";
import { markdown } from "../docs/_static/run/output.mjs";
import { Outputs } from "../docs/_static/run/outputs.mjs";

const COLOURS = HighlightStyle.define(
  Object.entries(COLOURED).map(([name, tag]) => ({ tag, class: name })),
);

const beginsLine = (view) => {
  const { main } = view.state.selection;
  const line = view.state.doc.lineAt(main.head);
  return !main.empty || line.text.slice(0, main.head - line.from).trim() === "";
};

// What people without a keyboard need; each is a command of the notebook.
const BUTTONS = [
  ["edit", "✎", "Edit"],
  ["move-up", "↑", "Move up"],
  ["move-down", "↓", "Move down"],
  ["kind", "", ""],
  ["delete", "✕", "Delete"],
];

export class Cell {
  /** "idle", "waiting" or "running". */
  state = "idle";
  #text;
  #help;
  #outputs;

  /**
   * @param notebook - what the keys do: `key(name, cell)`, and `complete(code, position)`,
   * `help(code, position)`
   */
  constructor(
    notebook,
    {
      id = crypto.randomUUID().slice(0, 8),
      type = "code",
      source = "",
      outputs = [],
      count = null,
      metadata = {},
      kept = {},
    } = {},
  ) {
    this.notebook = notebook;
    Object.assign(this, { id, type, count, metadata, kept });
    this.element = document.createElement("section");
    this.element.className = "cell";
    this.element.tabIndex = -1;
    this.element.innerHTML = `
      <div class="side"><button type="button" class="run" title="Run this cell (Ctrl+Enter)">▶</button>
      <span class="count"></span></div>
      <div class="main"><div class="acts" role="group" aria-label="This cell"></div>
      <div class="source"></div><div class="text" hidden></div>
      <div class="help" role="status" tabindex="0" hidden></div></div>
      <div class="outputs" role="group" aria-label="Output"></div>`;
    const find = (name) => this.element.querySelector(name);
    [this.run, this.gutter] = [find(".run"), find(".count")];
    [this.place, this.#text] = [find(".source"), find(".text")];
    this.#outputs = new Outputs(find(".outputs"), outputs);
    this.run.addEventListener("click", () => notebook.key("run", this));
    this.#help = find(".help");
    for (const [name, sign, title] of BUTTONS) {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      Object.assign(button, { textContent: sign, title, className: name });
      button.addEventListener("click", () => notebook.key(name, this));
      find(".acts").append(button);
    }
    const kind = type === "code" ? ["Text", "Make it text"] : ["Code", "Make it code"];
    Object.assign(find(".kind"), { textContent: kind[0], title: kind[1] });
    find(".edit").hidden = type === "code";
    this.#text.addEventListener("dblclick", () => this.edit());
    this.editor = new EditorView({
      parent: this.place,
      state: EditorState.create({ doc: source, extensions: this.#extensions() }),
    });
    if (type === "markdown" && source) this.render();
    this.#show();
  }

  get outputs() {
    return this.#outputs.list;
  }

  get source() {
    return this.editor.state.doc.toString();
  }

  /** Puts the cursor into the editor; of Markdown the source is shown for it. */
  edit() {
    this.place.hidden = false;
    this.#text.hidden = true;
    this.editor.focus();
  }

  /** Shows Markdown as it is meant. */
  render() {
    this.#text.replaceChildren(markdown(this.source.trim() || "*Empty text: Enter edits it.*"));
    this.#text.hidden = false;
    this.place.hidden = true;
  }

  /** Says what is known of the name at the cursor; nothing: no longer. */
  async help(position) {
    const text = position && (await this.notebook.help(this.source, position));
    this.#help.hidden = position === undefined;
    this.#help.textContent =
      text === null ? "Python is busy: help comes when it is ready." : text || "No help on this.";
  }

  clear() {
    this.#outputs.clear();
    this.count = null;
    this.#show();
  }

  become(state) {
    this.state = state;
    this.#show();
    if (state === "idle") this.#outputs.end();
  }

  /** Takes it off the page. */
  remove() {
    this.#outputs.close();
    this.element.remove();
    this.editor.destroy();
  }

  /** One message of the kernel while the cell runs. */
  hear(message) {
    this.#outputs.hear(message, this.count);
    if (message.type !== "start") return;
    this.count = message.count;
    this.become("running");
  }

  /** What was shown with a display id is something else now. */
  update(message) {
    this.#outputs.update(message);
  }

  /** Says where in the notebook it is. */
  number(index, total) {
    const kind = this.type === "code" ? "code" : "text";
    const state = this.state === "idle" ? "" : `, ${this.state}`;
    this.element.setAttribute("aria-label", `Cell ${index + 1} of ${total}, ${kind}${state}`);
    this.run.setAttribute("aria-label", `Run cell ${index + 1}`);
    this.editor.contentDOM.setAttribute("aria-label", `Source of cell ${index + 1}`);
  }

  #show() {
    this.element.dataset.type = this.type;
    this.element.dataset.state = this.state;
    const sign = { idle: this.count ?? " ", waiting: "…", running: "*" }[this.state];
    this.gutter.textContent = this.type === "code" ? `[${sign}]` : "";
  }

  #extensions() {
    const key = (name) => () => {
      this.notebook.key(name, this);
      return true;
    };
    const keys = [
      { key: "Shift-Enter", run: key("run-next") },
      { key: "Mod-Enter", run: key("run") },
      { key: "Alt-Enter", run: key("run-insert") },
      { key: "Mod-s", run: key("save") },
      { key: "Shift-Tab", run: (view) => this.#askHelp(view) },
    ];
    const complete = (code, at) => (this.type === "code" ? this.notebook.complete(code, at) : []);
    return [
      keymap.of([{ key: "Escape", run: () => this.#closeHelp() || key("command")() }]),
      editing(keys, complete),
      EditorView.lineWrapping,
      EditorState.allowMultipleSelections.of(true),
      this.type === "code" ? python() : [],
      syntaxHighlighting(COLOURS),
      EditorView.updateListener.of(({ docChanged }) => {
        if (!docChanged) return;
        this.#closeHelp();
        this.notebook.key("changed", this);
      }),
    ];
  }

  /** Where a line begins Shift+Tab takes the indent back. */
  #askHelp(view) {
    if (this.type !== "code" || beginsLine(view)) return indentLess(view);
    this.help(view.state.selection.main.head);
    return true;
  }

  #closeHelp() {
    if (this.#help.hidden) return false;
    this.help();
    return true;
  }
}
