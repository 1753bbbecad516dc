// What a random sequence of the pool's model is made of. Each operation does something to one of the
// copies of the library, and the same to lists of bytes; one that finds nothing to work on does nothing.
import { bytesIn, Memory, Place, SIZES, wordsIn } from "./memory.mjs";

const NAMES = Object.keys(SIZES);
const COPY_SRC = 4;
const COPY_DST = 8;
const STORAGE = 128;
/** Flags asked of `to`, which adds COPY_DST; MAP_READ goes with nothing else. */
const USAGES = [1, 1, 4, 8, 4 | 16, 4 | 32, 4 | 64, 4 | 128, 128, 4 | 128 | 256];
const EXCHANGE = Symbol.for("dlpack.exchange");
/** What a producer throws that knows already what is wrong with the elements. */
const FAULTS = ["DeviceError", "KernelError"];
const REFUSED = { must: ["UnsupportedError"] };

const someBytes = (r, count) => Uint8Array.from({ length: count }, () => 1 + r.below(255));

/** Number of elements: few, none, and now and then so many that making the buffer is watched. */
function someCount(r, dtype) {
  if (r.oneIn(30)) return 70_000 / SIZES[dtype] + r.below(3);
  // Buffers of few sizes, so that the pool has one that fits.
  return r.oneIn(15) ? 0 : r.of([1, 3, 4, 5, 8, 9, 15, 16, 17]);
}

const can = (entry, flags) => (entry.memory.usage & flags) === flags;
const onGPU = ({ memory }) => memory.device !== null;
/** What a kernel or a copy on the GPU takes. */
const isBound = (entry, flags) =>
  onGPU(entry) &&
  entry.place.count > 0 &&
  entry.place.dense &&
  entry.place.start % 4 === 0 &&
  can(entry, flags);
const isWords = (entry) =>
  entry.place.dtype === "uint32" && isBound(entry, STORAGE | COPY_SRC | COPY_DST);

// --- making -----------------------------------------------------------------------------------------

function empty(world, r) {
  const { copy, device } = world.somewhere(r);
  const dtype = r.of(NAMES);
  const count = someCount(r, dtype);
  const it = copy.empty(device, dtype, count);
  const memory = new Memory(device, new Uint8Array(count * SIZES[dtype]));
  world.add(copy, it, Place.whole(memory, dtype));
}

/** In memory of JavaScript, or of Python. */
function make_on_cpu(world, r) {
  const { copy } = world.somewhere(r);
  const dtype = r.of(NAMES);
  const count = someCount(r, dtype);
  const bytes = someBytes(r, count * SIZES[dtype]);
  world.add(copy, hostTensor(copy, r, dtype, bytes), Place.whole(new Memory(null, bytes), dtype));
}

function hostTensor(copy, r, dtype, bytes) {
  const shape = [bytes.length / SIZES[dtype]];
  if (r.oneIn(2)) return copy.Tensor.fromTypedArray(bytes.slice(), { dtype, shape });
  const made = copy.bridge.empty(shape, dtype);
  made.write(bytes);
  const taken = copy.Tensor.from(made);
  made.release();
  return taken;
}

function upload(world, r) {
  const source = world.pick(r, (entry) => !onGPU(entry));
  if (!source) return;
  const device = r.of(world.devices);
  const usage = r.oneIn(3) ? r.of(USAGES) : undefined;
  const it = source.it.to(device.gpu, usage === undefined ? {} : { usage });
  const facts = usage === undefined ? {} : { usage: usage | COPY_DST };
  const memory = new Memory(device, source.place.bytes, facts);
  world.add(source.copy, it, Place.whole(memory, source.place.dtype));
}

