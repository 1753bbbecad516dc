// The pool's model: a plain list of bytes for each buffer, and what is wrong with each of them.

/** Bytes of an element. */
export const SIZES = { uint8: 1, uint16: 2, uint32: 4, float64: 8 };

const NONE = new Set();

const roundUp = (n, step) => Math.ceil(n / step) * step;

/** What is in a buffer, or in memory of the CPU. */
export class Memory {
  holds = 0;
  /** How often its owner was told that nothing holds it; null: it has no owner to be told. */
  released = null;
  /** Whether the GPU has no such buffer: it could not be made, or its owner destroyed it. */
  invalid = false;
  /** Whether what is behind the elements is 0. */
  padded = true;

  /**
   * @param device - of the world; null: the CPU
   * @param start - of the elements, the bytes before which are somebody's
   */
  constructor(device, elements, { usage = 204, start = 0, size = 0 } = {}) {
    this.device = device;
    this.usage = usage;
    this.used = start + elements.length;
    this.bytes = new Uint8Array(size || Math.max(16, roundUp(this.used, 16)));
    this.bytes.set(elements, start);
    /** By byte: the labels of what went wrong with it. */
    this.faults = new Array(this.bytes.length).fill(NONE);
  }
}

/** Where a tensor's elements are: `at[i]` is the first byte of element `i`. */
export class Place {
  constructor(memory, dtype, at) {
    Object.assign(this, { memory, dtype, at, step: SIZES[dtype] });
  }

  static whole(memory, dtype, start = 0) {
    const count = (memory.used - start) / SIZES[dtype];
    return new Place(
      memory,
      dtype,
      Array.from({ length: count }, (_, i) => start + i * SIZES[dtype]),
    );
  }

  get count() {
    return this.at.length;
  }

  get nbytes() {
    return this.count * this.step;
  }

  get start() {
    return this.at[0] ?? 0;
  }

  get end() {
    return this.start + this.nbytes;
  }

  /** Whether elements are contiguous. */
  get dense() {
    return this.at.every((byte, i) => byte === this.start + i * this.step);
  }

  /** Whether whole words of the buffer are its own. */
  get inWords() {
    const ends = this.end % 4 === 0 || this.end === this.memory.used;
    return this.dense && this.start % 4 === 0 && ends;
  }

  get #positions() {
    return this.at.flatMap((byte) => Array.from({ length: this.step }, (_, i) => byte + i));
  }

  get bytes() {
    return Uint8Array.from(this.#positions, (byte) => this.memory.bytes[byte]);
  }

  /** Labels of what is wrong with any of its bytes. */
  get faults() {
    if (this.memory.invalid && this.count > 0) return new Set(["invalid"]);
    const found = new Set();
    for (const byte of this.#positions)
      for (const each of this.memory.faults[byte]) found.add(each);
    return found;
  }

  /** Writes elements, with what is wrong with them. */
  set(bytes, faults = NONE) {
    this.#positions.forEach((byte, i) => {
      this.memory.bytes[byte] = bytes[i];
      this.memory.faults[byte] = faults;
    });
  }

  slice([start, stop, step]) {
    const at = [];
    for (let i = start; step > 0 ? i < stop : i > stop; i += step) at.push(this.at[i]);
    return new Place(this.memory, this.dtype, at);
  }

  overlaps(other) {
    if (this.memory !== other.memory) return false;
    return this.start < other.end && other.start < this.end;
  }

  toString() {
    const { usage, used } = this.memory;
    return `${this.dtype}[${this.count}] from byte ${this.start} of ${used} (usage ${usage})`;
  }
}

/** Elements that a kernel sees as words. */
export const wordsIn = (bytes) => new Uint32Array(bytes.slice().buffer);
export const bytesIn = ({ buffer, byteOffset, byteLength }) =>
  new Uint8Array(buffer, byteOffset, byteLength);
