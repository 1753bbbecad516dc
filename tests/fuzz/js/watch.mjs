// Sees what is called of WebGPU, what is made and destroyed, and what is told to nobody; makes a
// chosen call go wrong. To be imported before the library: it takes timers over, too.

/** Calls as they are without this module, for what a test does itself. */
export const raw = {};

// --- timers ---------------------------------------------------------------------------------------

/** The library's waits of a second and more (for readers of faults, for idle buffers). */
const held = new Map();
raw.setTimeout = globalThis.setTimeout.bind(globalThis);
const LONG = 1000;

globalThis.setTimeout = (run, ms, ...args) => {
  if (!(ms >= LONG)) return raw.setTimeout(run, ms, ...args);
  const id = -1 - held.size;
  held.set({}, { run: () => run(...args), ms });
  return id;
};

/** Lets so much time pass for those who wait for longer than a second. */
export function elapse(ms) {
  for (const [key, timer] of [...held]) {
    if (timer.ms > ms) continue;
    held.delete(key);
    timer.run();
  }
}

/** Resolves when all that is under way in this turn of the event loop is done. */
export const turn = () => new Promise((done) => raw.setTimeout(done));

/** What `promise` comes to; an error where it comes to nothing, which is never a matter of speed. */
export function settled(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = raw.setTimeout(() => reject(new Error(`${what} hangs`)), 60_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The same where it may wait for a second itself, for news of a lost device: that passes. */
export function settledLater(promise, what) {
  // Late enough for readers to be told of their faults before all others are.
  const timer = raw.setTimeout(() => elapse(LONG), 3 * LONG);
  return settled(promise, what).finally(() => clearTimeout(timer));
}

// --- what is told ---------------------------------------------------------------------------------

/** What was told to nobody in particular since `clear()`: errors and warnings. */
export const told = { console: [], uncaptured: [], unhandled: [] };
raw.error = console.error.bind(console);
console.error = (...args) => void told.console.push(args[0]);
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  told.unhandled.push(event.reason);
});

/** From now on, errors of a device that no error scope takes are kept. */
export function listen(device) {
  device.addEventListener("uncapturederror", (event) => {
    event.preventDefault();
    told.uncaptured.push(event.error.message);
  });
}

/** What was told since the last call. */
export function heard() {
  const found = { ...told };
  for (const name of Object.keys(told)) told[name] = [];
  return found;
}

// --- what is made ---------------------------------------------------------------------------------

/** Buffers, textures and query sets that are not destroyed, with their devices. */
export const made = new Map();

/** Those of one device. */
export const madeOn = (device) =>
  [...made].flatMap(([each, owner]) => (owner === device ? [each] : []));

// --- what goes wrong ------------------------------------------------------------------------------

/** What is thrown in the place of a call. */
const injected = (name) => new DOMException(`${name} was made to fail`, "OperationError");

export const isInjected = ({ message }) => / was made to fail$/.test(message);

/** The call that goes wrong: the `at`-th from now on (from 1), by `kind`, of this device. */
let plan = null;
/** Calls since `spoil`, by name. */
let calls = [];

/**
 * Makes the `at`-th call from now on go wrong; 0: none. It is the one named `call`, else none.
 *
 * @param kind - "throw" (what returns a promise rejects), "invalid" (a validation error), "memory"
 * (none left), "lost" (the device, just before the call)
 */
export function spoil(device, at, kind, call) {
  plan = { device, at, kind, call, hit: null, earlier: new Set(made.keys()) };
  calls = [];
}

/** Ends that; the calls that there were, and the one that was spoilt (null: none). */
export function spared() {
  const found = { calls, hit: plan?.hit ?? null };
  plan = null;
  return found;
}

/** Error scopes of a device that are open: what runs out of memory is told there. */
const scopes = new WeakMap();
const scopesOf = (device) => {
  if (!scopes.has(device)) scopes.set(device, []);
  return scopes.get(device);
};

/** Runs `call`, whose validation errors nobody is told of. */
function shielded(device, call) {
  raw.GPUDevice.pushErrorScope.call(device, "validation");
  try {
    return call();
  } finally {
    raw.GPUDevice.popErrorScope.call(device);
  }
}

function outOfMemory(device) {
  const scope = scopesOf(device).findLast(({ filter }) => filter === "out-of-memory");
  const error = new GPUOutOfMemoryError("no memory is left, as was asked for");
  if (scope) scope.error ??= error;
  else told.uncaptured.push(error.message);
}

/** An encoder or pass of which nothing valid comes. */
const corrupt = (encoder) => encoder.popDebugGroup();

function invalidCommands(device) {
  return shielded(device, () => {
    const encoder = raw.GPUDevice.createCommandEncoder.call(device);
    corrupt(encoder);
    return raw.GPUCommandEncoder.finish.call(encoder);
  });
}

function invalidLayout(device) {
  const entry = { binding: 0, visibility: 4, buffer: {} };
  const { createBindGroupLayout } = raw.GPUDevice;
  return shielded(device, () => createBindGroupLayout.call(device, { entries: [entry, entry] }));
}

