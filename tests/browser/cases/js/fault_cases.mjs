// What the GPU finds wrong: told to the reader of what it spoiled, and to nobody else.
import { equal, ok, Skip, throws } from "./expect.mjs";

const source = (body, more = "") => `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
${more}
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { ${body} }`;
const ADD = source("y[id.x] += x[id.x];");
const COPY = source("y[id.x] = x[id.x];");

let devicePromise;
async function setUp({ library, bridge }) {
  devicePromise ??= library.webgpu.requestDevice();
  const device = await devicePromise;
  const { Kernel } = library.webgpu;
  return {
    device,
    webgpu: library.webgpu,
    kernel: (wgsl, options) => new Kernel(device, wgsl, options),
    broken: (label) => new Kernel(device, source(`y[0] = ${label};`), { label }),
    upload(...values) {
      const host = bridge.empty([values.length], "float32");
      host.data.set(values);
      const gpu = host.to(device);
      host.release();
      return gpu;
    },
  };
}

const after = (ms) => new Promise((done) => setTimeout(done, ms));

const releaseAll = (...tensors) => {
  for (const tensor of tensors) tensor.release();
};

/** The faults that nobody asked for, told while `block` runs and afterwards: `count`, or more. */
async function toldOf(device, webgpu, count, block) {
  const told = [];
  const end = webgpu.listenForFaults(device, (error) => {
    told.push(error);
    return true;
  });
  try {
    await block();
    // On a busy machine outcomes come late.
    for (let i = 0; i < 600 && told.length < count; i++) await after(100);
    await after(1500); // they wait for a reader for a second
  } finally {
    end();
  }
  return told;
}

export async function every_bad_kernel_has_its_own_words(context) {
  const { broken, upload } = await setUp(context);
  const x = upload(1);
  const outs = ["first", "second", "third"].map((label) => {
    const y = upload(0);
    broken(label).run([x, y], { workgroups: 1 });
    return [label, y];
  });
  for (const [label, y] of outs.reverse()) {
    const error = await throws(
      () => y.read(),
      "KernelError",
      new RegExp(`(value '|identifier: .)${label}`),
    );
    equal([error.label, error.line], [label, 5]);
    ok(error instanceof context.library.DeviceError, "a KernelError is a DeviceError");
    y.release();
  }
  equal(await x.read(), [1]);
  x.release();
}

export async function reads_at_once_fail_and_succeed_by_themselves(context) {
  const { broken, kernel, upload } = await setUp(context);
  const [x, bad, good] = [upload(1), upload(0), upload(2)];
  broken("nothing").run([x, bad], { workgroups: 1 });
  kernel(ADD).run([x, good], { workgroups: 1 });
  const outcomes = await Promise.allSettled(
    [x, bad, good, bad, good].map((tensor) => tensor.read()),
  );
  equal(
    outcomes.map(({ status, value, reason }) =>
      status === "fulfilled" ? [...value] : reason.name,
    ),
    [[1], "KernelError", [3], "KernelError", [3]],
  );
  await throws(() => context.bridge.readAll([good, bad]), "KernelError", /nothing/);
  equal(await context.bridge.readAll([good, x]), [[3], [1]]);
  releaseAll(x, bad, good);
}

export async function faults_are_handed_on_with_the_data(context) {
  const { broken, kernel, upload } = await setUp(context);
  const [x, y, z, copy] = [upload(1), upload(0), upload(5), upload(0)];
  broken("origin").run([x, y], { workgroups: 1 });
  kernel(ADD).run([y, z], { workgroups: 1 });
  copy.write(z);
  const view = copy.reshape([1, 1]);
  for (const tensor of [z, copy, view]) {
    const error = await throws(() => tensor.read(), "KernelError", /origin/);
    equal(error.label, "origin");
  }
  // What is written over whole has nothing to do with it any more.
  z.write(new Float32Array([7]));
  equal([...(await z.read())], [7]);
  await throws(() => copy.read(), "KernelError", /origin/);
  releaseAll(x, y, z, copy, view);
}