/** Over a buffer of somebody else, who wants to hear of its end, or not. */
function make_from_buffer(world, r) {
  const { copy, device } = world.somewhere(r);
  const dtype = r.of(NAMES);
  const bytes = someBytes(r, SIZES[dtype] * (1 + r.below(40)));
  const byteOffset = 8 * r.below(4) * r.below(10);
  const size = 16 * Math.ceil((byteOffset + bytes.length) / 16);
  const usage = r.of([COPY_SRC | COPY_DST | STORAGE, COPY_SRC | COPY_DST, COPY_SRC | STORAGE]);
  const memory = new Memory(device, bytes, { usage, start: byteOffset, size });
  memory.padded = false;
  if (r.oneIn(2)) memory.released = 0;
  const buffer = device.raw.createBuffer({ size, usage, mappedAtCreation: true });
  new Uint8Array(buffer.getMappedRange()).set(memory.bytes);
  buffer.unmap();
  memory.foreign = buffer;
  const release = memory.released === null ? {} : { release: () => void memory.released++ };
  const shape = [bytes.length / SIZES[dtype]];
  const options = { device: device.gpu, dtype, shape, byteOffset, ...release };
  world.add(
    copy,
    copy.Tensor.fromGPUBuffer(buffer, options),
    Place.whole(memory, dtype, byteOffset),
  );
}

/** An invalid buffer: reading it raises the error; other tensors are unaffected. */
async function make_invalid(world, r) {
  const { copy, device } = world.somewhere(r);
  const dtype = r.of(NAMES);
  const large = r.oneIn(2);
  const count = large ? 70_000 / SIZES[dtype] + r.below(3) : r.of([1, 4, 8, 17]);
  const memory = new Memory(device, new Uint8Array(count * SIZES[dtype]));
  let spoilt = 0;
  device.spoil = (descriptor) => {
    spoilt++;
    return { ...descriptor, usage: descriptor.usage | 1 | STORAGE }; // MAP_READ goes with COPY_DST only
  };
  const it = copy.empty(device, dtype, count);
  device.spoil = null;
  memory.invalid = spoilt > 0; // else it came from the pool
  if (!large) device.unheard += spoilt; // no error scope is around it
  world.add(copy, it, Place.whole(memory, dtype));
}

// --- looking ----------------------------------------------------------------------------------------

function view(world, r) {
  const entry = world.pick(r, ({ place }) => place.count > 0);
  if (!entry) return;
  const { count } = entry.place;
  const a = r.below(count + 1);
  const b = r.below(count + 1);
  const range = r.oneIn(6)
    ? [r.below(count), -1, -1 - r.below(2)]
    : [Math.min(a, b), Math.max(a, b), 1];
  if (range[2] === 1 && r.oneIn(4)) range[2] = 2;
  const given = range[2] < 0 ? [range[0], null, range[2]] : range;
  world.add(entry.copy, entry.it.slice(given), entry.place.slice(range));
}

/** A second hold, by either copy: by the protocol where it is another one's. */
async function share(world, r) {
  const entry = world.pick(r);
  if (!entry) return;
  const { copy } = world.somewhere(r);
  const may = copy !== entry.copy && entry.place.faults.size > 0 ? FAULTS : [];
  const share = () => copy.Tensor.from(entry.it);
  const done = await world.attempt(`sharing ${entry.place}`, share, { may });
  if (done) world.add(copy, done.value, entry.place);
}

/** An exchange that somebody holds for a while. */
function lend(world, r) {
  const entry = world.pick(r, onGPU);
  if (!entry || entry.place.faults.size > 0) return;
  const it = entry.it[EXCHANGE]();
  world.add(entry.copy, it, entry.place, "lent");
}

/** The buffer itself, wrapped once more. */
function wrap(world, r) {
  // Nobody can tell whose the last word of a part is, nor how much of a wide padding is the tensor's.
  const ends = ({ place, memory }) => place.end === memory.used && !memory.wide;
  const fits = (e) => e.place.dense && (e.place.nbytes % 4 === 0 || ends(e));
  const entry = world.pick(
    r,
    (e) => onGPU(e) && e.place.count > 0 && fits(e) && e.memory.released === null,
  );
  if (!entry) return;
  const { copy } = world.somewhere(r);
  const { it, place, memory } = entry;
  const { buffer } = it;
  world.took(entry, buffer);
  const { gpu } = memory.device;
  const options = {
    device: gpu,
    dtype: place.dtype,
    shape: [place.count],
    byteOffset: place.start,
  };
  world.add(copy, copy.Tensor.fromGPUBuffer(buffer, options), place);
}

