// A tensor on the GPU handed to a library and taken back, and both given up: ours, the library's
// own calls on the same buffer (the floor), and what pages do that know neither: through the CPU.

import { fromJax, toJax } from "/js/adapters/jax.js";
import { fromOrt, toOrt } from "/js/adapters/ort.js";
import { fromTfjs, toTfjs } from "/js/adapters/tfjs.js";
import { fromThree, toThree } from "/js/adapters/three.js";
import { copyBuffer } from "./paths.mjs";

const USAGE = 0x80 | 0x20 | 0x08 | 0x04; // STORAGE | VERTEX | COPY_DST | COPY_SRC

/** By library: how a value is made, taken, given up; and the same by its own calls. */
const LIBRARIES = {
  ort: ({ ort }) => ({
    give: (x) => toOrt(ort, x),
    take: (value) => fromOrt(ort, value),
    drop: (value) => value.dispose(),
    rawGive: (buffer, n) => ort.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims: [n] }),
    rawTake: (value) => value.gpuBuffer,
  }),
  tfjs: ({ tf }) => ({
    give: (x) => toTfjs(tf, x),
    take: (value) => fromTfjs(tf, value),
    drop: (value) => value.dispose(),
    rawGive: (buffer, n) => tf.tensor({ buffer, zeroCopy: true }, [n], "float32"),
    rawTake(value) {
      const backend = tf.backend();
      backend.ensureCommandEncoderReady();
      backend.endComputePassEncoder();
      backend.submitQueue();
      return backend.tensorMap.get(value.dataId).resource;
    },
  }),
  jax: ({ jax }) => ({
    give: (x) => toJax(jax, x),
    take: (value) => fromJax(jax, value),
    drop: (value) => value.dispose(),
  }),
  three: ({ THREE, renderer }) => ({
    give: (x) => toThree(THREE, x, { renderer }),
    take: (value) => fromThree(THREE, value, { renderer }),
    drop: (value) => renderer.backend.destroyAttribute(value),
  }),
};

export function handoverWays({ libraries, library }, bytes, layout) {
  const { device } = libraries;
  const { give, take, drop, rawGive, rawTake } = LIBRARIES[layout](libraries);
  const count = bytes / 4;
  const buffer = device.createBuffer({ size: bytes, usage: USAGE });
  const expected = Float32Array.from({ length: count }, (_, i) => i % 1000);
  device.queue.writeBuffer(buffer, 0, expected);
  const options = { device, shape: [count], dtype: "float32" };
  const tensor = library.Tensor.fromGPUBuffer(buffer, options);
  const staging = device.createBuffer({ size: bytes, usage: 0x01 | 0x08 });
  let seen = null;

  const expectSame = (name) => {
    if (seen !== buffer) throw new Error(`wrong result: handover, ${layout}, ${name}`);
  };
  function ours() {
    const value = give(tensor);
    const back = take(value);
    seen = back.buffer;
    back.release();
    drop(value);
  }
  const ways = [
    {
      name: "dlpack-web",
      run: ours,
      verify() {
        ours();
        expectSame("ours");
      },
    },
  ];
  if (rawGive) {
    const floor = () => {
      const value = rawGive(buffer, count);
      seen = rawTake(value);
      drop(value);
    };
    ways.push({
      name: "floor",
      run: floor,
      verify() {
        floor();
        expectSame("floor");
      },
    });
    const throughCPU = async () => {
      copyBuffer(device, buffer, staging, bytes);
      await staging.mapAsync(1);
      const copy = new Float32Array(staging.getMappedRange().slice(0));
      staging.unmap();
      const fresh = device.createBuffer({ size: bytes, usage: USAGE });
      device.queue.writeBuffer(fresh, 0, copy);
      const value = rawGive(fresh, count);
      seen = copy;
      drop(value);
      fresh.destroy();
    };
    ways.push({
      name: "through the CPU: mapAsync, slice, writeBuffer",
      each: throughCPU,
      async verify() {
        await throughCPU();
        if (!expected.every((value, i) => value === seen[i])) throw new Error("wrong result");
      },
    });
  }
  return {
    ways,
    done() {
      tensor.release();
      buffer.destroy();
      staging.destroy();
    },
  };
}
