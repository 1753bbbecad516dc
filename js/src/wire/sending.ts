/** The sending half of an endpoint: tensors that the other side has, and writes to them. */
import { type AnyTypedArray, bytesOf, type DType } from "../core/dtype.js";
import { DLPackError, UnsupportedError } from "../core/errors.js";
import { sizeOf } from "../core/shape.js";
import { Tensor } from "../core/tensor.js";
import type { Exchangeable } from "../exchange/types.js";
import { tagOfDType } from "../open/dtypes.js";
import { type Control, checkName, type Piece } from "./frame.js";
import { MOST_VERSIONS } from "./receiving.js";
import { bytesBetween } from "./source.js";

/** Frames that are not acknowledged, at most. */
const MOST_FLYING = 1024;

/** A tensor that the other side has, under a name. */
export class RemoteTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  /** Resolves when the first write has arrived. */
  readonly ready: Promise<void>;
  /** @internal */ readonly _type: DType;
  /** @internal */ readonly _id: number;
  /** @internal The number of writes so far. */ _version = 0;
  /** @internal Versions in progress, the oldest first. */ readonly _open = new Set<number>();
  /** @internal Why nothing can be written any more. */ _ended: DLPackError | undefined;
  readonly #sending: Sending;

  /** @internal */
  constructor(sending: Sending, id: number, name: string, tensor: Tensor) {
    this.#sending = sending;
    this._id = id;
    this.name = name;
    this._type = tensor._type;
    this.dtype = tensor.dtype;
    this.shape = tensor.shape;
    this.ready = this.write(tensor);
  }

  /**
   * Writes all elements.
   *
   * @param source - a tensor or typed array of the same dtype and number of elements, whose memory
   * must not change until the promise resolves: it is read piece by piece
   * @returns resolves when the other side has it all; rejects if that cannot happen any more
   */
  write(source: Tensor | AnyTypedArray | Exchangeable): Promise<void> {
    return this._write(source, 0, this.shape);
  }

  /** A part to write: some of the first axis, as [start, stop]. */
  slice([start, stop]: readonly [number, number]): {
    write(source: Tensor | AnyTypedArray | Exchangeable): Promise<void>;
  } {
    const [rows = 0, ...others] = this.shape;
    const isPart = Number.isInteger(start) && Number.isInteger(stop) && 0 <= start && start <= stop;
    if (!isPart || stop > rows || this.shape.length === 0) {
      throw new RangeError(`rows ${start} to ${stop} are not a part of shape [${this.shape}]`);
    }
    const shape = [stop - start, ...others];
    const begin = start * sizeOf(others) * this._type.step;
    return { write: (source) => this._write(source, begin, shape) };
  }

  /** Frees the tensor on the other side. Writes in progress are rejected. */
  free(): void {
    const error = new DLPackError(`"${this.name}" was freed`);
    if (this._ended === undefined) this.#sending.end(this, error);
  }

  /** @internal */
  async _write(
    given: Tensor | AnyTypedArray | Exchangeable,
    begin: number,
    shape: readonly number[],
  ): Promise<void> {
    if (this._ended) throw new DLPackError(this._ended.message, { cause: this._ended });
    const source = sourceOf(given, this._type, shape);
    await new Promise<void>((resolve, reject) => {
      const end = begin + bytesOf(this._type, sizeOf(shape));
      const version = ++this._version;
      this._open.add(version);
      const write = { remote: this, version, begin, end, source, next: begin, flying: 0 };
      this.#sending.add({ ...write, resolve, reject });
    });
  }
}

interface Write {
  readonly remote: RemoteTensor;
  readonly version: number;
  readonly begin: number;
  readonly end: number;
  readonly source: Tensor;
  /** The first byte that was not sent. */
  next: number;
  /** Pieces that are not acknowledged. */
  flying: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** What was sent and is not acknowledged; without `write` it frees the tensor. */
interface Flight {
  readonly remote: RemoteTensor;
  readonly version: number;
  readonly first: number;
  readonly last: number;
  readonly write?: Write;
  /** When it was last sent. */
  at: number;
}

/** What the other side's hello says. */
export interface Credit {
  readonly window: number;
  readonly piece: number;
}

/** Writes in order, in pieces, with at most the window's bytes on their way. */
export class Sending {
  readonly #piece: number;
  readonly #post: (frame: Piece | Control, payload?: Uint8Array) => void;
  readonly #now: () => number;
  readonly #remotes = new Map<number, RemoteTensor>();
  readonly #flights = new Map<string, Flight>();
  #queue: Write[] = [];
  #bytes = 0;
  #ids = 0;
  #credit: Credit | undefined;

  constructor(
    piece: number,
    post: (frame: Piece | Control, payload?: Uint8Array) => void,
    now: () => number,
  ) {
    this.#piece = piece;
    this.#post = post;
    this.#now = now;
  }

