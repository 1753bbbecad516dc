// What there should be: elements that views share, who holds them, what is wrong with them. An entry
// pairs a thing of the library (a tensor of either language, an exchange, an array of NumPy) with the
// positions of its elements in a store.
import { bytesIn, bytesOf, encode } from "./elements.mjs";
import * as watch from "./watch.mjs";

/** A problem that the model found, as opposed to one of its own. */
export class Found extends Error {}

export function found(condition, problem) {
  if (!condition) throw new Found(typeof problem === "function" ? problem() : problem);
}

const plain = (value) =>
  JSON.stringify(value, (_, v) => {
    if (typeof v === "bigint") return `${v}n`;
    return ArrayBuffer.isView(v) ? Array.from(v) : v;
  });

const NONE = new Set();

/** Memory that tensors share. */
export class Store {
  holds = 0;
  /** Whether the array behind it went to another thread. */
  gone = false;
  /** Whether the bytes behind its elements on a GPU may be others than 0. */
  padding = { dirty: false };
  under = null;
  /** Where its elements begin in a buffer that somebody else made. */
  byteOffset = 0;
  /** What is called when nothing holds it any more: how often it was. */
  released = null;

  /** @param place - "js", "memory", "heap" (Python's), or a device of the world */
  constructor(dtype, values, place) {
    Object.assign(this, { dtype, values: [...values], place });
    /** Labels of bad kernels for each byte, one of which each reader gets. */
    this.faults = new Array(bytesOf(dtype, values.length)).fill(NONE);
  }

  get device() {
    return typeof this.place === "object" ? this.place : null;
  }

  /** The same memory, counted once more; `under`: the store that it holds. */
  again(under = null) {
    return Object.assign(Object.create(this), { holds: 0, released: null, under });
  }
}

const range = (start, end) => Array.from({ length: end - start }, (_, i) => start + i);

/** A way to look at a store: `index[i]` is where element `i`, in row-major order, is. */
export class View {
  constructor(store, shape, index) {
    Object.assign(this, { store, shape, index });
  }

  static whole(store, shape) {
    return new View(store, shape, [...store.values.keys()]);
  }

  get size() {
    return this.index.length;
  }

  get values() {
    return this.index.map((at) => this.store.values[at]);
  }

  get bytes() {
    return encode(this.store.dtype, this.values);
  }

  get nbytes() {
    return bytesOf(this.store.dtype, this.size);
  }

  /** Whether elements lie one after the other, in order. */
  get rowMajor() {
    return this.index.every((at, i) => at === this.index[0] + i);
  }

  /** Position of element 0, in bytes of the store. */
  get start() {
    return this.size === 0 ? 0 : bytesOf(this.store.dtype, 2 * this.index[0]) / 2;
  }

  /** Whether it begins and ends between words, or ends where its store does. */
  get inWords() {
    const { store, start, size } = this;
    const exact = bytesOf(store.dtype, 2 * size) / 2;
    const last = size > 0 && this.index[size - 1] === store.values.length - 1;
    return start % 4 === 0 && (exact % 4 === 0 || last);
  }

  set(values) {
    this.index.forEach((at, i) => {
      this.store.values[at] = values[i];
    });
  }

  /** What is wrong with its elements: a read throws one of these. */
  get faults() {
    return this.#faultsOf(this.index);
  }

  /** The same of all from its lowest to its highest element, which a read may throw. */
  get faultsAround() {
    const low = Math.min(...this.index);
    const { length } = this.index;
    return this.#faultsOf(length === 0 ? [] : range(low, Math.max(...this.index) + 1));
  }

  set faults(labels) {
    for (const byte of this.#bytesOf(this.index)) this.store.faults[byte] = labels;
  }

  #faultsOf(index) {
    const { faults } = this.store;
    return new Set(this.#bytesOf(index).flatMap((byte) => [...faults[byte]]));
  }

  #bytesOf(index) {
    const { dtype } = this.store;
    const from = (at) => bytesOf(dtype, 2 * at) / 2;
    return index.flatMap((at) => range(Math.floor(from(at)), Math.ceil(from(at + 1))));
  }

  /** Whether elements lie so that steps along axes lead to them. */
  fits(shape) {
    let step = 1;
    const strides = shape.map(() => 0);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      if (shape[axis] > 1) strides[axis] = this.index[step] - this.index[0];
      step *= shape[axis];
    }
    return this.index.every((at, i) => {
      let rest = i;
      let expected = this.index[0];
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        expected += (rest % shape[axis]) * strides[axis];
        rest = Math.floor(rest / shape[axis]);
      }
      return at === expected;
    });
  }

  toString() {
    return `${this.store.dtype}[${this.shape}]`;
  }
}

