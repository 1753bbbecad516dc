/** The page's end of a widget: offers the GPU to the kernel, and shows what became of it. */
import type { Tensor } from "dlpack-web/core";
import { type GPUDevice, requestDevice, textOf, toCanvas } from "dlpack-web/internal";
import { newSession } from "../wire/endpoint.js";
import { Direct } from "./direct.js";
import { type Content, Session, VERSION } from "./session.js";
import { NamedTensors } from "./tensors.js";

/** Takes a message of the kernel. Some hosts leave out `buffers` where there are none. */
type Listener = (content: unknown, buffers?: readonly unknown[]) => void;

/** The part of anywidget's model that is used here; some hosts lack `off`. */
interface Model {
  send(content: unknown, callbacks?: unknown, buffers?: readonly ArrayBuffer[]): void;
  on(type: "msg:custom", listener: Listener): void;
  off?(type: "msg:custom", listener: Listener): void;
}

/** How long to wait for an answer, doubled each time, and until a refused page asks again. */
const [AGAIN_MS, MOST_AGAIN_MS, REFUSED_MS, NEW_DEVICE_MS] = [2000, 32_000, 5000, 1000];
const NO_BUFFERS = "this notebook passes messages without their buffers";

/** A view of the widget. */
interface Shown {
  readonly text: HTMLElement;
  readonly canvas: HTMLCanvasElement;
}

