// The suite on a real GPU: plain producers and consumers, those of EXCHANGE.md among
// them, and this library's. Each function is a test; mutants and the CPU are in tests/js.
import { fit, take } from "/js/exchange/index.js";
import { webgpu } from "/js/index.js";
import { Right } from "/packages/exchange/tests/js/conformance_parts.mjs";
import { faultsOf, loaded, ON_GPU } from "/packages/exchange/tests/js/stranger_faults.mjs";
import { conformance, consumerConformance } from "/packages-js/exchange/index.js";
import { counted, equal, ok, PATIENCE, throws } from "/tests/browser/cases/js/expect.mjs";
import { keep, upload } from "/tests/browser/cases/js/gpu.mjs";

/** What the first or the second snippet of EXCHANGE.md declares. */
async function snippet(kind, name) {
  const text = await (await fetch("/packages/exchange/EXCHANGE.md")).text();
  const [, code] = text.match(new RegExp(`\`\`\`js\n// ${kind}\n(.*?)\`\`\``, "s"));
  return new Function(`${code}; return ${name};`)();
}

const textOf = async (name) => (await fetch(`/packages/exchange/tests/js/${name}`)).text();

const VALUES = Float32Array.of(0, 1, 2, 3, 4, 5);

let requested;
function ourDevice() {
  requested ??= webgpu.requestDevice();
  return requested;
}

const broken = ({ rules }) =>
  rules.filter((rule) => !rule.ok).map(({ id, message }) => `${id} ${message}`);
const tested = ({ rules }) => rules.filter((rule) => !rule.skipped).map(({ id }) => id);

async function bytesOf(device, buffer, size) {
  const copy = device.createBuffer({ size: Math.max(size, 4), usage: 1 | 8 });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, copy, 0, size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(1);
  const bytes = copy.getMappedRange().slice(0, size);
  copy.destroy();
  return bytes;
}

export async function a_plain_producer_and_consumer_break_nothing() {
  const device = await ourDevice();
  const make = (wanted) => {
    const whole = /^(u?int(8|16|32|64)|float\d+|complex\d+|bool)$/.test(wanted.dtype);
    return whole && wanted.bytes.length % 4 === 0 ? new Right(wanted) : undefined;
  };
  const produced = await conformance({ make, device, ...PATIENCE });
  equal(broken(produced), []);
  for (const id of ["T1", "D1", "R3", "O1", "O4", "M3"]) ok(tested(produced).includes(id), id);
  const { consume } = loaded(await textOf("stranger_consumer.mjs"));
  const consumed = await consumerConformance({ consume, device, ...PATIENCE });
  equal(broken(consumed), []);
  for (const id of ["N1", "N3", "T3", "O3", "S1"]) ok(tested(consumed).includes(id), id);
}

export async function a_flush_that_does_not_submit_breaks_t1() {
  const device = await ourDevice();
  class Lazy extends Right {
    constructor(wanted) {
      super({ ...wanted, bytes: new Uint8Array(wanted.bytes.length) });
    }
  }
  const make = (wanted) => (wanted.device ? new Lazy(wanted) : undefined);
  const report = await conformance({ make, device, dtypes: ["float32"], ...PATIENCE });
  equal(
    report.rules.filter((rule) => !rule.ok).map((rule) => rule.id),
    ["T1"],
  );
}

export async function the_producer_of_the_text_breaks_nothing() {
  const Picture = await snippet("producer", "Picture");
  const device = await ourDevice();
  const make = ({ dtype, shape, bytes, device: where }) => {
    if (!where || dtype !== "float32" || shape.length !== 2) return undefined;
    const [height, width] = shape;
    const buffer = where.createBuffer({ size: Math.max(bytes.length, 4), usage: 128 | 4 | 8 });
    where.queue.writeBuffer(buffer, 0, bytes);
    return new Picture(where, buffer, { height, width });
  };
  const report = await conformance({ make, device, ...PATIENCE });
  equal(broken(report), []);
  for (const id of ["T1", "R2", "R3", "R7", "O1", "O2", "X1"]) ok(tested(report).includes(id), id);
}

