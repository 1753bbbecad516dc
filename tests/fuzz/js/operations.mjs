// More than 500 lines: one list of operations, from which sequences are drawn.
// What a random sequence is made of: each operation takes the world and a Random of its own, does
// something to the library, and the same to the model. One that finds nothing to work on does nothing.
import { bytesIn, bytesOf, CONVERSIONS, encode, mostOf, NAMES } from "./elements.mjs";
import { FakeTensor, LIES, SLOPS } from "./fake.mjs";
import { EXCHANGE, found, lentBy, Store, same, shared, View } from "./world.mjs";

// --- what it takes --------------------------------------------------------------------------------

/** Packed elements often: few of their views begin and end between bytes. */
const ANY = [...NAMES, "uint4", "uint4"];
const NUMPY = NAMES.filter((name) => name !== "bfloat16" && name !== "uint4");

function someShape(r) {
  if (r.oneIn(40)) return [20_000 + r.below(3)]; // buffers whose making is watched
  return Array.from({ length: r.below(4) }, () => (r.oneIn(12) ? 0 : 1 + r.below(5)));
}

const sizeOf = (shape) => shape.reduce((size, extent) => size * extent, 1);

const someValues = (r, dtype, size) =>
  Array.from({ length: size }, () => r.below(mostOf(dtype) + 1));

const LOST = ["DeviceLostError"];
const REFUSED = ["UnsupportedError"];

const isJS = ({ kind, store }) => kind === "js" && !store.gone;
const onGPU = (entry) => isJS(entry) && entry.store.device !== null;
const onCPU = (entry) => isJS(entry) && entry.store.device === null;
const isPy = ({ kind }) => kind === "py";
const isTensor = (entry) => isJS(entry) || isPy(entry);
/** Whether a tensor is that of the copy which the bridge and the adapters are of. */
const isOurs = ({ context }, entry) => isJS(entry) && entry.copy === context.copies[0];

/** Errors by what is wrong, for `attempt`: one of them must come; none: it must go well. */
function reasons(table, may = []) {
  return { must: Object.entries(table).flatMap(([name, wrong]) => (wrong ? [name] : [])), may };
}

/** What of a GPU tensor makes it impossible to copy it from buffer to buffer. */
const copyReasons = ({ view, store }) => {
  const bad = !view.rowMajor || view.start % 4 !== 0;
  return { UnsupportedError: bad && view.size > 0, DeviceLostError: store.device?.lost };
};
/** Views without elements begin anywhere. */
const mayRefuse = (...entries) => (entries.some(({ view }) => view.size === 0) ? REFUSED : []);

// --- views ----------------------------------------------------------------------------------------

/** Positions of a range as Python's `range(*slice.indices(extent))` has them. */
function positions([start, stop, step], extent) {
  const by = step ?? 1;
  const [lowest, highest] = by > 0 ? [0, extent] : [-1, extent - 1];
  const clip = (n, otherwise) => {
    if (n === null) return otherwise;
    return Math.min(Math.max(n < 0 ? n + extent : n, lowest), highest);
  };
  const made = [];
  const end = clip(stop, by > 0 ? extent : -1);
  for (let at = clip(start, by > 0 ? 0 : extent - 1); by > 0 ? at < end : at > end; at += by) {
    made.push(at);
  }
  return made;
}

/** The index of a view with some positions of each axis, in row-major order. */
function chosen({ shape, index }, axes) {
  let made = [0];
  axes.forEach((list, axis) => {
    made = made.flatMap((at) => list.map((position) => at * shape[axis] + position));
  });
  return made.map((at) => index[at]);
}

/** How to look at a view: the arguments for JavaScript and Python, and the view that comes of it. */
const LOOKS = {
  reshape(r, view) {
    const factors = [];
    for (let rest = view.size; rest > 1 && factors.length < 4; ) {
      const factor = [1, 2, 3, 4, 5, rest].filter((n) => rest % n === 0);
      factors.push(r.of(factor));
      rest /= factors.at(-1);
      if (factors.length === 4) factors.push(rest);
    }
    const shape = view.size === 0 ? [0, 3] : factors;
    if (sizeOf(shape) !== view.size) shape.push(view.size / sizeOf(shape));
    const wrong = r.oneIn(12);
    if (wrong) shape.push(2 + (view.size === 0 ? 0 : r.below(3)));
    if (wrong && view.size === 0) shape[0] = 1;
    const given = shape.map((extent, i) =>
      i === 0 && !wrong && r.oneIn(3) && view.size ? -1 : extent,
    );
    const must = { RangeError: wrong, UnsupportedError: !wrong && !view.fits(shape) };
    return { given, must, made: new View(view.store, shape, view.index) };
  },
  permute(r, view) {
    const axes = [...view.shape.keys()];
    r.shuffle(axes);
    const wrong = axes.length > 1 && r.oneIn(12);
    if (wrong) axes[0] = axes[1];
    const { store, shape } = view;
    const steps = shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));
    let index = [0];
    for (const axis of axes) {
      const places = [...Array(shape[axis]).keys()];
      index = index.flatMap((at) => places.map((i) => at + i * steps[axis]));
    }
    const made = wrong
      ? null
      : new View(
          store,
          axes.map((axis) => shape[axis]),
          index.map((at) => view.index[at]),
        );
    return { given: axes, must: { RangeError: wrong }, made };
  },
  select(r, view) {
    const { shape, store } = view;
    const given = shape.slice(0, r.below(shape.length + 1)).map((extent) => {
      const any = () => (r.oneIn(3) ? null : r.below(2 * extent + 3) - extent - 1);
      if (extent > 0 && r.oneIn(3)) return r.below(2 * extent) - extent;
      return [any(), any(), r.of([null, 1, 1, 2, 3, -1, -2])];
    });
    const axes = shape.map((extent, axis) => {
      const one = given[axis] ?? [null, null, null];
      return typeof one === "number" ? [one < 0 ? one + extent : one] : positions(one, extent);
    });
    const left = axes.filter((_, axis) => typeof given[axis] !== "number");
    const made = new View(
      store,
      left.map(({ length }) => length),
      chosen(view, axes),
    );
    return { given, must: {}, made };
  },
};

