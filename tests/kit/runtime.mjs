// A Deno of its own for each implementation of WebGPU: what goes wrong in one, crashes included, is
// reported and leaves the others alone.
import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const MARK = "@answer ";
const LOG_LINES = 40;
const OPTIONS = ["--allow-all", "--no-prompt", "--no-lock", "--no-config", "--quiet"];
const file = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The modules that make a Deno one with this WebGPU. */
export const IMPLEMENTATIONS = {
  "wgpu-core": ["../runtimes/deno.mjs", "adapter.mjs"],
  Dawn: ["../runtimes/deno.mjs", "dawn.mjs", "adapter.mjs"],
};

export class Runtime {
  static #all = new Set();
  #child = null;
  #log = [];
  #answered = null;

  /** `entry`: the module that answers, a path on the site. */
  constructor(implementation, url, entry) {
    Object.assign(this, { implementation, url, entry });
  }

  get running() {
    return this.#child !== null;
  }

  #start() {
    const preloads = IMPLEMENTATIONS[this.implementation].map((path) => `--preload=${file(path)}`);
    const where = [`--location=${this.url}`, `${this.url}${this.entry}`];
    const args = ["run", ...OPTIONS, ...preloads, "--v8-flags=--expose-gc", ...where];
    const env = {
      ...process.env,
      DENO_WEBGPU_BACKEND: "vulkan", // or wgpu takes OpenGL, where Vulkan has no driver
      KIT_DAWN: new URL("../../../lib/dawn/index.js", import.meta.url).href,
    };
    const child = spawn(process.execPath, args, { env });
    this.#child = child;
    Runtime.#all.add(this);
    this.#log = [];
    const tell = (answer) => {
      if (this.#child === child) this.#answered?.(answer);
    };
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        if (line.startsWith(MARK)) tell(JSON.parse(line.slice(MARK.length)));
        else if (line.trim()) this.#log = [...this.#log, line].slice(-LOG_LINES);
      });
    }
    child.stdin.on("error", () => {}); // it ended: reported below
    child.on("close", (status, signal) => tell({ ended: signal ?? `status ${status}` }));
  }

  /**
   * Calls a function of the process, which the first call starts, in at most so many seconds.
   *
   * @throws Error if the process ended or did not answer; the next call starts it again
   */
  async call(seconds, name, ...args) {
    if (!this.#child) this.#start();
    let timer;
    const answer = await new Promise((resolve) => {
      this.#answered = resolve;
      timer = setTimeout(resolve, seconds * 1000, { ended: `nothing for ${seconds} s` });
      this.#child.stdin.write(`${JSON.stringify({ name, args })}\n`);
    });
    clearTimeout(timer);
    this.#answered = null;
    if ("problem" in answer) throw new Error(answer.problem);
    if ("result" in answer) return answer.result;
    const log = this.#log.join("\n");
    this.stop();
    throw new Error(`${this.implementation} gave no answer (${answer.ended})\n${log}`);
  }

  stop() {
    this.#child?.kill("SIGKILL");
    this.#child = null;
    Runtime.#all.delete(this);
  }

  static stopAll() {
    for (const runtime of Runtime.#all) runtime.stop();
  }
}
