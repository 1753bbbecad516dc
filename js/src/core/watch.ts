/** Reports of what users forget, for `connect(pyodide, { debug: true })`; loaded with the code for Pyodide. */
import type { ManagedTensor } from "./managed.js";
import { counts, type Hold, net } from "./realm.js";

let leakReported = false;

function end({ storage, handle }: Hold): void {
  counts.live--;
  storage.release(handle);
}

/** From now on, forgotten tensors are released when garbage-collected, with a warning. */
export function watchForLeaks(): void {
  net.registry ??= new FinalizationRegistry((hold) => {
    end(hold);
    if (leakReported) return;
    leakReported = true;
    console.warn(
      `dlpack-web: ${hold.label} was garbage-collected without release(). Its memory was freed late; ` +
        "without debug: true it leaks. Further leaks are not reported.",
    );
  });
}

let quiet: FinalizationRegistry<Hold> | undefined;

/**
 * Releases this tensor when it is garbage-collected: for temporary tensors that are only passed on,
 * which nothing else can release.
 */
export function watchOver(tensor: ManagedTensor): void {
  if (net.registry !== null || tensor.watcher !== null || tensor.handle === 0) return;
  quiet ??= new FinalizationRegistry(end);
  tensor.watcher = quiet;
  tensor.watch(quiet);
}

let bufferReported = false;

/**
 * From now on a warning is printed, once, where code reads `.buffer` of a `tensor.data` and not its
 * `.byteOffset`: such code uses all of WebAssembly's memory as the tensor's elements. The engine's
 * own use of a view, as in `structuredClone()`, reads no property and is not detected.
 */
export function watchForWholeBuffers(): void {
  net.onView ??= watch;
}

function watch(view: ArrayBufferView): void {
  const { buffer, byteOffset, byteLength } = view;
  if (bufferReported || byteLength === buffer.byteLength) return;
  let placed = false;
  Object.defineProperties(view, {
    buffer: {
      get(): ArrayBufferLike {
        const { stack = "" } = new Error();
        queueMicrotask(() => {
          if (!placed && !bufferReported) warn(byteLength, buffer.byteLength, stack);
          placed = false;
        });
        return buffer;
      },
    },
    byteOffset: {
      get(): number {
        placed = true;
        return byteOffset;
      },
    },
  });
}

function warn(own: number, all: number, stack: string): void {
  bufferReported = true;
  console.warn(
    `dlpack-web: .buffer of a tensor.data was read, and its byteOffset was not. That buffer has ${all} ` +
      `bytes, of which ${own} are the tensor's. Pass tensor.copy() to code that does so.\n` +
      stack.split("\n").slice(2).join("\n"),
  );
}