const inPythonsWords = {
  RangeError: "ValueError",
  UnsupportedError: "BufferError",
  DeviceError: "BufferError",
};
const pythonReasons = (table, may = []) => {
  const word = (name) => inPythonsWords[name] ?? name;
  const { must } = reasons(table);
  return { must: must.map(word), may: may.map(word) };
};

// --- kernels --------------------------------------------------------------------------------------

const WGSL = { float32: "f32", int32: "i32", uint32: "u32" };

const SOURCES = {
  add: (T) => `
@group(0) @binding(0) var<storage, read_write> x: array<${T}>;
@group(0) @binding(1) var<uniform> y: ${T};
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] = ${T}((u32(x[id.x]) + u32(y)) % 97); }
}`,
  twice: (T) => `
@group(0) @binding(0) var<storage, read> x: array<${T}>;
@group(0) @binding(1) var<storage, read_write> y: array<${T}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < min(arrayLength(&x), arrayLength(&y))) {
    y[id.x] = ${T}((2 * u32(x[id.x])) % 97);
  }
}`,
  flip: () => `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] ^= 0x55555555; }
}`,
  words: () => `
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < min(arrayLength(&x), arrayLength(&y))) { y[id.x] = x[id.x]; }
}`,
  bad: (T) => `
@group(0) @binding(0) var<storage, read_write> x: array<${T}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  x[id.x] = nothing_of_the_kind;
}`,
};

const kernels = new WeakMap();

/** Kernels are kept with their device and their copy of the library, from sequence to sequence. */
function kernelOf({ copy, store }, name, type) {
  const { gpu } = store.device;
  const ofDevice = kernels.get(gpu) ?? new Map();
  kernels.set(gpu, ofDevice);
  const kept = ofDevice.get(copy) ?? new Map();
  ofDevice.set(copy, kept);
  const source = SOURCES[name](type);
  const found = kept.get(source) ?? new copy.library.webgpu.Kernel(gpu, source, { label: name });
  kept.set(source, found);
  return found;
}

/** A kernel, run by the language of its first argument; bad ones have a label of their own. */
async function runKernel(world, name, entries, more, errors) {
  const [first] = entries;
  const { kind, store, copy } = first;
  const type = WGSL[store.dtype] ?? "u32";
  const args = [...entries.map(({ it }) => it), ...more];
  const label = name === "bad" ? `bad ${++world.context.labels}` : name;
  if (kind === "py") {
    const options = { source: SOURCES[name](type), label };
    const { must, may } = pythonReasons(errors.table, errors.may);
    const done = await world.inPython("kernel", args, options, { must, may });
    return done && label;
  }
  const run = () => {
    if (name !== "bad") return kernelOf(first, name, type).run(args);
    const made = new copy.library.webgpu.Kernel(store.device.gpu, SOURCES.bad(type), { label });
    world.bad.set(label, false);
    world.badOn.set(label, store.device);
    return made.run(args);
  };
  const done = await world.attempt(`kernel ${name}`, run, reasons(errors.table, errors.may));
  return done && label;
}

const sameTongue = (one) => (other) => other.kind === one.kind && isTensor(other);
const isWord = ({ store }) => store.dtype in WGSL;

// --- the operations -------------------------------------------------------------------------------

/** A tensor over an array of JavaScript. */
function make_array(world, r) {
  const dtype = r.of(ANY);
  const shape = someShape(r);
  const values = someValues(r, dtype, sizeOf(shape));
  const bytes = encode(dtype, values);
  const shift = r.oneIn(4) ? 1 : 0;
  const array = new Uint8Array(bytes.length + shift).subarray(shift);
  array.set(bytes);
  const store = Object.assign(new Store(dtype, values, "js"), { array });
  const it = world.library.Tensor.fromTypedArray(array, { dtype, shape });
  const facts = { storage: { holds: 0 }, unaligned: shift > 0 && bytesOf(dtype, 2) > 2 };
  world.add("js", it, View.whole(store, shape), facts);
}

/** Another one over the same array, of any strides. */
function make_again(world, r) {
  const entry = world.pick(
    r,
    (e) => isJS(e) && e.store.array && !e.store.released && e.store.dtype !== "uint4",
  );
  if (!entry) return;
  const { array, dtype, values } = entry.store;
  const shape = Array.from({ length: 1 + r.below(2) }, () => 1 + r.below(4));
  const strides = shape.map(() => r.below(7) - 3);
  const offset = r.below(values.length + 1);
  let index = [offset];
  shape.forEach((extent, axis) => {
    const steps = Array.from({ length: extent }, (_, i) => i * strides[axis]);
    index = index.flatMap((at) => steps.map((step) => at + step));
  });
  const fits = index.every((at) => at >= 0 && at < values.length);
  const make = () => world.library.Tensor.fromTypedArray(array, { dtype, shape, strides, offset });
  return world
    .attempt("fromTypedArray with strides", make, reasons({ RangeError: !fits }))
    .then((done) => {
      if (!done) return;
      const { unaligned } = entry;
      const view = new View(entry.store, shape, index);
      world.add("js", done.value, view, { storage: { holds: 0 }, unaligned });
    });
}

