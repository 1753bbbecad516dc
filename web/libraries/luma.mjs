export { Buffer, luma } from "@luma.gl/core";
export { webgpuAdapter } from "@luma.gl/webgpu";
