/** One end of the wire: bytes in, bytes out; carriers.ts has channels. */
import { DLPackError, type Tensor } from "dlpack-web/core";
import { checkOptions, type GPUDevice } from "dlpack-web/internal";
import {
  type Bytes,
  type Control,
  cut,
  decode,
  encode,
  type Frame,
  LEAST_PIECE,
  MOST_PIECE,
  type Piece,
} from "./frame.js";
import { type Received, Receiving } from "./receiving.js";
import { moreTime, type RemoteTensor, Sending } from "./sending.js";

/** Options of a {@link Wire}. */
export interface WireOptions {
  /**
   * Called with each frame to send; `joined` makes one message of its two parts.
   *
   * @param header - valid during the call only
   * @param payload - the elements that follow it, or none; valid during the call only
   */
  send(header: Bytes, payload: Uint8Array): void;
  /** Called after each write of the other side that has arrived completely. */
  ontensor?: ((received: Received) => void) | undefined;
  /** Called after the other side freed a tensor. */
  onfree?: ((name: string) => void) | undefined;
  /** Called when another session begins on the other side: what it had sent is gone. */
  onsession?: (() => void) | undefined;
  /** Called with why a piece of the other side was refused. */
  onrefuse?: ((error: DLPackError) => void) | undefined;
  /** Tensors arrive on this device, without a copy of the whole in memory; default: the CPU. */
  device?: GPUDevice | undefined;
  /** Bytes of the tensors that the other side may make us hold; default 1 GiB. */
  limit?: number | undefined;
  /** Bytes of a piece, 64 KiB to 4 MiB; default 1 MiB. */
  piece?: number | undefined;
  /** Bytes that the other side may send before we acknowledge them; default two pieces. */
  window?: number | undefined;
  /**
   * Milliseconds after which `tick()` sends again what was not acknowledged, doubled each time;
   * default: never.
   */
  timeout?: number | undefined;
  /** A clock in milliseconds; default `performance.now()`. */
  now?: (() => number) | undefined;
}

/** The names of options of a wire. */
export const WIRE_NAMES: { readonly [name in keyof WireOptions]-?: 0 | 1 } = {
  send: 1,
  ontensor: 1,
  onfree: 1,
  onsession: 1,
  onrefuse: 1,
  device: 1,
  limit: 1,
  piece: 1,
  window: 1,
  timeout: 1,
  now: 1,
};

/** Sessions that ended, of which late frames may arrive. */
const MOST_PAST = 16;
const NOTHING = new Uint8Array(0);

/**
 * One end of a channel that carries tensors in pieces, both ways. It has no sockets and no timers:
 * `send` gets frames, and `receive` takes those of the other side.
 *
 * ```js
 * const wire = new Wire({ send: (header, payload) => socket.send(joined(header, payload)) });
 * socket.onmessage = ({ data }) => wire.receive(new Uint8Array(data));
 * wire.connect();
 * const points = wire.send("points", tensor);
 * await points.ready;
 * ```
 *
 * WIRE.md has the format and the rules.
 */
export class Wire {
  readonly #options: WireOptions;
  readonly #own = newSession();
  readonly #hello: Control;
  readonly #sending: Sending;
  readonly #receiving: Receiving;
  readonly #past: string[] = [];
  readonly #named = new Map<string, Tensor>();
  readonly #waiting = new Map<string, [(tensor: Tensor) => void, (error: unknown) => void][]>();
  /** The other side's session, and whether it is connected. */
  #peer = "";
  #isConnected = false;
  #closed: DLPackError | undefined;
  readonly #now: () => number;
  /** Hellos without an answer, and when the next one may follow. */
  #hellos = 0;
  #helloAt = Number.NEGATIVE_INFINITY;

  /**
   * @param options - `send`, what is called when tensors arrive, and sizes in bytes
   * @throws RangeError for sizes that cannot be
   */
  constructor(options: WireOptions) {
    checkOptions<WireOptions>(options, "a Wire", WIRE_NAMES, "send");
    const { piece = 1 << 20, limit = 2 ** 30, device, now } = options;
    const window = options.window ?? 2 * piece;
    if (!(Number.isInteger(piece) && piece >= LEAST_PIECE && piece <= MOST_PIECE)) {
      throw new RangeError(`piece is ${piece}, and not from ${LEAST_PIECE} to ${MOST_PIECE} bytes`);
    }
    for (const size of [window, limit]) {
      if (Number.isSafeInteger(size) && size >= 0) continue;
      throw new RangeError(`window and limit are numbers of bytes, not ${size}`);
    }
    this.#options = options;
    this.#hello = { op: "hello", window, piece };
    this.#receiving = new Receiving(limit, device);
    const post = (frame: Piece | Control, payload?: Uint8Array) => this.#post(frame, payload);
    this.#now = now ?? (() => performance.now());
    this.#sending = new Sending(piece, post, this.#now);
  }

  /** Says hello: at the start, and after the channel was opened again. */
  connect(): void {
    this.#check();
    this.#isConnected = false;
    this.#sending.disconnect();
    this.#hellos = 0;
    this.#helloAt = Number.NEGATIVE_INFINITY;
    this.#greet();
  }

  /**
   * Sends a tensor: one copy of a piece at a time.
   *
   * @param name - the new tensor takes the place of an earlier one of that name, which is freed then
   * @param tensor - its memory must not change until `ready` of the result resolves
   * @returns the other side's tensor, to write to it again
   * @throws UnsupportedError for a dtype that safetensors lacks
   */
  send(name: string, tensor: Tensor): RemoteTensor {
    this.#check();
    return this.#sending.open(name, tensor);
  }

