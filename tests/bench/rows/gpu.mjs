// WebGPU by hand, as programs use it that have no library; for rows, and for their checks.

export const USAGE = {
  STORAGE: 0x80,
  UNIFORM: 0x40,
  VERTEX: 0x20,
  COPY_DST: 8,
  COPY_SRC: 4,
  MAP_READ: 1,
};
export const TENSOR_USAGE = USAGE.STORAGE | USAGE.UNIFORM | USAGE.COPY_DST | USAGE.COPY_SRC;
const COMPUTE = 4;

/** With buffers as large as the adapter allows. */
export async function requestDevice(given) {
  const adapter = given ?? (await navigator.gpu.requestAdapter());
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  return adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
}

export function makeBuffer(device, size, usage = TENSOR_USAGE) {
  return device.createBuffer({ size, usage });
}

/** One that can be mapped to be read. */
export const makeStaging = (device, size) =>
  makeBuffer(device, size, USAGE.MAP_READ | USAGE.COPY_DST);

/** Encodes some work, and submits it. */
export function submit(device, encode) {
  const encoder = device.createCommandEncoder();
  encode(encoder);
  device.queue.submit([encoder.finish()]);
}

/** Copies all of the first buffer, or some bytes of it. */
export const copyBuffer = (device, from, to, bytes = from.size) =>
  submit(device, (encoder) => encoder.copyBufferToBuffer(from, 0, to, 0, bytes));

export const clear = (device, buffer) => submit(device, (encoder) => encoder.clearBuffer(buffer));

/**
 * Waits until a device is done, and has freed what was destroyed. A submit with work in it comes
 * before: without one Dawn in Node waits only until writeBuffer has copied, and nothing is freed.
 */
export function settling(device) {
  const word = makeBuffer(device, 4);
  return async () => {
    clear(device, word);
    await device.queue.onSubmittedWorkDone();
  };
}

/** Fills a staging buffer with equal parts of buffers, from `at` on, and passes the mapped bytes to `use`. */
export async function readBuffers(device, buffers, staging, use, at = 0) {
  const size = staging.size / buffers.length;
  submit(device, (encoder) => {
    buffers.forEach((buffer, i) => {
      encoder.copyBufferToBuffer(buffer, at, staging, i * size, size);
    });
  });
  await staging.mapAsync(USAGE.MAP_READ);
  const result = use(staging.getMappedRange());
  staging.unmap();
  return result;
}

/** All elements of a tensor, or of a buffer as float32. */
export async function read(device, made) {
  if (made.read) return made.read();
  const staging = makeStaging(device, made.size);
  const copy = await readBuffers(device, [made], staging, (range) => range.slice());
  staging.destroy();
  return new Float32Array(copy);
}

/** Compiles kernels, `{code, entryPoint?, bound, groups?, types?}`; returns what submits them in one pass. */
export function byHand(device, kernels) {
  const calls = kernels.map(({ code, entryPoint, bound, groups = [1], types }) => {
    const bindings = types?.map((type, binding) => ({
      binding,
      visibility: COMPUTE,
      buffer: { type },
    }));
    const explicit = bindings && [device.createBindGroupLayout({ entries: bindings })];
    const layout = explicit ? device.createPipelineLayout({ bindGroupLayouts: explicit }) : "auto";
    const module = device.createShaderModule({ code });
    const pipeline = device.createComputePipeline({ layout, compute: { module, entryPoint } });
    const entries = bound.map((each, binding) => {
      return { binding, resource: each.buffer ? each : { buffer: each } };
    });
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    return { pipeline, group, groups };
  });
  return () =>
    submit(device, (encoder) => {
      const pass = encoder.beginComputePass();
      for (const { pipeline, group, groups } of calls) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...groups);
      }
      pass.end();
    });
}

/** Whether two typed arrays have the same bytes, whose number 4 divides; a loop, as some have a gigabyte. */
export function same(a, b) {
  const [left, right] = [a, b].map((x) => new Int32Array(x.buffer, x.byteOffset, x.byteLength / 4));
  if (left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}

const PIECE = 16 * 2 ** 20;

/**
 * Whether a tensor or a buffer has these elements. It is read in pieces, for memory: PIECE divides the
 * bytes of what is larger.
 */
export async function holds(device, made, expected) {
  const { buffer, byteOffset, byteLength } = expected;
  const words = new Int32Array(buffer, byteOffset, byteLength / 4);
  const piece = makeStaging(device, Math.min(PIECE, byteLength));
  let isSame = true;
  for (let at = 0; at < byteLength; at += piece.size) {
    const part = words.subarray(at / 4, (at + piece.size) / 4);
    const isRight = (range) => same(new Int32Array(range), part);
    const from = (made.byteOffset ?? 0) + at;
    isSame &&= await readBuffers(device, [made.buffer ?? made], piece, isRight, from);
  }
  piece.destroy();
  return isSame;
}

/** Gives back a tensor, a buffer, or a proxy of Python's. */
export const giveBack = (made) => (made.release ? made.release() : made.destroy());