/** One in Python's memory. */
function make_heap(world, r) {
  const dtype = r.of(ANY);
  const shape = someShape(r);
  const values = someValues(r, dtype, sizeOf(shape));
  const it = world.bridge.empty(shape, dtype);
  const store = new Store(dtype, values, "heap");
  world.add("js", it, View.whole(store, shape));
  it.write(encode(dtype, values));
}

/** One in the memory of another module, which grows. */
function make_memory(world, r) {
  const dtype = r.of(ANY);
  const shape = someShape(r);
  const values = someValues(r, dtype, sizeOf(shape));
  const store = new Store(dtype, values, "memory");
  store.memory = new WebAssembly.Memory({ initial: 8, maximum: 32 });
  store.released = { times: 0 };
  const ptr = 16 * r.below(9) + (r.oneIn(4) ? 1 : 0);
  const bytes = encode(dtype, values);
  new Uint8Array(store.memory.buffer).set(bytes, ptr);
  const release = () => void store.released.times++;
  const it = world.library.Tensor.fromMemory(store.memory, ptr, { shape, dtype, release });
  const facts = {
    storage: { holds: 0, lent: true },
    unaligned: ptr % 16 !== 0 && bytesOf(dtype, 2) > 2,
  };
  world.add("js", it, View.whole(store, shape), facts);
}

function grow_memory(world, r) {
  const entry = world.pick(r, ({ store }) => store.memory);
  try {
    entry?.store.memory.grow(1 + r.below(3));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // it has grown as far as it may
  }
}

function grow_heap(world) {
  const { context } = world;
  const now = context.pyodide._module.HEAP8.length;
  if (now > 150 << 20) return;
  return world.callPython("grow", [], { nbytes: now });
}

async function make_on_gpu(world, r) {
  const device = r.of(world.devices);
  const dtype = r.of(ANY.filter((name) => !name.startsWith("complex"))); // whose zeros are no elements here
  const shape = someShape(r);
  const store = new Store(dtype, Array(sizeOf(shape)).fill(0), device);
  const view = View.whole(store, shape);
  if (r.oneIn(2)) {
    const make = () => world.bridge.empty(shape, dtype, { device: device.gpu });
    const done = await world.attempt("empty", make, reasons({ DeviceLostError: device.lost }));
    if (done) world.add("js", done.value, view);
  } else {
    const options = { shape, dtype, device: `webgpu:${device.id}` };
    const errors = { must: device.lost ? LOST : [] };
    const done = await world.inPython("empty", [], options, errors);
    if (done) world.add("py", done.value, view);
  }
}

/** One over a buffer that somebody else made. */
async function make_from_buffer(world, r) {
  const device = r.of(world.devices);
  const { gpu } = device;
  const dtype = r.of(ANY);
  const shape = someShape(r);
  const values = someValues(r, dtype, sizeOf(shape));
  const bytes = encode(dtype, values);
  const byteOffset = 16 * r.below(3) * r.below(10);
  const size = Math.ceil((byteOffset + bytes.length + 1) / 16) * 16;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const store = Object.assign(new Store(dtype, values, device), { byteOffset });
  const lends = r.oneIn(2);
  if (lends) store.released = { times: 0 };
  const release = lends ? () => void store.released.times++ : undefined;
  if (device.lost) return;
  const buffer = gpu.createBuffer({ size, usage });
  const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  padded.set(bytes);
  gpu.queue.writeBuffer(buffer, byteOffset, padded);
  const options = { device: gpu, shape, dtype, byteOffset, release };
  const it = world.library.Tensor.fromGPUBuffer(buffer, options);
  world.add("js", it, View.whole(store, shape));
}

/** A buffer that cannot be made: reading it raises the error, and no later tensor gets it. */
async function make_invalid(world, r) {
  const { gpu } = r.of(world.devices.filter(({ lost }) => !lost));
  const size = r.of([1, 20, 40, 70_000]);
  const zeros = world.library.Tensor.fromTypedArray(new Uint8Array(size));
  let spoilt = 0; // 0: the pool had one
  gpu.createBuffer = (descriptor) => {
    spoilt++;
    const usage = descriptor.usage | GPUBufferUsage.MAP_READ; // goes with COPY_DST only
    return GPUDevice.prototype.createBuffer.call(gpu, { ...descriptor, usage });
  };
  let made;
  try {
    made = zeros.to(gpu);
  } finally {
    delete gpu.createBuffer;
    zeros.release();
  }
  world.spoilt += spoilt;
  const errors = { must: spoilt > 0 ? ["DeviceError"] : [] };
  // The library reports the error of a large buffer, which an error scope watches, if nobody reads it.
  if (size > 1 << 16 || r.oneIn(2))
    await world.attempt("reading what is invalid", () => made.read(), errors);
  made.release();
  await gpu.queue.onSubmittedWorkDone();
}

/** One over what a library of somebody else hands out, which may be sloppy. */
async function take_fake(world, r) {
  const { Tensor } = world.library;
  const dtype = r.of(NUMPY);
  const shape = [1 + r.below(4), 1 + r.below(4)];
  const values = someValues(r, dtype, sizeOf(shape));
  const how = r.of(["honest", ...SLOPS]);
  const fake = new FakeTensor(encode(dtype, values), dtype, shape, how);
  const copy = r.oneIn(3);
  const store = new Store(dtype, values, "js");
  const request = copy ? { copy } : {};
  const it = r.oneIn(2) && !copy ? Tensor.from(fake) : world.exchange.take(fake, request);
  if (how === "release_throws") world.complaints++;
  const facts = { storage: { holds: 0, lent: !copy } };
  if (!copy)
    store.released = {
      get times() {
        return fake.released;
      },
    };
  world.add("js", it, View.whole(store, shape), facts);
  found(fake.handed === 1, "it was asked twice");
  found(fake.released === (copy ? 1 : 0), `its hold came back ${fake.released} times at once`);
  if (copy)
    fake.array.fill(1); // that is its own again
  else store.array = fake.array;
}