/** A packed copy, padded and usable as somebody asks for it. */
async function copy_of(world, r) {
  const entry = world.pick(r, (e) => onGPU(e) && !e.memory.invalid);
  if (!entry || entry.place.count === 0) return;
  const { it, place, copy, memory } = entry;
  const usage = r.oneIn(2) ? undefined : r.of([204, 204 | 32, COPY_SRC | COPY_DST | STORAGE | 16]);
  const needs = usage === undefined ? { padTo: r.of([4, 64, 100]) } : { exactUsage: usage };
  const make = () => copy.exchange.fit(it, { device: memory.device.gpu, copy: true, needs });
  const good = isBound(entry, COPY_SRC);
  const done = await world.attempt(`copy of ${place}`, make, good ? {} : REFUSED);
  if (!done) return;
  const made = new Memory(memory.device, place.bytes, { usage: usage ?? 204 });
  made.wide = usage === undefined;
  const whole = Place.whole(made, place.dtype);
  whole.set(place.bytes, place.faults);
  world.add(copy, done.value, whole);
}

// --- writing ----------------------------------------------------------------------------------------

/** From memory of the CPU, or of the same device, which may be a part of the same buffer. */
async function write(world, r) {
  const target = world.pick(r, ({ place }) => place.count > 0);
  if (!target) return;
  const { copy, place, memory } = target;
  const { device } = memory;
  const fits = ({ place: p, memory: m }) =>
    p.dtype === place.dtype &&
    p.count === place.count &&
    (m.device === null || m.device === device);
  const source = r.oneIn(2) ? world.pick(r, fits) : undefined;
  const bytes = source?.place.bytes ?? someBytes(r, place.nbytes);
  const faults = source?.place.faults ?? new Set();
  const tail = source !== undefined && onGPU(source) && place.nbytes % 4 !== 0;
  const good =
    place.dense &&
    (!tail || can(target, STORAGE)) &&
    (device === null || (place.inWords && can(target, COPY_DST))) &&
    (!source || !onGPU(source) || isBound(source, COPY_SRC));
  const own = source ? null : hostTensor(copy, r, place.dtype, bytes);
  const call = () => target.it.write(source?.it ?? own);
  const may = faults.size > 0 && source.copy !== copy ? FAULTS : [];
  const errors = good ? { may } : { must: [...REFUSED.must, ...may] };
  const done = await world.attempt(`write over ${place}`, call, errors);
  own?.release();
  if (done) place.set(bytes, faults);
}

// --- kernels ----------------------------------------------------------------------------------------

const main = (body) =>
  `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { ${body} }`;
const variable = (i, name, access) =>
  `@group(0) @binding(${i}) var<storage, ${access}> ${name}: array<u32>;`;
const X = variable(0, "x", "read_write");
const SOURCES = {
  add: `${X} ${main("if (id.x < arrayLength(&x)) { x[id.x] = 3 * x[id.x] + 1; }")}`,
  bad: `${X} ${main("x[id.x] = nothing_of_the_kind;")}`,
  words: `${X} ${variable(1, "y", "read")}
${main("if (id.x < min(arrayLength(&x), arrayLength(&y))) { x[id.x] = y[id.x] ^ 0xa5a5a5a5u; }")}`,
  both: `${X} ${variable(1, "y", "read_write")}
${main("if (id.x < arrayLength(&x)) { x[id.x] += 1; } if (id.x < arrayLength(&y)) { y[id.x] += 2; }")}`,
};

/** Kernels are kept with their device. */
const kernels = new WeakMap();

function kernelOf(copy, { gpu }, name) {
  if (!kernels.has(gpu)) kernels.set(gpu, new Map());
  const kept = kernels.get(gpu);
  const key = `${name} ${copy.name}`;
  if (!kept.has(key)) kept.set(key, new copy.webgpu.Kernel(gpu, SOURCES[name], { label: name }));
  return kept.get(key);
}

/** Runs it; what it wrote has what is wrong with any argument, and with the kernel itself. */
async function run(world, kernel, written, others, errors = {}) {
  const all = [...written, ...others];
  const call = () =>
    kernel.run(
      all.map(({ it }) => it),
      { workgroups: 2000 },
    );
  const what = `kernel over ${all.map(({ place }) => place).join(", ")}`;
  return world.attempt(what, call, errors);
}

const faultsOf = (...entries) => new Set(entries.flatMap(({ place }) => [...place.faults]));

