import type * as types from "./protocol.js";

// Well-known in newer engines only; Symbol.for keeps the method reachable by name elsewhere.
export const dispose: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** The name of the method by which a producer hands a tensor out. */
export const EXCHANGE: typeof types.EXCHANGE = Symbol.for("dlpack.exchange") as never;

/** That of the asynchronous one. */
export const EXCHANGE_ASYNC: typeof types.EXCHANGE_ASYNC = Symbol.for(
  "dlpack.exchange.async",
) as never;
