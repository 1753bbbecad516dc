// One block of Python on a page: a listing that can be edited, its buttons, and what it gave.

export class Block {
  /** Whether it has run in the Python that is there, as it stands. */
  ran = false;
  busy = false;
  /** Why it cannot run here, if it cannot. */
  problem = null;
  #element;
  #index;
  #page;
  #listing;
  #original;
  #editor = null;
  #outputs = null;
  #state;
  #buttons;

  constructor(element, index, page) {
    [this.#element, this.#index, this.#page] = [element, index, page];
    this.#listing = element.querySelector("pre");
    this.#original = this.#listing.textContent.replace(/\n$/, "");
    this.#state = element.querySelector(".state");
    const button = (name) => element.querySelector(`.${name}`);
    this.#buttons = { run: button("run"), edit: button("edit"), copy: button("copy") };
    const which = `block ${index + 1}`;
    button("open").setAttribute("aria-label", `Open in JupyterLite: ${which}`);
    for (const [name, each] of Object.entries(this.#buttons)) {
      each.setAttribute("aria-label", `${name[0].toUpperCase()}${name.slice(1)} ${which}`);
    }
    this.#listing.tabIndex = 0;
    this.#listing.setAttribute("aria-label", `Python, ${which}`);
  }

  /** Whether it uses a GPU, or what such a block made (_tools/blocks.py). */
  get needsGpu() {
    return "gpu" in this.#element.dataset;
  }

  get code() {
    return this.#editor ? this.#editor.state.doc.toString() : this.#original;
  }

  /** Turns the buttons on; `problem` is why it cannot run, `python` whether the site has Python. */
  open(problem, python) {
    this.#element.querySelector(".open").hidden = !python;
    const { run, edit, copy } = this.#buttons;
    copy.disabled = false;
    copy.addEventListener("click", () => this.#copy());
    this.problem = problem;
    if (problem) {
      run.hidden = edit.hidden = true;
      this.#state.textContent = problem;
      return;
    }
    run.disabled = edit.disabled = false;
    run.title = "Ctrl+Enter in the block";
    run.addEventListener("click", () => (this.busy ? this.#page.interrupt() : this.run()));
    edit.addEventListener("click", () => (this.#editor ? this.#reset() : this.edit()));
    this.#listing.addEventListener("dblclick", () => this.edit());
    this.#listing.addEventListener("keydown", (event) => this.#key(event));
  }

  run() {
    return this.#page.runTo(this.#index);
  }

  /** An editor takes the place of the listing. */
  async edit() {
    if (this.#editor) return this.#editor.focus();
    const { makeEditor } = await import("./editor.mjs");
    if (this.#editor) return;
    const place = document.createElement("div");
    place.className = "editor";
    this.#element.prepend(place);
    this.#editor = makeEditor(place, this.#original, `Python, block ${this.#index + 1}`, {
      run: () => this.run(),
      changed: () => this.#changed(),
      complete: (code, position) => this.#page.complete(code, position),
    });
    this.#element.dataset.edited = "";
    this.#label(this.#buttons.edit, "Reset");
    this.#editor.focus();
  }

  wait() {
    this.busy = true;
    this.#show("waiting", "Waiting for Python…");
  }

  /** How far Python is, where somebody waits for it: the page's bar may be out of sight. */
  tellLoading(text) {
    if (this.#element.dataset.state === "waiting") this.#state.textContent = text;
  }

  giveUp(why) {
    this.busy = false;
    this.#show("idle", why);
  }

  /** Python is another one: nothing has run in it. */
  forget() {
    this.ran = false;
    if (!this.busy) this.#show("idle", "");
  }

  update(message) {
    this.#outputs?.update(message);
  }

  /** Runs it in the kernel: true where it ended as it should. */
  async execute(kernel) {
    if (this.problem) return this.#import(kernel);
    const { Outputs } = await import("./outputs.mjs");
    const area = this.#element.querySelector(".outputs");
    this.#outputs ??= new Outputs(area);
    this.#outputs.clear();
    area.hidden = false;
    const code = this.code;
    let count;
    const outcome = await kernel.run(code, (message) => {
      if (message.type === "start") {
        count = message.count;
        this.#show("running", "Running…");
      }
      return this.#outputs.hear(message, count);
    });
    this.#outputs.show();
    area.hidden = this.#outputs.list.length === 0;
    const raises = "raises" in this.#element.dataset && !this.#editor;
    this.ran = code === this.code && outcome === (raises ? "error" : "ok");
    this.busy = false;
    const words = {
      ok: "Done.",
      error: raises ? "It raised, as it should." : "It raised.",
      stopped: "Stopped.",
    };
    this.#show(this.ran ? "done" : "failed", words[outcome]);
    return this.ran;
  }

  /** Blocks below may need what one that cannot run imports. */
  async #import(kernel) {
    const imports = this.code.match(/^(import|from) .+$/gm)?.join("\n") ?? "";
    this.busy = false;
    this.ran = (await kernel.run(imports, () => {})) === "ok";
    return this.ran;
  }

  #changed() {
    this.ran = false;
    if (!this.busy) this.#show("idle", "Changed: it has not run as it is.");
  }

  #reset() {
    this.#editor.destroy();
    this.#editor = null;
    this.#element.querySelector(".editor").remove();
    delete this.#element.dataset.edited;
    this.#label(this.#buttons.edit, "Edit");
    this.#changed();
    this.#show("idle", "");
    this.#listing.focus();
  }

  #key(event) {
    if (event.key !== "Enter" || event.altKey) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.shiftKey) this.run();
    else this.edit();
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.code);
      this.#state.textContent = "Copied.";
    } catch {
      this.#state.textContent = "The browser does not let this page copy: select the text.";
    }
  }

  #show(state, words) {
    if (this.problem) return;
    this.#element.dataset.state = state;
    this.#state.textContent = words;
    this.#label(this.#buttons.run, this.busy ? "Stop" : "Run");
  }

  #label(button, word) {
    button.textContent = word;
    button.setAttribute("aria-label", `${word} block ${this.#index + 1}`);
  }
}
