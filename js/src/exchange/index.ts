export { fit } from "./fit.js";
export { EXCHANGE, EXCHANGE_ASYNC } from "./symbols.js";
export { adopt, isExchangeable, take, takeAsync } from "./take.js";
export type {
  AsyncExchangeable,
  AsyncExchangeRequest,
  Exchange,
  Exchangeable,
  ExchangeRequest,
  MovingMemory,
  Needs,
} from "./types.js";