/** One that lies is refused, and gets its hold back. */
async function take_lie(world, r) {
  const dtype = r.of(NUMPY);
  const fake = new FakeTensor(encode(dtype, [1, 0, 1]), dtype, [3], r.of(Object.keys(LIES)));
  const must = fake.how === "throws_at_flush" ? ["Error"] : REFUSED;
  const copy = r.of([true, false, undefined]);
  const ways = [
    () => world.library.Tensor.from(fake),
    () => world.exchange.take(fake, { copy }),
    () => world.exchange.fit(fake, { copy }),
    () => world.bridge.toPython(fake),
    () => world.bridge.tensor(fake, { copy }),
  ];
  await world.attempt(`taking what has ${fake.how}`, r.of(ways), { must });
  found(fake.released === 1, `the hold of ${fake.how} came back ${fake.released} times`);
}

async function view_of(world, r) {
  const entry = world.pick(r, isTensor);
  if (!entry) return;
  const name = r.of(["reshape", "permute", "select"]);
  const { given, must, made } = LOOKS[name](r, entry.view);
  const { kind, it, storage, unaligned, readOnly } = entry;
  const may = entry.store.dtype === "uint4" ? REFUSED : [];
  let done;
  if (kind === "py") {
    const options = { [{ reshape: "shape", permute: "axes", select: "ranges" }[name]]: given };
    const errors = pythonReasons(must, may);
    if (may.length > 0) errors.may.push(...errors.must.splice(0));
    done = await world.inPython(name, [it], options, errors);
  } else {
    const call = () => (name === "select" ? it.slice(...given) : it[name](given));
    const errors = reasons(must, may);
    if (may.length > 0) errors.may = [...may, ...errors.must.splice(0)];
    done = await world.attempt(`${name}(${JSON.stringify(given)}) of ${entry.view}`, call, errors);
  }
  if (!done || !made) return;
  // Python has such views; nobody can read them.
  if (kind === "py" && entry.store.dtype === "uint4" && !made.rowMajor) done.value.destroy();
  else world.add(kind, done.value, made, { storage, unaligned, readOnly });
}

async function upload(world, r) {
  const entry = world.pick(r, isTensor);
  const device = r.of(world.devices);
  if (!entry) return;
  const { kind, it, view, store, storage, readOnly } = entry;
  const there = store.device;
  const dtype = r.oneIn(3) ? r.of([...(CONVERSIONS[store.dtype] ?? []), store.dtype]) : store.dtype;
  const errors = {
    DeviceLostError: device.lost,
    DeviceError: there !== null && there !== device,
    UnsupportedError: there !== null && dtype !== store.dtype,
  };
  let done;
  if (kind === "py") {
    const options = { device: `webgpu:${device.id}`, ...(dtype !== store.dtype && { dtype }) };
    const words = pythonReasons(errors);
    if (there === device && device.lost && dtype === store.dtype) {
      Object.assign(words, { may: LOST, must: [] });
    }
    done = await world.inPython("to_device", [it], options, words);
  } else {
    const options = { ...(dtype !== store.dtype && { dtype }) };
    if (there === null && r.oneIn(6))
      options.usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC;
    done = await world.attempt("to()", () => it.to(device.gpu, options), reasons(errors));
  }
  if (!done) return;
  if (there) world.add(kind, done.value, view, { storage, readOnly });
  else world.add(kind, done.value, View.whole(new Store(dtype, view.values, device), view.shape));
}

/** What is written is the same shape; nearly always it can be written. */
async function write(world, r) {
  const target = world.pick(r, isTensor);
  if (!target) return;
  const { view, store, it, kind } = target;
  const shape = `${view.shape}`;
  const from = [store.dtype, ...NAMES.filter((name) => CONVERSIONS[name]?.includes(store.dtype))];
  const fitting = (other) =>
    sameTongue(target)(other) &&
    `${other.view.shape}` === shape &&
    from.includes(other.store.dtype);
  const source = r.oneIn(2) ? world.pick(r, fitting) : undefined;
  const dtype = source?.store.dtype ?? r.of(from);
  const convert = dtype !== store.dtype || r.oneIn(3);
  const values = source?.view.values ?? someValues(r, dtype, view.size);
  values.forEach((value, i) => {
    values[i] = Math.min(value, mostOf(store.dtype));
  });
  const there = source?.store.device ?? null;
  const { device } = store;
  const strided = !view.rowMajor || target.readOnly;
  const bad = !source ? false : copyReasons(source).UnsupportedError;
  const table = {
    UnsupportedError:
      strided ||
      (device === null && there !== null) ||
      (device !== null && !view.inWords && view.size > 0) ||
      (device !== null && there === device && (bad || dtype !== store.dtype)),
    DeviceLostError: device?.lost,
    DeviceError: device !== null && there !== null && there !== device,
  };
  const passing =
    source && kind === "js" ? world.passing(source, target.copy) : { must: [], may: [] };
  if (passing.must.length > 0) table.DeviceLostError = true;
  const may = [...mayRefuse(target), ...passing.may];
  let done;
  if (kind === "py") {
    if (!source && !NUMPY.includes(dtype)) return;
    const options = { dtype, shape: view.shape };
    const given = source?.it ?? (await world.callPython("array", [encode(dtype, values)], options));
    done = await world.inPython("write", [it, given], { convert }, pythonReasons(table, may));
    if (!source) given.destroy();
  } else {
    const own = source
      ? null
      : world.library.Tensor.fromTypedArray(encode(dtype, values), { dtype, shape: view.shape });
    const call = world.telling(() => it.write(source?.it ?? own, { convert }));
    const errors = reasons(table, may);
    if (errors.must.length > 0) errors.must.push(...passing.may);
    done = await world.attempt(`write() over ${view} of ${store.place}`, call, errors);
    own?.release();
  }
  if (!done) return;
  view.set(values);
  if (device !== null) view.faults = source?.view.faults ?? new Set();
}

