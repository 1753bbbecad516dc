// The kernel as the page sees it: a worker that runs one block after the other.

/**
 * Calls the listener, `on(message)`, with what the worker tells outside of blocks: progress, note (of a package that
 * is loaded), ready, failed (to start), problem (an error that no block raised); and with
 * { type: "state", state } - "starting", "idle", "busy", "interrupting" or "dead"; and with update
 * (of an output that some block has) and picture (which one of them is about to show).
 */
export class Kernel {
  state = "dead";
  /** Whether running Python can be interrupted, and not only Python that awaits. */
  canSignal = globalThis.crossOriginIsolated === true;
  #on;
  #worker = null;
  #signals = null;
  #queue = []; // { code, tell, resolve }; the first one is running
  #asked = new Map(); // what was asked for while nothing runs
  #last = null; // tells the block that ran last: what callbacks say later is below it
  #missed = []; // what it told before somebody listened

  constructor() {
    this.#on = (message) => this.#missed.push(message);
  }

  /** Sets the listener: it gets the messages from now on, and those of before. */
  listen(on) {
    this.#on = on;
    for (const message of this.#missed.splice(0)) on(message);
  }

  /** Ends the worker with all it has, GPU memory too, and starts another one. */
  restart() {
    this.#worker?.terminate();
    this.#stop();
    this.#last = null;
    this.#signals = this.canSignal ? new Int32Array(new SharedArrayBuffer(8)) : null;
    this.#worker = new Worker(new URL("./worker.eval.mjs", import.meta.url), { type: "module" });
    const signals = this.#signals;
    let posted = 0;
    let waits = false;
    const goOn = () => {
      waits = false;
      Atomics.store(signals, 1, posted);
      Atomics.notify(signals, 1);
    };
    this.#worker.onmessage = ({ data }) => {
      const shown = this.#hear(data);
      if (!signals || data.posted === undefined) return;
      posted = data.posted;
      if (!waits) Promise.resolve(shown).then(goOn);
      waits = true;
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      const message = event.message ?? "the worker did not load";
      // Later ones are of callbacks, after which Python goes on.
      if (this.state === "starting") this.#fail(message);
      else this.#on({ type: "problem", message });
    };
    this.#become("starting");
    this.#worker.postMessage({ type: "start", signals: this.#signals });
  }

  /**
   * Runs code after all that was given before. `tell(message)` gets the outputs, and may return a
   * promise that ends when the page can show more; resolves to "ok", "error", or "stopped" where it
   * was not run to its end. After an error the others are not run.
   */
  run(code, tell) {
    return new Promise((resolve) => {
      this.#queue.push({ code, tell, resolve });
      if (this.#queue.length === 1) this.#next();
    });
  }

  /** Ends the block that runs, and does not start those that wait. */
  interrupt() {
    const running = this.state === "busy";
    this.#stop(running ? 1 : 0);
    if (!running) return;
    if (this.#signals) Atomics.store(this.#signals, 0, 2);
    this.#worker.postMessage({ type: "interrupt" });
    this.#on({ type: "state", state: "interrupting" });
  }

  /** What may stand at a position: [{ text, start, type }]; nothing while a block runs. */
  async complete(code, position) {
    return (await this.#ask("complete", { code, position })) ?? [];
  }

  #ask(type, question) {
    if (this.state !== "idle") return Promise.resolve(null);
    const id = crypto.randomUUID();
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.#worker.postMessage({ type, id, ...question });
    });
  }

  #next() {
    const [first] = this.#queue;
    if (first === undefined || !["idle", "busy"].includes(this.state)) return;
    this.#last = first.tell;
    this.#become("busy");
    this.#worker.postMessage({ type: "execute", code: first.code });
  }

  #done(outcome) {
    const [first] = this.#queue.splice(0, 1);
    first?.resolve(outcome);
    if (outcome !== "ok") this.#stop();
    this.#become("idle");
    this.#next();
  }

  /** Gives up the blocks that wait, from the `first` on. */
  #stop(first = 0) {
    for (const { resolve } of this.#queue.splice(first)) resolve("stopped");
    for (const resolve of this.#asked.values()) resolve(null);
    this.#asked.clear();
  }

  #hear(message) {
    switch (message.type) {
      case "progress":
      case "note":
      case "update":
      case "picture":
        return this.#on(message);
      case "quit":
        this.#on(message);
        return this.#end();
      case "ready":
        this.#on(message);
        this.#become("idle");
        return this.#next();
      case "answer":
        this.#asked.get(message.id)?.(message.answer);
        return this.#asked.delete(message.id);
      case "done":
        return this.#done(message.ok ? "ok" : "error");
      case "failed":
        if (message.during === "start") return this.#fail(message.message);
        if (message.during === "execute") {
          this.#queue[0]?.tell({ type: "stream", name: "stderr", text: `${message.message}\n` });
          return this.#done("error");
        }
        this.#asked.get(message.id)?.(null);
        return this.#asked.delete(message.id);
      default:
        return (this.#queue[0]?.tell ?? this.#last)?.(message); // outputs
    }
  }

  #fail(message) {
    this.#on({ type: "failed", message });
    this.#end();
  }

  #end() {
    this.#worker.terminate();
    this.#stop();
    this.#become("dead");
  }

  #become(state) {
    this.state = state;
    this.#on({ type: "state", state });
  }
}
