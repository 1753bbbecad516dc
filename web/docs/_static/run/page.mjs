// The Python of a page: finds its blocks and, when one is first run, loads a kernel for all of
// them. Blocks run in their order: running one first runs those before it that have not run.
import { Block } from "./block.mjs";

const at = (path) => new URL(path, import.meta.url).href;
const PYTHON = at("../../../packages/pyodide.mjs");
const WORDS = {
  starting: "Python is loading…",
  idle: "Python is ready.",
  busy: "Python is busy.",
  interrupting: "Interrupting… Restart ends it now.",
  dead: "Python has stopped. Restart it, or run a block.",
};

/** Why a page's blocks cannot run here: { python, gpu }, each a sentence or null. */
async function problems(blocks) {
  const found = await fetch(PYTHON, { method: "HEAD" }).catch(() => null);
  const python = found?.ok
    ? null
    : "Python is not on this site: the blocks can be read and copied, and not run (`make lite` brings it).";
  if (python || !blocks.some(({ needsGpu }) => needsGpu)) return { python, gpu: null };
  const { webgpuProblem } = await import("../../../support.mjs");
  return { python, gpu: await webgpuProblem() };
}

class PagePython {
  kernel = null;
  #bar;
  #blocks;
  #say;
  #all;
  #restart;
  #loading = null;
  #pictures = null; // ./pictures.mjs, once there is a kernel
  #lack = null; // what this Python lacks
  #problem = null; // what went wrong outside of blocks, until the next one runs

  constructor(bar, elements) {
    this.#bar = bar;
    this.#say = bar.querySelector(".python-state");
    this.#all = bar.querySelector(".run-all");
    this.#restart = bar.querySelector(".restart");
    this.#blocks = elements.map((element, i) => new Block(element, i, this));
    this.#all.addEventListener("click", () => this.runTo(this.#blocks.length - 1, true));
    this.#restart.addEventListener("click", () => this.restart());
  }

  /** Turns the buttons on, or says in their place what is missing. */
  async open() {
    const { python, gpu } = await problems(this.#blocks);
    this.#bar.dataset.state = python ? "missing" : "off";
    if (python ?? gpu) this.#tell(python ?? gpu);
    const without = gpu && `It cannot run here without WebGPU. ${gpu}`;
    for (const block of this.#blocks) {
      const missing = python ? "It cannot run here: Python is not on this site." : null;
      block.open(missing ?? (block.needsGpu ? without : null), !python);
    }
    this.#all.disabled = this.#blocks.every(({ problem }) => problem);
    document.documentElement.dataset.blocks = "open";
  }

  /** Runs a block, after those before it that have not run; `anew`: those that have, too. */
  async runTo(last, anew = false) {
    const blocks = this.#blocks.slice(0, last + 1);
    const due = blocks.filter((block, i) => anew || i === last || !block.ran);
    if (due.some(({ busy }) => busy)) {
      if (!blocks[last].busy)
        blocks[last].giveUp("A block above it is running: try again when it has ended.");
      return false;
    }
    for (const block of due) block.wait();
    if (!(await this.#start())) {
      for (const block of due) block.giveUp("Python did not start.");
      return false;
    }
    for (const [i, block] of due.entries()) {
      if (await block.execute(this.kernel)) continue;
      for (const later of due.slice(i + 1)) later.giveUp("A block above it failed or was stopped.");
      return false;
    }
    return true;
  }

  interrupt() {
    this.kernel?.interrupt();
  }

  complete(code, position) {
    return this.kernel ? this.kernel.complete(code, position) : [];
  }

  async restart() {
    for (const block of this.#blocks) block.forget();
    if (!this.kernel) return this.#start();
    this.#pictures.endAll();
    this.kernel.restart();
    return true;
  }

  /** Python, when it is there: true; a kernel that ended is started again. */
  #start() {
    if (this.kernel && this.kernel.state !== "dead") return Promise.resolve(true);
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #load() {
    this.#tell(WORDS.starting);
    try {
      const [{ Kernel }, pictures] = await Promise.all([
        import("./kernel.mjs"),
        import("./pictures.mjs"),
        import("./outputs.mjs"),
      ]);
      this.#pictures = pictures;
      this.kernel ??= new Kernel();
      this.kernel.listen((message) => this.#hear(message));
      this.kernel.restart();
      return true;
    } catch (error) {
      this.#bar.dataset.state = "dead";
      this.#tell(`Python did not start: ${error.message}`);
      return false;
    }
  }

  #hear(message) {
    switch (message.type) {
      case "state":
        this.#bar.dataset.state = message.state;
        this.#restart.disabled = false;
        if (message.state === "starting") this.#lack = null;
        if (["starting", "busy"].includes(message.state)) this.#problem = null;
        this.#tell(
          this.#problem || (message.state === "idle" && this.#lack) || WORDS[message.state],
        );
        if (message.state === "dead") for (const block of this.#blocks) block.forget();
        break;
      case "progress":
        this.#bar.style.setProperty("--part", `${100 * message.part}%`);
        this.#tell(message.text);
        for (const block of this.#blocks) block.tellLoading(message.text);
        break;
      case "note":
        if (/^Loading/.test(message.text)) this.#tell(message.text);
        break;
      case "ready":
        this.#lack = message.problem;
        break;
      case "update":
        for (const block of this.#blocks) block.update(message);
        break;
      case "picture": // before the output that shows it: nothing is awaited here
        this.#pictures.keepPicture(message);
        break;
      case "failed":
        this.#report(`Python did not start: ${message.message}`);
        break;
      case "quit":
        this.#report("quit() has ended Python: press Restart.");
        break;
      case "problem":
        this.#report(message.message);
    }
  }

  #report(problem) {
    this.#problem = problem;
    this.#tell(problem);
  }

  #tell(text) {
    this.#say.textContent = text;
  }
}

const bar = document.querySelector(".python-bar");
if (bar) {
  globalThis.__python = new PagePython(bar, Array.from(document.querySelectorAll(".block"))); // tests look at it
  globalThis.__python.open();
}
