// What is known of a GPUBuffer is known however the buffer comes back: as a view, by fromGPUBuffer,
// by an exchange, from the pool, and in another copy of the library.
import { equal, ok, Skip, throws } from "./expect.mjs";
import { keep } from "./gpu.mjs";

const EXCHANGE = Symbol.for("dlpack.exchange");
const MAP_READ = 1;
const STORAGE_COPY = 0x80 | 0x04 | 0x08;
const LEFT = 1234.5;
const TWICE = `
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] *= 2; }`;

const floats = (...values) => Float32Array.from(values);
const turn = () => new Promise((done) => setTimeout(done));

/** Another copy of the library, as a page has it that loads it from npm and from the wheel. */
async function secondCopy({ library }) {
  const root = "/js-source/dist";
  const other = await import(`${root}/index.js`);
  if (other.Tensor === library.Tensor) throw new Skip("modules are loaded once here");
  const { emptyOnDevice } = await import(`${root}/webgpu/buffers/buffers.js`);
  const { useDevice } = await import(`${root}/webgpu/device/device.js`);
  const { dtypeNamed } = await import(`${root}/core/dtype.js`);
  const { take } = await import(`${root}/exchange/index.js`);
  const empty = (device, shape) => emptyOnDevice(useDevice(device), shape, dtypeNamed("float32"));
  return { ...other, take, empty };
}

async function setUp({ library }) {
  const { webgpu, Tensor } = library;
  const device = await webgpu.requestDevice();
  const upload = (array, options, maker = Tensor) => {
    const host = maker.fromTypedArray(array);
    const gpu = keep(host.to(device, options));
    host.release();
    return gpu;
  };
  const first = upload(floats(0));
  const { id } = first.device;
  first.release();
  return {
    device,
    upload,
    stats: () => webgpu.stats()[id],
    broken: () => new webgpu.Kernel(device, TWICE.replace("2;", "nothing;"), { label: "broken" }),
    twice: () => new webgpu.Kernel(device, TWICE),
  };
}

/** All bytes of a buffer, read by hand. */
async function bytesOf(device, buffer, size = buffer.size) {
  const staging = device.createBuffer({ size, usage: MAP_READ | 8 });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(MAP_READ);
  const bytes = new Uint8Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return bytes;
}

/** A consumer of the protocol that is none of ours; returns what `use` does. */
function lend(tensor, use, request) {
  const exchange = tensor[EXCHANGE](request);
  exchange.flush();
  try {
    return use(exchange.data, exchange);
  } finally {
    exchange.release();
  }
}

// --- what is left in a buffer -------------------------------------------------------------------------

export async function what_one_copy_left_the_other_does_not_show(context) {
  const { device, upload } = await setUp(context);
  const other = await secondCopy(context);
  for (const [mine, theirs] of [
    [context.library, other],
    [other, context.library],
  ]) {
    upload(floats(LEFT, LEFT, LEFT, LEFT), {}, mine.Tensor).release();
    const zeros = keep(other.empty(device, [4]));
    equal(await zeros.read(), [0, 0, 0, 0], "an empty tensor");
    upload(new Uint8Array(16).fill(255), {}, mine.Tensor).release();
    const short = upload(new Uint8Array(5).fill(7), {}, theirs.Tensor);
    const capacity = lend(short, (_, exchange) => exchange.capacity);
    equal(capacity, 16);
    equal([...(await bytesOf(device, short.buffer))], [7, 7, 7, 7, 7, ...Array(11).fill(0)]);
  }
}

export async function what_a_kernel_of_one_copy_wrote_the_other_clears(context) {
  const { device, upload } = await setUp(context);
  const other = await secondCopy(context);
  const x = upload(floats(1), {}, other.Tensor);
  const fill = new other.webgpu.Kernel(
    device,
    `@group(0) @binding(0) var<storage, read_write> y: array<vec4f>;
     @compute @workgroup_size(1) fn main() { y[0] = vec4f(${LEFT}); }`,
  );
  fill.run([x], { workgroups: 1 });
  x.release();
  const y = upload(floats(3));
  equal([...new Float32Array((await bytesOf(device, y.buffer)).buffer)], [3, 0, 0, 0]);
}

