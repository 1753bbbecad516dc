// GPUDevices and GPUBuffers that do nothing.
import assert from "node:assert/strict";

/** A GPUBuffer that counts how often it is destroyed. */
export const fakeBuffer = (size = 64, usage = 4 | 8 | 128) => ({
  size,
  usage,
  destroyed: 0,
  destroy() {
    this.destroyed++;
  },
  mapAsync: async () => {},
  getMappedRange: (_, count = size) => new ArrayBuffer(count),
  unmap() {},
  [Symbol.toStringTag]: "GPUBuffer",
});

export function fakeDevice() {
  const pass = { setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} };
  return {
    limits: {
      maxBufferSize: 1 << 20,
      minStorageBufferOffsetAlignment: 256,
      maxStorageBufferBindingSize: 1 << 20,
      maxComputeWorkgroupsPerDimension: 100,
    },
    features: new Set(),
    lost: new Promise(() => {}),
    pushErrorScope() {},
    popErrorScope: async () => null,
    createBuffer: ({ size, usage }) => fakeBuffer(size, usage),
    createShaderModule: () => ({ getCompilationInfo: async () => ({ messages: [] }) }),
    createBindGroupLayout: () => ({}),
    createPipelineLayout: () => ({}),
    createComputePipeline: () => ({}),
    createComputePipelineAsync: async () => ({}),
    createBindGroup: () => ({}),
    createCommandEncoder: () => ({
      copyBufferToBuffer() {},
      beginComputePass: () => pass,
      finish: () => ({}),
    }),
    queue: { submit() {}, writeBuffer() {}, onSubmittedWorkDone: async () => {} },
    destroy() {},
  };
}

/** A GPUDevice that does nothing, and what it is asked for. */
export function loggedDevice() {
  const log = { types: [], formats: [], sources: [], textures: [], written: [] };
  Object.assign(log, { groups: [], bound: [], dispatched: [], drawn: [], copies: [] });
  const pass = {
    setPipeline() {},
    setBindGroup(index, group) {
      assert.equal(index, 0);
      log.bound.push(group.length);
    },
    dispatchWorkgroups: (...counts) => log.dispatched.push(counts),
    draw: (...counts) => log.drawn.push(counts),
    end() {},
  };
  const pipeline = () => ({ getBindGroupLayout: () => ({}) });
  const made = fakeDevice();
  const gpu = {
    ...made,
    limits: { ...made.limits, maxTextureDimension2D: 64 },
    lost: new Promise((resolve) => {
      log.lose = () => resolve({ reason: "unknown", message: "unplugged" });
    }),
    createShaderModule(descriptor) {
      log.sources.push(descriptor.code);
      return made.createShaderModule(descriptor);
    },
    createBindGroupLayout({ entries }) {
      for (const [i, { binding, visibility, buffer }] of entries.entries()) {
        assert.deepEqual([binding, visibility], [i, 4]); // GPUShaderStage.COMPUTE
        log.types.push(buffer.type);
      }
      return {};
    },
    createComputePipeline: pipeline,
    createRenderPipeline({ fragment }) {
      log.formats.push(fragment.targets[0].format);
      return pipeline();
    },
    createBindGroup({ layout, entries }) {
      assert.ok(layout);
      const group = entries.map(({ binding, resource: { offset, size } }) => [
        binding,
        offset,
        size,
      ]);
      log.groups.push(group);
      return group;
    },
    createCommandEncoder: () => ({
      copyBufferToBuffer: (_, from, __, to, size) => log.copies.push([from, to, size]),
      beginComputePass: () => pass,
      beginRenderPass({ colorAttachments: [{ loadOp, storeOp }] }) {
        assert.deepEqual([loadOp, storeOp], ["clear", "store"]);
        return pass;
      },
      finish: () => ({}),
    }),
    createTexture(descriptor) {
      const [width, height] = descriptor.size;
      const texture = { ...descriptor, width, height, destroyed: 0, createView: () => ({}) };
      texture.destroy = () => texture.destroyed++;
      log.textures.push(texture);
      return texture;
    },
    queue: {
      ...made.queue,
      writeTexture: (_, ...rest) => log.written.push(rest),
      copyExternalImageToTexture: ({ source }) => log.written.push(source),
    },
  };
  return { gpu, log };
}
