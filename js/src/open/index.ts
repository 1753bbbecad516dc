/** Files of tensors: to the CPU or, chunk by chunk, to a GPU, and back. */
// Importing only this gives tensors all their methods: the layers register themselves.
import "../exchange/index.js";
import "../webgpu/buffers/transfer.js";

export { TensorFile, type TensorInfo } from "./file.js";
export { open } from "./open.js";
export type { Format, LoadOptions, OpenOptions } from "./options.js";
export { type NamedTensors, type SaveOptions, save } from "./save.js";
export type { FetchOptions } from "./source.js";
export type { OpenSource, SyncAccessHandle } from "./sources.js";
export type { SaveTarget, SyncWriteHandle } from "./targets.js";