/** What another copy of the library holds of an array by an exchange. */
export const lentBy = (storage) => ({ holds: 0, lent: true, isExchange: true, under: storage });

/** Facts of what shares memory with an entry, in the other language or another library. */
export const shared = ({ storage }) => (storage?.isExchange ? { storage } : {});

/** A hold more on an array or a store; the first on what another copy lent is one on that, too. */
function take(held) {
  if (held && held.holds++ === 0) take(held.under);
}

function give(storage) {
  if (storage && --storage.holds === 0) give(storage.under);
}

/** A storage or a store, and all that it holds. */
function chainOf(held) {
  return held ? [held, ...chainOf(held.under)] : [];
}

/** A thing of the library that holds a store. */
class Entry {
  /** Holds on the array behind it, which its views share; for those over arrays of JavaScript. */
  storage = null;
  /** The copy of the library that a tensor of JavaScript belongs to. */
  copy = null;
  readOnly = false;
  pending = 0;

  /** @param kind - "js", "py", "np" (an array of NumPy), "lent" (an exchange), "nd" (an ndarray) */
  constructor(kind, it, view) {
    Object.assign(this, { kind, it, view });
  }

  get store() {
    return this.view.store;
  }
}

/** All that there is, in one sequence. */
export class World {
  entries = [];
  reads = [];
  devices = [];
  /** Bad kernels of JavaScript by label: whether a reader was told; undefined: their device is lost. */
  bad = new Map();
  /** Their devices. */
  badOn = new Map();
  /** How many buffers could not be made: their devices report these errors. */
  spoilt = 0;
  /** How many errors of a fake library's `release` the console has to tell. */
  complaints = 0;
  dropped = [];

  constructor(context, python, send) {
    Object.assign(this, { context, python, send });
    [this.copy] = context.copies;
    this.labels = context.labels;
    this.bridge = context.bridge;
  }

  /** That of the copy which this step uses. */
  get library() {
    return this.copy.library;
  }

  get exchange() {
    return this.copy.exchange;
  }

  /** Errors, for `attempt`, where a tensor passes to another copy: a fault that is known already is thrown. */
  passing(entry, copy = this.copy) {
    const [isPassed, lost] = [entry.copy !== copy, entry.store.device?.lost];
    return {
      must: isPassed && lost ? ["DeviceLostError"] : [],
      may: isPassed && entry.view.faultsAround.size > 0 ? ["KernelError"] : [],
    };
  }

  async addDevice() {
    const gpu = await this.library.webgpu.requestDevice();
    watch.listen(gpu);
    const empty = this.bridge.empty([0], "int8", { device: gpu });
    this.devices.push({ gpu, id: empty.device.id, lost: false });
    empty.release();
  }

  /** One of the entries for which `fits` holds; undefined: there is none. */
  pick(r, fits = () => true) {
    const list = this.entries.filter((entry) => fits(entry));
    return list.length > 0 ? r.of(list) : undefined;
  }

  add(kind, it, view, facts = {}) {
    const entry = Object.assign(new Entry(kind, it, view), facts);
    entry.copy = this.context.copies.find(({ library }) => it instanceof library.Tensor) ?? null;
    take(entry.storage);
    take(entry.store);
    this.entries.push(entry);
    return entry;
  }

  /** The hold of an entry is gone. */
  drop(entry) {
    this.entries.splice(this.entries.indexOf(entry), 1);
    give(entry.storage);
    this.unhold(entry.store);
  }

  unhold(store) {
    if (--store.holds > 0) return;
    if (store.released) this.dropped.push(store);
    if (store.under) this.unhold(store.under);
  }

  /**
   * What an action gives; undefined where it threw as it may or must.
   *
   * @param must - names of errors of which it must throw one
   * @param may - names of errors that it may throw
   */
  async attempt(what, action, { must = [], may = [] } = {}) {
    let value;
    try {
      value = await action();
    } catch (error) {
      const name = error.name;
      const right = (must.length > 0 ? must : may).includes(name);
      found(right, () => `${what}: ${name}: ${error.message}${right ? "" : `\n${error.stack}`}`);
      return undefined;
    }
    found(must.length === 0, () => `${what}: no ${must.join(" or ")}`);
    return { value };
  }

