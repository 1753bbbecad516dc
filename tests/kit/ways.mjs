// What the kit measures beside the ways of tests/bench: a copy on the device, and by hand what only a
// real GPU can tell the worth of: gathering there what the CPU packs today, and staging in pieces.
import { EXCHANGE, take } from "/js/exchange/index.js";
import { copyBuffer, expect, readBuffer, same, TENSOR_USAGE } from "/tests/bench/paths.mjs";

const MB = 2 ** 20;
const USAGE = { READ: 0x01, WRITE: 0x02, COPY_SRC: 0x04, COPY_DST: 0x08, UNIFORM: 0x40 };
const SLOTS = 4; // buffers that are on their way at once
const PIECES = [MB, 4 * MB, 16 * MB, 64 * MB];

const settleOn = (device) => () => device.queue.onSubmittedWorkDone();

/** A host tensor with values that differ all along. */
function pattern(bridge, bytes) {
  const tensor = bridge.empty([bytes / 4], "uint32");
  const { data } = tensor;
  for (let i = 0; i < data.length; i++) data[i] = Math.imul(i, 2654435761);
  return tensor;
}

/** All words of a GPU buffer. */
const words = async (...args) => new Uint32Array((await readBuffer(...args)).buffer);

/** From one buffer of the device into another: what its memory can do. */
export function copyWay({ bridge, device }, bytes) {
  const [from, to] = [0, 1].map(() => device.createBuffer({ size: bytes, usage: TENSOR_USAGE }));
  const host = pattern(bridge, bytes);
  const expected = host.data.slice();
  device.queue.writeBuffer(from, 0, host.data);
  host.release();
  const run = () => copyBuffer(device, from, to, bytes);
  const verify = async () => {
    run();
    expect(same(await words(device, to, bytes), expected), "copy");
  };
  return {
    ways: [{ name: "device to device", run, verify, settle: settleOn(device), maxBatch: 64 }],
    done() {
      for (const buffer of [from, to]) buffer.destroy();
    },
  };
}

/** Calls `move(slot, from)` for every piece, several of them on their way at once. */
function inPieces(slots, piece, bytes, move) {
  const loops = slots.map(async (slot, k) => {
    for (let from = k * piece; from < bytes; from += slots.length * piece) await move(slot, from);
  });
  return Promise.all(loops);
}

/** Copies a part of a buffer to the beginning of another, or back. */
function copyPart(device, from, fromOffset, to, toOffset, bytes) {
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
  device.queue.submit([encoder.finish()]);
}

/** Staging buffers of each size that makes several pieces. */
function staged(device, bytes, usage) {
  return PIECES.filter((piece) => SLOTS * piece <= bytes).map((piece) => ({
    piece,
    slots: Array.from({ length: SLOTS }, () => device.createBuffer({ size: piece, usage })),
  }));
}

/** GPU -> an existing array, by hand through staging buffers of several sizes. */
export function downloadInPieces({ bridge, device }, bytes) {
  const all = staged(device, bytes, USAGE.READ | USAGE.COPY_DST);
  if (all.length === 0) return { ways: [], done() {} };
  const host = pattern(bridge, bytes);
  const expected = host.data.slice();
  const gpu = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  device.queue.writeBuffer(gpu, 0, expected);
  const ways = all.map(({ piece, slots }) => {
    const each = () =>
      inPieces(slots, piece, bytes, async (slot, from) => {
        copyPart(device, gpu, from, slot, 0, piece);
        await slot.mapAsync(USAGE.READ);
        host.data.set(new Uint32Array(slot.getMappedRange()), from / 4);
        slot.unmap();
      });
    const verify = async () => {
      host.data.fill(0);
      await each();
      expect(same(host.data, expected), "download in pieces");
    };
    return { name: `by hand, ${SLOTS} staging buffers of ${piece / MB} MB`, each, verify };
  });
  return {
    ways,
    done() {
      host.release();
      for (const buffer of [gpu, ...all.flatMap(({ slots }) => slots)]) buffer.destroy();
    },
  };
}

