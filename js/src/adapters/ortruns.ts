// biome-ignore-all lint/suspicious/noExplicitAny: the library's own types do not matter here
/**
 * Runs of onnxruntime-web's sessions on a watched device: the run raises its errors and those of
 * its inputs if results are on the CPU; otherwise reading the results raises them.
 */
import { bytesOf, dtypeNamed } from "../core/dtype.js";
import { DeviceError } from "../core/errors.js";
import type { GPUBuffer, GPUError } from "../core/globals.js";
import { sizeOf } from "../core/shape.js";
import { type DeviceRecord, useDevice as register } from "../webgpu/device/device.js";
import { ask, conclude, failure, throwFailed } from "../webgpu/errors/errors.js";
import { type Extent, type Outcome, openOutcomes, recordOf } from "../webgpu/errors/record.js";
import type { Watched, WatchedDevice } from "./watched.js";

const names = new WeakMap<object, string>();
const ofRuns = new WeakSet<object>();

/** Names a session in the errors of its runs. */
export function nameSession(session: object, name: string): void {
  names.set(session, name);
}

/** Whether an error is what the device said of a run. */
export function isOfRun(error: unknown): error is DeviceError {
  return error instanceof DeviceError && ofRuns.has(error);
}

/** Loads a session and watches it. */
export async function watchSession(
  watch: WatchedDevice,
  given: unknown,
  create: () => Promise<any>,
): Promise<any> {
  const device = register(watch.seen);
  const path = typeof given === "string" ? ` ${given}` : "";
  const loading = watch.begin(`loading the session${path} of onnxruntime-web`);
  const made = await watched(device, loading, create);
  const outcome = concluded(device, loading, [], []);
  try {
    await ask(device, [outcome]);
  } catch (error) {
    made.release().catch(() => {});
    throw error;
  }
  names.set(made, typeof given === "string" ? given : textOf(made));
  // A property of this object, so later replacements of the class's method have an effect.
  made.run = (...args: any[]) => run(device, watch, made, args);
  return made;
}

/** "x, b -> y": names any session. */
function textOf({ inputNames, outputNames }: { inputNames?: string[]; outputNames?: string[] }) {
  return `${inputNames?.join(", ")} -> ${outputNames?.join(", ")}`;
}

async function run(device: DeviceRecord, watch: WatchedDevice, session: any, args: any[]) {
  const feeds = Object.values(Object(args[0])).flatMap(extentOf);
  const before = feeds.flatMap(openOutcomes);
  throwFailed(before);
  const running = watch.begin(`the session "${names.get(session)}" of onnxruntime-web`);
  const method = Object.getPrototypeOf(session).run;
  const results: Record<string, any> = await watched(device, running, () =>
    method.apply(session, args),
  );
  const values = Object.values(results);
  const onGPU = values.flatMap(extentOf);
  const outcome = concluded(device, running, before, onGPU);
  // Elements on the CPU cannot raise it later.
  if (outcome === null || onGPU.length === values.length) return results;
  try {
    await ask(device, [outcome]);
  } catch (error) {
    for (const value of values) value.dispose();
    throw error;
  }
  return results;
}

/** The result of `block`; if it fails, the device's error is the better one. */
async function watched<R>(device: DeviceRecord, one: Watched, block: () => Promise<R>): Promise<R> {
  try {
    return await block();
  } catch (cause) {
    one.end();
    await ask(device, [concluded(device, one, [], [])]);
    throw cause;
  } finally {
    one.end();
  }
}

function concluded(
  device: DeviceRecord,
  one: Watched,
  after: readonly Outcome[],
  writes: readonly Extent[],
): Outcome | null {
  const { what, scopes } = one;
  const explain = (cause: GPUError) => {
    const error = failure(device, what, cause, one.explain(cause));
    ofRuns.add(error);
    return error;
  };
  return conclude(device, { what, after, writes, fresh: true, explain }, scopes);
}

/** The bytes of an `ort.Tensor` on the GPU. */
function extentOf(value: any): Extent[] {
  if (value?.location !== "gpu-buffer") return [];
  const { gpuBuffer, dims, type } = value as { gpuBuffer: GPUBuffer; dims: number[]; type: string };
  const end = bytesOf(dtypeNamed(type), sizeOf(dims));
  return [{ buffer: recordOf(gpuBuffer), start: 0, end }];
}
