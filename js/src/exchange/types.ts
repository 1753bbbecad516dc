/** The types of the exchange protocol, the entry point `dlpack-web/types`. */
export * from "../core/protocol.js";
