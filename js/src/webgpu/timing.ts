import { UnsupportedError } from "../core/errors.js";
import { checkAlive, nameOf, useDevice } from "./device.js";

const QUERY_RESOLVE = 0x200;
const COPY_SRC = 4;
const COPY_DST = 8;
const MAP_READ = 1;

/** Implements `webgpu.timed`. */
export async function timed(
  gpu: GPUDevice,
  run: (timestampWrites: GPUComputePassTimestampWrites) => void,
): Promise<number> {
  const record = useDevice(gpu);
  checkAlive(record);
  if (!gpu.features.has("timestamp-query")) {
    throw new UnsupportedError(
      `${nameOf(record)} cannot measure: it was made without the feature "timestamp-query", ` +
        "which requestDevice() asks for where the adapter has it",
      { needed: "timestamp-query", device: record.device },
    );
  }
  const querySet = gpu.createQuerySet({ type: "timestamp", count: 2 });
  const resolved = gpu.createBuffer({ size: 16, usage: QUERY_RESOLVE | COPY_SRC });
  const staging = gpu.createBuffer({ size: 16, usage: MAP_READ | COPY_DST });
  try {
    run({ querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 });
    const encoder = gpu.createCommandEncoder();
    encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, 16);
    gpu.queue.submit([encoder.finish()]);
    await staging.mapAsync(MAP_READ);
    const [begin, end] = new BigUint64Array(staging.getMappedRange()) as unknown as [
      bigint,
      bigint,
    ];
    return Number(end - begin) / 1e6; // WebGPU counts nanoseconds
  } finally {
    querySet.destroy();
    resolved.destroy();
    staging.destroy();
  }
}
