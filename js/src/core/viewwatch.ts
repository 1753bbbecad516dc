import { net } from "./leaks.js";

const native = (name: "buffer" | "byteOffset"): (() => unknown) =>
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name)
    ?.get as () => unknown;
const bufferOf = native("buffer");
const offsetOf = native("byteOffset");

let warned = false;

/**
 * From now on a warning is printed, once, where code reads `.buffer` of a `tensor.data` and not its
 * `.byteOffset`: such code uses all of WebAssembly's memory as the tensor's elements. The engine's
 * own use of a view, as in `structuredClone()`, reads no property and is not detected.
 */
export function watchForWholeBuffers(): void {
  net.onView ??= watch;
}

function watch(view: ArrayBufferView): void {
  if (warned || view.byteLength === view.buffer.byteLength) return;
  let placed = false;
  Object.defineProperties(view, {
    buffer: {
      get(): ArrayBufferLike {
        const buffer = bufferOf.call(view) as ArrayBufferLike;
        const { stack = "" } = new Error();
        queueMicrotask(() => {
          if (!placed && !warned) warn(view.byteLength, buffer.byteLength, stack);
          placed = false;
        });
        return buffer;
      },
    },
    byteOffset: {
      get(): number {
        placed = true;
        return offsetOf.call(view) as number;
      },
    },
  });
}

function warn(own: number, all: number, stack: string): void {
  warned = true;
  console.warn(
    `dlpack-web: .buffer of a tensor.data was read, and its byteOffset was not. That buffer has ${all} ` +
      `bytes, of which ${own} are the tensor's. Pass tensor.copy() to code that does so.\n` +
      stack.split("\n").slice(2).join("\n"),
  );
}