export async function what_was_read_last_is_in_no_buffer_for_mapping(context) {
  const { device, upload } = await setUp(context);
  const x = upload(floats(LEFT, LEFT, LEFT, LEFT));
  await x.read();
  upload(floats(LEFT)).release(); // which is not for mapping either
  const mapped = upload(floats(1), { usage: MAP_READ });
  device.queue.submit([]); // wgpu maps a buffer before what was written since the last submit
  await mapped.buffer.mapAsync(MAP_READ);
  equal([...new Float32Array(mapped.buffer.getMappedRange())], [1, 0, 0, 0]);
  mapped.buffer.unmap();
  x.release();
  mapped.release();
  // Nor does a read get what such a tensor had.
  const y = upload(floats(5));
  equal(await y.read(), [5]);
}

// --- faults -----------------------------------------------------------------------------------------------

export async function a_fault_comes_along_with_the_buffer(context) {
  const { device, upload, broken, twice } = await setUp(context);
  const { Tensor } = context.library;
  const x = upload(floats(1, 2, 3, 4));
  broken().run([x], { workgroups: 1 });
  const taken = keep(Tensor.from({ [EXCHANGE]: (request) => x[EXCHANGE](request) }));
  const again = keep(Tensor.fromGPUBuffer(x.buffer, { device, shape: [4], dtype: "float32" }));
  const copy = upload(floats(0, 0, 0, 0));
  copy.write(again);
  twice().run([again], { workgroups: 4 });
  for (const [what, tensor] of Object.entries({ x, taken, again, copy })) {
    const error = await throws(() => tensor.read(), "KernelError", /nothing/);
    equal([what, error.label], [what, "broken"]);
  }
  // Whoever has the buffer may write it over whole, for all.
  again.write(floats(5, 6, 7, 8));
  for (const tensor of [x, taken, again]) equal(await tensor.read(), [5, 6, 7, 8]);
  await throws(() => copy.read(), "KernelError", /nothing/);
}

export async function a_fault_comes_along_to_another_copy_of_the_library(context) {
  const { device, upload, broken } = await setUp(context);
  const other = await secondCopy(context);
  const x = upload(floats(1, 2));
  broken().run([x], { workgroups: 1 });
  const taken = keep(other.take(x));
  const again = keep(
    other.Tensor.fromGPUBuffer(x.buffer, { device, shape: [2], dtype: "float32" }),
  );
  ok(!(taken instanceof context.library.Tensor), "a tensor of the other copy");
  for (const tensor of [taken, again]) {
    const error = await throws(() => tensor.read(), "KernelError", /nothing/);
    ok(error instanceof context.library.DeviceError, "the error of the copy that found it");
  }
  // And back.
  taken.write(floats(0, 0));
  equal(await x.read(), [0, 0]);
  const theirs = new other.webgpu.Kernel(device, TWICE.replace("2;", "none;"), { label: "theirs" });
  theirs.run([taken], { workgroups: 1 });
  equal((await throws(() => x.read(), "KernelError", /none/)).label, "theirs");
}

export async function a_fault_ends_where_a_lender_has_its_buffer_back(context) {
  const { device, broken } = await setUp(context);
  const buffer = device.createBuffer({ size: 16, usage: STORAGE_COPY });
  const borrow = () =>
    context.library.Tensor.fromGPUBuffer(buffer, { device, shape: [4], dtype: "float32" });
  const [x, second] = [borrow(), borrow()];
  broken().run([x], { workgroups: 1 });
  x.release();
  await throws(() => second.read(), "KernelError", /nothing/);
  second.release();
  device.queue.writeBuffer(buffer, 0, floats(9, 8, 7, 6)); // its owner computes on
  const later = keep(borrow());
  equal(await later.read(), [9, 8, 7, 6]);
  buffer.destroy();
}

export async function a_fault_of_a_view_that_was_put_aside_is_that_of_its_bytes(context) {
  const { upload, broken } = await setUp(context);
  const x = upload(floats(0, 1, 2, 3, 4, 5, 6, 7));
  const odd = keep(x.slice([1, 5])); // at byte 4, where nothing is bound
  broken().run([odd], { workgroups: 4 });
  await throws(() => odd.read(), "KernelError", /nothing/);
  await throws(() => x.read(), "KernelError", /nothing/);
  const rest = keep(x.slice([5, 8]));
  equal(await rest.read(), [5, 6, 7]);
}