export async function a_bad_kernel_spoils_nothing_that_it_only_reads(context) {
  const { broken, upload } = await setUp(context);
  const [x, y] = [upload(1), upload(0)];
  const kernel = broken("unread");
  kernel.run([x, y], { workgroups: 1 });
  equal(await x.read(), [1]);
  await throws(() => kernel.ready, "KernelError", /unread/);
  await throws(() => kernel.ready, "KernelError", /unread/);
  releaseAll(x, y);
}

export async function timing_a_bad_kernel_says_so(context) {
  const { device, webgpu, broken, kernel, upload } = await setUp(context);
  if (!device.features.has("timestamp-query")) {
    await throws(() => webgpu.timed(device, () => {}), "UnsupportedError", /timestamp-query/);
    return;
  }
  const [x, y, z] = [upload(1), upload(0), upload(0)];
  const bad = broken("untimed");
  const time = (one, out) =>
    webgpu.timed(device, (timestampWrites) =>
      one.run([x, out], { workgroups: 1, timestampWrites }),
    );
  await throws(() => time(bad, y), "KernelError", /untimed/);
  ok((await time(kernel(COPY), z)) >= 0, "another is timed");
  const untimed = () => webgpu.timed(device, () => kernel(COPY).run([x, z]));
  await throws(untimed, "TypeError", /the pass that gets its timestampWrites/);
  equal(await z.read(), [1]);
  releaseAll(x, y, z);
}

export async function what_nobody_reads_is_told_once(context) {
  const { device, webgpu, broken, upload } = await setUp(context);
  const told = await toldOf(device, webgpu, 1, async () => {
    const [x, y] = [upload(1), upload(0)];
    const kernel = broken("unasked");
    kernel.run([x, y], { workgroups: 1 });
    kernel.run([x, y], { workgroups: 1 });
    releaseAll(x, y);
  });
  equal(told.length, 1, "faults that were told");
  equal([told[0].name, told[0].label], ["KernelError", "unasked"]);
}

export async function what_was_read_is_not_told_again(context) {
  const { device, webgpu, broken, upload } = await setUp(context);
  const told = await toldOf(device, webgpu, 0, async () => {
    const [x, y] = [upload(1), upload(0)];
    broken("asked").run([x, y], { workgroups: 1 });
    await throws(() => y.read(), "KernelError", /asked/);
    releaseAll(x, y);
  });
  equal(told.length, 0, "faults that were told");
}

export async function a_buffer_that_its_owner_destroyed_is_a_fault_of_its_reader(context) {
  const { device, kernel, upload } = await setUp(context);
  const own = upload(4);
  const buffer = device.createBuffer({ size: 16, usage: 0x80 | 0x04 | 0x08 });
  const { Tensor } = context.library;
  const lent = Tensor.fromGPUBuffer(buffer, { device, shape: [1], dtype: "float32" });
  buffer.destroy();
  const out = upload(0);
  kernel(COPY).run([lent, out], { workgroups: 1 });
  const outcomes = await Promise.allSettled([lent.read(), own.read(), out.read()]);
  equal(
    outcomes.map(({ status, reason }) => reason?.name ?? status),
    ["DeviceError", "fulfilled", "KernelError"],
  );
  ok(/destroyed/i.test(outcomes[0].reason.message), outcomes[0].reason.message);
  equal(await own.read(), [4]);
  releaseAll(own, lent, out);
}

export async function what_went_wrong_is_not_used_again(context) {
  const { device, webgpu, upload, broken } = await setUp(context);
  const [x, y] = [upload(1), upload(0)];
  broken("pooled").run([x, y], { workgroups: 1 });
  await throws(() => y.read(), "KernelError", /pooled/);
  y.release();
  // The buffer is sound: what is written into it next is read as it is.
  const again = upload(8);
  equal(await again.read(), [8]);
  const zeros = context.bridge.empty([1], "float32", { device });
  equal(await zeros.read(), [0]);
  const { lost } = webgpu.stats().find(({ device: name }) => name === `${again.device}`);
  equal(lost, null);
  releaseAll(x, again, zeros);
}

