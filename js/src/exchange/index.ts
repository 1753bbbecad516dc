export {
  adopt,
  EXCHANGE,
  type Exchange,
  type Exchangeable,
  type ExchangeRequest,
  fit,
  isExchangeable,
  type MovingMemory,
  type Needs,
  take,
} from "./fit.js";