export async function the_next_tensor_in_a_buffer_has_no_fault_of_the_last(context) {
  const { device, upload, broken } = await setUp(context);
  const x = upload(floats(1, 2, 3, 4));
  const kernel = broken();
  kernel.run([x], { workgroups: 1 });
  x.release(); // before anything is known of it
  const zeros = keep(context.bridge.empty([4], "float32", { device }));
  await throws(() => kernel.ready, "KernelError", /nothing/);
  equal(await zeros.read(), [0, 0, 0, 0]);
}

// --- buffers that come back -----------------------------------------------------------------------------

export async function a_buffer_comes_back_from_an_exchange(context) {
  const { upload, stats } = await setUp(context);
  const array = new Uint32Array(1 << 16);
  const before = stats();
  for (let turns = 0; turns < 50; turns++) {
    array[0] = turns;
    const x = upload(array);
    const exchange = x[EXCHANGE]();
    x.release();
    exchange.flush();
    exchange.release();
    exchange.release();
  }
  const { created, taken, buffers } = stats();
  ok(created - before.created <= 2, `${created - before.created} buffers were made`);
  equal([taken - before.taken, buffers - before.buffers], [0, 0]);
  // While it is out, it is not used again.
  const x = upload(array);
  const exchange = x[EXCHANGE]();
  x.release();
  const y = upload(array);
  ok(exchange.data !== y.buffer, "a buffer that a consumer holds is not used again");
  exchange.release();
}

export async function what_a_consumer_left_in_a_buffer_is_not_shown(context) {
  const { device, upload } = await setUp(context);
  const x = upload(floats(1));
  lend(x, (buffer) => device.queue.writeBuffer(buffer, 0, new Float32Array(4).fill(LEFT)));
  const seen = lend(x, (buffer) => buffer);
  x.release();
  const y = upload(floats(2));
  ok(lend(y, (buffer) => buffer) === seen, "the buffer is used again");
  equal([...new Float32Array((await bytesOf(device, y.buffer)).buffer)], [2, 0, 0, 0]);
}

export async function a_buffer_that_a_tensor_was_asked_for_does_not_come_back(context) {
  const { upload, stats } = await setUp(context);
  const other = await secondCopy(context);
  const { taken: before } = stats();
  const x = upload(floats(1, 2, 3));
  const theirs = other.take(x);
  const { buffer } = theirs; // of the other copy's tensor, which may be kept like ours
  x.release();
  theirs.release();
  const y = upload(floats(4, 5, 6));
  ok(y.buffer !== buffer, "another buffer");
  equal(stats().taken - before, 2);
}

export async function a_buffer_that_a_consumer_destroyed_spoils_one_tensor_at_most(context) {
  const { upload } = await setUp(context);
  for (const size of [4, 1 << 16]) {
    const array = new Float32Array(size).fill(3);
    const x = upload(array);
    lend(x, (buffer) => buffer.destroy());
    await throws(() => x.read(), "DeviceError", /destroyed/);
    x.release();
    const y = upload(array);
    equal((await y.read())[size - 1], 3, `${size} elements`);
    // Nobody asked: the next one finds out.
    lend(y, (buffer) => buffer.destroy());
    y.release();
    const spoilt = upload(array);
    await throws(() => spoilt.read(), "DeviceError", /destroyed/);
    spoilt.release();
    const z = upload(array);
    equal((await z.read())[size - 1], 3, `${size} elements`);
    z.release();
  }
}

export async function what_a_consumer_destroyed_spoils_no_other_tensor_s_read(context) {
  const { upload } = await setUp(context);
  const [x, y] = [upload(floats(1)), upload(floats(2, 3))];
  const exchange = x[EXCHANGE]();
  exchange.data.destroy();
  const both = () => context.bridge.readAll([y, x]);
  await throws(both, "DeviceError", /^reading Tensor float32\[1\] on webgpu:\d+ failed/);
  exchange.release();
  // Nor what somebody took.
  for (const options of [{}, { usage: 128 | 4 | 8 | 32 }]) {
    const z = upload(floats(4, 5, 6), options);
    equal(await z.read(), floats(4, 5, 6)); // from now on its own copies have no error scope
    z.buffer.destroy();
    const other = () => context.bridge.readAll([y, z]);
    await throws(other, "DeviceError", /^reading Tensor float32\[3\] on webgpu:\d+ failed/);
    z.release();
  }
}