function setWords(entry, make, faults) {
  const words = wordsIn(entry.place.bytes).map(make);
  entry.place.set(bytesIn(words), faults);
}

async function kernel_add(world, r) {
  const x = world.pick(r, isWords);
  if (!x) return;
  await run(world, kernelOf(x.copy, x.memory.device, "add"), [x], []);
  setWords(x, (word) => 3 * word + 1, faultsOf(x));
}

/** Its label tells one from the other. */
async function kernel_bad(world, r) {
  const x = world.pick(r, isWords);
  if (!x) return;
  const label = `bad ${world.labels++}`;
  const { copy, memory } = x;
  await run(world, new copy.webgpu.Kernel(memory.device.gpu, SOURCES.bad, { label }), [x], []);
  x.place.set(x.place.bytes, new Set([...x.place.faults, label]));
}

/** From any dtype as words, with the zeros behind it. */
async function kernel_words(world, r) {
  const y = world.pick(r, (e) => isBound(e, STORAGE | COPY_SRC) && e.place.dtype !== "float64");
  if (!y) return;
  const x = world.pick(
    r,
    (e) => isWords(e) && e.copy === y.copy && e.memory.device === y.memory.device,
  );
  if (!x) return;
  const { place } = y;
  const padded = new Uint8Array(4 * Math.ceil(place.nbytes / 4));
  padded.set(place.bytes);
  // What is behind the elements in a buffer of somebody else is that one's affair.
  if (place.nbytes % 4 !== 0 && !y.memory.padded) return;
  const words = wordsIn(padded);
  const faults = faultsOf(x, y);
  await run(world, kernelOf(x.copy, x.memory.device, "words"), [x], [y]);
  setWords(x, (word, i) => (i < words.length ? words[i] ^ 0xa5a5a5a5 : word), faults);
}

async function kernel_both(world, r) {
  const x = world.pick(r, isWords);
  if (!x) return;
  const fits = (e) => isWords(e) && e.copy === x.copy && e.memory.device === x.memory.device;
  const near = r.oneIn(2) ? world.pick(r, (e) => fits(e) && e.memory === x.memory) : undefined;
  const y = near ?? world.pick(r, fits);
  const overlap = x.place.overlaps(y.place);
  const kernel = kernelOf(x.copy, x.memory.device, "both");
  const faults = faultsOf(x, y);
  await run(world, kernel, [x, y], [], overlap ? REFUSED : {});
  if (overlap) return;
  setWords(x, (word) => word + 1, faults);
  setWords(y, (word) => word + 2, faults);
}

// --- reading ----------------------------------------------------------------------------------------

/** Begun here, and compared when the sequence comes to `settle`. */
async function read(world, r) {
  const entry = world.pick(r, onGPU);
  if (entry) await world.read(entry, r);
}

async function read_all(world, r) {
  const fits = (e) =>
    e.copy === world.copies[0] && e.place.faults.size === 0 && (!onGPU(e) || can(e, COPY_SRC));
  const some = world.entries.filter((e) => e.kind === "tensor" && fits(e));
  r.shuffle(some);
  const chosen = some.slice(0, 1 + r.below(4));
  const expected = chosen.map(({ place }) => place.bytes);
  const arrays = await world.copies[0].bridge.readAll(chosen.map(({ it }) => it));
  for (const [i, { place }] of chosen.entries())
    world.same(bytesIn(arrays[i]), expected[i], `readAll, ${place}`);
}

const isExposed = (entry) =>
  onGPU(entry) &&
  entry.place.dense &&
  can(entry, COPY_SRC) &&
  !entry.memory.invalid &&
  entry.place.faults.size === 0;

async function expose(world, r) {
  const entry = world.pick(r, isExposed);
  if (entry) await compareBuffer(world, entry);
}

/** What is behind the elements of all tensors that have padding. */
export async function expose_all(world) {
  const seen = new Set();
  for (const entry of world.entries) {
    const { place, memory, kind } = entry;
    const ends = memory.padded && place.end === memory.used && memory.used % 16 !== 0;
    if (kind !== "tensor" || seen.has(memory) || !ends || !isExposed(entry)) continue;
    seen.add(memory);
    await compareBuffer(world, entry);
  }
}

