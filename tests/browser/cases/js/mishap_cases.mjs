// Single calls of WebGPU go wrong, as the fuzzer `fuzz-js` has them go wrong one after the other: each of
// these cases it once found. Nothing is left over, and whoever asked is told, once.
import { equal, ok, throws } from "./expect.mjs";
import { gpu, keep } from "./gpu.mjs";

const LARGE = 20_000; // from 64 KiB on the making of a buffer is watched
const WORSE = `
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[0] = nothing_of_the_kind; }`;

const turn = () => new Promise((done) => setTimeout(done));

/** Puts `make(method)` in the place of an object's method while `block` runs. */
async function instead(object, name, make, block) {
  const own = Object.getOwnPropertyDescriptor(object, name);
  const method = object[name];
  object[name] = make(method);
  try {
    return await block();
  } finally {
    delete object[name];
    if (own) Object.defineProperty(object, name, own);
  }
}

/** As `instead`, for the first call alone. */
const once = (make) => (method) => {
  let done = false;
  return function (...args) {
    if (done) return method.apply(this, args);
    done = true;
    return make.call(this, method, ...args);
  };
};

/** How many objects of a kind are destroyed while `block` runs. */
async function destroyedBy({ prototype }, block) {
  let count = 0;
  const counting = (destroy) =>
    function () {
      count++;
      destroy.call(this);
    };
  await instead(prototype, "destroy", counting, block);
  return count;
}

const broken = () => {
  throw new DOMException("made to fail", "OperationError");
};

/** With a device of its own for each case, which spoils it. */
async function setUp(context) {
  const { requestDevice, stats } = context.library.webgpu;
  const world = await gpu(context, await requestDevice());
  const none = world.empty([0], "int8");
  const { id } = none.device;
  none.release();
  return { ...world, stats: () => stats()[id], id };
}

/** The errors that no scope takes while `block` runs. */
async function uncaptured(device, block) {
  const told = [];
  const listener = (event) => {
    event.preventDefault();
    told.push(event.error.message);
  };
  device.addEventListener("uncapturederror", listener);
  await block();
  await device.queue.onSubmittedWorkDone();
  await turn();
  device.removeEventListener("uncapturederror", listener);
  return told;
}

/** An invalid buffer: what is mapped for reading can be bound by nobody. */
const invalidBuffer = function (createBuffer, { size, usage }) {
  return createBuffer.call(this, { size, usage: usage | 1 | 128 });
};

export async function no_memory_to_read_into_is_told_to_the_reader_alone(context) {
  const { device, upload } = await setUp(context);
  const x = upload(new Float32Array(LARGE));
  const told = await uncaptured(device, () =>
    instead(device, "createBuffer", once(invalidBuffer), () =>
      throws(() => x.read(), "DeviceError", /createBuffer for reading/),
    ),
  );
  equal(told, []);
  equal((await x.read()).length, LARGE);
  device.destroy();
}

export async function a_device_lost_while_memory_is_mapped_is_named(context) {
  const { device, upload } = await setUp(context);
  const x = upload(new Float32Array(3));
  const lose = function (getMappedRange, ...args) {
    device.destroy();
    return getMappedRange.apply(this, args);
  };
  await instead(GPUBuffer.prototype, "getMappedRange", once(lose), () =>
    throws(() => x.read(), "DeviceLostError", /upload again/),
  );
}

export async function a_webgpu_without_compilation_info_has_the_devices_words(context) {
  const { device, upload } = await setUp(context);
  const x = upload(new Float32Array(3));
  await instead(GPUShaderModule.prototype, "getCompilationInfo", once(broken), async () => {
    const kernel = new context.library.webgpu.Kernel(device, WORSE, { label: "worse" });
    kernel.run([x], { workgroups: 1 });
    // Firefox's device says no more than that.
    const words = /nothing_of_the_kind|Parsing error/;
    const error = await throws(() => x.read(), "KernelError", words);
    equal([error.label, error.line ?? null], ["worse", null]);
  });
}

