// Tensors whose faults are not known yet, given to the real libraries: what these hand out raises them.
import { fromJax, toJax } from "/js/adapters/jax.js";
import { fromLiteRT, toLiteRT, useDevice as useLiteRT } from "/js/adapters/litert.js";
import { fromTfjs, toTfjs } from "/js/adapters/tfjs.js";
import { fromThree, toThree } from "/js/adapters/three.js";
import { equal, ok, Skip, throws } from "../cases/js/expect.mjs";
import { upload } from "../cases/js/gpu.mjs";
import { libraries, loadLiteRT } from "./libraries.mjs";

const X = Float32Array.of(1, 2, 3, 4);

/** A tensor with a fault that is not known when this returns. */
function spoilt(context, device, values = X, options = {}) {
  const tensor = upload(context, values, device, options);
  const wgsl = `
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(1) fn main() { x[0] = spoilt; }`;
  new context.library.webgpu.Kernel(device, wgsl, { label: "spoilt" }).run([tensor], {
    workgroups: 1,
  });
  return tensor;
}

async function open(device, block) {
  const { pushErrorScope, popErrorScope } = device;
  let count = 0;
  device.pushErrorScope = (filter) => {
    count++;
    return pushErrorScope.call(device, filter);
  };
  device.popErrorScope = () => {
    count--;
    return popErrorScope.call(device);
  };
  try {
    await block();
  } finally {
    Object.assign(device, { pushErrorScope, popErrorScope });
  }
  equal(count, 0, "open scopes");
}

/** The result has the fault; the tensor itself is refused, now that it is known. */
async function raises(name, taken, give) {
  const error = await throws(() => taken.read(), "DeviceError", /spoilt/);
  ok(new RegExp(`${name} was given`).test(error.message), error.message);
  equal(error.cause.name, "KernelError");
  taken.release();
  await throws(give, "KernelError", /spoilt/);
}

export async function jax(context) {
  const { jax, device } = await libraries();
  await open(device, async () => {
    const x = spoilt(context, device);
    const a = toJax(jax, x);
    const y = jax.numpy.add(a, 1);
    await raises("jax-js", fromJax(jax, y), () => toJax(jax, x));
    y.dispose();
    x.release();
  });
}

export async function tfjs(context) {
  const { tf, device } = await libraries();
  await open(device, async () => {
    const x = spoilt(context, device);
    const a = toTfjs(tf, x);
    const y = tf.add(a, 1);
    await raises("TensorFlow.js", fromTfjs(tf, y), () => toTfjs(tf, x));
    for (const each of [a, y]) each.dispose();
    x.release();
  });
}

export async function litert(context) {
  const { device } = await libraries();
  const litert = await loadLiteRT();
  await useLiteRT(litert, device);
  const model = await litert.loadAndCompile("/model/digits.tflite", { accelerator: "webgpu" });
  await open(device, async () => {
    const x = spoilt(context, device, new Float32Array(200 * 64), { shape: [200, 64] });
    const feed = toLiteRT(litert, x);
    const [result] = await model.run([feed]);
    feed.delete(); // results stay doubtful
    await raises("LiteRT.js", fromLiteRT(litert, result), () => toLiteRT(litert, x));
    result.delete();
    x.release();
  });
  model.delete();
}

export async function three(context) {
  const { THREE, renderer, device } = await libraries();
  if (!renderer) throw new Skip("only pages have canvases");
  const x = spoilt(context, device);
  const given = toThree(THREE, x, { renderer });
  const other = upload(context, X, device);
  const attribute = toThree(THREE, other, { renderer });
  // Memory of ours has the faults of its own alone.
  const back = fromThree(THREE, attribute, { renderer });
  equal(await back.read(), X);
  const bad = fromThree(THREE, given, { renderer });
  await throws(() => bad.read(), "KernelError", /spoilt/);
  await throws(() => toThree(THREE, x, { renderer }), "KernelError", /spoilt/);
  for (const each of [back, bad, x, other]) each.release();
  for (const each of [given, attribute]) renderer.backend.destroyAttribute(each);
}

export async function what_is_well_is_handed_on(context) {
  const { jax, tf, device } = await libraries();
  const x = upload(context, X, device); // just written: nothing is known yet
  const a = toTfjs(tf, x);
  const y = fromTfjs(tf, a);
  equal(await y.read(), X);
  const b = toJax(jax, x);
  const sum = jax.numpy.add(b, 1);
  const z = fromJax(jax, sum);
  sum.dispose();
  a.dispose();
  for (const each of [x, y, z]) each.release();
}
