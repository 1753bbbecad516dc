// A GPUDevice that does nothing.

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
    createBuffer: (it) => ({
      ...it,
      destroy() {},
      mapAsync: async () => {},
      getMappedRange: (_, size = it.size) => new ArrayBuffer(size),
      unmap() {},
    }),
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
