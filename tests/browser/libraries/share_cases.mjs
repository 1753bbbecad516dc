// One device for all: what happens when libraries have started before. Each case is run on a page
// of its own (test_adapters.py), as a library chooses its device once.

import { shareDevice } from "/js/adapters/devices.js";
import { toJax, useDevice as useJax } from "/js/adapters/jax.js";
import { fromOrt, toOrt, useDevice as useOrt } from "/js/adapters/ort.js";
import { toTfjs, useDevice as useTfjs } from "/js/adapters/tfjs.js";
import { fromTransformers, toTransformers } from "/js/adapters/transformers.js";
import { webgpu } from "/js/index.js";
import { equal, ok, throws } from "../cases/js/expect.mjs";
import { keep, upload } from "../cases/js/gpu.mjs";
import { doubling, loadOrt, loadTransformers, session } from "./libraries.mjs";

const load = (name) => import(`/libraries/${name}.mjs`);

export async function a_device_of_ones_own_is_taken_by_all(context) {
  const [ort, tf, jax, THREE] = await Promise.all([
    loadOrt(),
    load("tfjs"),
    load("jax"),
    load("three"),
  ]);
  const renderer = new THREE.WebGPURenderer({ canvas: new OffscreenCanvas(8, 8) });
  const device = await webgpu.requestDevice({ label: "ours" });
  let asked = 0;
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = function (...args) {
    asked++;
    return requestDevice.apply(this, args);
  };
  equal((await shareDevice({ ort, tf, jax, three: renderer }, { device })).label, "ours");
  const run = await session(ort, "Add", "float32");
  const x = upload(context, Float32Array.of(1, 2), device);
  const feed = toOrt(ort, x);
  const { y } = await run.run({ x: feed });
  const out = fromOrt(ort, y);
  equal(await out.read(), [2, 4], "onnxruntime-web computes on it");
  for (const each of [x, out]) each.release();
  for (const each of [feed, y]) each.dispose();
  ok(tf.backend().device === device, "TensorFlow.js");
  ok(jax.getWebGPUDevice() === device, "jax-js");
  ok(renderer.backend.device === device, "three.js");
  equal(asked, 0, "devices that were asked for");
  const again = await shareDevice({ ort, tf, jax, three: renderer });
  ok(again === device, "asking again changes nothing");
  await run.release();
}

export async function the_device_of_a_library_that_has_started_is_taken() {
  const [tf, jax] = await Promise.all([load("tfjs"), load("jax")]);
  await jax.init("webgpu");
  const device = await shareDevice({ tf, jax });
  ok(device === jax.getWebGPUDevice() && device === tf.backend().device, "that of jax-js");
}

export async function two_that_have_started_apart_are_refused(context) {
  const [tf, jax] = await Promise.all([load("tfjs"), load("jax")]);
  await jax.init("webgpu");
  await tf.setBackend("webgpu");
  await throws(
    () => shareDevice({ tf, jax }),
    "DeviceError",
    /TensorFlow.js already runs on another/,
  );
  const device = await webgpu.requestDevice();
  await throws(() => useJax(jax, device), "DeviceError", /jax-js already runs on another/);
  const x = upload(context, new Float32Array(4), device);
  await throws(() => toJax(jax, x), "DeviceError", /another GPUDevice than jax-js/);
}

export async function a_session_that_began_elsewhere_is_found_out(context) {
  const ort = await loadOrt();
  await session(ort, "Add", "float32");
  const device = await webgpu.requestDevice();
  await throws(() => useOrt(ort, device), "DeviceError", /before the first session/);
  const x = upload(context, new Float32Array(4), device);
  await throws(() => toOrt(ort, x), "DeviceError", /another GPUDevice than onnxruntime-web/);
  const theirs = await shareDevice({ ort });
  ok(theirs === (await ort.env.webgpu.device), "that of the session");
}

export async function the_older_backend_of_onnxruntime_takes_the_device_too(context) {
  const ort = await loadOrt("ort.bundle.min.mjs");
  const device = await webgpu.requestDevice();
  await useOrt(ort, device);
  const run = await session(ort, "Add", "float32");
  ok((await ort.env.webgpu.device) === device, "it runs on ours");
  const x = upload(context, Float32Array.of(1, 2, 3), device);
  const feed = toOrt(ort, x);
  const { y } = await run.run({ x: feed });
  const out = keep(fromOrt(ort, y));
  y.dispose();
  equal(await out.read(), [2, 4, 6]);
  feed.dispose();
}

