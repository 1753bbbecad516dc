// NumPy arrays and JavaScript's onto the GPU, and empty tensors there.
import { Tensor, webgpu } from "../../../js/index.js";
import {
  byHand,
  clear,
  copyBuffer,
  giveBack,
  holds,
  makeBuffer,
  same,
  TENSOR_USAGE,
} from "./gpu.mjs";

const MB = 2 ** 20;
/** MiB that one write by hand should have at most: larger ones take fresh staging memory. */
const PIECE = 4;

/**
 * NumPy array -> GPU. Today's ways make a buffer each time, after NumPy's packing or narrowing; ours takes
 * one from its pool, or makes one where none fits ("cold"). A buffer "in use" has been written by a command
 * just before: Chromium copies directly only to a buffer that the GPU has never written. `pieces` of the context: MiB, a floor for each.
 */
export const upload = {
  path: "upload",
  layouts: ["contiguous", "in use", "transposed", "strided", "f64", "f16"],
  sizes: [64 * MB],
  sizesOf: {
    contiguous: [64, MB, 16 * MB, 64 * MB, 256 * MB],
    "in use": [16 * MB, 64 * MB, 256 * MB],
  },
  make(context, bytes, layout) {
    const { pyodide, bridge, device, pool, python, keep, settle, pieces = [PIECE] } = context;
    const made = keep(python.laid_out(bytes, layout));
    const [array, pack] = [0, 1].map((i) => keep(made.get(i)));
    const source = keep(bridge.tensor(array));
    const packed = keep(bridge.tensor(keep(pack())));
    const { dtype, shape } = packed;
    const copied = keep(bridge.empty(shape, dtype));
    const existing = keep(makeBuffer(device, bytes));
    // A tensor of our own costs less; the largest shares the floor's buffer, for memory.
    const first =
      bytes > 64 * MB
        ? Tensor.fromGPUBuffer(existing, { device, shape, dtype })
        : source.to(device, { dtype });
    keep(first);
    const word = keep(makeBuffer(device, 4));
    const wasm = pyodide._module;
    const isUsed = layout === "in use";
    const write = () => {
      first.write(source, { convert: true });
      return first;
    };
    /** Today's: `put` gets a new buffer, and an array that NumPy has packed. */
    const today =
      (put, mappedAtCreation = false) =>
      () => {
        const proxy = pack();
        const buffer = device.createBuffer({ size: bytes, usage: TENSOR_USAGE, mappedAtCreation });
        put(buffer, proxy);
        proxy.destroy();
        return buffer;
      };
    /** By address, packed already. */
    const put = (buffer, at = 0, size = bytes, { data } = packed) => {
      device.queue.writeBuffer(buffer, at, wasm.HEAPU8.buffer, data.byteOffset + at, size);
      return buffer;
    };
    const inPieces = (piece, from) => () => {
      for (let at = 0; at < bytes; at += piece) {
        put(existing, at, Math.min(piece, bytes - at), from);
        device.queue.submit([]);
      }
      return existing;
    };
    const zero = inPieces(PIECE * MB, copied);
    const floors = {
      floor: () => put(existing),
      ...Object.fromEntries(
        pieces.map((n) => [`floor, pieces of ${n} MiB and a submit`, inPieces(n * MB)]),
      ),
      "floor, copied within memory": {
        isSettled: false,
        run() {
          copied.data.set(packed.data);
          return copied;
        },
      },
    };
    const withNumPy = layout === "contiguous" ? "" : "NumPy first, ";
    const all = {
      "dlpack-web": () => source.to(device, { dtype }),
      "dlpack-web, cold"() {
        pool.drop();
        return source.to(device, { dtype });
      },
      "dlpack-web, write() into a tensor": write,
      [`${withNumPy}getBuffer()+writeBuffer`]: today((buffer, proxy) => {
        const borrowed = proxy.getBuffer("u8");
        device.queue.writeBuffer(buffer, 0, borrowed.data);
        borrowed.release();
      }),
      // toJs() of a matrix makes nested arrays, which no queue takes.
      ...(layout === "contiguous" && {
        "toJs()+writeBuffer": today((buffer, proxy) => {
          device.queue.writeBuffer(buffer, 0, proxy.toJs());
        }),
      }),
      [`${withNumPy}Uint8Array.assign()+writeBuffer, as wgpu-py calls`]: today((buffer, proxy) => {
        python.write_as_wgpu_py(device.queue, buffer, proxy);
      }),
      [`${withNumPy}mappedAtCreation`]: today((buffer, proxy) => {
        const borrowed = proxy.getBuffer("u8");
        new Uint8Array(buffer.getMappedRange()).set(borrowed.data);
        borrowed.release();
        buffer.unmap();
      }, true),
      ...floors,
      "floor, cold": () => put(makeBuffer(device, bytes)),
    };
    const lasting = new Set([existing, first, copied]);
    // Of the largest size those that write to one buffer, for memory.
    const few = { "dlpack-web": write, ...floors };
    return {
      ways: isUsed || bytes > 64 * MB ? few : all,
      alive: 2 * bytes, // and staging memory
      settle,
      wipe() {
        pool.drop(); // whose buffers have the right elements, too
        copied.data.fill(0);
        // From the CPU: after a clear, which the GPU does, no upload is copied directly.
        zero();
        first.write(copied);
      },
      check: (made) =>
        made === copied ? same(copied.data, packed.data) : holds(device, made, packed.data),
      free(made) {
        if (isUsed && made !== copied) copyBuffer(device, word, made.buffer ?? made, 4);
        if (!lasting.has(made)) giveBack(made);
      },
    };
  },
};

