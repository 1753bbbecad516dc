// Of several adapters the fastest, unless a case asks for another: `deno --preload`, after Dawn's.
const prototype = Object.getPrototypeOf(navigator.gpu);
const { requestAdapter } = prototype;
prototype.requestAdapter = function (options) {
  return requestAdapter.call(this, { powerPreference: "high-performance", ...options });
};
