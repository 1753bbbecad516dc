/** Channels for a {@link Wire}: message ports, workers, WebSockets. */
import { UnsupportedError } from "dlpack-web/core";
import { checkOptions, tagOf } from "dlpack-web/internal";
import { WIRE_NAMES, Wire, type WireOptions } from "./endpoint.js";
import { type Bytes, joined } from "./frame.js";

/** A `MessagePort`, a `Worker`, or a worker's own global scope: the members used here. */
export interface Port {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  start?(): void;
}

/** A `WebSocket`: the members used here. */
export interface Socket {
  binaryType: string;
  readonly readyState: number;
  send(data: Bytes): void;
  addEventListener(type: string, listener: (event: { data: unknown }) => void): void;
}

/** Options of a wire on a channel. */
export interface ChannelOptions extends Omit<WireOptions, "send"> {
  /** Called with a frame's error; default: it is thrown, and the page reports it. */
  onerror?: ((error: unknown) => void) | undefined;
}

/**
 * A wire to another thread, which makes one too. Each frame is one transferred `ArrayBuffer`;
 * other messages of the port are left alone.
 *
 * ```js
 * const wire = overPort(new Worker("worker.mjs", { type: "module" })); // there: overPort(self)
 * ```
 *
 * @param port - a `MessagePort`, a `Worker`, or a worker's own global scope
 * @param given - options of the wire, and `onerror`
 */
export function overPort(port: Port, given: ChannelOptions = {}): Wire {
  const { onerror, ...options } = checked(given, "overPort()");
  const send: WireOptions["send"] = (header, payload) => {
    const { buffer } = joined(header, payload);
    port.postMessage({ "dlpack-web": buffer }, [buffer]);
  };
  const wire = new Wire({ ...options, send });
  port.addEventListener("message", ({ data }) => {
    const frame = Object(data)["dlpack-web"] as unknown;
    if (frame !== undefined) take(wire, frame, onerror);
  });
  port.start?.();
  wire.connect();
  return wire;
}

/**
 * A wire over a WebSocket, open or opening. Each frame is one binary message; text is left alone.
 *
 * ```js
 * const wire = overSocket(new WebSocket("wss://…"));
 * ```
 *
 * @param socket - a `WebSocket`; `reconnect(socket)` of the result takes the next one
 * @param given - options of the wire, and `onerror`
 */
export function overSocket(
  socket: Socket,
  given: ChannelOptions = {},
): Wire & { reconnect(socket: Socket): void } {
  const { onerror, ...options } = checked(given, "overSocket()");
  let current = socket;
  const send: WireOptions["send"] = (header, payload) => {
    if (current.readyState === 1) current.send(joined(header, payload));
  };
  const wire = new Wire({ ...options, send });
  const reconnect = (next: Socket) => {
    current = next;
    next.binaryType = "arraybuffer";
    next.addEventListener("message", ({ data }) => {
      if (next === current && typeof data !== "string") take(wire, data, onerror);
    });
    if (next.readyState === 1) wire.connect();
    else next.addEventListener("open", () => next === current && wire.connect());
  };
  reconnect(socket);
  return Object.assign(wire, { reconnect });
}

function checked(options: ChannelOptions, of: string): ChannelOptions {
  const { send, ...names } = WIRE_NAMES;
  checkOptions<ChannelOptions>(options, of, { ...names, onerror: 1 }, "ontensor");
  return options;
}

function take(wire: Wire, data: unknown, onerror: ChannelOptions["onerror"]): void {
  try {
    const isBuffer = /ArrayBuffer\]$/.test(tagOf(data));
    if (!isBuffer) throw new UnsupportedError(`the channel gave ${tagOf(data)}, and not a frame`);
    wire.receive(new Uint8Array(data as ArrayBuffer));
  } catch (error) {
    if (onerror === undefined) throw error;
    onerror(error);
  }
}