/** All of the buffer that a tensor has to itself, padding included, as others see it. */
async function compareBuffer(world, entry) {
  const { it, place, memory } = entry;
  const hold = it[EXCHANGE]();
  try {
    if (hold.capacity === 0) return;
    world.equal(hold.byteOffset, place.count ? place.start : hold.byteOffset, `offset of ${place}`);
    const { bytes, at } = await rawBytes(memory.device, hold);
    const own = bytes.subarray(at, at + hold.capacity);
    world.same(own.subarray(0, place.nbytes), place.bytes, `the buffer of ${place}`);
    const rest = own.subarray(place.nbytes);
    if (memory.padded && place.end === memory.used)
      world.same(rest, new Uint8Array(rest.length), `the padding of ${place}`);
  } finally {
    hold.release();
  }
}

/** What was made to be mapped is mapped. */
async function map(world, r) {
  const entry = world.pick(r, (e) => onGPU(e) && can(e, 1) && e.place.dense && e.place.count > 0);
  if (!entry || entry.memory.mapped) return;
  const { place, memory } = entry;
  const { buffer } = entry.it;
  world.took(entry, buffer);
  memory.mapped = true;
  try {
    await buffer.mapAsync(1);
    const bytes = new Uint8Array(buffer.getMappedRange()).slice();
    world.same(bytes.subarray(place.start, place.end), place.bytes, `mapped ${place}`);
    const rest = bytes.subarray(memory.used);
    world.same(rest, new Uint8Array(rest.length), `the padding of ${place}, mapped`);
  } finally {
    buffer.unmap();
    memory.mapped = false;
  }
}

async function rawBytes({ raw, gpu }, { data, byteOffset, capacity }) {
  const start = byteOffset - (byteOffset % 4);
  const end = Math.min(data.size, 4 * Math.ceil((byteOffset + capacity) / 4));
  const staging = raw.createBuffer({ size: end - start, usage: 1 | COPY_DST });
  const encoder = gpu.createCommandEncoder();
  encoder.copyBufferToBuffer(data, start, staging, 0, end - start);
  gpu.queue.submit([encoder.finish()]);
  await staging.mapAsync(1);
  const bytes = new Uint8Array(staging.getMappedRange()).slice();
  staging.destroy();
  return { bytes, at: byteOffset - start };
}

// --- ending -----------------------------------------------------------------------------------------

function release(world, r) {
  const entry = world.pick(r, () => true, ["tensor", "lent"]);
  if (entry) world.drop(entry);
}

/** Many at once, so that the pool has something to give. */
function release_many(world, r) {
  for (let n = 2 + r.below(6); n > 0; n--) release(world, r);
}

function destroy_foreign(world, r) {
  const entry = world.pick(r, ({ memory }) => memory.foreign && !memory.invalid);
  if (!entry) return;
  entry.memory.foreign.destroy();
  entry.memory.invalid = true;
}

async function lose(world, r) {
  if (!r.oneIn(4)) return;
  const device = r.of(world.devices);
  device.gpu.destroy();
  device.lost = true;
  await device.gpu.lost;
  await world.settle();
  for (const entry of world.entries.filter(({ memory }) => memory.device === device)) {
    const errors = { must: ["DeviceLostError"] };
    if (entry.kind === "tensor" && can(entry, COPY_SRC))
      await world.attempt("reading what is lost", () => entry.it.read(), errors);
    world.drop(entry);
  }
  await world.replace(device);
}

const settle = (world) => world.settle();

/** How often each comes. */
export const OPERATIONS = new Map([
  [empty, 8],
  [make_on_cpu, 8],
  [upload, 16],
  [make_from_buffer, 3],
  [make_invalid, 1],
  [view, 8],
  [share, 6],
  [lend, 2],
  [wrap, 2],
  [copy_of, 4],
  [write, 8],
  [kernel_add, 6],
  [kernel_bad, 4],
  [kernel_words, 5],
  [kernel_both, 4],
  [read, 8],
  [read_all, 3],
  [expose, 5],
  [map, 3],
  [release, 10],
  [release_many, 6],
  [destroy_foreign, 1],
  [settle, 3],
  [lose, 1],
]);
