// The exchange protocol on a GPU; each function is a test. Its rules are tested by the suite of packages/exchange, on
// this GPU, too.
import { EXCHANGE, EXCHANGE_ASYNC, fit, takeAsync } from "/js/exchange/index.js";
import { webgpu } from "/js/index.js";
import { counted, equal, ok, throws } from "./expect.mjs";
import { keep, upload } from "./gpu.mjs";

const VALUES = Float32Array.of(0, 1, 2, 3, 4, 5);

let devices;
function twoDevices() {
  devices ??= Promise.all([webgpu.requestDevice(), webgpu.requestDevice()]);
  return devices;
}

function capacityOf(tensor) {
  const exchange = tensor[EXCHANGE]();
  exchange.release();
  return exchange.capacity;
}

export async function a_tensor_describes_itself(context) {
  const [device] = await twoDevices();
  const x = upload(context, VALUES, device, { shape: [2, 3] });
  const exchange = counted(context, () => x[EXCHANGE](), {});
  const { flush, fault, release, data, device: where, ...rest } = exchange;
  equal(fault(), null, "small uploads cannot fail");
  equal(rest, {
    version: [1, 1],
    dtype: { code: 2, bits: 32, lanes: 1 },
    shape: [2, 3],
    strides: null,
    byteOffset: 0,
    capacity: 32,
    flags: 0,
  });
  equal([where.type, where.id, `${x.device}`], [15, where.id, `webgpu:${where.id}`]);
  ok(data === x.buffer && where.gpu === device, "the buffer and the device themselves");
  x.release();
  flush();
  const copy = device.createBuffer({ size: 24, usage: 8 | 1 });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(data, 0, copy, 0, 24);
  device.queue.submit([encoder.finish()]);
  release();
  release();
  await copy.mapAsync(1);
  equal(new Float32Array(copy.getMappedRange()), VALUES, "elements outlive the tensor");
  copy.destroy();
}

export async function fit_passes_on_copies_once_or_refuses(context) {
  const [device, other] = await twoDevices();
  const x = upload(context, VALUES, device);
  const same = counted(context, () => fit(x, { needs: { offset: 0, padTo: 16 } }), {});
  ok(same.buffer === x.buffer, "passed on");
  same.release();
  const { Tensor } = context.library;
  const at = { device, shape: [2], dtype: "float32", byteOffset: 8 };
  const middle = keep(Tensor.fromGPUBuffer(x.buffer, at));
  equal(capacityOf(middle), 8, "what follows is not its own");
  const cases = [
    [middle, { needs: { offset: 0 } }, /begins at byte 8/],
    [middle, { needs: { padTo: 16 } }, /has 8 bytes to itself.*not 16/],
    [x, { needs: { usage: 128 | 32 } }, /lacks GPUBufferUsage flags/],
  ];
  for (const [tensor, request, why] of cases) {
    const made = counted(context, () => fit(tensor, request), { gpu_copies: 1 });
    equal(await made.read(), tensor === x ? VALUES : [2, 3]);
    made.release();
    await throws(() => fit(tensor, { ...request, copy: false }), "CopyError", why);
  }
  const fresh = counted(context, () => fit(x, { copy: true }), { gpu_copies: 1 });
  ok(fresh.buffer !== x.buffer, "copy: true");
  fresh.release();
  await throws(() => fit(x, { device: other }), "DeviceError", /cannot be used on/);
  await throws(() => fit(x, { device: null }), "DeviceError", /await its read\(\)/);
}

export async function cpu_tensors_are_uploaded_where_a_device_is_asked_for(context) {
  const [device] = await twoDevices();
  const x = keep(context.library.Tensor.fromTypedArray(VALUES));
  await throws(() => fit(x, { device, copy: false }), "CopyError", /not on that GPUDevice/);
  await throws(() => x[EXCHANGE]({ device, copy: false }), "CopyError", /not on that GPUDevice/);
  const made = counted(context, () => fit(x, { device }), { copies: 1 });
  equal(await made.read(), VALUES);
  made.release();
  const exchange = x[EXCHANGE]({ device });
  ok(exchange.device.gpu === device && exchange.flags === 2, "uploaded, and said so");
  exchange.release();
}