  /** The same for a call of library.py. */
  async inPython(name, args, options = {}, errors = {}) {
    return this.attempt(
      `Python ${name}(${plain(options)})`,
      () => this.callPython(name, args, options),
      errors,
    );
  }

  async callPython(name, args, options = {}) {
    const later = name === "read_later";
    const run = later ? this.python.run_later : this.python.run;
    return fromPython(await run(name, JSON.stringify(options), ...args));
  }

  /** Begins a read; `settle` says what comes of it. */
  read(entry, promise, what = "read") {
    const { view } = entry;
    const { store } = view;
    store.holds++;
    const read = { store, what: `${what} of ${view}`, bytes: view.bytes };
    Object.assign(read, { must: view.faults, may: view.faultsAround });
    read.settled = Promise.resolve(promise).then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
    this.reads.push(read);
  }

  /** A reader was told of that kernel. */
  tell(label) {
    if (this.bad.get(label) === false) this.bad.set(label, true);
  }

  /** The same action; a kernel's error that it throws has told its reader. */
  telling(action) {
    return async () => {
      try {
        return await action();
      } catch (error) {
        this.tell(error.label);
        throw error;
      }
    };
  }

  /** Waits for all that was begun. */
  async settle() {
    for (const { settled, store, what, bytes, must, may } of this.reads.splice(0)) {
      const { value, error } = await watch.settled(settled, what);
      this.unhold(store);
      const lost = store.device?.lost;
      if (error) {
        const { name, label } = error;
        if (lost && name === "DeviceLostError") continue;
        const right = name === "KernelError" && may.has(label);
        found(right, () => `${what}: ${error.stack}`);
        this.tell(label);
        continue;
      }
      found(must.size === 0 || lost, () => `${what}: no error of ${[...must]}`);
      same(bytesIn(value), bytes, what);
    }
  }

  /** Compares all that there is with what there should be. */
  async check() {
    await this.settle();
    for (const entry of this.entries) {
      const { kind, it, view, store } = entry;
      if (store.gone && view.nbytes > 0) continue;
      found(plainShape(it, kind) === `${view.shape}`, () => `shape ${it.shape}, not ${view.shape}`);
      if (store.device?.lost) continue;
      if (store.device && kind === "lent") continue; // what it is told of is the buffer
      if (store.device) this.read(entry, this.readGPU(entry), "check");
      else same(await this.readCPU(entry), view.bytes, `${kind} ${view} in ${store.place}`);
    }
    await this.settle();
    this.count();
  }

  readGPU({ kind, it }) {
    return kind === "js" ? it.read() : this.callPython("read_later", [it]);
  }

  async readCPU({ kind, it, view, unaligned }) {
    switch (kind) {
      case "js": {
        const read = await it.read();
        if (view.store.dtype !== "uint4" && view.size > 0 && !unaligned) {
          const last = it.at(...view.shape.map(() => -1));
          const number = Array.isArray(last) ? last[0] : Number(last);
          found(number === view.values.at(-1), () => `at(-1, …) of ${view} is ${last}`);
        }
        return bytesIn(read);
      }
      case "py":
        return bytesIn(await this.callPython("read", [it]));
      case "np": {
        const held = this.bridge.tensor(it);
        try {
          return bytesIn(await held.read());
        } finally {
          held.release();
        }
      }
      case "lent": {
        const held = this.library.Tensor.from({ [EXCHANGE]: () => ({ ...it, release() {} }) });
        try {
          return bytesIn(await held.read());
        } finally {
          held.release();
        }
      }
      case "nd": {
        const held = this.context.ndarray.fromNdarray(null, it, { dtype: view.store.dtype });
        try {
          return bytesIn(await held.read());
        } finally {
          held.release();
        }
      }
    }
  }

