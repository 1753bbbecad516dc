import { UnsupportedError } from "../../core/errors.js";
import type { GPUDevice, TimestampWrites } from "../../core/globals.js";
import { Usage } from "../buffers/slot.js";
import { nameOf, workingDevice } from "../device/device.js";
import {
  ask,
  CREATION_ERRORS,
  collecting,
  mapAfter,
  operate,
  readMapped,
} from "../errors/errors.js";

/** Implements `webgpu.timed`. */
export async function timed(
  gpu: GPUDevice,
  run: (timestampWrites: TimestampWrites) => void,
): Promise<number> {
  const device = workingDevice(gpu);
  if (!gpu.features.has("timestamp-query")) {
    throw new UnsupportedError(
      `${nameOf(device)} cannot measure: it was made without the feature "timestamp-query", ` +
        "which requestDevice() asks for where the adapter has it",
      { needed: "timestamp-query", device: device.named },
    );
  }
  const made: { destroy(): void }[] = [];
  const track = <T extends { destroy(): void }>(one: T): T => {
    made.push(one);
    return one;
  };
  let isUsed = false;
  try {
    const what = "reading the GPU's time";
    const { result, outcome: creation } = operate(
      device,
      { what, filters: CREATION_ERRORS },
      () => {
        const querySet = track(gpu.createQuerySet({ type: "timestamp", count: 2 }));
        const indices = { beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
        const writes = {
          ...indices,
          get querySet() {
            isUsed = true;
            return querySet;
          },
        };
        // wgpu waits forever for times that are never written, as when a kernel does not compile.
        const encoder = gpu.createCommandEncoder();
        encoder.beginComputePass({ timestampWrites: { ...indices, querySet } }).end();
        gpu.queue.submit([encoder.finish()]);
        return {
          writes,
          resolved: track(
            gpu.createBuffer({ size: 16, usage: Usage.QUERY_RESOLVE | Usage.COPY_SRC }),
          ),
          staging: track(gpu.createBuffer({ size: 16, usage: Usage.MAP_READ | Usage.COPY_DST })),
        };
      },
    );
    await ask(device, [creation]); // or it would make the run invalid
    const { writes, resolved, staging } = result;
    let returned: unknown;
    const outcomes = collecting(() => {
      returned = run(writes);
    });
    if (typeof Object(returned).then === "function") {
      await returned; // its own error is better
      throw new TypeError(
        "timed() measures the work that its function submits before it returns, and this one is async: await " +
          "its inputs first, then call timed(device, (timestampWrites) => kernel.run(…))",
      );
    }
    if (!isUsed) {
      const way = "kernel.run(args, { timestampWrites })";
      throw new TypeError(`timed() measures the pass that gets its timestampWrites: ${way}`);
    }
    const { outcome } = operate(device, { what, filters: ["validation"] }, () => {
      const encoder = gpu.createCommandEncoder();
      encoder.resolveQuerySet(writes.querySet, 0, 2, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, staging, 0, 16);
      gpu.queue.submit([encoder.finish()]);
    });
    await mapAfter(device, what, [...outcomes, outcome], staging, 16);
    const range = await readMapped(device, () => staging.getMappedRange());
    const times = new BigUint64Array(range);
    return Number((times[1] as bigint) - (times[0] as bigint)) / 1e6; // WebGPU counts nanoseconds
  } finally {
    for (const one of made) one.destroy();
  }
}
