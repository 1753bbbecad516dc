// What the GPU finds wrong: told to the reader of what it spoiled, and to nobody else.
import { equal, ok, Skip, throws } from "./expect.mjs";
import { gpu, keep } from "./gpu.mjs";

const source = (body, more = "") => `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
${more}
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { ${body} }`;
const COPY = source("y[id.x] = x[id.x];");

async function setUp(context) {
  const { webgpu, device, upload } = await gpu(context);
  return {
    device,
    webgpu,
    kernel: (wgsl, options) => new webgpu.Kernel(device, wgsl, options),
    broken: (label) => new webgpu.Kernel(device, source(`y[0] = ${label};`), { label }),
    upload: (...values) => upload(Float32Array.from(values)),
  };
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
  }
  equal(await x.read(), [1]);
}

export async function a_bad_kernel_spoils_nothing_that_it_only_reads(context) {
  const { broken, upload } = await setUp(context);
  const [x, y] = [upload(1), upload(0)];
  const kernel = broken("unread");
  kernel.run([x, y], { workgroups: 1 });
  equal(await x.read(), [1]);
  await throws(() => kernel.ready, "KernelError", /unread/);
  await throws(() => kernel.ready, "KernelError", /unread/);
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
}

export async function a_buffer_that_its_owner_destroyed_is_a_fault_of_its_reader(context) {
  const { device, kernel, upload } = await setUp(context);
  const own = upload(4);
  const buffer = device.createBuffer({ size: 16, usage: 0x80 | 0x04 | 0x08 });
  const { Tensor } = context.library;
  const lent = keep(Tensor.fromGPUBuffer(buffer, { device, shape: [1], dtype: "float32" }));
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
}

export async function a_lost_device_is_the_only_reason_then(context) {
  const { library, bridge } = context;
  const { webgpu } = library;
  const { device, empty } = await gpu(context, await webgpu.requestDevice());
  const host = keep(bridge.empty([4, 4, 4], "uint8"));
  const [image, x, y] = [keep(host.to(device)), empty([1]), empty([1])];
  const kernel = new webgpu.Kernel(device, COPY);
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
    () => new webgpu.Kernel(device, COPY),
    () => webgpu.batch(device),
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
  const tensor = keep(library.Tensor.fromGPUBuffer(buffer, options));
  equal((await tensor.read()).length, 0);
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
}
