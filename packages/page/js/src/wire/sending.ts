/** The sending half of an endpoint: tensors that the other side has, and writes to them. */
import { type AnyTypedArray, DLPackError, Tensor, UnsupportedError } from "dlpack-web/core";
import { type DType, dtypeOf, tagOfDType } from "dlpack-web/internal";
import type { Exchangeable } from "dlpack-web/types";
import { sizeOf } from "../common.js";
import { type Control, checkName, nbytesOf, type Piece } from "./frame.js";
import { MOST_VERSIONS } from "./receiving.js";
import { bytesBetween } from "./source.js";

/** Frames that are not acknowledged, at most. */
const MOST_FLYING = 1024;
/** How often the time until something is sent again is doubled, at most. */
const MOST_DOUBLED = 10;

/**
 * A tensor that the other side has, under a name. As soon as another tensor of that name is ready,
 * this one is freed.
 */
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
    this._type = dtypeOf(tensor);
    this.dtype = tensor.dtype;
    this.shape = tensor.shape;
    sending.enter(this);
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

  /**
   * A part to write.
   *
   * @param rows - [start, stop] of the first axis
   */
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
    this.#sending.end(this, new DLPackError(`"${this.name}" was freed`));
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
      const end = begin + nbytesOf(this._type, shape);
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
  /** When it was last sent, later if it was sent `again` before. */
  at: number;
  again: number;
}

/** What the other side's hello says. */
export interface Credit {
  readonly window: number;
  readonly piece: number;
}

/** Writes in order, in pieces, with at most the window's bytes on their way. */
export class Sending {
  readonly #remotes = new Map<number, RemoteTensor>();
  /** Those of each name, the oldest first. */
  readonly #named = new Map<string, Set<RemoteTensor>>();
  readonly #flights = new Map<string, Flight>();
  #queue: Write[] = [];
  #bytes = 0;
  #ids = 0;
  #credit: Credit | undefined;

  constructor(
    private readonly piece: number,
    private readonly post: (frame: Piece | Control, payload?: Uint8Array) => void,
    private readonly now: () => number,
  ) {}

  /** A new tensor of the other side. */
  open(name: string, tensor: Tensor): RemoteTensor {
    checkName(name);
    tagOfDType(dtypeOf(tensor), `sending "${name}"`);
    return new RemoteTensor(this, ++this.#ids, name, tensor);
  }

  enter(remote: RemoteTensor): void {
    this.#remotes.set(remote._id, remote);
    this.#named.set(remote.name, (this.#named.get(remote.name) ?? new Set()).add(remote));
  }

  add(write: Write): void {
    this.#queue.push(write);
    this.#pump();
  }

  /** The other side is there (again): sends what it did not acknowledge, and the rest. */
  connect(credit: Credit): void {
    this.#credit = credit;
    for (const flight of [...this.#flights.values()]) this.#sendAgain(flight);
    this.#pump();
  }

  disconnect(): void {
    this.#credit = undefined;
    for (const flight of this.#flights.values()) flight.again = 0;
  }

  /** Sends again what was sent before that time. The next time waits twice as long. */
  resend(before: number): void {
    const now = this.now();
    for (const flight of [...this.#flights.values()]) {
      if (flight.at > before || !this.#credit) continue;
      this.#sendAgain(flight);
      flight.at = now + moreTime(Math.max(now - before, 0), ++flight.again);
    }
  }

  /** Unless it was acknowledged or ended meanwhile: the channel may call us. */
  #sendAgain(flight: Flight): void {
    if (this.#credit && this.#flights.get(keyOf(flight)) === flight) this.#send(flight);
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
      if (version === 1) this.#replace(write.remote);
    }
    this.#pump();
  }

  /** The other side has all of it, and released the earlier ones of its name. */
  #replace(remote: RemoteTensor): void {
    for (const earlier of [...(this.#named.get(remote.name) ?? [])]) {
      const why = `"${remote.name}" was sent again: write to the newer tensor`;
      if (earlier._id < remote._id) this.#end(earlier, new DLPackError(why));
    }
  }

  refused({ id, version, message }: Control & { op: "refuse" }): void {
    const remote = this.#remotes.get(id);
    if (!remote?._open.has(version)) return;
    this.end(remote, new UnsupportedError(`the other side: ${message}`));
  }

  /** Ends a tensor, once: its writes reject, and the other side frees it. */
  end(remote: RemoteTensor, error: DLPackError): void {
    this.#end(remote, error);
    this.#pump();
  }

  #end(remote: RemoteTensor, error: DLPackError): void {
    if (remote._ended !== undefined) return;
    remote._ended = error;
    this.#forget(remote);
    this.#drop(error, (each) => each === remote);
    const free = { remote, version: ++remote._version, first: 0, last: 0, at: 0, again: 0 };
    this.#flights.set(keyOf(free), free);
    if (this.#credit) this.#send(free);
  }

  #forget(remote: RemoteTensor): void {
    this.#remotes.delete(remote._id);
    const named = this.#named.get(remote.name);
    named?.delete(remote);
    if (named?.size === 0) this.#named.delete(remote.name);
  }

  /** Ends all: the other side, or this one, is gone. */
  reset(error: DLPackError): void {
    this.#credit = undefined;
    for (const remote of this.#remotes.values()) remote._ended = error;
    this.#remotes.clear();
    this.#named.clear();
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
      const size = Math.floor(Math.min(this.piece, piece) / 64) * 64;
      const last = Math.min(end, (Math.floor(next / size) + 1) * size);
      const isFull = this.#bytes + last - next > window || this.#flights.size >= MOST_FLYING;
      if (this.#flights.size > 0 && isFull) return;
      const [oldest = version] = remote._open;
      if (version >= oldest + MOST_VERSIONS) return;
      write.next = last;
      write.flying++;
      this.#bytes += last - next;
      if (last >= end) this.#queue.shift();
      const flight = { remote, version, first: next, last, write, at: 0, again: 0 };
      this.#flights.set(keyOf(flight), flight);
      this.#send(flight);
    }
  }

  #send(flight: Flight): void {
    const { remote, version, first, last, write } = flight;
    flight.at = this.now();
    const id = remote._id;
    if (write === undefined) {
      this.post({ op: "free", id, version });
      return;
    }
    const { begin, end, source } = write;
    const { name, _type: type, shape } = remote;
    const piece = { op: "piece", name, type, shape, id, version, begin, end, first, last } as const;
    const post = (bytes: Uint8Array) => {
      if (this.#flights.get(keyOf(flight)) === flight) this.post(piece, bytes);
    };
    const fail = (error: DLPackError) => this.end(remote, error);
    try {
      const bytes = bytesBetween(source, first - begin, last - begin);
      if (bytes instanceof Uint8Array) post(bytes);
      else bytes.then(post).catch(fail);
    } catch (error) {
      fail(error as DLPackError);
    }
  }
}

function keyOf({ remote, version, first }: Flight): string {
  return `${remote._id}/${version}/${first}`;
}

/** How much longer than `timeout` to wait after something was sent again so often. */
export function moreTime(timeout: number, again: number): number {
  return timeout * (2 ** Math.min(again, MOST_DOUBLED) - 1);
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
  if (dtypeOf(source) === type && source.size === sizeOf(shape)) {
    return source;
  }
  source.release();
  throw new UnsupportedError(
    `${source.toString()} cannot be written to ${type.name}[${shape}] of the other side: dtype and ` +
      "number of elements must be the same",
  );
}
