// Importing only Tensor must load the layers too: they register themselves.
import "./exchange/take.js";
import "./webgpu/buffers/transfer.js";
import { loadExplanations } from "./webgpu/errors/explanations.js";

export * from "./core/index.js";
export type { Bridge, TensorOptions } from "./pyodide/bridge.js";
export { type ConnectOptions, connect, type Package } from "./pyodide/connect.js";
export type { Pyodide, PyProxy } from "./pyodide/host.js";
export * as webgpu from "./webgpu/index.js";

loadExplanations(() => import("./webgpu/lazy.js"));