export async function usages_can_be_asked_for_exactly(context) {
  const [device] = await twoDevices();
  const x = upload(context, VALUES, device);
  const { usage } = x.buffer;
  const same = counted(context, () => fit(x, { needs: { exactUsage: usage } }), {});
  ok(same.buffer === x.buffer, "passed on");
  same.release();
  const needs = { exactUsage: 8 | 4 };
  const made = counted(context, () => fit(x, { needs }), { gpu_copies: 1 });
  equal([made.buffer.usage, await made.read()], [12, VALUES]);
  made.release();
  await throws(() => fit(x, { needs, copy: false }), "CopyError", /not exactly 12/);
  await throws(() => fit(x, { needs: { exactUsage: 4 } }), "UnsupportedError", /add COPY_DST/);
  const halves = upload(context, new Uint16Array(3), device);
  await throws(() => fit(halves, { needs }), "UnsupportedError", /needs a buffer with STORAGE/);
  halves.release();
  const array = keep(context.library.Tensor.fromTypedArray(VALUES));
  const sent = keep(fit(array, { device, needs }));
  equal([sent.buffer.usage, await sent.read()], [12, VALUES]);
}

export async function who_waits_gets_tensors_from_wherever_they_are(context) {
  const [device, other] = await twoDevices();
  const x = upload(context, VALUES, device);
  const live = context.library.liveTensors();
  const host = await takeAsync(x, { device: null });
  equal([host.device.gpu, [...host]], [null, [...VALUES]]);
  host.release();
  const moved = await takeAsync(x, { device: other });
  equal([moved.device.gpu === other, await moved.read()], [true, VALUES]);
  moved.release();
  const here = await x[EXCHANGE_ASYNC]({ device, copy: false });
  ok(here.data === x.buffer && here.flags === 0, "nothing to wait for");
  here.release();
  const fresh = await x[EXCHANGE_ASYNC]({ device: null });
  equal([fresh.flags, [...fresh.data]], [2, [...VALUES]]);
  fresh.release();
  const there = await x[EXCHANGE_ASYNC]({ device: other, copy: true });
  equal([there.flags, ArrayBuffer.isView(there.data)], [2, false]);
  there.release();
  await throws(() => takeAsync(x, { device: null, copy: false }), "CopyError", /not on the CPU/);
  const aborted = AbortSignal.abort(new Error("enough"));
  await throws(() => takeAsync(x, { device: null, signal: aborted }), "Error", /enough/);
  const control = new AbortController();
  const waiting = takeAsync(x, { device: null, signal: control.signal });
  control.abort(new Error("enough of it"));
  await throws(() => waiting, "Error", /enough of it/);
  x.release();
  await throws(() => x[EXCHANGE_ASYNC]({ device: null }), "ReleasedError", /released/);
  // What was given up is read to its end, and then let go of.
  for (let i = 0; i < 6000 && context.library.liveTensors() >= live; i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  equal(context.library.liveTensors(), live - 1);
}

export async function libraries_find_the_pages_device({ library }) {
  const PAGE = Symbol.for("dlpack.device");
  const { pageDevice } = library.webgpu;
  const [one, two] = await Promise.all([pageDevice(), pageDevice({ features: [] })]);
  ok(one === two && (await globalThis[PAGE]) === one, "whoever comes first");
  const adapter = await navigator.gpu.requestAdapter();
  equal([...one.features].sort(), [...adapter.features].sort());
  equal(one.limits.maxBufferSize, adapter.limits.maxBufferSize);
  ok((await pageDevice({ maxBufferSize: 1 << 20 })) === one, "enough");
  await throws(
    () => pageDevice({ maxBufferSize: 2 ** 50 }),
    "UnsupportedError",
    /than this adapter/,
  );
  one.destroy();
  await one.lost;
  const next = await pageDevice();
  ok(next !== one && (await globalThis[PAGE]) === next, "in the place of a lost one");
  const theirs = await adapter.requestDevice();
  globalThis[PAGE] = theirs;
  ok((await pageDevice()) === theirs, "somebody else's");
  if (adapter.features.size > theirs.features.size) {
    const features = [[...adapter.features].find((name) => !theirs.features.has(name))];
    const own = await pageDevice({ features });
    ok(own !== theirs && globalThis[PAGE] === theirs, "one of our own, beside it");
  }
  globalThis[PAGE] = Promise.reject(new Error("no adapter"));
  globalThis[PAGE].catch(() => {});
  ok((await pageDevice()) !== theirs, "after one that failed");
  for (const none of [{}, null]) {
    globalThis[PAGE] = none;
    const made = await pageDevice();
    ok(made.queue && (await globalThis[PAGE]) === made, "in the place of what is no device");
    made.destroy();
  }
  delete globalThis[PAGE];
}