/** A packed copy. */
async function copy(world, r) {
  const entry = world.pick(r, isJS);
  if (!entry) return;
  const { it, view, store } = entry;
  const device = store.device;
  const errors = device ? reasons(copyReasons(entry), mayRefuse(entry)) : {};
  const { exchange } = entry.copy;
  const ways = [() => exchange.take(it, { copy: true }), () => exchange.fit(it, { copy: true })];
  if (isOurs(world, entry)) ways.push(() => world.bridge.tensor(it, { copy: true }));
  if (device) ways.push(() => fit(entry, device, r));
  const done = await world.attempt(`copy of ${view}`, r.of(ways), errors);
  if (!done) return;
  const place = store.place === "memory" ? "js" : store.place;
  const made = View.whole(new Store(store.dtype, view.values, place), view.shape);
  made.faults = view.faults;
  const facts = device || store.place === "heap" ? {} : { storage: { holds: 0, lent: true } };
  world.add("js", done.value, made, facts);
}

const fit = ({ it, copy }, device, r) =>
  copy.exchange.fit(it, {
    device: device.gpu,
    copy: true,
    needs: { offset: 0, padTo: r.of([4, 12, 64, 100]) },
  });

/** A tensor as another consumer needs it: on a GPU. */
async function fit_upload(world, r) {
  const entry = world.pick(r, onCPU);
  const device = r.of(world.devices);
  if (!entry) return;
  const errors = reasons({ DeviceLostError: device.lost });
  const done = await world.attempt("fit()", () => fit(entry, device, r), errors);
  const { view, store } = entry;
  if (done)
    world.add(
      "js",
      done.value,
      View.whole(new Store(store.dtype, view.values, device), view.shape),
    );
}

/** A second hold, by either copy of the library: by an exchange where it is the other one's. */
async function share(world, r) {
  const entry = world.pick(r, isJS);
  if (!entry) return;
  const { it, view, unaligned, readOnly } = entry;
  if (r.oneIn(2)) [world.copy] = world.context.copies;
  const { copy } = world;
  const viaBridge = copy === world.context.copies[0] && r.oneIn(2);
  const make = () => (viaBridge ? world.bridge.tensor(it) : copy.library.Tensor.from(it));
  const errors = world.passing(entry);
  const done = await world.attempt(`sharing ${view}`, world.telling(make), errors);
  if (!done) return;
  if (entry.copy === copy) {
    world.add("js", done.value, view, { storage: entry.storage, unaligned, readOnly });
    return;
  }
  const storage = lentBy(entry.storage);
  world.add("js", done.value, passed(view), { storage, unaligned, readOnly });
}

/** A view as another copy of the library has it: of a buffer it makes a record of its own. */
function passed({ store, shape, index }) {
  return new View(store.device ? store.again(store) : store, shape, index);
}

/** The buffer of a tensor, wrapped once more. Nobody can tell whose the rest of its last word is. */
function wrap(world, r) {
  const fits = ({ view, store }) =>
    !store.device.lost && isOneRange(view) && view.nbytes % 4 === 0 && store.released === null;
  const entry = world.pick(r, (e) => onGPU(e) && fits(e));
  if (!entry) return;
  const { it, view, store } = entry;
  const { buffer } = it;
  const options = {
    device: store.device.gpu,
    dtype: store.dtype,
    shape: [view.size],
    byteOffset: store.byteOffset + view.start,
  };
  const again = world.library.Tensor.fromGPUBuffer(buffer, options);
  world.add("js", again, new View(store.again(), [view.size], view.index));
}

/** Whether its elements are contiguous whole bytes, of which there are some. */
const isOneRange = (view) => view.size > 0 && view.rowMajor && Number.isInteger(view.start);

/** What others see of a buffer: the elements, and zeros as padding. */
async function expose(world, r) {
  const fits = ({ view, store }) =>
    !store.device.lost && isOneRange(view) && view.faultsAround.size === 0;
  const entry = world.pick(r, (e) => onGPU(e) && fits(e));
  if (!entry) return;
  const { it, view, store } = entry;
  const hold = it[EXCHANGE]();
  try {
    const begins = store.byteOffset + view.start;
    found(hold.byteOffset === begins, `${view} begins at ${hold.byteOffset}, not ${begins}`);
    const own = await bytesOfBuffer(store.device, hold);
    const ends = view.start + view.nbytes === bytesOf(store.dtype, store.values.length);
    if (!ends && store.dtype === "uint4" && view.size % 2 === 1) return;
    same(own.slice(0, view.nbytes), view.bytes, `the buffer of ${view}`);
    const rest = own.slice(view.nbytes);
    if (ends && !store.padding.dirty)
      same(rest, new Uint8Array(rest.length), `the padding of ${view}`);
  } finally {
    hold.release();
  }
}

