export { fit } from "./fit.js";
export { adopt, isExchangeable, take } from "./take.js";
export {
  EXCHANGE,
  type Exchange,
  type Exchangeable,
  type ExchangeRequest,
  type MovingMemory,
  type Needs,
} from "./types.js";