  /** Compares counts, when nothing is under way. */
  count() {
    this.python.run("live", "{}"); // collects what errors of Python's keep
    const { webgpu, liveTensors } = this.library;
    const stats = webgpu.stats();
    const stores = new Set(this.entries.flatMap(({ store }) => chainOf(store)));
    for (const device of this.devices) {
      const expected = [...stores].filter((store) => store.device === device).length;
      const { buffers } = stats[device.id];
      found(buffers === expected, () => `${buffers} buffers under tensors, not ${expected}`);
    }
    const held = new Set(this.entries.flatMap(({ storage }) => chainOf(storage)));
    const exchanges = [...held].filter(({ isExchange }) => isExchange).length;
    const ofJS = this.entries.filter(({ kind }) => kind !== "py" && kind !== "np").length;
    const expected = ofJS + exchanges;
    const live = liveTensors() - this.context.tensorsBefore;
    found(live === expected, () => `liveTensors() is ${live}, not ${expected}`);
    for (const store of this.dropped.splice(0)) {
      found(store.released.times === 1, () => `release of ${store.place}: ${store.released.times}`);
    }
    for (const { store } of this.entries) {
      found(!store.released?.times, () => `release of ${store.place} came too early`);
    }
  }

  /** Lets all go, and looks for what is left. */
  async end(r) {
    while (this.entries.length > 0) this.let(r.of(this.entries), r.below(2));
    await this.settle();
    this.count();
    const { console, uncaptured, unhandled } = await this.#heard();
    found(unhandled.length === 0, () => `rejected unheard: ${unhandled}`);
    const untold = uncaptured.filter(
      (text) => !(this.spoilt > 0 && /CreateBuffer|Invalid Buffer/.test(text)),
    );
    found(untold.length === 0, () => `told to a device: ${untold}`);
    this.#checkConsole(console);
    const live = this.python.run("live", "{}");
    found(live === this.context.liveBefore, () => `dlw.live_tensors() is ${live} at the end`);
  }

  /** What was told, once the GPU has said all that it has to say. */
  async #heard() {
    const all = { console: [], uncaptured: [], unhandled: [] };
    const untold = () => {
      const labels = all.console.map(({ label }) => label);
      return [...this.bad].some(([label, reader]) => reader === false && !labels.includes(label));
    };
    for (let round = 0; round < 2 || (round < 100 && untold()); round++) {
      const live = this.devices.filter(({ lost }) => !lost);
      await Promise.all(live.map(({ gpu }) => gpu.queue.onSubmittedWorkDone()));
      await watch.turn();
      watch.elapse(1000); // what no reader was told is told now
      for (const [name, list] of Object.entries(watch.heard())) all[name].push(...list);
    }
    return all;
  }

  #checkConsole(errors) {
    const told = new Map();
    for (const error of errors) {
      if (/^the fake library/.test(error?.message)) this.complaints--;
      else if (error?.name === "KernelError")
        told.set(error.label, 1 + (told.get(error.label) ?? 0));
      else throw new Found(`told the console: ${error?.stack ?? error}`);
    }
    found(this.complaints === 0, () => `${this.complaints} errors of release() were not told`);
    for (const [label, reader] of this.bad) {
      const times = told.get(label) ?? 0;
      const right = reader === undefined ? times <= 1 : times === (reader ? 0 : 1);
      found(right, () => `${label} was told ${times} times, reader: ${reader}`);
      told.delete(label);
    }
    // What was lost with a device may be told much later.
    const strange = [...told.keys()].filter((label) => !(Number(label.slice(4)) <= this.labels));
    found(strange.length === 0, () => `told of nothing: ${strange}`);
  }

  /** Ends the hold of an entry, in one way or the other. */
  let(entry, way) {
    const { kind, it } = entry;
    if (kind === "js") it.release();
    if (kind === "lent") {
      it.release();
      if (way) it.release(); // sloppy
    }
    if (kind === "nd") it.data = null;
    if (kind === "py" && way) fromPython(this.python.run("release", "{}", it));
    if (kind === "py" || kind === "np") it.destroy();
    this.drop(entry);
  }
}

export const EXCHANGE = Symbol.for("dlpack.exchange");

function plainShape(it, kind) {
  if (kind !== "py" && kind !== "np") return `${it.shape}`;
  const shape = it.shape;
  try {
    return `${shape.toJs()}`;
  } finally {
    shape.destroy();
  }
}

export function same(bytes, expected, what) {
  const right = bytes.length === expected.length && bytes.every((byte, i) => byte === expected[i]);
  found(right, () => `${what}: bytes ${bytes.slice(0, 64)}, not ${expected.slice(0, 64)}`);
}

/** A result of library.py, whose errors are thrown by their names. */
export function fromPython(result) {
  if (typeof result !== "string" || !result.startsWith("!")) return result;
  const [name, label, ...message] = result.slice(1).split("|");
  throw Object.assign(new Error(message.join("|")), { name, label });
}
