// Plays the steps of rules/*.txt in JavaScript; player.py does the same in Python, and explains them.
import { dtypeNamed } from "../../../../js/dist/core/dtype.js";
import { liveTensors, Tensor } from "../../../../js/dist/index.js";
import { decode, encode } from "../../js/dist/wire/frame.js";
import { joined, Wire } from "../../js/dist/wire/index.js";

const KINDS = {
  UnsupportedError: "data",
  DLPackError: "data",
  TypeError: "type",
  RangeError: "value",
  ListenerError: "of the listener",
};
const FRAME =
  /^(?:(\D\S*) )?(\d+)\.(\d+)(?: (\d+)-(\d+))?(?: of (\d+)-(\d+))?(?: (\w+)\[([\d,]*)\])?(?: (.*))?$/;
const VIEWS = { uint8: Uint8Array, uint16: Uint16Array, float64: Float64Array };

class ListenerError extends Error {
  name = "ListenerError";
}

const integers = (text) => text.split(",").filter(Boolean).map(Number);
const sizeOf = (shape) => shape.reduce((size, extent) => size * extent, 1);
const pattern = (version, begin, end) =>
  Uint8Array.from({ length: end - begin }, (_, i) => version + 31 * (begin + i));

/** Which version wrote each byte: `: 1*4 2*8`. */
function versions(bytes, begin) {
  const runs = [];
  bytes.forEach((byte, i) => {
    const version = (byte - 31 * (begin + i)) & 255;
    if (runs.at(-1)?.[0] === version) runs.at(-1)[1]++;
    else runs.push([version, 1]);
  });
  return runs.length > 0 ? `: ${runs.map((run) => run.join("*")).join(" ")}` : "";
}

function told(frame) {
  const { op, id, version, first, last } = frame;
  if (op === "hello") {
    const { window, piece } = frame;
    const isUsual = window === 2 << 20 && piece === 1 << 20;
    return isUsual ? "hello" : `hello window=${window} piece=${piece}`;
  }
  if (op === "ack") return `ack ${id}.${version} ${first}-${last}`;
  if (op === "refuse") return `refuse ${id}.${version} ${frame.message}`;
  if (op === "free") return `free ${id}.${version}`;
  const at = `${first}-${last} of ${frame.begin}-${frame.end}`;
  const kind = `${frame.type.name}[${frame.shape}]`;
  return `piece ${frame.name} ${id}.${version} ${at} ${kind}${versions(frame.payload, first)}`;
}

/** One end of the wire. */
export class Player {
  lines = [];
  #own = "";
  #fails = [];
  #now = 0;
  #taken = 0;
  #remotes = new Map();
  #writes = new Map();
  #posted = new Set();
  #names = new Set();
  #live = liveTensors();

  /** The lines that a step gives. */
  async play(step) {
    this.#run(step);
    await new Promise(setImmediate);
    for (const [key, { result }] of [...this.#writes]) {
      if (result === undefined) continue;
      this.#writes.delete(key);
      this.lines.push(result(key));
    }
    if (step === "has" || step === "state") await this.#has(step);
    const all = this.lines.splice(0);
    const lines = step.startsWith("repeat") ? counted(all) : all;
    return lines.map((line) => line.replaceAll('"', "'").replaceAll(/, (?=\d)/g, ","));
  }

  #run(step) {
    const [verb, ...words] = step.split(" ");
    const isOption = (word) => word.includes("=");
    const options = Object.fromEntries(words.filter(isOption).map((word) => word.split("=")));
    try {
      if (["connect", "tick", "close"].includes(verb)) this.end[verb]();
      else this[verb](options, ...words.filter((word) => !isOption(word)));
    } catch (error) {
      this.#raised(error);
    }
  }