/** By the call, what makes it invalid: with `call` as it was, `self` and the arguments. */
const INVALID = {
  GPUDevice: {
    // What is mapped for reading can be bound by nobody.
    createBuffer: (call, _, { size, usage }) => call({ size, usage: usage | 1 | 128 }),
    createTexture: (call, _, descriptor) => call({ ...descriptor, usage: 0 }),
    createShaderModule: (call) => call({ code: "this is no WGSL" }),
    createBindGroupLayout: (call) => {
      const entry = { binding: 0, visibility: 4, buffer: {} };
      return call({ entries: [entry, entry] });
    },
    createPipelineLayout: (call, self) => call({ bindGroupLayouts: [invalidLayout(self)] }),
    createComputePipeline: (call, _, descriptor) =>
      call({ ...descriptor, compute: { ...descriptor.compute, entryPoint: "nowhere" } }),
    createBindGroup: (call, _, { layout }) => call({ layout, entries: [] }),
    createQuerySet: (call) => call({ type: "occlusion", count: 1 << 20 }),
    createCommandEncoder: (call, _, ...args) => {
      const encoder = call(...args);
      corrupt(encoder);
      return encoder;
    },
    pushErrorScope: null,
    popErrorScope: null,
  },
  GPUQueue: {
    submit: (call) => call([invalidCommands(plan.device)]),
    writeBuffer: (call, _, buffer) => call(buffer, buffer.size, new Uint8Array(4)),
    writeTexture: (call, _, to, data, layout) => call(to, data, layout, [1 << 20, 1]),
    copyExternalImageToTexture: (call, _, from, { texture }, size) =>
      call(from, { texture, origin: [texture.width, 0] }, size),
  },
  GPUBuffer: {
    mapAsync: null,
    getMappedRange: null,
    unmap: null,
  },
  GPUCommandEncoder: {
    beginComputePass: "corrupt",
    copyBufferToBuffer: "corrupt",
    clearBuffer: "corrupt",
    resolveQuerySet: "corrupt",
    finish: "corrupt",
  },
  GPUComputePassEncoder: {
    setPipeline: "corrupt",
    setBindGroup: "corrupt",
    dispatchWorkgroups: "corrupt",
    end: "corrupt",
  },
  GPUTexture: { createView: (call) => call({ baseMipLevel: 50 }) },
  GPUComputePipeline: { getBindGroupLayout: (call) => call(50) },
  GPUShaderModule: { getCompilationInfo: null },
  GPUCanvasContext: { configure: null, getConfiguration: null, getCurrentTexture: null },
  GPU: { requestAdapter: async () => null },
  GPUAdapter: { requestDevice: null },
};

const PROMISES = [
  "popErrorScope",
  "mapAsync",
  "getCompilationInfo",
  "requestAdapter",
  "requestDevice",
];
const MEMORY = ["createBuffer", "createTexture"];

/** What the kinds of faults do to one call. */
function fail(kind, call, self, args, { owner, name }) {
  const how = INVALID[owner][name];
  const invalid = () => (how === "corrupt" ? spoilt(self, call, args) : how(call, self, ...args));
  switch (kind) {
    case "throw":
      if (!PROMISES.includes(name)) throw injected(name);
      if (name === "popErrorScope") call();
      return Promise.reject(injected(name));
    case "invalid":
      return invalid();
    case "memory":
      outOfMemory(self);
      return shielded(self, invalid);
    case "lost":
      plan.device.destroy();
      return call(...args);
  }
}

function spoilt(encoder, call, args) {
  corrupt(encoder);
  return call(...args);
}

/** Whether it is about a buffer of which the library is sure: small, and of the usual kinds. */
function isSmall(name, [first]) {
  if (name !== "createBuffer" && name !== "writeBuffer") return false;
  const { size, usage } = first;
  return size < 1 << 16 && (usage === 204 || usage === 9);
}

/** Whether a fault of this kind is one that this call can have. */
export function canBe(kind, call) {
  const [owner, name] = call.split(/[. ]/);
  if (kind === "invalid" && call === "GPUQueue.writeBuffer small") return false;
  if (kind === "lost") return owner !== "GPU" && owner !== "GPUAdapter";
  if (kind === "throw") return true;
  return kind === "memory" ? MEMORY.includes(name) : INVALID[owner][name] !== null;
}

function watched(owner, name) {
  const original = globalThis[owner].prototype[name];
  raw[owner][name] = original;
  return function (...args) {
    let call = (...given) => original.apply(this, given);
    if (name === "pushErrorScope") call = pushed(this, call);
    if (name === "popErrorScope") call = popped(this, call);
    if (plan !== null && !plan.earlier.has(this)) {
      calls.push(`${owner}.${name}${isSmall(name, args) ? " small" : ""}`);
      if (calls.length === plan.at && (!plan.call || plan.call === calls.at(-1))) {
        plan.hit = calls.at(-1);
        return keep(this, name, fail(plan.kind, call, this, args, { owner, name }));
      }
    }
    return keep(this, name, call(...args));
  };
}

const pushed = (device, call) => (filter) => {
  scopesOf(device).push({ filter });
  return call(filter);
};

const popped = (device, call) => async () => {
  const scope = scopesOf(device).pop();
  const error = await call();
  return scope?.error ?? error;
};

const MADE = ["createBuffer", "createTexture", "createQuerySet"];

function keep(device, name, result) {
  if (MADE.includes(name)) made.set(result, device);
  return result;
}

for (const [owner, methods] of Object.entries(INVALID)) {
  raw[owner] = {};
  for (const name of Object.keys(methods)) {
    globalThis[owner].prototype[name] = watched(owner, name);
  }
}
for (const owner of ["GPUBuffer", "GPUTexture", "GPUQuerySet"]) {
  const { prototype } = globalThis[owner];
  const { destroy } = prototype;
  prototype.destroy = function () {
    made.delete(this);
    destroy.call(this);
  };
}
