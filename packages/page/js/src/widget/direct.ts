/**
 * A WebSocket of the kernel for this page, beside the notebook's channel, which is slower
 * (py/dlpack_web_page/_page/direct.py).
 */
import type { Content } from "./session.js";

const NOTHING = new Uint8Array();
/** How often it is opened again without success. */
const MOST_TRIES = 8;
/** How long to wait before that, doubled each time until it has worked for long. */
const [AGAIN_MS, MOST_AGAIN_MS, WORKS_MS] = [1000, 256_000, 60_000];
/** What the kernel answers to; the other subprotocol is the page's proof. */
const PROTOCOL = "dlpack-web";

export interface DirectOptions {
  /** Takes a message: its content, or a frame of the wire. */
  receive(content: unknown, frame?: Uint8Array): void;
  /** It was opened, or has ended. */
  onchange(isOpen: boolean): void;
  /** It could not be opened. */
  onfail(): void;
}

export class Direct {
  readonly #options: DirectOptions;
  #socket: WebSocket | undefined;
  #scratch = new Uint8Array();
  /** The kernel has proved what it is. */
  #isOpen = false;
  /** Since it was open; none where it never was. */
  #tries = MOST_TRIES;
  #wait = AGAIN_MS;
  #isEnded = false;
  /** Of the connection: a proof is good for one. */
  #number = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** given: what the kernel says of it; nothing, if it has none. */
  constructor(given: unknown, options: DirectOptions) {
    this.#options = options;
    const { url, secret } = Object(given) as Content;
    if (typeof url === "string" && typeof secret === "string") void this.#open(url, secret);
  }

  /** Whether it has sent the message: the frame, if there is one. */
  send(content: Content, frame: readonly Uint8Array[]): boolean {
    if (!this.#isOpen || this.#socket?.readyState !== 1) return false;
    const [header, payload = NOTHING] = frame;
    this.#socket.send(header ? this.#joined(header, payload) : JSON.stringify(content));
    return true;
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isOpen = false;
    socket?.close();
  }

  /** One message of both, valid until the next call: what a WebSocket sends, it copies. */
  #joined(header: Uint8Array, payload: Uint8Array): Uint8Array<ArrayBuffer> {
    const size = header.length + payload.length;
    if (this.#scratch.length < size) this.#scratch = new Uint8Array(size);
    this.#scratch.set(header);
    this.#scratch.set(payload, header.length);
    return this.#scratch.subarray(0, size);
  }

  async #open(url: string, secret: string): Promise<void> {
    const number = ++this.#number;
    let [socket, proof]: [WebSocket?, string?] = [];
    try {
      const own = await proofOf(secret, `page ${number}`);
      proof = await proofOf(secret, `kernel ${number}`);
      if (this.#isEnded) return;
      socket = new WebSocket(url, [PROTOCOL, `${number}.${own}`]);
    } catch {
      this.#options.onfail(); // this page may not
      return;
    }
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => {
      if (socket === this.#socket) this.#receive(data, proof);
    });
    socket.addEventListener("close", () => {
      if (socket === this.#socket) this.#closed(url, secret);
    });
  }

  #receive(data: unknown, proof: string): void {
    if (!this.#isOpen) {
      if (data !== proof) {
        this.end(); // another program has that port
        this.#options.onfail();
        return;
      }
      this.#isOpen = true;
      this.#tries = 0;
      this.#timer = setTimeout(() => {
        this.#wait = AGAIN_MS;
      }, WORKS_MS);
      this.#options.onchange(true);
    } else if (typeof data === "string") this.#options.receive(parsed(data));
    else {
      this.#options.receive(undefined, new Uint8Array(data as ArrayBuffer));
      // Frees its memory: collectors see it late, and then stop the page for long.
      (data as { transfer?(size: number): unknown }).transfer?.(0);
    }
  }

  #closed(url: string, secret: string): void {
    clearTimeout(this.#timer);
    this.#socket = undefined;
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#options.onchange(false);
    }
    if (this.#tries === MOST_TRIES) {
      this.#options.onfail();
      return;
    }
    this.#timer = setTimeout(() => void this.#open(url, secret), this.#wait);
    this.#wait = Math.min(2 * this.#wait, MOST_AGAIN_MS);
    this.#tries++;
  }
}

/** HMAC-SHA-256, in hexadecimal digits. */
async function proofOf(secret: string, text: string): Promise<string> {
  const [encoder, algorithm] = [new TextEncoder(), { name: "HMAC", hash: "SHA-256" }];
  const { subtle } = crypto;
  const key = await subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  const found = new Uint8Array(await subtle.sign("HMAC", key, encoder.encode(text)));
  return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // which is ignored
  }
}
