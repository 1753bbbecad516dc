/** Tensors in pieces over any channel: WIRE.md. */
// Importing only this gives tensors all their methods: the layers register themselves.
import "dlpack-web/exchange";

export { type ChannelOptions, overPort, overSocket, type Port, type Socket } from "./carriers.js";
export { Wire, type WireOptions } from "./endpoint.js";
export { joined } from "./frame.js";
export type { Received } from "./receiving.js";
export { RemoteTensor } from "./sending.js";
