/**
 * The suite of js/EXCHANGE.md: tells rule by rule whether a producer or a consumer of tensors holds to
 * the protocol. It knows nothing of this library, and needs nothing but a JavaScript engine; rules of
 * the GPU need a `GPUDevice`.
 *
 * A rule that is broken has the message of the first check that saw it. Of what it makes impossible
 * to see, other rules are skipped. What never settles is given up after `timeoutMs`; what hangs without
 * giving way (a loop) cannot be stopped by anybody in its thread.
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