/** Array -> GPU, by hand through mapped staging buffers of several sizes, in place of writeBuffer. */
export function uploadInPieces({ bridge, device }, bytes) {
  const all = staged(device, bytes, USAGE.WRITE | USAGE.COPY_SRC);
  if (all.length === 0) return { ways: [], done() {} };
  const host = pattern(bridge, bytes);
  const gpu = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const ways = all.map(({ piece, slots }) => {
    const each = async () => {
      await inPieces(slots, piece, bytes, async (slot, from) => {
        await slot.mapAsync(USAGE.WRITE); // as soon as its last copy is done
        new Uint32Array(slot.getMappedRange()).set(
          host.data.subarray(from / 4, (from + piece) / 4),
        );
        slot.unmap();
        copyPart(device, slot, 0, gpu, from, piece);
      });
      await device.queue.onSubmittedWorkDone();
    };
    const verify = async () => {
      device.queue.writeBuffer(gpu, 0, new Uint8Array(bytes));
      await each();
      expect(same(await words(device, gpu, bytes), host.data), "upload in pieces");
    };
    return { name: `by hand, ${SLOTS} mapped staging buffers of ${piece / MB} MB`, each, verify };
  });
  return {
    ways,
    done() {
      host.release();
      for (const buffer of [gpu, ...all.flatMap(({ slots }) => slots)]) buffer.destroy();
    },
  };
}

// By layout: NumPy's view of `whole`, and where element i of what is packed lies in that:
// (i / columns) * row + (i % columns) * column.
const LAYOUTS = {
  strided: {
    parts: 2,
    view: "whole[::2]",
    places: (count) => ({ columns: count, row: 0, column: 2 }),
  },
  transposed: {
    parts: 1,
    view: "whole.reshape(1 << (whole.size.bit_length() // 2), -1).T",
    places(count) {
      const columns = 2 ** Math.floor((Math.log2(count) + 1) / 2); // of the view
      return { columns, row: 1, column: count / columns };
    },
  },
};

const GATHER = `
struct Places { count: u32, columns: u32, row: u32, column: u32 }
@group(0) @binding(0) var<storage, read> whole: array<u32>;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<uniform> places: Places;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 256 + id.x;
  if (i < places.count) {
    packed[i] = whole[(i / places.columns) * places.row + (i % places.columns) * places.column];
  }
}`;
const MOST_GROUPS = 32768; // in one dimension; a power of two, as all sizes are

/** The gathering of `count` words on the GPU, ready to run. */
function gathering(device, whole, packed, count, { columns, row, column }) {
  const places = device.createBuffer({ size: 16, usage: USAGE.UNIFORM | USAGE.COPY_DST });
  device.queue.writeBuffer(places, 0, Uint32Array.of(count, columns, row, column));
  const module = device.createShaderModule({ code: GATHER });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
  const entries = [whole, packed, places].map((buffer, binding) => ({
    binding,
    resource: { buffer },
  }));
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const groups = Math.ceil(count / 256);
  const across = Math.min(groups, MOST_GROUPS);
  function run() {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(across, Math.ceil(groups / across));
    pass.end();
    device.queue.submit([encoder.finish()]);
  }
  return { run, release: () => places.destroy() };
}

/** Packing on the CPU alone; and all of the memory written as it is, and gathered on the GPU. */
export function gatherWays({ pyodide, bridge, device }, bytes, layout) {
  if (!(layout in LAYOUTS)) return { ways: [], done() {} };
  const { parts, view, places } = LAYOUTS[layout];
  const limit = device.limits.maxStorageBufferBindingSize;
  const make = pyodide.runPython(`
import numpy as np
def make(count):
    whole = np.random.default_rng(1).integers(0, 1 << 32, count, dtype=np.uint32)
    view = ${view}
    return whole, view, lambda: np.ascontiguousarray(view)
make`);
  const made = make((parts * bytes) / 4);
  const proxies = [0, 1, 2].map((i) => made.get(i));
  const [whole, source] = proxies.slice(0, 2).map((proxy) => bridge.tensor(proxy));
  const [all, packed] = [parts * bytes, bytes].map((size) =>
    device.createBuffer({ size, usage: TENSOR_USAGE }),
  );
  const fits = parts * bytes <= limit;
  const gather = fits && gathering(device, all, packed, bytes / 4, places(bytes / 4));
  const run = () => {
    if (!fits) throw new Error(`kernels see ${limit} bytes at most here`);
    device.queue.writeBuffer(all, 0, whole.data);
    gather.run();
  };
  function isRight(found, name) {
    const numpy = proxies[2]();
    const expected = numpy.getBuffer("u32");
    try {
      expect(same(found, expected.data), `${name}, ${layout}`);
    } finally {
      expected.release();
      numpy.destroy();
    }
  }
  return {
    ways: [
      {
        name: "packing alone, on the CPU",
        run: () => source.contiguous().release(),
        verify() {
          const tensor = source.contiguous();
          const found = tensor.data.slice();
          tensor.release();
          isRight(found, "packed");
        },
      },
      {
        name: "by hand, written whole and gathered on the GPU",
        run,
        settle: settleOn(device),
        maxBatch: 64,
        async verify() {
          run();
          isRight(await words(device, packed, bytes), "gathered");
        },
      },
    ],
    done() {
      if (gather) gather.release();
      for (const buffer of [all, packed]) buffer.destroy();
      for (const tensor of [whole, source]) tensor.release();
      for (const proxy of [...proxies, made, make]) proxy.destroy();
    },
  };
}

