// What goes wrong in runs of onnxruntime-web on a shared device: it is the error of that run and of no other
// code. The page says which build it is (globalThis.ORT_BUILD).
import { fromOrt, toOrt, useDevice } from "/js/adapters/ort.js";
import { equal, ok, Skip, throws } from "../cases/js/expect.mjs";
import { upload } from "../cases/js/gpu.mjs";
import { field, loadOrt, model, number, text } from "./libraries.mjs";

const BUILD = globalThis.ORT_BUILD ?? "ort.webgpu.bundle.min.mjs";
/** The older backend in ort.all does not look whether a device has float16. */
const OLDER = BUILD.includes("ort.all");
/** What browsers say of a buffer without a usage. */
const THEIRS = /theirs|usage/i;
// Firefox does not name what it cannot parse, and later only the pipeline.
const OF_RUN =
  /the session "x -> y" of onnxruntime-web failed on webgpu:\d.*(f16|Parsing error|'Cast')/s;
const X = Float32Array.of(1, 2, 3, 4);

// ONNX's field numbers: `y = float32(sin(float16(x)))`.
const value = (name) => [
  ...text(1, name),
  ...field(2, field(1, [...number(1, 1), ...field(2, field(1, text(2, "N")))])),
];
const to = (dtype) => field(5, [...text(1, "to"), ...number(3, dtype), ...number(20, 2)]);
const node = (op, x, y, ...attributes) =>
  field(1, [...text(1, x), ...text(2, y), ...text(4, op), ...attributes.flat()]);
const CASTING = Uint8Array.from([
  ...number(1, 8),
  ...field(7, [
    ...node("Cast", "x", "h", to(10)),
    ...node("Sin", "h", "g"),
    ...node("Cast", "g", "y", to(1)),
    ...text(2, "casting"),
    ...field(11, value("x")),
    ...field(12, value("y")),
  ]),
  ...field(8, number(2, 17)),
]);

let loading;
/** `{ort, device, uncaptured, balance}`: the messages of errors in nobody's scope, and open scopes. */
function setUp() {
  loading ??= load();
  return loading;
}

async function load() {
  const ort = await loadOrt(BUILD);
  // A device without float16, whatever the adapter has.
  const device = await (await navigator.gpu.requestAdapter()).requestDevice({ label: "plain" });
  await useDevice(ort, device);
  const uncaptured = [];
  device.addEventListener("uncapturederror", ({ error }) => uncaptured.push(error.message));
  const scopes = { open: 0, asked: 0 };
  const { pushErrorScope, popErrorScope } = device;
  device.pushErrorScope = function (filter) {
    scopes.open++;
    return pushErrorScope.call(this, filter);
  };
  device.popErrorScope = function () {
    scopes.open--;
    scopes.asked++;
    return popErrorScope.call(this);
  };
  return { ort, device, uncaptured, scopes };
}

const create = (ort, bytes, where = "gpu-buffer") =>
  ort.InferenceSession.create(bytes, {
    executionProviders: ["webgpu"],
    preferredOutputLocation: where,
  });
const feeds = ({ Tensor }, x = X) => ({ x: new Tensor("float32", x, [x.length]) });

/** Reads what a run left on the GPU. */
async function valuesOf(ort, { y }) {
  const tensor = fromOrt(ort, y);
  try {
    return [...(await tensor.read())];
  } finally {
    tensor.release();
    y.dispose();
  }
}

/** Nothing is left behind: no scope is open, and no error went to the page. */
async function clean({ device, uncaptured, scopes }) {
  equal(scopes.open, 0, "open scopes");
  await device.queue.onSubmittedWorkDone();
  await new Promise((done) => setTimeout(done, 50));
  const ofRuns = uncaptured.filter((message) => !THEIRS.test(message));
  equal(ofRuns, []);
}

/** A kernel that does not compile, whose error is not known yet when this returns. */
function spoil({ library }, device, tensor) {
  const wgsl = `
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(1) fn main() { x[0] = spoilt; }`;
  const kernel = new library.webgpu.Kernel(device, wgsl, { label: "spoilt" });
  kernel.run([tensor], { workgroups: 1 });
}

export async function a_failed_pipeline_is_the_error_of_its_run() {
  const parts = await setUp();
  const { ort } = parts;
  const good = await create(ort, model("Add", "float32", ["x"]));
  for (const where of ["cpu", "gpu-buffer"]) {
    const bad = await create(ort, CASTING, where);
    // The second run finds the pipelines that the first one kept.
    for (let i = 0; i < 2; i++) {
      const computed = async () => {
        const results = await bad.run(feeds(ort));
        return where === "cpu" ? [...results.y.data] : valuesOf(ort, results);
      };
      if (OLDER) await throws(computed, "DeviceError", OF_RUN);
      else await throws(computed, "Error", /requires f16 but the device does not/);
      equal(await valuesOf(ort, await good.run(feeds(ort))), [2, 4, 6, 8]);
    }
    await bad.release();
  }
  await good.release();
  await clean(parts);
}