export async function a_lost_device_is_the_only_reason_then(context) {
  const { library, bridge } = context;
  const { webgpu } = library;
  const device = await webgpu.requestDevice();
  const host = bridge.empty([4, 4, 4], "uint8");
  const [image, x] = [host.to(device), bridge.empty([1], "float32", { device })];
  const y = bridge.empty([1], "float32", { device });
  const kernel = new webgpu.Kernel(device, ADD);
  const pending = [x.read(), webgpu.toTexture(image)].map((promise) => promise.catch((e) => e));
  const hasTimes = device.features.has("timestamp-query");
  device.destroy();
  for (const found of await Promise.all(pending)) {
    ok(found.name === "DeviceLostError" || !(found instanceof Error), `${found}`);
    if (!(found instanceof Error)) found.destroy?.();
  }
  await device.lost;
  const uses = [
    () => x.read(),
    () => x.read(new Float32Array(1)),
    () => bridge.readAll([x, y]),
    () => kernel.run([x, y], { workgroups: 1 }),
    () => kernel.ready,
    () => new webgpu.Kernel(device, ADD),
    () => host.to(device),
    () => x.write(new Float32Array(1)),
    () => bridge.empty([1], "float32", { device }),
    ...(globalThis.OffscreenCanvas
      ? [() => webgpu.toCanvas(image, new OffscreenCanvas(1, 1))]
      : []),
    () => webgpu.toTexture(image),
    () => webgpu.fromImage(device, new ImageData(1, 1)),
    () => lend(library, device),
    ...(hasTimes ? [() => webgpu.timed(device, () => {})] : []),
  ];
  for (const use of uses) await throws(use, "DeviceLostError", /is lost .*upload again/);
  releaseAll(host, image, x, y);
}

function lend({ Tensor }, device) {
  const buffer = device.createBuffer({ size: 16, usage: 0x80 });
  return Tensor.fromGPUBuffer(buffer, { device, shape: [1], dtype: "float32" });
}

export async function a_device_that_is_none_is_not_registered(context) {
  const { library, bridge } = context;
  const before = library.webgpu.stats().length;
  const fake = { queue: {}, limits: {}, lost: new Promise(() => {}), createBuffer() {} };
  for (const device of [{}, fake]) {
    await throws(() => bridge.empty([1], "float32", { device }), "TypeError", /GPUDevice/);
  }
  equal(library.webgpu.stats().length, before);
}

export async function no_elements_are_not_read_from_a_device_that_goes({ library, bridge }) {
  const read = async (shape, when) => {
    const device = await library.webgpu.requestDevice();
    const tensor = bridge.empty(shape, "float32", { device });
    if (when === "before") device.destroy();
    const reading = tensor.read();
    if (when === "meanwhile") device.destroy();
    tensor.release();
    return reading;
  };
  for (const shape of [[0], [4]]) {
    for (const when of ["before", "meanwhile"]) {
      await throws(() => read(shape, when), "DeviceLostError", /is lost/);
    }
    equal((await read(shape, "never")).length, shape[0]);
  }
}

export async function no_elements_at_the_end_of_a_buffer_are_read({ library }) {
  const device = await library.webgpu.requestDevice();
  const buffer = device.createBuffer({ size: 6, usage: 0x04 });
  const options = { device, shape: [0], dtype: "uint8", byteOffset: 6 };
  const tensor = library.Tensor.fromGPUBuffer(buffer, options);
  equal((await tensor.read()).length, 0);
  tensor.release();
}

export async function what_is_timed_is_submitted_before_it_returns(context) {
  const { device, webgpu, kernel, upload } = await setUp(context);
  if (!device.features.has("timestamp-query")) throw new Skip("the adapter has no timestamp-query");
  const [x, y] = [upload(1), upload(0)];
  const run = (timestampWrites) => kernel(COPY).run([x, y], { workgroups: 1, timestampWrites });
  let ended = false;
  const late = async (timestampWrites) => {
    await device.queue.onSubmittedWorkDone();
    run(timestampWrites); // which may still write its times
    ended = true;
  };
  await throws(() => webgpu.timed(device, late), "TypeError", /async.*await its inputs first/);
  equal(ended, true, "it was waited for");
  const fails = async () => {
    throw new RangeError("of its own");
  };
  await throws(() => webgpu.timed(device, fails), "RangeError", /of its own/);
  await throws(() => webgpu.timed(device, async () => {}), "TypeError", /async/);
  ok((await webgpu.timed(device, run)) >= 0);
  equal(await y.read(), [1]);
  releaseAll(x, y);
}
