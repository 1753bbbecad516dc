// Producers that are right in other ways than the stranger's: slow ones, and those that refuse what
// they may refuse. Each is made of the class of stranger.mjs.
const EXCHANGE = Symbol.for("dlpack.exchange");
const ASYNC = Symbol.for("dlpack.exchange.async");
const refuse = (name, text) => Object.assign(new Error(text), { name });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One whose exchanges are changed by `change`. */
const saying = (change) => (Stranger) => ({
  Class: class extends Stranger {
    described(block, device, flags) {
      return change(super.described(block, device, flags), device);
    }
  },
});

export const VARIANTS = {
  "waits, and looks at the signal before and after": (Stranger) => ({
    Class: class extends Stranger {
      async [ASYNC](request) {
        const { signal } = this.read(request);
        signal?.throwIfAborted();
        await pause(30);
        signal?.throwIfAborted();
        return super[ASYNC](request);
      }
    },
  }),
  "rejects as soon as it is aborted, and gives up its hold later": (Stranger) => ({
    Class: class extends Stranger {
      async [ASYNC](request) {
        const { signal } = this.read(request);
        signal?.throwIfAborted();
        this.block.take();
        const work = pause(30).then(async () => {
          try {
            if (!signal?.aborted) return await super[ASYNC](request);
          } finally {
            this.block.drop();
          }
        });
        const aborted = new Promise((_, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason));
        });
        return Promise.race([work, aborted]);
      }
    },
  }),
  "passes requests on through promises": (Stranger) => ({
    Class: class extends Stranger {
      async [ASYNC](request) {
        return super[ASYNC](request);
      }
    },
  }),
  "has only the method that may wait": (Stranger) => ({
    Class: class extends Stranger {
      [EXCHANGE] = undefined;
      async [ASYNC](request) {
        const { device, copy, signal } = this.read(request);
        signal?.throwIfAborted();
        if (device !== this.device) throw refuse("DeviceError", "it is elsewhere");
        return copy ? this.copied() : this.described(this.block, device, 0);
      }
    },
  }),
  "makes no copies, and reads nothing back": (Stranger) => ({
    Class: class extends Stranger {
      copied() {
        throw refuse("UnsupportedError", "no copies are made");
      }
      moved() {
        throw refuse("DeviceError", "it is elsewhere");
      }
      readBack() {
        throw refuse("DeviceError", "it is elsewhere");
      }
    },
  }),
  "is read-only, and copies for who writes": (Stranger) => {
    const checked = (producer, request) => {
      const { copy, writes } = producer.read(request);
      if (!writes) return request;
      if (copy === false) throw refuse("UnsupportedError", "it is read-only");
      return { ...request, copy: true };
    };
    return {
      Class: class extends Stranger {
        [EXCHANGE](request) {
          return super[EXCHANGE](checked(this, request));
        }
        async [ASYNC](request) {
          return super[ASYNC](checked(this, request));
        }
        described(block, device, flags) {
          return super.described(block, device, flags || 1);
        }
      },
    };
  },
  "has no release() for its user": (Stranger) => ({
    Class: class extends Stranger {
      release = undefined;
    },
  }),
  "leaves all to the garbage collector": (Stranger) => ({
    Class: class extends Stranger {
      release() {}
    },
  }),
  "cannot be changed": (Stranger) => ({
    Class: class {
      constructor(wanted) {
        const inner = new Stranger(wanted);
        this[EXCHANGE] = (request) => inner[EXCHANGE](request);
        Object.freeze(this);
      }
    },
  }),
  "ends its holds later": saying((exchange) => {
    const { release } = exchange;
    return { ...exchange, release: () => setTimeout(release, 20) };
  }),
  "knows no version but 1.0": saying(({ fault, ...exchange }) => ({
    ...exchange,
    version: [1, 0],
  })),
  "is of a newer minor version": saying((exchange) =>
    Object.assign(Object.create(null), exchange, { version: [1, 7], flags: exchange.flags | 32 }),
  ),
  "has getters": saying((exchange) => {
    const fields = Object.keys(exchange).map((name) => [
      name,
      { get: () => exchange[name], enumerable: true },
    ]);
    return Object.defineProperties({}, Object.fromEntries(fields));
  }),
  "clears padding when it is flushed": (Stranger) => {
    let before = new Uint8Array();
    return {
      Class: class extends Stranger {
        constructor(wanted) {
          super(wanted);
          this.dirt = before;
          before = wanted.bytes.slice();
        }
        described(block, device, flags) {
          const padding = device ? new Uint8Array() : block.data.subarray(this.bytes);
          padding.set(this.dirt.subarray(0, padding.length));
          return { ...super.described(block, device, flags), flush: () => void padding.fill(0) };
        }
      },
    };
  },
  "cannot fault": (Stranger) => ({
    ...saying((exchange, device) => ({ ...exchange, fault: device ? () => null : null }))(Stranger),
    options: { makeFaulty: undefined, requestDevice: undefined },
  }),
  "is on the CPU alone": (Stranger) => ({ Class: Stranger, options: { device: null } }),
};
