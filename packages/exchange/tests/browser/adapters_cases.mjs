// The adapters' producers by the suite, on one device.
import { shareDevice } from "/js/adapters/devices.js";
import { toJax } from "/js/adapters/jax.js";
import { toOrt } from "/js/adapters/ort.js";
import { toTfjs } from "/js/adapters/tfjs.js";
import { toTransformers, useDevice as useTransformers } from "/js/adapters/transformers.js";
import { conformance } from "/packages-js/exchange/index.js";
import { equal, ok, PATIENCE } from "/tests/browser/cases/js/expect.mjs";
import { loadOrt, loadTransformers } from "/tests/browser/libraries/libraries.mjs";

const load = (name) => import(`/libraries/${name}.mjs`);

export async function the_adapters_producers_keep_every_rule(context) {
  const { Tensor } = context.library;
  const [ort, tf, jax, THREE, transformers] = await Promise.all([
    loadOrt(),
    load("tfjs"),
    load("jax"),
    load("three"),
    loadTransformers(4),
  ]);
  const renderer = new THREE.WebGPURenderer({ canvas: new OffscreenCanvas(8, 8) });
  const device = await shareDevice({ ort, tf, jax, three: renderer });
  const [{ install: ofOrt }, { install: ofTfjs }, { install: ofJax }, { install }] =
    await Promise.all(
      ["ort", "tfjs", "jax", "transformers"].map((name) => import(`/js/adapters/${name}.js`)),
    );
  ofOrt(ort);
  ofTfjs(tf);
  ofJax(jax);
  install(transformers);
  await useTransformers(transformers, device);
  /** What a library has from us, and its own way to let go of it. */
  const given =
    (give, letGo, onGPU = false) =>
    ({ dtype, shape, bytes, device: gpu }) => {
      if (onGPU && !gpu) return undefined; // it has no other tensors
      const host = Tensor.fromTypedArray(bytes, { dtype, shape });
      const held = gpu ? host.to(gpu) : host;
      try {
        const value = give(held);
        return Object.assign(value, { release: () => letGo(value) });
      } finally {
        held.release();
        host.release();
      }
    };
  const disposing = (value) => value.dispose();
  const makers = {
    ort: [given((held) => toOrt(ort, held), disposing), "float32 int32 uint8 bool int64"],
    tfjs: [
      given(
        (held) => toTfjs(tf, held),
        (value) => tf.dispose(value),
        true,
      ),
      "float32 int32",
    ],
    jax: [given((held) => toJax(jax, held), disposing, true), "float32 int32 uint32"],
    transformers: [given((held) => toTransformers(transformers, held), disposing), "float32 int32"],
  };
  for (const [name, [make, dtypes]] of Object.entries(makers)) {
    const { rules } = await conformance({ make, device, dtypes: dtypes.split(" "), ...PATIENCE });
    equal(
      rules.filter((rule) => !rule.ok).map(({ id, message }) => `${id}: ${message}`),
      [],
      `broken rules of ${name}`,
    );
    const tested = rules.filter((rule) => !rule.skipped).length;
    ok(tested > 20, `${tested} rules of ${name} were tested`);
  }
}
