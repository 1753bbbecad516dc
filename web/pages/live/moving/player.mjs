// Keeps frames coming: in JavaScript until Python is there, then in Python; when the source
// changes, ends or fails; when the GPU is lost.
import * as library from "../js/index.js";
import { readProgram, runFirst } from "./first.mjs";

const { webgpu } = library;
const QUICK_MS = 1000;
const TRIES = 5; // without a frame in between
// While Python loads, frames that take long, as on a GPU of software, leave it most of the time.
const LONG_MS = 33;
const LOADING_MS = 400; // between two of them

const waited = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Player {
  device = null;
  python = null;
  #show = null;
  #program = "";
  #good = "";
  #from = null;
  #stop = () => {};
  #stopped = false; // before Python said how
  #changed = () => {};
  #edited = () => {};
  #gate = null;
  #busy = null;
  #frames = 0;
  #lost = ""; // what is said of the GPU's loss, until there is another program
  #page;

  /** @param page - `{ canvas, sliders, shown, took, broken, say, problem, ended }` */
  constructor(page) {
    this.#page = page;
  }

  /** What run.py calls. */
  get forPython() {
    const { sliders, shown, took, broken } = this.#page;
    return {
      value: (name) => sliders.value(name),
      slider: (name, low, high, start) => sliders.add(name, low, high, start),
      running: (stop) => {
        const kept = stop.copy();
        this.#stop = () => {
          this.#stop = () => {};
          kept();
          kept.destroy();
        };
        if (this.#stopped) this.#stop();
      },
      shown: (stats) => {
        const given = stats.toJs({ dict_converter: Object.fromEntries });
        this.#frames += 1;
        shown(given, true);
      },
      paused: () => this.paused,
      resumed: () => this.#wait(),
      took: (text) => {
        this.#good = text;
        took(text);
      },
      broken,
    };
  }

  get inPython() {
    return this.#show !== null;
  }

  /** Number of frames that were shown. */
  get shown() {
    return this.#frames;
  }

  get lost() {
    return this.#lost;
  }

  // --- pausing ---

  paused = false;
  /** True while Python loads. */
  loading = false;

  play() {
    this.paused = false;
    this.#from?.play();
    this.#gate?.();
  }

  pause() {
    this.paused = true;
    this.#from?.pause();
  }

  /** One frame more, where it is paused. */
  step() {
    this.#gate?.();
  }

  async #wait() {
    if (!this.paused) return;
    await new Promise((resolve) => {
      this.#gate = resolve;
    });
    this.#gate = null;
  }

  // --- what is played ---

  /** Another source; the one before is closed. */
  from(source) {
    this.#from?.close();
    this.#from = source;
    if (!this.paused) source.play();
    this.#again();
  }

  get source() {
    return this.#from;
  }

  /** Another program. */
  async program(text) {
    this.#program = text;
    this.#edited();
    this.#lost = "";
    const { sliders } = this.#page;
    if (this.#show === null) {
      this.#again();
      return;
    }
    sliders.begin();
    await this.#show.take(text);
    this.step();
  }

  /** Python is there, and takes over. */
  async usePython(python) {
    this.python = python;
    await this.#startShow();
    this.#again();
  }

  async #startShow() {
    this.#show?.close();
    this.#show = null;
    if (this.python === null) return;
    const show = this.python.show(this.device);
    const { sliders } = this.#page;
    let text;
    do {
      text = this.#program;
      const edited = new Promise((resolve) => {
        this.#edited = resolve;
      });
      sliders.begin();
      for (const each of new Set([text, this.#good || text])) {
        if (text === this.#program) await Promise.race([show.take(each), edited]);
      }
    } while (text !== this.#program);
    this.#show = show;
  }

  /** Nothing is played while `work` runs. */
  async meanwhile(work) {
    let done;
    this.#busy = new Promise((resolve) => {
      done = resolve;
    });
    this.#again();
    try {
      await this.#idle;
      return await work();
    } finally {
      this.#busy = null;
      done();
    }
  }

  #idle = Promise.resolve();

  #again() {
    this.#stop();
    this.#gate?.();
    this.#changed();
  }

  // --- playing ---

  /** Plays for ever. */
  async run() {
    let [tries, last] = [0, 0];
    for (;;) {
      await this.#busy;
      const before = this.#frames;
      try {
        this.device ??= await webgpu.requestDevice();
        let idle;
        this.#idle = new Promise((resolve) => {
          idle = resolve;
        });
        try {
          await this.#playOnce();
        } finally {
          idle();
        }
      } catch (error) {
        if (/^DeviceLostError/.test(error.type ?? error.name)) await this.#recover(error);
        else this.#failed(error);
      }
      // Retries are limited: what fails at once, again and again, is reported.
      const now = performance.now();
      tries = this.#frames > before || now - last > QUICK_MS ? 0 : tries + 1;
      last = now;
      if (tries > TRIES) {
        this.#page.problem("It cannot recover: reload the page.");
        return;
      }
    }
  }

  async #playOnce() {
    const { canvas } = this.#page;
    const from = this.#from;
    this.#stopped = false;
    this.#stop = () => {
      this.#stopped = true;
    };
    const changed = new Promise((resolve) => {
      this.#changed = resolve;
    });
    if (this.#show !== null) await this.#show.run(from.source, canvas);
    else if (!(await this.#playFirst(from))) await changed;
    if (this.#from === from && from.track?.readyState === "ended") this.#page.ended(from);
  }

  /** Without Python; false where the program needs it. */
  async #playFirst(from) {
    const { canvas, sliders, shown, took, broken } = this.#page;
    const text = this.#program;
    const program = readProgram(text);
    if (program === null) return false;
    sliders.begin();
    for (const { name, low, high, start } of program.sliders) sliders.add(name, low, high, start);
    sliders.end();
    const { device } = this;
    const frames = webgpu.frames(from.source, { device, dtype: "float32" });
    this.#stop = () => frames.stop();
    let first = true;
    try {
      await runFirst(program, library, {
        device,
        frames,
        canvas,
        value: (name) => sliders.value(name),
        shown: (stats) => {
          if (first) took(text);
          first = false;
          this.#frames += 1;
          shown(stats, false);
        },
        paused: async () => {
          if (this.loading && frames.stats.ms > LONG_MS) await waited(LOADING_MS);
          await this.#wait();
        },
      });
    } catch (error) {
      if (error.name !== "KernelError") throw error;
      const [above] = text.split(program.wgsl);
      broken(error.message, above.split("\n").length - 1 + error.line - 1);
      return false;
    }
    return true;
  }

  async #recover({ message }) {
    const { say } = this.#page;
    say("The GPU was lost; requesting it again…");
    this.device = await webgpu.requestDevice();
    await this.#startShow();
    const slow = this.#program === this.#good ? "" : " The last program may be the cause.";
    this.#lost = `The GPU was lost (${/\((.*?)\)/.exec(message)?.[1] ?? message}) and is back.${slow}`;
    say(this.#lost);
  }

  #failed(error) {
    const { problem, ended } = this.#page;
    if (this.#from.track || this.#from.source.tagName === "VIDEO") ended(this.#from, error.message);
    else problem(error.message);
  }
}
