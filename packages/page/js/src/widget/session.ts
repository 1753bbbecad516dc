/** One session of this page with one kernel: py/dlpack_web_page/_page/link.py has the messages. */
import type { Tensor } from "dlpack-web/core";
import { type GPUDevice, listenForFaults, sites, textOf } from "dlpack-web/internal";
import { Wire } from "../wire/endpoint.js";
import { cut } from "../wire/frame.js";
import type { Operation } from "./operations.js";
import { type Numbered, Ordered } from "./ordered.js";
import type { NamedTensors } from "./tensors.js";
import { Work } from "./work.js";

/** The version of the messages. */
export const VERSION = "1";
const [PIECE, WINDOW] = [4 << 20, 16 << 20];
/** How often a session looks whether something was lost, and acknowledges. */
const [LOOK_MS, ACKNOWLEDGE_MS, RESEND_MS] = [5000, 50, 30_000];
/** Characters of an error, at most: as replies.py takes. */
const MOST_TOLD = 10_000;

/** A message without its head. */
export type Content = Record<string, unknown>;
/** frame: the header of a frame of the wire, and elements that are valid during the call only. */
export type Post = (content: Content, frame?: readonly Uint8Array[]) => void;

export class Session {
  readonly #wire: Wire;
  readonly #orders: Ordered;
  readonly #work: Work;
  readonly #stop: () => void;
  readonly #timer: ReturnType<typeof setInterval>;
  #acknowledging = false;
  /** When all was acknowledged, or sent again; how often it was. */
  #sentAt = performance.now();
  #again = 0;

  /**
   * post: sends a message to the kernel; tensors: what it shows to the script; draw: shows a tensor
   * in the widget.
   */
  constructor(
    device: GPUDevice,
    private readonly post: Post,
    tensors: NamedTensors,
    draw: (tensor: Tensor) => Promise<void>,
  ) {
    this.#orders = new Ordered((message) => post({ ...message }));
    this.#wire = new Wire({
      send: (header, payload) =>
        post({ frame: true }, payload.length > 0 ? [header, payload] : [header]),
      ontensor: ({ name, tensor }) => this.#work.arrive(name, tensor),
      device,
      limit: Number.MAX_SAFE_INTEGER, // the device has its own
      piece: PIECE,
      window: WINDOW,
      timeout: RESEND_MS,
    });
    this.#work = new Work(device, {
      send: (name, tensor) => this.#send(name, tensor),
      reply: (reply, value, error) =>
        this.#orders.send(error === undefined ? { reply, value } : { reply, error: told(error) }),
      report: (error, site) => this.report(error, site),
      draw,
      tensors,
    });
    this.#stop = listenForFaults(device, (error, site) => {
      this.report(error, site);
      return true;
    });
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    (this.#timer as { unref?(): void }).unref?.(); // Node waits for its timers
  }

  /** Takes a message of the kernel; throws for one that is damaged. */
  receive(content: Content, buffers: readonly Uint8Array[]): void {
    if ("ping" in content) this.post({ pong: true });
    else if ("frame" in content) this.#wire.receive(...(buffers as [Uint8Array]));
    else if ("got" in content) {
      const bodies = this.#orders.receive(content as Partial<Numbered>);
      for (const body of bodies) this.#work.add(Object(body) as Operation);
      this.#acknowledge();
    }
  }

  /** Python warns of an error: of the call at `site`, if that is known. */
  report(error: unknown, site?: number): void {
    this.#orders.send({ fault: told(error).message, site });
  }

  /** Sends again what a channel may have lost that has ended. */
  reconnect(): void {
    this.#wire.connect();
    this.#orders.resend();
  }

  /** Ends all, and releases all tensors. */
  end(): void {
    clearInterval(this.#timer);
    this.#stop();
    this.#wire.close();
    this.#work.end();
  }

  /** The tensor is released when the kernel has it. */
  async #send(name: string, tensor: Tensor): Promise<void> {
    const remote = this.#wire.send(name, tensor);
    try {
      await remote.ready;
    } finally {
      remote.free();
    }
  }

  #acknowledge(): void {
    if (this.#acknowledging) return;
    this.#acknowledging = true;
    setTimeout(() => {
      this.#acknowledging = false;
      this.#orders.acknowledge();
    }, ACKNOWLEDGE_MS);
  }

  #look(): void {
    this.#wire.tick();
    const now = performance.now();
    if (!this.#orders.isWaiting) [this.#sentAt, this.#again] = [now, 0];
    else if (now - this.#sentAt > RESEND_MS * 2 ** this.#again) {
      this.#sentAt = now;
      this.#again++;
      this.#orders.resend();
    }
  }
}

/** An error, for the kernel, whatever was thrown. */
function told(error: unknown): Content {
  const { name, message = textOf(error), label, line } = Object(error) as Record<string, unknown>;
  const text = typeof message === "string" ? cut(message, MOST_TOLD) : textOf(message);
  const content = { name: textOf(name), message: text, site: sites.get(Object(error)) };
  const kernel = { label: textOf(label), line: typeof line === "number" ? line : undefined };
  return label === undefined ? content : { ...content, ...kernel };
}
