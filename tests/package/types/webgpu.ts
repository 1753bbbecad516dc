// Where WebGPU's types are known, the library's are the same.
import {
  type FromGPUBufferOptions,
  KernelError,
  Tensor,
  webgpu,
} from "dlpack-web";
import type { Exchange, ExchangeRequest } from "dlpack-web/exchange";
import type { shareDevice } from "dlpack-web/share";
import { same } from "./same.js";

same<Awaited<ReturnType<typeof webgpu.requestDevice>>, GPUDevice>(true);
same<Awaited<ReturnType<typeof shareDevice>>, GPUDevice>(true);
same<Tensor["device"]["gpu"], GPUDevice | null>(true);
same<Tensor["buffer"], GPUBuffer>(true);
same<FromGPUBufferOptions["device"], GPUDevice>(true);
same<NonNullable<ExchangeRequest["device"]>, GPUDevice>(true);
same<Exchange["device"]["gpu"], GPUDevice | null>(true);
same<Extract<webgpu.ImageSource, { createView: unknown }>, GPUTexture>(true);
same<webgpu.TimestampWrites["querySet"], GPUQuerySet>(true);

/** What is written out by us goes where WebGPU's own goes, and the other way round. */
export async function bothWays(
  adapter: GPUAdapter,
  theirs: GPUComputePassTimestampWrites,
  image: GPUCopyExternalImageSource,
  power: GPUPowerPreference,
  tensor: Tensor,
): Promise<void> {
  const device: GPUDevice = await webgpu.requestDevice({
    features: [...adapter.features] as GPUFeatureName[],
    powerPreference: power,
    maxBufferSize: adapter.limits.maxBufferSize,
  });
  const kernel = new webgpu.Kernel(device, "");
  kernel.run([tensor], { timestampWrites: theirs });
  await webgpu.timed(device, (ours) => {
    device.createCommandEncoder().beginComputePass({ timestampWrites: ours }).end();
  });
  (await webgpu.fromImage(device, image)).release();
  device.queue.writeBuffer(tensor.buffer, tensor.byteOffset, new Float32Array(1));
  device.createBindGroup({
    layout: device.createBindGroupLayout({ entries: [] }),
    entries: [{ binding: 0, resource: { buffer: tensor.buffer } }],
  });
  webgpu.listenForFaults(await adapter.requestDevice(), (error) => error instanceof KernelError);
}

/** Every limit that WebGPU knows can be asked for, and nothing else. */
type Limit = Exclude<keyof GPUSupportedLimits, "__brand">;
type Asked = Exclude<
  keyof webgpu.RequestDeviceOptions,
  "features" | "label" | "powerPreference"
>;
export const asked = (limit: Limit): Asked => limit;
