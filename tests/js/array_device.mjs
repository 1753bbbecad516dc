// A GPU that is all arrays.

/** A GPUDevice as far as exchanges go: work is done when it is submitted, and mapping takes a while. */
export function fakeDevice() {
  const scopes = [];
  const fail = (message) => scopes.at(-1)?.push({ message });
  const use = (buffer) => {
    if (buffer.destroyed) fail("the buffer was destroyed");
    return buffer.destroyed ? undefined : buffer.bytes;
  };
  let lose;
  const lost = new Promise((resolve) => {
    lose = resolve;
  });
  return {
    lost,
    lose,
    destroy: () => lose({ reason: "destroyed" }),
    createBuffer: ({ size, usage }) => ({
      size,
      usage,
      bytes: new Uint8Array(size),
      destroyed: false,
      mapAsync: () =>
        new Promise((resolve, reject) => {
          setTimeout(resolve, 0);
          lost.then(() => reject(new DOMException("the device is lost", "AbortError")));
        }),
      getMappedRange() {
        return this.bytes.buffer;
      },
      destroy() {
        this.destroyed = true;
      },
    }),
    createCommandEncoder() {
      const work = [];
      return {
        copyBufferToBuffer: (from, at, to, start, size) =>
          work.push(() => {
            const [source, target] = [use(from), use(to)];
            if (source && target) target.set(source.subarray(at, at + size), start);
          }),
        finish: () => work,
      };
    },
    pushErrorScope: () => scopes.push([]),
    popErrorScope: async () => scopes.pop()[0] ?? null,
    queue: {
      submit: (lists) => {
        for (const run of lists.flat()) run();
      },
      writeBuffer: (buffer, at, data) =>
        use(buffer)?.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at),
    },
  };
}

/** A device as this library needs it, whose next error scope that asks says `fails`. */
export function device() {
  const made = fakeDevice();
  const { createBuffer, queue } = made;
  const { writeBuffer } = queue;
  queue.writeBuffer = (buffer, at, data, from = 0, size = undefined) => {
    const array = ArrayBuffer.isView(data) ? data : new Uint8Array(data); // from and size: its elements
    writeBuffer(buffer, at, array.subarray(from, size && from + size));
  };
  const limits = { maxBufferSize: 1 << 20 };
  const scopes = [];
  return Object.assign(made, {
    label: "",
    limits,
    fails: null,
    createBuffer: (descriptor) => Object.assign(createBuffer(descriptor), { unmap() {} }),
    pushErrorScope: (filter) => scopes.push(filter),
    async popErrorScope() {
      const filter = scopes.pop();
      const error = made.fails;
      if (error === null || error.filter !== filter) return null;
      made.fails = null;
      return error;
    },
  });
}