/** One widget in this page, with any number of views. */
export class Page {
  #model: Model | undefined;
  #own = "";
  #kernel = "";
  #device: GPUDevice | undefined;
  #properties: Content = {};
  #session: Session | undefined;
  #direct: Direct | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #text = "Looking for a GPU in this page …";
  #isFine = false;
  /** Whether views report only why there is no GPU. */
  isQuiet = false;
  /** What the kernel shows to the widget's script. */
  readonly tensors = new NamedTensors((error) => this.#session?.report(error));
  readonly #views = new Set<Shown>();
  /** What the views show; a hold of its own. */
  #drawn: Tensor | undefined;
  readonly #onmessage: Listener = (content, buffers = []) => this.#receive(content, buffers);
  // Browsers drop what a page sends at its end, as they do with the WebSocket of Jupyter.
  readonly #onleave = () => this.#send({ leaving: true });
  readonly #onhide = () => this.#send({ bye: true });

  /** Begins, unless it has; the result ends it. */
  start(model: Model): () => void {
    if (this.#model === undefined) {
      this.#model = model;
      model.on("msg:custom", this.#onmessage);
      globalThis.addEventListener?.("beforeunload", this.#onleave);
      globalThis.addEventListener?.("pagehide", this.#onhide);
      void this.#offer();
    }
    return () => this.#end();
  }

  /** Shows it in an element; the result ends that. */
  show(el: HTMLElement): () => void {
    const document = el.ownerDocument;
    const [text, canvas] = [document.createElement("div"), document.createElement("canvas")];
    text.setAttribute("role", "status");
    this.#sayIn(text);
    canvas.hidden = true;
    canvas.style.maxWidth = "100%";
    el.append(text, canvas);
    const shown = { text, canvas };
    this.#views.add(shown);
    if (this.#drawn) void this.#drawOn(shown, this.#drawn);
    return () => {
      this.#views.delete(shown);
      text.remove();
      canvas.remove();
    };
  }

  /** Finds a GPU, and tells the kernel until it answers. */
  async #offer(): Promise<void> {
    this.#own = newSession();
    try {
      const device = await requestDevice({});
      this.#device = device;
      this.#properties = { webgpu: true, origin: globalThis.origin, ...propertiesOf(device) };
      device.lost.then(({ reason, message }) => this.#lose(device, `${reason}: ${message}`));
    } catch (error) {
      this.#properties = { webgpu: false, reason: (error as Error).message };
    }
    this.#say("Waiting for the kernel …");
    this.#hello();
  }

  #hello(wait = AGAIN_MS): void {
    if (this.#model === undefined) return;
    clearTimeout(this.#timer);
    this.#send({ hello: this.#properties });
    this.#timer = setTimeout(() => this.#hello(Math.min(2 * wait, MOST_AGAIN_MS)), wait);
  }

  #receive(given: unknown, buffers: readonly unknown[]): void {
    const content = Object(given) as Content;
    if (!("dlpack_web" in content) || content.to !== this.#own) return;
    try {
      if ("problem" in content)
        this.#say(`The kernel could not read a message: ${content.problem}`);
      else if (content.dlpack_web !== VERSION) {
        this.#quit(
          `This page's script is of version ${VERSION}, the kernel's of ` +
            `${textOf(content.dlpack_web)}: reload the page, or restart the kernel`,
        );
      } else if ("welcome" in content) this.#meet(content);
      else if ("refused" in content) this.#wait(`${content.refused}`);
      else if ("ended" in content && !this.#session) {
        this.#again("The kernel gave up this page before it answered");
      } else if (content.from !== this.#kernel) return;
      else if ("closed" in content) this.#quit("The widget was closed");
      else if ("ended" in content) this.#again("The kernel gave up this page, which was silent");
      else if ("frame" in content && buffers.length === 0) this.#giveUp();
      else this.#session?.receive(content, buffers.map(bytesOf));
    } catch (error) {
      // The next message may be right.
      this.#say(`A message of the kernel was refused: ${(error as Error).message}`);
      console.error(error);
    }
  }

  #meet({ from, welcome, direct }: Content): void {
    clearTimeout(this.#timer);
    const kernel = `${from}`;
    if (this.#device === undefined || (this.#session && kernel === this.#kernel)) return;
    this.#session?.end();
    this.#direct?.end();
    this.#kernel = kernel;
    const post = (content: Content, frame?: readonly Uint8Array[]) => this.#send(content, frame);
    const session = new Session(this.#device, post, this.tensors, (tensor) => this.#draw(tensor));
    this.#session = session;
    const text = `The kernel uses this page's GPU, ${this.#properties.adapter}, as webgpu:${textOf(welcome)}`;
    this.#say(text, true);
    const head = { dlpack_web: VERSION, from: kernel, to: this.#own };
    this.#direct = new Direct(direct, {
      receive: (content, frame) =>
        frame ? this.#receive({ ...head, frame: true }, [frame]) : this.#receive(content, []),
      onchange: (isOpen) => {
        if (!isOpen) session.reconnect();
        this.#say(isOpen ? `${text}, by a WebSocket of its own` : text, true);
      },
      onfail: () => this.#send({ apart: true }),
    });
  }

  /** Another page has it: asks again, as that may be closed. */
  #wait(why: string): void {
    clearTimeout(this.#timer);
    this.#say(why);
    if (this.#device) this.#timer = setTimeout(() => this.#hello(), REFUSED_MS);
  }

  #lose(device: GPUDevice, why: string): void {
    if (device !== this.#device || this.#model === undefined) return;
    this.#send({ lost: why });
    this.#again(`The GPU was lost (${why})`);
  }

  /** No elements can come: the kernel must not wait for what needs them. */
  #giveUp(): void {
    if (this.#session === undefined) return;
    this.#send({ lost: NO_BUFFERS });
    this.#quit(`The GPU cannot be used here: ${NO_BUFFERS}`);
  }

  /** Ends this session, and begins another one. */
  #again(why: string): void {
    this.#quit(`${why}. Asking for a GPU …`);
    this.#timer = setTimeout(() => void this.#offer(), NEW_DEVICE_MS);
  }

  #quit(why: string): void {
    const device = this.#device;
    clearTimeout(this.#timer);
    this.#session?.end();
    this.#session = undefined;
    this.#direct?.end();
    this.#direct = undefined;
    this.#drawn?.release();
    this.#drawn = undefined;
    this.#device = undefined;
    device?.destroy();
    this.#say(why);
  }

  #end(): void {
    const model = this.#model;
    if (model === undefined) return;
    this.#send({ bye: true });
    this.#quit("The widget was removed");
    this.#model = undefined;
    model.off?.("msg:custom", this.#onmessage);
    globalThis.removeEventListener?.("beforeunload", this.#onleave);
    globalThis.removeEventListener?.("pagehide", this.#onhide);
  }

  async #draw(tensor: Tensor): Promise<void> {
    this.#drawn?.release();
    this.#drawn = tensor.reshape(tensor.shape);
    for (const shown of this.#views) await this.#drawOn(shown, tensor);
  }

  async #drawOn({ canvas }: Shown, tensor: Tensor): Promise<void> {
    await toCanvas(tensor, canvas);
    canvas.hidden = false;
  }

  #send(content: Content, frame: readonly Uint8Array[] = []): void {
    const all = { dlpack_web: VERSION, from: this.#own, to: this.#kernel, ...content };
    if (!this.#direct?.send(all, frame)) this.#model?.send(all, undefined, frame.map(own));
  }

  #say(text: string, isFine = false): void {
    this.#text = text;
    this.#isFine = isFine;
    for (const shown of this.#views) this.#sayIn(shown.text);
  }

  #sayIn(element: HTMLElement): void {
    element.textContent = this.#text;
    element.hidden = this.isQuiet && this.#isFine;
  }
}

function propertiesOf({ limits, features, adapterInfo }: GPUDevice): Content {
  const found: Record<string, number> = {};
  for (const name in limits) {
    const limit = (limits as unknown as Record<string, unknown>)[name];
    if (typeof limit === "number") found[name] = Math.min(limit, Number.MAX_SAFE_INTEGER);
  }
  const { vendor, architecture, description } = Object(adapterInfo) as Partial<GPUAdapterInfo>;
  const adapter = description || [vendor, architecture].filter(Boolean).join(" ") || "a GPU";
  return { limits: found, features: [...features], adapter };
}

/** Hosts send all of a view's buffer, later. */
function own(bytes: Uint8Array): ArrayBuffer {
  return bytes.slice().buffer as ArrayBuffer;
}

/** Hosts give a DataView, an ArrayBuffer or an array of bytes. */
function bytesOf(given: unknown): Uint8Array {
  if (ArrayBuffer.isView(given)) {
    return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  }
  return new Uint8Array(given as ArrayBuffer);
}