  /**
   * The other side's tensor, as soon as it has arrived completely; the endpoint's.
   *
   * @param name - the name that it was sent under
   */
  get(name: string): Promise<Tensor> {
    return new Promise((resolve, reject) => {
      this.#check();
      const there = this.#named.get(name);
      if (there && !there.released) resolve(there);
      else this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), [resolve, reject]]);
    });
  }

  /**
   * Takes a frame of the other side.
   *
   * @param frame - header and elements, or the header alone
   * @param payload - the elements, if they come beside the header
   * @throws UnsupportedError for a frame that is damaged or of another version: nothing changes
   */
  receive(frame: Uint8Array, payload?: Uint8Array): void {
    this.#check();
    const given = decode(frame, payload);
    const { from, to } = given;
    if (from === this.#own || this.#past.includes(from)) return;
    if (given.op === "hello") {
      this.#meet(given);
      return;
    }
    if (to !== this.#own) return;
    if (this.#isConnected && from === this.#peer) this.#dispatch(given);
    else if (!this.#isConnected) this.#greet(); // its hello was lost
  }

  /** Sends again what was not acknowledged in time, if there is a `timeout`: call it now and then. */
  tick(): void {
    const { timeout } = this.#options;
    if (timeout === undefined || this.#closed) return;
    if (this.#isConnected) this.#sending.resend(this.#now() - timeout);
    else this.#greet();
  }

  /** Ends all: promises reject, and tensors of the other side are released. */
  close(): void {
    if (this.#closed) return;
    this.#closed = new DLPackError("the wire was closed");
    this.#sending.reset(this.#closed);
    this.#forget();
    const waiting = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const [, reject] of waiting) reject(this.#closed);
  }

  #check(): void {
    if (this.#closed) throw new DLPackError(this.#closed.message, { cause: this.#closed });
  }

  #post(frame: Piece | Control, payload: Uint8Array = NOTHING, to = this.#peer): void {
    if (this.#closed) return;
    this.#options.send(encode({ ...frame, from: this.#own, to }), payload);
  }

  /**
   * Says hello, unless it is too early to say it again: it is short, and other frames wait for the
   * answer.
   */
  #greet(): void {
    const now = this.#now();
    if (now < this.#helloAt) return;
    this.#helloAt = now + moreTime((this.#options.timeout ?? 0) / 16, this.#hellos++);
    this.#post(this.#hello, NOTHING, "");
  }

  #meet(frame: Frame & { op: "hello" }): void {
    const isNew = frame.from !== this.#peer;
    const isAgain = !isNew && this.#isConnected;
    try {
      if (isNew && this.#peer !== "") this.#restart(frame.from);
    } finally {
      this.#join(frame, isAgain);
    }
  }

  /** The other side has another session. */
  #restart(peer: string): void {
    this.#past.push(this.#peer);
    if (this.#past.length > MOST_PAST) this.#past.shift();
    this.#peer = peer;
    this.#isConnected = false;
    this.#forget();
    const why =
      "the other side has a new session (it was reloaded or restarted): send the tensor again";
    this.#sending.reset(new DLPackError(why));
    this.#options.onsession?.();
  }

  #join({ from, to, window, piece }: Frame & { op: "hello" }, isAgain: boolean): void {
    if (this.#closed) return;
    this.#peer = from;
    this.#isConnected = true;
    if (to !== this.#own) this.#post(this.#hello);
    if (!isAgain || to !== this.#own) this.#sending.connect({ window, piece });
  }

  #dispatch(frame: Frame): void {
    if (frame.op === "ack") this.#sending.acknowledge(frame);
    else if (frame.op === "refuse") this.#sending.refused(frame);
    else if (frame.op === "piece") this.#take(frame);
    else if (frame.op === "free") {
      const { id, version } = frame;
      const name = this.#receiving.free(id);
      this.#post({ op: "ack", id, version, first: 0, last: 0 });
      if (name === undefined) return;
      if (this.#named.get(name)?.released) this.#named.delete(name);
      if (!this.#named.has(name)) this.#options.onfree?.(name);
    }
  }

  #take(piece: Frame & Piece): void {
    const { id, version, first, last } = piece;
    let received: Received[];
    try {
      received = this.#receiving.take(piece, piece.payload);
    } catch (error) {
      const { message } = error as DLPackError;
      this.#post({ op: "refuse", id, version, message: cut(message) });
      this.#options.onrefuse?.(error as DLPackError);
      return;
    }
    for (const { name, tensor } of received) this.#named.set(name, tensor);
    try {
      this.#acknowledge({ op: "ack", id, version, first, last });
    } finally {
      this.#arrived(received); // also if that is lost: then the piece comes again
    }
  }

  /** Reports what is complete, all of it even if a listener throws: then it throws the first error. */
  #arrived(received: readonly Received[]): void {
    const errors: unknown[] = [];
    for (const each of received) {
      const { name, tensor } = each;
      if (this.#named.get(name) !== tensor) continue;
      const waiting = this.#waiting.get(name) ?? [];
      this.#waiting.delete(name);
      for (const [resolve] of waiting) resolve(tensor);
      try {
        this.#options.ontensor?.(each);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  /** A piece for a GPU is consumed when the GPU process has it. */
  #acknowledge(ack: Control): void {
    const queue = (this.#options.device as unknown as globalThis.GPUDevice | undefined)?.queue;
    if (queue === undefined) {
      this.#post(ack);
      return;
    }
    const to = this.#peer;
    const then = () => {
      if (this.#isConnected && to === this.#peer) this.#post(ack);
    };
    queue.submit([]);
    queue.onSubmittedWorkDone().then(then, then);
  }

  #forget(): void {
    this.#named.clear();
    this.#receiving.clear();
  }
}

/** A random session: 16 hexadecimal digits. */
export function newSession(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
