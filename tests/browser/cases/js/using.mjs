// In a file of its own, for browsers that do not know the word.
export function made(bridge) {
  using tensor = bridge.empty([1], "uint8");
  return tensor;
}