export async function transformers_js_can_use_the_page_s_own_onnxruntime(context) {
  const ort = await loadOrt();
  globalThis[Symbol.for("onnxruntime")] = ort; // both versions look for it as they are loaded
  const device = await webgpu.requestDevice();
  await useOrt(ort, device);
  for (const major of [3, 4]) {
    const transformers = await loadTransformers(major);
    // No device in these, as all sessions of that copy get it; "webgpu" is refused for another's copy.
    const options = { executionProviders: ["webgpu"], preferredOutputLocation: "gpu-buffer" };
    const net = await doubling(transformers, options, "gpu");
    const x = upload(context, Float32Array.of(1, 2, 3), device);
    const feed = toTransformers(transformers, x);
    const { y } = await net({ x: feed });
    const out = fromOrt(ort, y);
    const same = fromTransformers(transformers, y);
    ok(out.buffer === y.ort_tensor.gpuBuffer && same.buffer === out.buffer, "no copy");
    equal(await out.read(), [2, 4, 6], `transformers.js ${major}`);
    for (const each of [x, out, same]) each.release();
    for (const each of [feed, y]) each.dispose();
    await net.dispose();
  }
}

export async function a_library_without_a_device_says_so(context) {
  const [ort, tf] = await Promise.all([loadOrt(), load("tfjs")]);
  const device = await webgpu.requestDevice();
  const x = upload(context, new Float32Array(4), device);
  await throws(() => toOrt(ort, x), "DeviceError", /has no GPUDevice yet.*useDevice/);
  tf.removeBackend("webgpu");
  await throws(() => useTfjs(tf, device), "DeviceError", /lacks its backend: import/);
}

export async function a_library_that_does_not_ask_is_told_apart() {
  const device = await webgpu.requestDevice();
  let started = false;
  const jax = {
    init: async () => {
      started = true;
    },
    getWebGPUDevice() {
      throw new Error("not initialised");
    },
  };
  await throws(() => useJax(jax, device), "DeviceError", /requests no device/);
  ok(started, "it was started");
}

export async function libraries_take_another_device_when_theirs_was_lost(context) {
  const [ort, tf] = await Promise.all([loadOrt(), load("tfjs")]);
  const first = await webgpu.requestDevice({ label: "first" });
  await shareDevice({ ort, tf }, { device: first });
  const before = await session(ort, "Add", "float32");
  tf.neg(tf.tensor([1])).dispose();
  first.destroy();
  await first.lost;
  const gone = [() => useOrt(ort, first), () => useTfjs(tf, first)];
  for (const use of gone) await throws(use, "DeviceLostError", /lost/);
  const second = await webgpu.requestDevice({ label: "second" });
  await shareDevice({ ort, tf }, { device: second });
  ok(tf.backend().device === second, "TensorFlow.js");
  const run = await session(ort, "Add", "float32");
  const x = upload(context, Float32Array.of(1, 2, 3), second);
  const feed = toOrt(ort, x);
  const { y } = await run.run({ x: feed });
  const out = fromOrt(ort, y);
  const t = toTfjs(tf, out);
  const negative = tf.neg(t);
  equal(await negative.data(), [-2, -4, -6]);
  for (const each of [x, out]) each.release();
  for (const each of [feed, y, t, negative]) each.dispose();
  void before;
}

export async function jax_whose_device_was_lost_says_that_it_takes_no_other() {
  const jax = await load("jax");
  const first = await webgpu.requestDevice();
  await useJax(jax, first);
  first.destroy();
  await first.lost;
  const second = await webgpu.requestDevice();
  await throws(() => useJax(jax, second), "DeviceError", /was lost and takes no other/);
  await throws(() => useJax(jax, first), "DeviceLostError", /lost/);
}

export async function a_library_is_started_once_however_often_it_is_asked() {
  const [ort, tf, jax] = await Promise.all([loadOrt(), load("tfjs"), load("jax")]);
  const device = await webgpu.requestDevice();
  const twice = (use, library) => [use(library, device), use(library, device)];
  await Promise.all([...twice(useTfjs, tf), ...twice(useJax, jax), ...twice(useOrt, ort)]);
  ok(tf.backend().device === device && jax.getWebGPUDevice() === device, "on the device");
  const other = await webgpu.requestDevice();
  const results = await Promise.allSettled([useTfjs(tf, other), useTfjs(tf, device)]);
  equal(
    results.map(({ status, reason }) => [status, reason?.name]),
    [
      ["rejected", "DeviceError"],
      ["fulfilled", undefined],
    ],
  );
}
