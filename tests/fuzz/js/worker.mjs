// Another thread: what tensors come, go back.
import { Tensor } from "/js/index.js";

addEventListener("message", ({ data: { id, message } }) => {
  const back = Tensor.receive(message).transfer();
  postMessage({ id, back }, [back.buffer]);
});