export async function scopes_of_other_code_keep_their_errors() {
  const parts = await setUp();
  const { ort, device } = parts;
  const wrong = () => device.createBuffer({ label: "theirs", size: 4, usage: 0 });
  const good = await create(ort, model("Add", "float32", ["x"]), "cpu");
  const bad = await create(ort, CASTING, "cpu");
  for (const session of [good, bad]) {
    // A scope that is open since before the run, and ends in its middle.
    device.pushErrorScope("validation");
    const running = session.run(feeds(ort)).catch((error) => error);
    await Promise.resolve();
    wrong();
    const before = await device.popErrorScope();
    ok(THEIRS.test(before?.message), `the scope's own error, not ${before?.message}`);
    // One that begins in its middle, and ends after it.
    device.pushErrorScope("validation");
    const result = await running;
    const after = await device.popErrorScope();
    equal(after, null, `no error of the run: ${after?.message}`);
    if (session === good) equal([...result.y.data], [2, 4, 6, 8]);
    else
      ok(
        /f16|Parsing error|'Cast'/.test(result.message),
        result.message ?? "the bad run gave a result",
      );
    await session.release();
  }
  await clean(parts);
}

export async function errors_of_other_code_are_not_the_runs() {
  const parts = await setUp();
  const { ort, device } = parts;
  const good = await create(ort, model("Add", "float32", ["x"]), "cpu");
  const running = good.run(feeds(ort));
  for (let i = 0; i < 20; i++) {
    device.createBuffer({ label: `theirs${i}`, size: 4, usage: 0 });
    await new Promise((done) => setTimeout(done));
  }
  equal([...(await running).y.data], [2, 4, 6, 8]);
  await good.release();
  await clean(parts);
}

export async function a_fault_of_an_input_is_raised(context) {
  const parts = await setUp();
  const { ort, device } = parts;
  for (const where of ["cpu", "gpu-buffer"]) {
    const double = await create(ort, model("Add", "float32", ["x"]), where);
    const x = upload(context, X, device);
    spoil(context, device, x);
    const x1 = toOrt(ort, x); // nothing is known yet
    const pending = async () => {
      const results = await double.run({ x: x1 });
      return where === "cpu" ? results.y.data : valuesOf(ort, results);
    };
    await throws(pending, "KernelError", /spoilt/);
    await throws(pending, "KernelError", /spoilt/); // it is known by now
    await throws(() => toOrt(ort, x), "KernelError", /spoilt/);
    x.write(X);
    equal(await x.read(), X);
    const y = await double.run({ x: x1 });
    equal(where === "cpu" ? [...y.y.data] : await valuesOf(ort, y), [2, 4, 6, 8]);
    x1.dispose();
    x.release();
    await double.release();
  }
  await clean(parts);
}

export async function a_fault_goes_on_from_session_to_session(context) {
  const parts = await setUp();
  const { ort, device } = parts;
  const double = await create(ort, model("Add", "float32", ["x"]));
  const x = upload(context, X, device);
  spoil(context, device, x);
  const fed = toOrt(ort, x);
  const { y } = await double.run({ x: fed });
  const again = await double.run({ x: y }).catch((error) => error);
  const read = async () => {
    if (again instanceof Error) throw again; // it was known before the second run
    return valuesOf(ort, again);
  };
  await throws(read, "KernelError", /spoilt/);
  y.dispose();
  fed.dispose();
  x.release();
  await double.release();
  await clean(parts);
}

export async function a_bound_buffer_that_is_too_large_is_an_error() {
  const parts = await setUp();
  const { ort, device } = parts;
  const most = device.limits.maxStorageBufferBindingSize;
  if (!OLDER) throw new Skip("the newer backend binds parts of large buffers");
  if (most > 1 << 28 || device.limits.maxBufferSize < most + 1024) {
    throw new Skip("buffers of this device are bound whole");
  }
  const double = await create(ort, model("Add", "float32", ["x"]));
  const buffer = device.createBuffer({ size: most + 1024, usage: 128 | 4 | 8 });
  const dims = [buffer.size / 4];
  const x = ort.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims });
  const computed = async () => valuesOf(ort, await double.run({ x }));
  await throws(computed, "DeviceError", /session "x -> y".*binding.size/is);
  equal(await valuesOf(ort, await double.run(feeds(ort))), [2, 4, 6, 8]);
  buffer.destroy();
  await double.release();
  await clean(parts);
}

export async function the_page_sees_its_own_device() {
  const { ort, device } = await setUp();
  ok((await ort.env.webgpu.device) === device, "env.webgpu.device is the device itself");
  equal(await useDevice(ort, device), { name: "webgpu", device });
}

export async function a_run_waits_for_no_scope() {
  const parts = await setUp();
  const { ort, scopes } = parts;
  const double = await create(ort, model("Add", "float32", ["x"]));
  (await double.run(feeds(ort))).y.dispose();
  const before = scopes.asked;
  for (let i = 0; i < 10; i++) (await double.run(feeds(ort))).y.dispose();
  const each = (scopes.asked - before) / 10;
  ok(each <= 6, `${each} scopes for a run of one node`);
  await double.release();
  await clean(parts);
}

export async function no_scope_stays_open_while_a_run_waits() {
  const parts = await setUp();
  const { ort, scopes } = parts;
  const session = await create(ort, model("Add", "float32", ["x"]), "cpu");
  for (let i = 0; i < 5; i++) {
    let over = false;
    const running = session.run(feeds(ort)).finally(() => {
      over = true;
    });
    const seen = [scopes.open];
    while (!over) {
      for (let j = 0; j < 20; j++) await Promise.resolve(seen.push(scopes.open));
      await new Promise((resolve) => setTimeout(resolve));
    }
    await running;
    equal(Math.max(...seen), 0, "scopes that other code would find open");
  }
  await session.release();
  await clean(parts);
}
