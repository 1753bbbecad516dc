// Counts what JavaScript copies while a step runs, and pages show these numbers instead
// of promises. Import this before any module whose copies should be seen: constructors that a
// module looked up earlier cannot be watched any more.
//
// Seen: queue.writeBuffer and writeTexture, TypedArray set/slice/copyWithin/from, typed arrays
// constructed from other arrays, ArrayBuffer.slice, getImageData and putImageData; copies between
// GPU buffers; mapAsync.
// Not seen: element by element loops, and copies inside WebAssembly (NumPy's own). For those
// the pages compare addresses.

const zero = () => ({ copies: 0, copied_bytes: 0, gpu_copies: 0, gpu_bytes: 0, map_async: 0 });

let active = null;
let least = 0;

function copied(bytes) {
  if (active && bytes >= least) {
    active.copies += 1;
    active.copied_bytes += bytes;
  }
}

/**
 * Counts while `start()` … `stop()` encloses it; calls cannot be nested.
 *
 * @param bytes - copies of fewer, such as of uniforms, are not counted
 */
export function start(bytes = 0) {
  if (active) throw new Error("a step is already being counted");
  active = zero();
  least = bytes;
}

/** Ends counting and returns `{copies, copied_bytes, gpu_copies, gpu_bytes, map_async}`. */
export function stop() {
  const counts = active ?? zero();
  active = null;
  return counts;
}

/** Runs `after(result, self, args)` behind each call of `owner[name]`. */
function watch(owner, name, after) {
  const original = owner?.[name];
  if (!original) return; // WebGPU is absent: nothing to count
  Object.defineProperty(owner, name, {
    configurable: true,
    writable: true,
    value: function (...args) {
      const result = original.apply(this, args);
      after(result, this, args);
      return result;
    },
  });
}

/** Bytes that `queue.writeBuffer(buffer, offset, data, dataOffset, size)` takes from `data`. */
function writtenBytes(data, dataOffset = 0, size = undefined) {
  const unit = data.BYTES_PER_ELEMENT ?? 1; // offset and size count elements of a typed array
  return size === undefined ? data.byteLength - dataOffset * unit : size * unit;
}

/** Makes `new Constructor(array)` count: it copies unless it is given a buffer or a length. */
function watchConstructor(Constructor) {
  const counting = new Proxy(Constructor, {
    construct(target, args, newTarget) {
      const made = Reflect.construct(target, args, newTarget === counting ? target : newTarget);
      const [source] = args;
      const shares = /ArrayBuffer]$/.test(Object.prototype.toString.call(source)); // Shared, too
      if (typeof source === "object" && source !== null && !shares) copied(made.byteLength);
      return made;
    },
  });
  Constructor.prototype.constructor = counting; // x.constructor === Float32Array stays true
  globalThis[Constructor.name] = counting;
}

const TypedArray = Object.getPrototypeOf(Uint8Array);
watch(TypedArray.prototype, "set", (_, target, [source]) =>
  copied(source.length * target.BYTES_PER_ELEMENT),
);
watch(TypedArray.prototype, "slice", (result) => copied(result.byteLength));
watch(TypedArray.prototype, "copyWithin", (result) => copied(result.byteLength));
watch(TypedArray, "from", (result) => copied(result.byteLength));
watch(ArrayBuffer.prototype, "slice", (result) => copied(result.byteLength));
watch(globalThis.GPUQueue?.prototype, "writeBuffer", (_, __, [, , ...source]) =>
  copied(writtenBytes(...source)),
);
watch(globalThis.GPUQueue?.prototype, "writeTexture", (_, __, [, data]) => copied(data.byteLength));
for (const Context of [
  globalThis.CanvasRenderingContext2D,
  globalThis.OffscreenCanvasRenderingContext2D,
]) {
  watch(Context?.prototype, "getImageData", (image) => copied(image.data.byteLength));
  watch(Context?.prototype, "putImageData", (_, __, [image]) => copied(image.data.byteLength));
}
watch(globalThis.GPUBuffer?.prototype, "mapAsync", () => {
  if (active) active.map_async += 1;
});
watch(globalThis.GPUCommandEncoder?.prototype, "copyBufferToBuffer", (_, __, args) => {
  if (!active) return;
  active.gpu_copies += 1;
  active.gpu_bytes += args.at(-1);
});
for (const name of Object.getOwnPropertyNames(globalThis)) {
  const value = globalThis[name];
  if (typeof value === "function" && Object.getPrototypeOf(value) === TypedArray) {
    watchConstructor(value);
  }
}
