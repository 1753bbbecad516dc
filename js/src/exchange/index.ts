export { EXCHANGE, EXCHANGE_ASYNC } from "../core/symbols.js";
export { fit } from "./fit.js";
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