  /** A new tensor of the other side. */
  open(name: string, tensor: Tensor): RemoteTensor {
    checkName(name);
    tagOfDType(tensor._type, `sending "${name}"`);
    const remote = new RemoteTensor(this, ++this.#ids, name, tensor);
    if (remote._ended === undefined) this.#remotes.set(remote._id, remote);
    return remote;
  }

  add(write: Write): void {
    this.#queue.push(write);
    this.#pump();
  }

  /** The other side is there (again): sends what it did not acknowledge, and the rest. */
  connect(credit: Credit): void {
    this.#credit = credit;
    this.resend(Number.POSITIVE_INFINITY);
    this.#pump();
  }

  disconnect(): void {
    this.#credit = undefined;
  }

  /** Sends again what was sent before that time. */
  resend(before: number): void {
    for (const flight of [...this.#flights.values()]) {
      if (this.#credit && flight.at <= before) this.#send(flight);
    }
  }

  acknowledge({ id, version, first, last }: Control & { op: "ack" }): void {
    const key = `${id}/${version}/${first}`;
    const flight = this.#flights.get(key);
    if (flight === undefined || flight.last !== last) return;
    this.#flights.delete(key);
    this.#bytes -= last - first;
    const { write } = flight;
    if (write && --write.flying === 0 && isSent(write)) {
      finish(write);
      write.resolve();
    }
    this.#pump();
  }

  refused({ id, version, message }: Control & { op: "refuse" }): void {
    const remote = this.#remotes.get(id);
    if (!remote?._open.has(version)) return;
    this.end(remote, new UnsupportedError(`the other side: ${message}`));
  }

  /** Ends a tensor: its writes reject, and the other side frees it. */
  end(remote: RemoteTensor, error: DLPackError): void {
    remote._ended = error;
    this.#remotes.delete(remote._id);
    this.#drop(error, (each) => each === remote);
    const version = ++remote._version;
    const free = { remote, version, first: 0, last: 0, at: 0 };
    this.#flights.set(`${remote._id}/${version}/0`, free);
    if (this.#credit) this.#send(free);
    this.#pump();
  }

  /** Ends all: the other side, or this one, is gone. */
  reset(error: DLPackError): void {
    this.#credit = undefined;
    for (const remote of this.#remotes.values()) remote._ended = error;
    this.#remotes.clear();
    this.#drop(error, () => true);
  }

  #drop(error: DLPackError, isEnded: (remote: RemoteTensor) => boolean): void {
    const writes = new Set(this.#queue.filter(({ remote }) => isEnded(remote)));
    this.#queue = this.#queue.filter((write) => !writes.has(write));
    for (const [key, { remote, write, first, last }] of this.#flights) {
      if (!isEnded(remote)) continue;
      if (write) writes.add(write);
      this.#flights.delete(key);
      this.#bytes -= last - first;
    }
    for (const write of writes) {
      finish(write);
      write.reject(error);
    }
  }

  #pump(): void {
    for (let write = this.#queue[0]; write && this.#credit; write = this.#queue[0]) {
      const { remote, version, next, end } = write;
      const { window, piece } = this.#credit;
      // Pieces end at multiples of their size: whole elements, and whole words of a GPU.
      const size = Math.floor(Math.min(this.#piece, piece) / 64) * 64;
      const last = Math.min(end, (Math.floor(next / size) + 1) * size);
      const isFull = this.#bytes + last - next > window || this.#flights.size >= MOST_FLYING;
      if (this.#flights.size > 0 && isFull) return;
      const [oldest = version] = remote._open;
      if (version >= oldest + MOST_VERSIONS) return;
      write.next = last;
      write.flying++;
      this.#bytes += last - next;
      if (last >= end) this.#queue.shift();
      const flight = { remote, version, first: next, last, write, at: 0 };
      this.#flights.set(`${remote._id}/${version}/${next}`, flight);
      this.#send(flight);
    }
  }

  #send(flight: Flight): void {
    const { remote, version, first, last, write } = flight;
    flight.at = this.#now();
    const id = remote._id;
    if (write === undefined) {
      this.#post({ op: "free", id, version });
      return;
    }
    const { begin, end, source } = write;
    const { name, _type: type, shape } = remote;
    const piece = { op: "piece", name, type, shape, id, version, begin, end, first, last } as const;
    const post = (bytes: Uint8Array) => {
      if (this.#flights.get(`${id}/${version}/${first}`) === flight) this.#post(piece, bytes);
    };
    const fail = (error: DLPackError) => {
      if (remote._ended === undefined) this.end(remote, error);
    };
    try {
      const bytes = bytesBetween(source, first - begin, last - begin);
      if (bytes instanceof Uint8Array) post(bytes);
      else bytes.then(post).catch(fail);
    } catch (error) {
      fail(error as DLPackError);
    }
  }
}

function isSent({ next, end }: Write): boolean {
  return next >= end;
}

function finish(write: Write): void {
  write.source.release();
  write.remote._open.delete(write.version);
}

/** A hold of our own on what is written. */
function sourceOf(
  given: Tensor | AnyTypedArray | Exchangeable,
  type: DType,
  shape: readonly number[],
): Tensor {
  const source = ArrayBuffer.isView(given)
    ? Tensor.fromTypedArray(given, { shape, dtype: type.name })
    : (Tensor.from(given as Exchangeable) as Tensor);
  if (source._type === type && source.size === sizeOf(shape)) {
    return source;
  }
  source.release();
  throw new UnsupportedError(
    `${source.toString()} cannot be written to ${type.name}[${shape}] of the other side: dtype and ` +
      "number of elements must be the same",
  );
}