/** Columns of float64 in JavaScript -> float32 tensors. */
export const columns = {
  path: "columns",
  layouts: ["f64"],
  sizes: [8_000_000],
  make({ device, keep, settle }, bytes) {
    const length = Math.floor(bytes / 20 / 4);
    const columns = Array.from({ length: 20 }, (_, k) =>
      Float64Array.from({ length }, (_, i) => i / 3 + k),
    );
    const hosts = columns.map((column) => keep(Tensor.fromTypedArray(column)));
    const raw = columns.map(() => keep(makeBuffer(device, 4 * length)));
    const scratch = new Float32Array(length);
    const write = (narrow) => () => {
      raw.forEach((buffer, k) => {
        device.queue.writeBuffer(buffer, 0, narrow(columns[k]));
      });
      return raw;
    };
    const isRight = (made, k) => holds(device, made, Float32Array.from(columns[k]));
    return {
      ways: {
        "dlpack-web": () => hosts.map((host) => host.to(device, { dtype: "float32" })),
        "new Float32Array(column)+writeBuffer": write((column) => new Float32Array(column)),
        floor: write((column) => {
          scratch.set(column);
          return scratch;
        }),
      },
      alive: 2 * bytes,
      maxBatch: 16,
      settle,
      wipe: () => raw.map((buffer) => clear(device, buffer)),
      check: async (made) => (await Promise.all(made.map(isRight))).every(Boolean),
      free: (made) => made !== raw && made.forEach(giveBack),
    };
  },
};

const ONE = `
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = 1; }`;

/**
 * A tensor of zeros on the GPU. WebGPU clears a new buffer as late as it can: a kernel that writes into it
 * makes both clear it.
 */
export const empty = {
  path: "empty",
  layouts: ["contiguous", "and a kernel"],
  sizes: [MB],
  sizesOf: { contiguous: [64, MB, 64 * MB] },
  make({ bridge, device, pool, settle }, bytes, layout) {
    const isUsed = layout === "and a kernel";
    const kernel = new webgpu.Kernel(device, ONE);
    const ours = () => {
      const tensor = bridge.empty([bytes / 4], "float32", { device });
      if (isUsed) kernel.run([tensor], { workgroups: 1 });
      return tensor;
    };
    const expected = new Float32Array(bytes / 4);
    expected[0] = isUsed ? 1 : 0;
    return {
      ways: {
        "dlpack-web": ours,
        "dlpack-web, cold"() {
          pool.drop();
          return ours();
        },
        "createBuffer()"() {
          const buffer = makeBuffer(device, bytes);
          if (isUsed) byHand(device, [{ code: ONE, bound: [buffer] }])();
          return buffer;
        },
      },
      alive: bytes,
      settle,
      check: (made) => holds(device, made, expected),
      free: giveBack,
    };
  },
};