export async function error_scopes_that_reject_are_heard(context) {
  const { device, upload } = await setUp(context);
  const unheard = [];
  const listener = (event) => {
    event.preventDefault();
    unheard.push(event.reason.message);
  };
  addEventListener("unhandledrejection", listener);
  let calls = 0;
  const pop = (popErrorScope) =>
    function () {
      const popped = popErrorScope.call(this);
      // The second rejects long before the first has anything to say.
      return calls++ % 2 === 1 ? Promise.reject(new Error("made to fail")) : popped;
    };
  await instead(device, "popErrorScope", pop, async () => {
    const x = upload(new Float32Array(LARGE));
    x.release();
    await device.queue.onSubmittedWorkDone();
    await turn();
  });
  removeEventListener("unhandledrejection", listener);
  ok(calls > 1, "there were scopes");
  equal(unheard, []);
  device.destroy();
}

export async function buffers_come_back_where_a_call_throws(context) {
  const { library } = context;
  const { device, upload, stats } = await setUp(context);
  upload(new Float32Array(8)).release();
  const { idleBytes } = stats();
  const empty = () => context.bridge.empty([5], "float32", { device });
  // An idle buffer that cannot be cleared is destroyed.
  const destroyed = await destroyedBy(GPUBuffer, () =>
    instead(device.queue, "writeBuffer", once(broken), () =>
      throws(empty, "OperationError", /made to fail/),
    ),
  );
  equal([stats().idleBytes, destroyed], [idleBytes - 32, 1]);
  // What a number was to be written to goes back to the pool.
  const x = upload(new Uint32Array(4));
  const kernel = new library.webgpu.Kernel(
    device,
    `@group(0) @binding(0) var<storage, read_write> x: array<u32>;
     @group(0) @binding(1) var<uniform> y: u32;
     @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] += y; }`,
  );
  await instead(device.queue, "writeBuffer", once(broken), () =>
    throws(() => kernel.run([x, 3]), "OperationError", /made to fail/),
  );
  equal(stats().buffers, 1);
  kernel.run([x, 3]);
  equal(await x.read(), [3, 3, 3, 3]);
  device.destroy();
}

export async function pipelines_that_failed_are_made_anew(context) {
  const { library } = context;
  const { device, upload } = await setUp(context);
  const { fromImage, toTexture } = library.webgpu;
  const nowhere = function (createComputePipeline, descriptor) {
    const compute = { ...descriptor.compute, entryPoint: "nowhere" };
    return createComputePipeline.call(this, { ...descriptor, compute });
  };
  const x = upload(new Uint8Array(9).fill(7)); // with a tail to be made 0
  const copy = () => context.bridge.tensor(keep(library.Tensor.from(x)), { copy: true });
  const image = () => fromImage(device, new ImageData(2, 1));
  const picture = upload(new Uint8Array(4).fill(9), { shape: [1, 1, 4] });
  for (const make of [copy, image]) {
    // Three are made for tails, of which this needs the first.
    const bad = keep(await instead(device, "createComputePipeline", once(nowhere), make));
    await throws(() => bad.read(), "DeviceError", /nowhere|nvalid/);
    const good = keep(await make());
    equal((await good.read()).length, good.size);
  }
  const nothing = function (createRenderPipeline, descriptor) {
    const fragment = { ...descriptor.fragment, entryPoint: "nowhere" };
    return createRenderPipeline.call(this, { ...descriptor, fragment });
  };
  await instead(device, "createRenderPipeline", once(nothing), () =>
    throws(() => toTexture(picture), "DeviceError", /nowhere|nvalid/),
  );
  (await toTexture(picture)).destroy();
  device.destroy();
}

export async function textures_that_fail_are_told_of_once_and_destroyed(context) {
  const { library } = context;
  const { device, upload } = await setUp(context);
  const { fromImage, listenForFaults, toTexture } = library.webgpu;
  const told = [];
  listenForFaults(device, (error) => told.push(error.message) > 0);
  const picture = upload(new Uint8Array(4), { shape: [1, 1, 4] });
  const useless = function (createTexture, descriptor) {
    return createTexture.call(this, { ...descriptor, usage: 0 });
  };
  await instead(device, "createTexture", once(useless), () =>
    throws(() => toTexture(picture), "DeviceError", /toTexture of/),
  );
  const textures = await destroyedBy(GPUTexture, () =>
    instead(device, "createCommandEncoder", once(broken), () =>
      throws(() => fromImage(device, new ImageData(2, 1)), "OperationError", /made to fail/),
    ),
  );
  equal(textures, 1);
  await new Promise((done) => setTimeout(done, 1500)); // faults wait for a reader for a second
  equal(told, []);
  device.destroy();
}