async function bytesOfBuffer({ gpu }, { data, byteOffset, capacity }) {
  const start = byteOffset - (byteOffset % 4);
  const size = Math.min(data.size, 4 * Math.ceil((byteOffset + capacity) / 4)) - start;
  const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
  const staging = gpu.createBuffer({ size, usage });
  const encoder = gpu.createCommandEncoder();
  encoder.copyBufferToBuffer(data, start, staging, 0, size);
  gpu.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const bytes = new Uint8Array(staging.getMappedRange()).slice(byteOffset - start);
  staging.destroy();
  return bytes.subarray(0, capacity);
}

/** A hold that another library has, for a while. */
async function lend(world, r) {
  const entry = world.pick(r, (e) => isJS(e) && !(e.unaligned && e.view.size === 0));
  if (!entry) return;
  const { it, view, storage, store } = entry;
  // A fault that is known already is thrown, and told by that; one that is pending is handed on.
  const known = view.faultsAround.size > 0 ? ["KernelError"] : [];
  const errors = store.device?.lost ? { must: LOST } : { may: known };
  const exchange = () => it[EXCHANGE](r.of([undefined, {}]));
  const done = await world.attempt("exchange", world.telling(exchange), errors);
  if (done) world.add("lent", done.value, view, { storage });
}

async function to_ndarray(world, r) {
  const entry = world.pick(r, (e) => isOurs(world, e) && e.store.dtype !== "uint4");
  if (!entry) return;
  const { it, view, storage, store, unaligned } = entry;
  const { toNdarray } = world.context.ndarray;
  const several = ["bfloat16", "complex64", "complex128"].includes(store.dtype); // entries each
  const errors = { must: store.device || several ? REFUSED : [], may: unaligned ? REFUSED : [] };
  const done = await world.attempt("toNdarray", () => toNdarray(null, it), errors);
  if (done) world.add("nd", done.value, view, { storage, unaligned });
}

/** To another thread and back. */
async function to_worker(world, r) {
  const entry = world.pick(r, isJS);
  if (!entry) return;
  const { it, view, store, storage } = entry;
  const values = view.values;
  if (store.device) {
    await world.attempt("transfer()", () => it.transfer(), { must: REFUSED });
    return;
  }
  const { array } = store;
  const alone = storage?.holds === 1 && !storage.lent && array !== undefined;
  const whole = view.rowMajor && array?.buffer.byteLength === view.nbytes;
  const message = it.transfer();
  world.drop(entry);
  if (alone && whole) found(message.buffer === array.buffer, "transfer() copied");
  else found(message.buffer !== array?.buffer, "transfer() gave what others hold");
  const { back } = await world.send(message);
  if (alone && whole) {
    store.gone = true;
    found(array.buffer.byteLength === 0, "the array was not detached");
  }
  const made = new Store(store.dtype, values, "js");
  made.array = new Uint8Array(back.buffer);
  const arrived = entry.copy.library.Tensor.receive(back);
  world.add("js", arrived, View.whole(made, view.shape), { storage: { holds: 0 } });
}

async function read_gone(world, r) {
  const entry = world.pick(
    r,
    ({ store, view, kind }) => kind === "js" && store.gone && view.nbytes > 0,
  );
  if (!entry) return;
  const { it } = entry;
  const ways = [() => it.read(), () => it.data, () => it.at(...it.shape.map(() => 0))];
  await world.attempt("what is gone", r.of(ways), { must: REFUSED });
}

// --- kernels, images ------------------------------------------------------------------------------

/** What is wrong with any of them is wrong with all that a kernel writes. */
const faultsOf = (...entries) => new Set(entries.flatMap(({ view }) => [...view.faults]));
const onGPUOf = (kind) => (e) => e.kind === kind && e.store.device !== null && e.view.size > 0;
/** What a kernel that is given the one may be given, too. */
const besides = (one) => (e) => onGPUOf(one.kind)(e) && e.copy === one.copy;
const kernelReasons = (written, ...others) => ({
  UnsupportedError:
    [written, ...others].some((e) => copyReasons(e).UnsupportedError) || !written.view.inWords,
  DeviceLostError: written.store.device.lost,
});

async function kernel_add(world, r) {
  const x = world.pick(r, (e) => isTensor(e) && isWord(e) && onGPUOf(e.kind)(e));
  if (!x) return;
  const amount = r.below(90);
  const table = kernelReasons(x);
  const done = await runKernel(world, "add", [x], [amount], { table });
  if (!done) return;
  x.view.set(x.view.values.map((value) => (value + amount) % 97));
  x.view.faults = faultsOf(x);
}

async function kernel_twice(world, r) {
  const x = world.pick(r, (e) => isTensor(e) && isWord(e) && onGPUOf(e.kind)(e));
  if (!x) return;
  const fits = (e) => besides(x)(e) && e.store.dtype === x.store.dtype;
  const y = world.pick(r, fits);
  const table = kernelReasons(y, x);
  table.DeviceError = x.store.device !== y.store.device;
  table.DeviceLostError ||= x.store.device.lost;
  const done = await runKernel(world, "twice", [x, y], [], { table });
  if (!done) return;
  const made = x.view.values.map((value) => (2 * value) % 97);
  y.view.faults = faultsOf(x, y);
  y.view.set(y.view.values.map((value, i) => made[i] ?? value));
}

async function kernel_flip(world, r) {
  const x = world.pick(r, (e) => isTensor(e) && onGPUOf(e.kind)(e) && e.store.dtype === "uint8");
  if (!x) return;
  const done = await runKernel(world, "flip", [x], [], { table: kernelReasons(x) });
  if (!done) return;
  x.view.set(x.view.values.map((value) => value ^ 0x55));
  x.view.faults = faultsOf(x);
  x.store.padding.dirty = true;
}

