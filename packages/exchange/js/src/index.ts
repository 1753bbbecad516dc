/**
 * The suite of EXCHANGE.md: reports rule by rule whether a producer or a consumer of tensors
 * follows the protocol. It imports no library and needs only a JavaScript engine; rules
 * of the GPU need a `GPUDevice`.
 *
 * A broken rule has the message of the first check that failed. Rules that cannot be tested because
 * of it are skipped. Promises that never settle time out after `timeoutMs`; an endless loop cannot
 * be stopped within its thread.
 */
export { consumerConformance } from "./consumers.js";
export { conformance } from "./producers.js";
export type {
  ConsumeOptions,
  ConsumerOptions,
  ProducerOptions,
  Report,
  Rule,
  Wanted,
} from "./types.js";
