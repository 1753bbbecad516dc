// What TypeScript listings of the documentation may use besides what they import. Each name is
// what a page of the reader's own has at that place.
import type { Tensor } from "dlpack-web";

declare global {
  // Which TypeScript's own types of WebGPU lack; `@webgpu/types` has them.
  const GPUBufferUsage: Readonly<
    Record<
      | "MAP_READ"
      | "MAP_WRITE"
      | "COPY_SRC"
      | "COPY_DST"
      | "INDEX"
      | "VERTEX"
      | "UNIFORM"
      | "STORAGE"
      | "INDIRECT"
      | "QUERY_RESOLVE",
      number
    >
  >;
  const GPUMapMode: Readonly<Record<"READ" | "WRITE", number>>;
  /** Pyodide, as `loadPyodide()` gave it. */
  // biome-ignore lint/suspicious/noExplicitAny: connect() asks of it what it needs
  const pyodide: any;
  /** A device of the page. */
  const device: GPUDevice;
  /** A tensor of the page. */
  const tensor: Tensor;
  const canvas: HTMLCanvasElement;
  const video: HTMLVideoElement;
  /** Modules of other libraries: onnxruntime-web, TensorFlow.js, transformers.js, LiteRT.js, three.js. */
  // biome-ignore lint/suspicious/noExplicitAny: their types are theirs
  const ort: any, tf: any, transformers: any, litert: any, three: any;
  /** What TypeGPU, luma.gl and Babylon.js export. */
  // biome-ignore lint/suspicious/noExplicitAny: their types are theirs
  const tgpu: any, d: any, luma: any, webgpuAdapter: any, Buffer: any;
  // biome-ignore lint/suspicious/noExplicitAny: their types are theirs
  const WebGPUEngine: any, WebGPUDataBuffer: any, VertexBuffer: any, StorageBuffer: any;
  /** Bytes of an ONNX model. */
  const model: Uint8Array;
}