export async function the_plain_producer_and_consumer_work_with_each_other_and_with_us(context) {
  const Picture = await snippet("producer", "Picture");
  const withBuffer = await snippet("consumer", "withBuffer");
  const [device, other] = [await ourDevice(), await webgpu.requestDevice()];
  const buffer = device.createBuffer({ size: 24, usage: 128 | 4 | 8 });
  device.queue.writeBuffer(buffer, 0, VALUES);
  const picture = new Picture(device, buffer, { height: 2, width: 3 });

  equal(await withBuffer(device, picture, (data, bytes) => [data === buffer, bytes]), [true, 24]);
  const tensor = keep(counted(context, () => take(picture), {}));
  picture.release();
  equal([tensor.shape, tensor.dtype, [...(await tensor.read())]], [[2, 3], "float32", [...VALUES]]);
  const seen = await withBuffer(device, tensor, (data, bytes) => [data === buffer, bytes]);
  equal(seen, [true, 24]);
  await throws(
    () => withBuffer(other, tensor, () => 0),
    "DeviceError",
    /cannot be used on that GPUDevice/,
  );

  const strided = { height: 2, width: 2, pitch: 3 };
  const cut = keep(take(new Picture(device, tensor.buffer, strided)));
  equal(
    [cut.strides, [...(await cut.read())]],
    [
      [3, 1],
      [0, 1, 3, 4],
    ],
  );
  await throws(() => withBuffer(device, cut, () => 0), "UnsupportedError", /is strided/);
  await throws(() => fit(cut), "UnsupportedError", /it can be read, and nothing else/);
}

export async function the_consumer_of_the_text_passes_faults_on(context) {
  const device = await ourDevice();
  const withBuffer = await snippet("consumer", "withBuffer");
  const pending = upload(context, VALUES, device);
  const source = `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn main() { y[0] = origin; }`;
  new webgpu.Kernel(device, source, { label: "spoils" }).run([pending], { workgroups: 1 });
  await throws(() => withBuffer(device, pending, () => 0), "KernelError", /origin/);
}

export async function the_consumer_of_the_text_breaks_nothing() {
  const withBuffer = await snippet("consumer", "withBuffer");
  const device = await ourDevice();
  const consume = async (x, { copy }) => {
    const read = (...own) => bytesOf(device, ...own);
    return new Float32Array(await withBuffer(device, x, read, copy));
  };
  const report = await consumerConformance({ consume, device, dtypes: ["float32"], ...PATIENCE });
  equal(broken(report), []);
  for (const id of ["M1", "F7", "T3", "O2", "O3", "S1", "F4", "X1", "X2"]) {
    ok(tested(report).includes(id), id);
  }
}

const requestDevice = async () => (await navigator.gpu.requestAdapter()).requestDevice();

/** What is found out about the stranger's producers, on a real GPU and a device that gets lost. */
async function produced({ make, makeFaulty }) {
  const hooks = { makeFaulty, requestDevice };
  const device = await ourDevice();
  return conformance({ make, device, dtypes: ["float32"], ...hooks, ...PATIENCE });
}

export async function a_stranger_with_faults_and_a_lost_device_breaks_nothing() {
  const report = await produced(loaded(await textOf("stranger.mjs")));
  equal(broken(report), []);
  for (const id of ["E1", "E2", "E4", "M3", "S6", "X2"]) ok(tested(report).includes(id), id);
}

export async function faults_of_a_stranger_on_a_gpu_are_found() {
  const slow = /Firefox/.test(navigator.userAgent);
  const seen = new Set(["S8"]); // of bytes after the last word, which float32 has not
  for (const { id, what, text } of faultsOf(await textOf("stranger.mjs"), ON_GPU)) {
    // One for each rule, and none that takes all of the patience: the others are in tests/js. In
    // Firefox, where each read-back waits 100 ms, those of faults and losses alone.
    if (seen.has(id) || what.includes("never reads") || (slow && !/E\d|R7/.test(id))) continue;
    seen.add(id);
    const { rules } = await produced(loaded(text));
    const found = rules.filter((rule) => !rule.ok);
    equal(
      found.map((rule) => rule.id),
      [id],
      `${what}: ${JSON.stringify(found)}`,
    );
  }
}

export async function the_tensors_of_this_library_break_nothing({ library }) {
  const device = await ourDevice();
  const { Tensor } = library;
  const make = ({ dtype, shape, bytes, device: where }) => {
    const data = Tensor.fromTypedArray(bytes, { dtype, shape });
    if (!where) return data;
    const there = data.to(where);
    data.release();
    return there;
  };
  const consume = async (x, options) => {
    const tensor = take(x, options);
    try {
      return await tensor.read();
    } finally {
      tensor.release();
    }
  };
  const failing = new webgpu.Kernel(
    device,
    `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
     @compute @workgroup_size(1) fn main() { y[0] = unknown; }`,
  );
  await failing.ready.catch(() => {}); // or the page would be told of it, if nothing reads it in time
  const makeFaulty = (wanted) => {
    const made = make(wanted);
    failing.run([made], { workgroups: 1 });
    return made;
  };
  const produced = await conformance({ make, makeFaulty, requestDevice, device, ...PATIENCE });
  equal(broken(produced), []);
  for (const id of ["E1", "E2", "E4", "M3", "X2"]) ok(tested(produced).includes(id), id);
  const { error } = console;
  console.error = () => {}; // to which it passes what a second error is that the suite throws
  try {
    equal(broken(await consumerConformance({ consume, device, ...PATIENCE })), []);
  } finally {
    console.error = error;
  }
}