/** What a shader sees of narrow elements: words, and zeros behind the last. */
async function kernel_words(world, r) {
  const narrow = ({ store, view }) =>
    bytesOf(store.dtype, 2) < 8 &&
    view.size > 0 &&
    (store.dtype !== "uint4" || view.size % 2 === 0);
  const x = world.pick(r, (e) => onGPU(e) && narrow(e) && !e.store.device.lost);
  if (!x) return;
  const { view, store } = x;
  const count = Math.ceil(view.nbytes / 4);
  const zeros = x.copy.library.Tensor.fromTypedArray(new Uint32Array(count));
  const words = zeros.to(store.device.gpu);
  zeros.release();
  const made = {
    kind: "js",
    copy: x.copy,
    it: words,
    view: View.whole(new Store("uint32", Array(count).fill(0), store.device), [count]),
  };
  made.store = made.view.store;
  try {
    const table = { ...kernelReasons(made, x) };
    const done = await runKernel(world, "words", [x, made], [], { table, may: [] });
    if (!done || faultsOf(x).size > 0) return;
    const expected = new Uint8Array(4 * count);
    expected.set(view.bytes);
    const got = bytesIn(await words.read());
    const seen = store.padding.dirty ? view.nbytes : got.length;
    same(got.slice(0, seen), expected.slice(0, seen), `what a shader sees of ${view}`);
  } finally {
    words.release();
  }
}

async function kernel_bad(world, r) {
  const x = world.pick(r, (e) => isTensor(e) && isWord(e) && onGPUOf(e.kind)(e));
  if (!x) return;
  const label = await runKernel(world, "bad", [x], [], { table: kernelReasons(x) });
  if (label) x.view.faults = faultsOf(x).add(label);
}

/** A call that is refused changes nothing. */
async function kernel_refused(world, r) {
  const x = world.pick(r, (e) => onGPU(e) && !e.store.device.lost);
  if (!x) return;
  const { it, store } = x;
  const kernel = kernelOf(x, "add", "f32");
  const calls = [
    ["RangeError", [it]],
    ["RangeError", [it, 1, it]],
    ["TypeError", [it, it.shape]],
  ];
  if (!["float32", "complex64"].includes(store.dtype)) calls.push(["UnsupportedError", [it, 1]]);
  const [name, args] = r.of(calls);
  const run = () => kernel.run(args);
  const strided = x.view.rowMajor ? [] : REFUSED;
  await world.attempt("a wrong call", run, { must: [name, ...strided, ...REFUSED] });
}

async function from_image(world, r) {
  const device = r.of(world.devices);
  const [width, height, channels] = [1 + r.below(5), 1 + r.below(5), r.of([3, 4])];
  const pixels = someValues(r, "uint8", width * height * 4);
  const image = new ImageData(Uint8ClampedArray.from(pixels), width, height);
  const make = () => world.library.webgpu.fromImage(device.gpu, image, { channels });
  const done = await world.attempt("fromImage", make, reasons({ DeviceLostError: device.lost }));
  if (!done) return;
  const values = pixels.filter((_, i) => i % 4 < channels);
  const store = new Store("uint8", values, device);
  world.add("js", done.value, View.whole(store, [height, width, channels]));
}

/** A texture of a tensor, and a tensor of that. */
async function to_texture(world, r) {
  const isImage = ({ view, store }) =>
    store.dtype === "uint8" &&
    view.shape.length === 3 &&
    [1, 3, 4].includes(view.shape[2]) &&
    view.size > 0;
  const entry = world.pick(r, (e) => onGPU(e) && isImage(e));
  if (!entry) return;
  const { it, view, store } = entry;
  const { fromImage, toTexture } = entry.copy.library.webgpu;
  const faulty = view.faults.size > 0;
  const { must } = reasons(copyReasons(entry));
  const errors = { must: faulty && must.length === 0 ? ["KernelError"] : must };
  const make = world.telling(() => toTexture(it));
  const done = await world.attempt("toTexture", make, errors);
  if (!done) return;
  const made = await fromImage(store.device.gpu, done.value);
  done.value.destroy();
  const channels = view.shape[2];
  const values = Array.from({ length: (view.size / channels) * 4 }, (_, i) => {
    if (i % 4 >= channels && (channels > 1 || i % 4 === 3)) return 255;
    return view.values[Math.floor(i / 4) * channels + (channels === 1 ? 0 : i % 4)];
  });
  const target = new Store("uint8", values, store.device);
  world.add("js", made, View.whole(target, [...view.shape.slice(0, 2), 4]));
}

// --- the other language ----------------------------------------------------------------------------

async function to_python(world, r) {
  const entry = world.pick(r, isJS);
  if (!entry) return;
  const { it, view, store } = entry;
  const isLent = entry.copy !== world.context.copies[0];
  // What another copy lends is not known as Python's memory.
  const shares = store.device !== null || (store.place === "heap" && !isLent);
  const made = shares ? view : View.whole(new Store(store.dtype, view.values, "heap"), view.shape);
  const calls = [() => world.bridge.toPython(it), () => world.callPython("from_js", [it])];
  const errors = world.passing(entry, world.context.copies[0]);
  const done = await world.attempt("toPython", world.telling(r.of(calls)), errors);
  if (!done) return;
  const storage = isLent ? lentBy(entry.storage) : entry.storage;
  const there = shares && isLent ? passed(made) : made;
  world.add("py", done.value, there, shares ? shared({ storage }) : {});
}

async function to_javascript(world, r) {
  const entry = world.pick(r, ({ kind }) => kind === "py" || kind === "np");
  if (!entry) return;
  const { it, view } = entry;
  if (view.store.dtype === "uint4" && !view.rowMajor) return;
  const made = r.oneIn(2) ? world.bridge.tensor(it) : await world.callPython("twin", [it]);
  world.add("js", made, view, shared(entry));
}