const BY_HAND = "by hand, four floats per invocation";
// 256 invocations per workgroup.
const TWICE = `
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 256 + id.x;
  if (i < arrayLength(&y)) { y[i] = 2 * x[i]; }
}`;

/** Kernels that read float32 once: the first two write as much, the sum one number. */
export function kernelWays({ bridge, device, library: { webgpu } }, bytes) {
  const count = bytes / 4;
  const host = bridge.empty([count], "float32");
  const { data } = host;
  for (let i = 0; i < count; i++) data[i] = i % 1000;
  const expected = data.map((each) => 2 * each);
  const sum = data.reduce((all, each) => all + each, 0);
  const x = host.to(device);
  host.release();
  const twice = { inputs: "f32 x", outputs: "f32 y", operation: "y = 2 * x" };
  const double = new webgpu.ElementwiseKernel(device, twice);
  const y = double.run([x]);
  const adding = { map: "x", reduce: "a + b", postMap: "y = a", identity: 0 };
  const add = new webgpu.ReductionKernel(device, { inputs: "f32 x", outputs: "f32 y", ...adding });
  const total = add.run([x]);
  const nothing = new webgpu.ElementwiseKernel(device, {
    ...{ inputs: "", outputs: "f32 y", operation: "y = -1" },
  });
  const groups = Math.ceil(count / 1024);
  const across = Math.min(groups, MOST_GROUPS);
  const byHand = new webgpu.Kernel(device, TWICE);
  const workgroups = [across, Math.ceil(groups / across)];
  const way = (name, run, result, isRight) => ({
    ...{ name, run, settle: settleOn(device), maxBatch: 64 },
    async verify() {
      nothing.run([result]);
      run();
      expect(isRight(await result.read()), `kernels, ${name}`);
    },
  });
  const isDoubled = (found) => same(found, expected);
  const isSum = ([found]) => Math.abs(found / sum - 1) < 1e-4;
  return {
    ways: [
      way("ElementwiseKernel", () => double.run([x, y]), y, isDoubled),
      way(BY_HAND, () => byHand.run([x, y], { workgroups }), y, isDoubled),
      way("ReductionKernel, a sum", () => add.run([x, total]), total, isSum),
    ],
    done() {
      for (const tensor of [x, y, total]) tensor.release();
    },
  };
}

/** A tensor on the GPU given to another owner and taken back: by the protocol, or to Python. */
export function handoverWays({ bridge, device, library }, bytes, to) {
  const buffer = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const expected = Uint32Array.from({ length: bytes / 4 }, (_, i) => i);
  device.queue.writeBuffer(buffer, 0, expected);
  const options = { device, shape: [bytes / 4], dtype: "float32" };
  const tensor = library.Tensor.fromGPUBuffer(buffer, options);
  const staging = device.createBuffer({ size: bytes, usage: USAGE.READ | USAGE.COPY_DST });
  const fresh = device.createBuffer({ size: bytes, usage: TENSOR_USAGE });
  const other = { [EXCHANGE]: (request) => tensor[EXCHANGE](request) };
  let seen = null;
  const byProtocol = () => {
    const back = take(other);
    seen = back.buffer;
    back.release();
  };
  const byPython = () => {
    const proxy = bridge.toPython(tensor);
    const back = bridge.tensor(proxy);
    seen = back.buffer;
    back.release();
    proxy.release();
    proxy.destroy();
  };
  const ours = to === "Python" ? byPython : byProtocol;
  const throughCPU = async () => {
    copyBuffer(device, buffer, staging, bytes);
    await staging.mapAsync(USAGE.READ);
    device.queue.writeBuffer(fresh, 0, staging.getMappedRange());
    staging.unmap();
    await device.queue.onSubmittedWorkDone();
  };
  return {
    ways: [
      {
        name: "dlpack-web",
        run: ours,
        verify() {
          ours();
          expect(seen === buffer, `handover, ${to}`);
        },
      },
      {
        name: "through the CPU: mapAsync, writeBuffer",
        each: throughCPU,
        async verify() {
          await throughCPU();
          expect(same(await words(device, fresh, bytes), expected), "through the CPU");
        },
      },
    ],
    done() {
      tensor.release();
      for (const each of [buffer, staging, fresh]) each.destroy();
    },
  };
}
