// dlpack-web/conformance on a real GPU: plain producers and consumers, those of js/EXCHANGE.md among
// them, and this library's. Each function is a test; mutants and the CPU are in tests/js.
import { conformance, consumerConformance } from "/js/conformance/index.js";
import { take } from "/js/exchange/index.js";
import { webgpu } from "/js/index.js";
import { Right } from "/tests/js/conformance/conformance_parts.mjs";
import { faultsOf, loaded, ON_GPU } from "/tests/js/conformance/stranger_faults.mjs";
import { equal, ok, PATIENCE } from "./expect.mjs";

/** What the first or the second snippet of js/EXCHANGE.md declares. */
async function snippet(kind, name) {
  const text = await (await fetch("/js-source/EXCHANGE.md")).text();
  const [, code] = text.match(new RegExp(`\`\`\`js\n// ${kind}\n(.*?)\`\`\``, "s"));
  return new Function(`${code}; return ${name};`)();
}

const textOf = async (name) => (await fetch(`/tests/js/conformance/${name}`)).text();

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
  const seen = new Set(["S8"]); // of bytes after the last word, which float32 has not
  for (const { id, what, text } of faultsOf(await textOf("stranger.mjs"), ON_GPU)) {
    if (seen.has(id)) continue; // one for each rule: the others are in tests/js
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