export async function a_buffer_that_came_back_is_as_good_as_a_fresh_one(context) {
  const { upload } = await setUp(context);
  const x = upload(floats(1, 2));
  const buffer = lend(x, (data) => data);
  x.release();
  const y = upload(floats(3, 4));
  const exchange = y[EXCHANGE]();
  ok(exchange.data === buffer, "it is used again");
  equal(exchange.fault(), null, "faults that are pending");
  exchange.release();
}

export async function after_an_error_buffers_are_used_again_as_before(context) {
  const { upload, broken, stats } = await setUp(context);
  const x = upload(floats(1));
  broken().run([x], { workgroups: 1 });
  await throws(() => x.read(), "KernelError", /nothing/);
  x.release();
  let created;
  for (let turns = 0; turns < 5; turns++) {
    const y = upload(floats(turns));
    equal(await y.read(), [turns]);
    y.release();
    created ??= stats().created; // one for the tensor and one to read into
    equal(stats().created, created, `buffers by turn ${turns}`);
  }
}

// --- buffers that could not be made ---------------------------------------------------------------------

/** Has the device's next buffer be one that nothing can be done with. */
function spoilNext(device) {
  device.createBuffer = (descriptor) => {
    delete device.createBuffer;
    const buffer = device.createBuffer(descriptor);
    buffer.destroy();
    return buffer;
  };
}

/** Keeps the errors that nobody takes off the console. */
function hush(device) {
  device.addEventListener("uncapturederror", (event) => event.preventDefault());
}

export async function an_invalid_small_buffer_spoils_its_tensor_alone(context) {
  const { device, upload } = await setUp(context);
  hush(device);
  spoilNext(device);
  const x = upload(floats(1, 2, 3, 4, 5));
  await throws(() => x.read(), "DeviceError", /failed on/);
  x.release();
  const y = upload(floats(6, 7, 8, 9, 10));
  equal(await y.read(), [6, 7, 8, 9, 10]);
}

export async function an_invalid_small_buffer_that_nobody_read_is_not_used_again(context) {
  const { device, upload } = await setUp(context);
  hush(device);
  spoilNext(device);
  upload(floats(1, 2, 3, 4, 5)).release();
  await device.queue.onSubmittedWorkDone();
  await turn();
  const y = upload(floats(6, 7, 8, 9, 10));
  equal(await y.read(), [6, 7, 8, 9, 10]);
}

export async function an_invalid_small_buffer_that_is_reported_at_once_is_not_used_again(context) {
  const { device } = await setUp(context);
  hush(device);
  device.createBuffer = (descriptor) => {
    delete device.createBuffer;
    const [MAP_READ, STORAGE] = [1, 128]; // which do not go together
    return device.createBuffer({ ...descriptor, usage: MAP_READ | STORAGE });
  };
  // Of a size that no other case has, so that it is not from the pool.
  const empty = () => keep(context.bridge.empty([777], "float32", { device }));
  empty().release();
  await device.queue.onSubmittedWorkDone();
  await turn();
  const x = empty();
  equal([...(await x.read())], Array(777).fill(0));
}

export async function an_invalid_small_buffer_under_a_scope_of_the_page_is_found_out(context) {
  const { device, upload } = await setUp(context);
  spoilNext(device);
  device.pushErrorScope("validation");
  upload(floats(1, 2, 3, 4, 5)).release();
  const taken = await device.popErrorScope();
  ok(taken !== null, "the page's scope took the error");
  const first = upload(floats(6, 7, 8, 9, 10));
  await first.read().catch(() => {}); // that it fails cannot be known before
  first.release();
  const y = upload(floats(6, 7, 8, 9, 10));
  equal(await y.read(), [6, 7, 8, 9, 10]);
}
