// All that there is in one sequence of the pool's model: tensors of both copies of the library, with the
// places of their elements in lists of bytes, and devices whose buffers are counted.
import { bytesIn } from "./memory.mjs";

/** A problem that the model found, as opposed to one of its own. */
export class Found extends Error {}

/** A device, whose buffers made by the library are counted; `spoil` changes how the next is made. */
export class Device {
  alive = new Set();
  /** Those that somebody has. */
  taken = new Set();
  spoil = null;
  /** How many buffers could not be made of which nobody has heard yet. */
  unheard = 0;

  constructor(gpu) {
    this.gpu = gpu;
    const createBuffer = gpu.createBuffer.bind(gpu);
    this.raw = { createBuffer };
    gpu.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      if (/CreateBuffer/.test(event.error.message)) this.unheard--;
    });
    gpu.createBuffer = (descriptor) => {
      const buffer = createBuffer(this.spoil ? this.spoil(descriptor) : descriptor);
      this.alive.add(buffer);
      const destroy = buffer.destroy.bind(buffer);
      buffer.destroy = () => {
        this.alive.delete(buffer);
        destroy();
      };
      return buffer;
    };
  }

  get aliveBytes() {
    return [...this.alive].reduce((sum, { size }) => sum + size, 0);
  }
}

/** A tensor, or a hold that a consumer has on one, of a copy of the library. */
class Entry {
  constructor(kind, copy, it, place) {
    Object.assign(this, { kind, copy, it, place });
  }

  get memory() {
    return this.place.memory;
  }
}

export class World {
  entries = [];
  memories = new Set();
  reads = [];

  /** @param context - `{ copies, devices, open, labels }`, kept from sequence to sequence */
  constructor(context) {
    const { copies, devices } = context;
    Object.assign(this, { context, copies, devices });
    this.liveBefore = this.copies[0].liveTensors();
  }

  get labels() {
    return this.context.labels;
  }

  set labels(label) {
    this.context.labels = label;
  }

  somewhere(r) {
    return { copy: r.of(this.copies), device: r.of(this.devices) };
  }

  /** One of the entries for which `fits` holds, newer ones more often; undefined: there is none. */
  pick(r, fits = () => true, kinds = ["tensor"]) {
    const list = this.entries.filter((entry) => kinds.includes(entry.kind) && fits(entry));
    if (list.length === 0) return undefined;
    return r.of(r.oneIn(2) ? list.slice(-4) : list);
  }

  add(copy, it, place, kind = "tensor") {
    place.memory.holds++;
    this.memories.add(place.memory);
    this.entries.push(new Entry(kind, copy, it, place));
  }

  drop(entry) {
    this.entries.splice(this.entries.indexOf(entry), 1);
    entry.it.release();
    const { memory } = entry;
    memory.holds--;
    if (memory.invalid && memory.device) this.unsound = true;
    this.expect(
      memory.holds === 0 || !memory.released,
      () => `release of ${entry.place} too early`,
    );
  }

  /**
   * Until the library hears that a buffer could not be made, it hands that to the next tensor, which
   * raises the error, too. That is left out here.
   */
  async calm() {
    if (!this.unsound) return;
    this.unsound = false;
    for (const device of this.devices) {
      const { gpu, lost } = device;
      if (lost) continue;
      gpu.pushErrorScope("validation");
      await gpu.popErrorScope();
      for (let round = 0; device.unheard > 0 && round < 200; round++)
        await new Promise((done) => setTimeout(done, 5));
      device.unheard = 0;
    }
  }

  /** Somebody has the buffer of a tensor, and may keep it. */
  took({ memory: { device } }, buffer) {
    device.taken.add(buffer);
  }

  expect(condition, problem) {
    if (!condition) throw new Found(problem());
  }

  equal(actual, expected, what) {
    this.expect(actual === expected, () => `${what} is ${actual}, not ${expected}`);
  }

  same(bytes, expected, what) {
    const at = expected.findIndex((byte, i) => byte !== bytes[i]);
    this.expect(bytes.length === expected.length && at < 0, () => {
      const part = (list) => `[${list.slice(Math.max(0, at), at + 24)}]`;
      return `${what}: from byte ${at} of ${expected.length} on ${part(bytes)}, not ${part(expected)}`;
    });
  }

  /**
   * What an action gives; undefined where it threw as it must.
   *
   * @param must - names of errors of which it must throw one
   * @param may - names of errors that it may throw
   */
  async attempt(what, action, { must = [], may = [] } = {}) {
    let value;
    try {
      value = await action();
    } catch (error) {
      this.expect([...must, ...may].includes(error.name), () => `${what}: ${error.stack}`);
      return undefined;
    }
    this.expect(must.length === 0, () => `${what}: no ${must.join(" or ")}`);
    return { value };
  }

  /** Begins a read; `settle` compares what comes of it. */
  async read({ it, place, memory }) {
    if (!(memory.usage & 4)) {
      await this.attempt(`reading ${place}`, () => it.read(), { must: ["UnsupportedError"] });
      return;
    }
    const { bytes, faults } = place;
    const settled = it.read().then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
    const { device, invalid } = memory; // whose views of no elements may be readable, or not
    this.reads.push({ settled, bytes, faults, device, invalid, what: `reading ${place}` });
  }

  async settle() {
    for (const { settled, bytes, faults, device, invalid, what } of this.reads.splice(0)) {
      const { value, error } = await settled;
      if (error?.name === "DeviceLostError" && device.lost) continue;
      if (error) this.#checkError(error, faults, invalid, what);
      else {
        this.expect(faults.size === 0, () => `${what}: no error of ${[...faults]}`);
        this.same(bytesIn(value), bytes, what);
      }
    }
  }

  #checkError(error, faults, invalid, what) {
    const { name, label } = error;
    const right =
      ["DeviceError", "KernelError"].includes(name) &&
      (invalid || faults.has("invalid") || faults.has(label));
    this.expect(right, () => `${what}, with ${[...faults]} wrong: ${error.stack}`);
  }

  /** Reads all that there is. */
  async check() {
    for (const entry of this.entries) {
      const { kind, it, place, memory } = entry;
      if (kind !== "tensor") continue;
      if (memory.device === null) this.same(bytesIn(await it.read()), place.bytes, `CPU ${place}`);
      else if (memory.usage & 4) await this.read(entry);
    }
    await this.settle();
  }

  /** Lets all go, and looks for what is left. */
  async end(r) {
    await this.check();
    while (this.entries.length > 0) this.drop(r.of(this.entries));
    const [{ liveTensors, webgpu }] = this.copies;
    this.equal(liveTensors(), this.liveBefore, "liveTensors()");
    for (const { released } of this.memories) this.equal(released ?? 1, 1, "release() of a lender");
    for (const device of this.devices) this.#count(device, webgpu.stats());
  }

  #count({ id, aliveBytes, alive, taken }, stats) {
    const { buffers, bytes, idleBytes } = stats.find(({ device }) => device === id);
    this.equal(`${buffers}, ${bytes}`, "0, 0", `buffers under tensors of ${id}`);
    const left = [...taken].filter((buffer) => alive.has(buffer));
    const kept = left.reduce((sum, { size }) => sum + size, 0);
    this.equal(
      aliveBytes - kept,
      idleBytes,
      `bytes of ${id} that are neither idle nor taken, with idle`,
    );
  }

  /** Another device in the place of one that is lost. */
  async replace(device) {
    this.devices.splice(this.devices.indexOf(device), 1, await this.context.open());
  }
}
