// Of its 100 MB, an engine and what buffers need.

export { VertexBuffer } from "@babylonjs/core/Buffers/buffer.js";
export { StorageBuffer } from "@babylonjs/core/Buffers/storageBuffer.js";
export { WebGPUEngine } from "@babylonjs/core/Engines/webgpuEngine.js";
export { WebGPUDataBuffer } from "@babylonjs/core/Meshes/WebGPU/webgpuDataBuffer.js";