async function make_numpy(world, r) {
  const dtype = r.of(NUMPY);
  const shape = someShape(r);
  const values = someValues(r, dtype, sizeOf(shape));
  const store = new Store(dtype, values, "heap");
  const it = await world.callPython("array", [encode(dtype, values)], { dtype, shape });
  world.add("np", it, View.whole(store, shape));
}

async function borrow(world, r) {
  const entry = world.pick(r, ({ kind }) => kind === "py" || kind === "np");
  if (!entry) return;
  const { it, view, store } = entry;
  const copy = store.device === null && r.oneIn(3);
  const done = await world.inPython("borrow", [it], copy ? { copy } : {});
  const made = copy ? View.whole(new Store(store.dtype, view.values, "heap"), view.shape) : view;
  world.add("py", done.value, made, copy ? {} : shared(entry));
}

async function convert(world, r) {
  const entry = world.pick(r, ({ kind, store }) => kind === "py" && store.dtype in CONVERSIONS);
  if (!entry) return;
  const { it, view, store } = entry;
  const dtype = r.of(CONVERSIONS[store.dtype]);
  const errors = { must: store.device ? ["BufferError"] : [] };
  if (store.device?.lost) errors.must.push(...LOST);
  const done = await world.inPython("convert", [it], { dtype, device: "cpu" }, errors);
  if (done)
    world.add("py", done.value, View.whole(new Store(dtype, view.values, "heap"), view.shape));
}

async function to_numpy(world, r) {
  const entry = world.pick(
    r,
    ({ kind, store }) => kind === "py" && !store.device && NUMPY.includes(store.dtype),
  );
  if (!entry) return;
  world.add("np", await world.callPython("numpy", [entry.it]), entry.view, shared(entry));
}

// --- time passes -----------------------------------------------------------------------------------

/** A read that is under way while other things happen; Python's begin when they are awaited. */
function begin_read(world, r) {
  const entry = world.pick(r, (e) => onGPU(e) && !e.store.device.lost);
  if (entry) world.read(entry, world.readGPU(entry));
}

async function read_all(world, r) {
  const list = world.entries.filter(
    (e) => isOurs(world, e) && !e.store.device?.lost && e.view.faultsAround.size === 0,
  );
  r.shuffle(list);
  const some = list.slice(0, 1 + r.below(4));
  const expected = some.map(({ view }) => view.bytes);
  const arrays = await world.bridge.readAll(some.map(({ it }) => it));
  some.forEach(({ view }, i) => {
    same(bytesIn(arrays[i]), expected[i], `readAll, ${view}`);
  });
}

/** Into another tensor's memory. */
async function read_into(world, r) {
  const out = world.pick(r, onCPU);
  if (!out) return;
  const fits = (e) =>
    isJS(e) &&
    e.copy === out.copy &&
    e.store.dtype === out.store.dtype &&
    e.view.size === out.view.size;
  const source = world.pick(r, fits);
  const { view, store } = source;
  const values = view.values;
  const table = {
    UnsupportedError: !out.view.rowMajor,
    DeviceLostError: store.device?.lost,
    KernelError: view.faults.size > 0,
  };
  const may = view.faultsAround.size > 0 ? ["KernelError"] : [];
  const read = world.telling(() => source.it.read(out.it));
  const done = await world.attempt("read(out)", read, reasons(table, may));
  if (done) out.view.set(values);
}

async function release(world, r) {
  const entry = world.pick(r);
  if (!entry) return;
  const again = entry.kind === "js" && r.oneIn(4);
  world.let(entry, r.below(2));
  if (!again) return;
  const { it } = entry;
  it.release();
  const ways = [
    () => it.read(),
    () => it.data,
    () => it.slice(),
    () => it.to(world.devices[0].gpu),
  ];
  await world.attempt("use after release", r.of(ways), { must: ["ReleasedError"] });
}

async function lose(world, r) {
  const device = r.of(world.devices.filter(({ lost }) => !lost));
  device.gpu.destroy();
  await device.gpu.lost;
  device.lost = true;
  for (const [label, on] of world.badOn) if (on === device) world.bad.set(label, undefined);
  for (const { store, it, kind } of world.entries) {
    if (store.device !== device || kind !== "js") continue;
    await world.attempt("reading what is lost", () => it.read(), { must: LOST });
  }
  await world.addDevice();
}

/** How often each comes. */
export const OPERATIONS = new Map([
  [make_array, 4],
  [make_again, 2],
  [make_heap, 3],
  [make_memory, 2],
  [make_numpy, 3],
  [make_on_gpu, 4],
  [make_from_buffer, 2],
  [make_invalid, 2],
  [take_fake, 2],
  [take_lie, 1],
  [grow_memory, 1],
  [grow_heap, 1],
  [view_of, 14],
  [upload, 12],
  [write, 10],
  [copy, 4],
  [fit_upload, 2],
  [share, 5],
  [wrap, 2],
  [expose, 4],
  [lend, 2],
  [to_ndarray, 2],
  [to_worker, 2],
  [read_gone, 1],
  [kernel_add, 5],
  [kernel_twice, 5],
  [kernel_flip, 3],
  [kernel_words, 3],
  [kernel_bad, 2],
  [kernel_refused, 1],
  [from_image, 2],
  [to_texture, 2],
  [to_python, 5],
  [to_javascript, 5],
  [borrow, 3],
  [convert, 2],
  [to_numpy, 2],
  [begin_read, 5],
  [read_all, 2],
  [read_into, 2],
  [release, 8],
  [lose, 1],
]);