export async function what_measuring_needs_is_told_of_once_and_destroyed(context) {
  const { timed } = context.library.webgpu;
  const { device, stats } = await setUp(context);
  if (!device.features.has("timestamp-query")) return;
  const useless = function (createQuerySet, descriptor) {
    return createQuerySet.call(this, { ...descriptor, count: 1 << 20 });
  };
  const told = await uncaptured(device, () =>
    instead(device, "createQuerySet", once(useless), () =>
      throws(() => timed(device, () => {}), "DeviceError", /GPU's time/),
    ),
  );
  equal(told, []);
  const destroyed = await destroyedBy(GPUQuerySet, () =>
    instead(device, "createBuffer", once(broken), () =>
      throws(() => timed(device, () => {}), "OperationError", /made to fail/),
    ),
  );
  equal([destroyed, stats().buffers], [1, 0]);
  device.destroy();
}

export async function views_of_no_elements_are_read_from_anywhere(context) {
  const { device, empty, id } = await setUp(context);
  const x = empty([0, 5], "complex64");
  const view = keep(x.slice(null, 4)); // where its elements would begin is behind the end of the buffer
  equal((await view.read()).length, 0);
  const shape = await context.pyodide.runPythonAsync(`
import dlpack_web as dlw
with dlw.empty((0, 5), "complex64", device="webgpu:${id}") as x, x[:, 4] as view:
    shape = (await view.to_host()).shape
list(shape)`);
  equal(shape.toJs(), [0]);
  shape.destroy();
  device.destroy();
}

export async function python_is_warned_of_devices_that_javascript_made(context) {
  const { id } = await setUp(context);
  const { pyodide } = context;
  const code = `
import asyncio, warnings
import dlpack_web as dlw
async def unread():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with dlw.empty(3, device="webgpu:${id}") as x:
            dlw.webgpu.Kernel('''${WORSE}''', label="unread")(x, workgroups=1)
        for _ in range(100):
            await asyncio.sleep(0.1)
            if told:
                break
    return [str(each.message) for each in told]
await unread()`;
  const told = await pyodide.runPythonAsync(code);
  const messages = told.toJs();
  told.destroy();
  equal(messages.length, 1);
  ok(/kernel "unread" failed/.test(messages[0]), messages[0]);
}

export async function packed_elements_that_end_within_a_byte_have_a_neighbour(context) {
  const { device, empty, upload } = await setUp(context);
  const whole = upload(Uint8Array.of(0x21, 0x43), { dtype: "uint4", shape: [4] });
  const part = keep(whole.slice([0, 3]));
  await throws(() => part.write(Uint8Array.of(0xff, 0x0f)), "UnsupportedError", /neighbours/);
  equal(await part.read(), [0x21, 0x03]);
  equal(await whole.read(), [0x21, 0x43]);
  whole.write(Uint8Array.of(0x65, 0x87));
  equal(await whole.read(), [0x65, 0x87]);
  const own = empty([3], "uint4"); // ends within a byte that is its alone
  own.write(Uint8Array.of(0x21, 0x03));
  equal(await own.read(), [0x21, 0x03]);
  device.destroy();
}

export async function reading_what_could_not_be_made_is_told_once({ library, bridge }) {
  const { listenForFaults, requestDevice } = library.webgpu;
  const device = await requestDevice();
  const told = [];
  listenForFaults(device, (error) => told.push(error.message) > 0);
  const host = keep(bridge.empty([6], "float32"));
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.VERTEX;
  const x = keep(
    await instead(device, "createBuffer", once(invalidBuffer), () => host.to(device, { usage })),
  );
  await throws(() => x.read(), "DeviceError", /createBuffer for 32 bytes/);
  await new Promise((done) => setTimeout(done, 1500)); // faults wait for a reader for a second
  equal(told, []);
  device.destroy();
}