  #raised(error) {
    if (!(error.name in KINDS)) throw error;
    this.lines.push(`error ${KINDS[error.name]}: ${error.message}`);
  }

  // --- what the application does --------------------------------------------------------------

  wire(options) {
    for (const kept of [this.#remotes, this.#writes, this.#posted, this.#names]) kept.clear();
    this.#own = "";
    const numbers = Object.entries(options).map(([name, value]) => [name, Number(value)]);
    this.end = new Wire({
      send: (header, payload) => this.#post(header, payload),
      ontensor: (received) => this.#arrived(received),
      onfree: (name) => this.#report("freed", name),
      onsession: () => this.#report("session"),
      onrefuse: ({ message }) => this.#report("refused", message),
      now: () => this.#now,
      ...Object.fromEntries(numbers),
    });
    this.end.connect();
  }

  /** A wire after both sides said hello, which is not shown. */
  open(options) {
    this.wire(options);
    this.in({}, "hello");
    this.lines = [];
  }

  now(_, now) {
    this.#now = Number(now);
  }

  fail(_, ...names) {
    this.#fails = names;
  }

  send(_, name, kind) {
    const source = this.#source(1, 0, kind);
    try {
      const remote = this.end.send(name, source);
      this.#remotes.set(`${remote._id}`, remote);
      this.#watch(`${remote._id}.1`, remote.ready);
    } finally {
      source.release();
    }
  }

  write(_, id, rows, kind) {
    const remote = this.#remotes.get(id);
    if (remote === undefined) {
      this.lines.push(`no tensor ${id}`);
      return;
    }
    const [length, ...others] = remote.shape.length > 0 ? remote.shape : [1];
    const [start, stop] = rows === undefined ? [0, length] : rows.split(":").map(Number);
    const target = rows === undefined ? remote : remote.slice([start, stop]);
    const shape = remote.shape.length > 0 ? [stop - start, ...others] : [];
    const version = remote._version + 1;
    const begin = start * sizeOf(others) * remote._type.step;
    const source = this.#source(version, begin, kind ?? `${remote.dtype}[${shape}]`);
    const promise = target.write(source);
    source.release();
    if (remote._version >= version) {
      this.#watch(`${id}.${version}`, promise);
    } else promise.catch((error) => this.#raised(error));
  }

  free(_, id) {
    this.#remotes.get(id)?.free();
  }

  has() {}

  state() {}

  async #has(step) {
    const has = [];
    for (const name of [...this.#names].sort()) {
      this.end.get(name).then(
        ({ dtype, shape }) => has.push(`${name} ${dtype}[${shape}]`),
        () => {}, // the wire is closed
      );
    }
    await new Promise(setImmediate);
    const live = step === "state" ? `; ${liveTensors() - this.#live} live` : "";
    this.lines.push(`has ${has.join(", ") || "nothing"}${live}`);
  }

  #watch(key, promise) {
    const write = {};
    this.#writes.set(key, write);
    promise.then(
      () => Object.assign(write, { result: (key) => `done ${key}` }),
      ({ message }) => Object.assign(write, { result: (key) => `failed ${key}: ${message}` }),
    );
  }

  #source(version, begin, kind) {
    const [, dtype, extents] = /^(\w+)\[(.*)\]$/.exec(kind);
    const [View, shape] = [VIEWS[dtype], integers(extents)];
    const end = begin + sizeOf(shape) * View.BYTES_PER_ELEMENT;
    return Tensor.fromTypedArray(new View(pattern(version, begin, end).buffer), { shape });
  }

  // --- frames ---------------------------------------------------------------------------------

  in({ from = "1", to = "own", window = 2 ** 20, piece = 2 ** 16 }, kind, ...words) {
    const hello = { op: "hello", window: Number(window), piece: Number(piece) };
    const frame = kind === "hello" ? hello : this.#frame(kind, words.join(" "));
    if (frame === undefined) return;
    const { payload = new Uint8Array(), ...body } = frame;
    const own = { own: this.#own, "": "" };
    const [sender, receiver] = [from, to].map((name) => own[name] ?? name.padStart(16, "0"));
    const header = encode({ ...body, from: sender, to: receiver });
    // Every second one in two buffers.
    if (++this.#taken % 2) this.end.receive(joined(header, payload));
    else this.end.receive(header, payload);
  }

  #frame(op, text) {
    const [, number, rest] = /^\?(\d+)(.*)$/.exec(text) ?? [];
    if (number !== undefined) {
      // An answer to one of the frames that were sent, by number.
      const posted = [...this.#posted];
      if (posted.length === 0) return undefined;
      const key = posted[Number(number) % posted.length];
      this.#posted.delete(key);
      return this.#frame(op, `${key}${rest}`);
    }
    const [, name, ...facts] = FRAME.exec(text);
    const [dtype = "uint8", shapeOf = "4", message] = facts.splice(6);
    const [type, shape] = [dtypeNamed(dtype), integers(shapeOf)];
    const numbers = facts.map((each) => each && Number(each));
    const [id, version, first = 0, last = sizeOf(shape) * type.step] = numbers;
    const [begin = first, end = last] = numbers.slice(4);
    if (op === "free") return { op, id, version };
    if (op === "refuse") return { op, id, version, message };
    if (op === "ack") return { op, id, version, first, last };
    const payload = pattern(version, first, last);
    return { op, name, type, shape, id, version, begin, end, first, last, payload };
  }

  // --- what it does ---------------------------------------------------------------------------

  #report(what, more) {
    this.lines.push(more === undefined ? what : `${what} ${more}`);
    if (this.#fails.includes(what)) throw new ListenerError(what);
  }

  #post(header, payload) {
    const frame = decode(header, payload);
    const { op, id, version, first = 0, last = 0, from } = frame;
    this.#own ||= from;
    if (from !== this.#own) throw new Error(`${from} is not ${this.#own}`);
    if (op === "piece" || op === "free") this.#posted.add(`${id}.${version} ${first}-${last}`);
    const to = frame.to.replace(/^0+/, "");
    this.lines.push(`out ${to === "1" ? "" : `to=${to} `}${told(frame)}`);
    if (this.#fails.includes("out")) throw new ListenerError("out");
  }

  #arrived({ name, id, version, begin, end, tensor }) {
    this.#names.add(name);
    const elements = versions(tensor._managed.bytes(), 0);
    this.#report("tensor", `${name} ${id}.${version} ${begin}-${end}${elements}`);
  }

  // --- many steps -----------------------------------------------------------------------------

  until(options, end, ...words) {
    const found = new Map();
    const lines = this.lines;
    for (; this.#now < Number(end); this.#now++) {
      this.lines = [];
      this.#run(stepOf(words, options));
      for (const line of this.lines) found.set(line, [...(found.get(line) ?? []), this.#now]);
    }
    this.lines = lines;
    for (const [line, times] of found) lines.push(`at ${times.join(" ")}: ${line}`);
  }

  repeat(options, numbers, ...words) {
    const [begin, end, step = 1] = numbers.split(":").map(Number);
    const text = stepOf(words, options);
    for (let i = begin; i < end; i += step) {
      this.#run(text.replaceAll("{}", i).replaceAll("{+1}", i + 1));
    }
  }
}

/** How often each kind of line comes. */
function counted(lines) {
  const counts = new Map();
  for (const line of lines) {
    const [kind] = /^(out |error )?\w+/.exec(line);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, count]) => `${count} times ${kind}`);
}

const stepOf = (words, options) =>
  [...words, ...Object.entries(options).map(([name, value]) => `${name}=${value}`)].join(" ");
