// Tensors between the page and a worker, each with its own bridge; each function is a test.
import { Tensor } from "/js/index.js";
import { counted, equal, ok, throws } from "./expect.mjs";

const worker = new Worker("/tests/browser/cases/js/worker.mjs", { type: "module" });

function ask(task, message) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) =>
      data.problem ? reject(new Error(data.problem)) : resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ task, message }, message ? [message.buffer] : []);
  });
}

export async function a_tensor_goes_to_a_worker_and_comes_back(context) {
  const x = context.bridge.empty([2, 3]);
  x.data.set([0, 1, 2, 3, 4, 5]);
  const message = counted(context, () => x.transfer(), { copies: 1 });
  ok(x.released, "the tensor went away");
  const { result, live } = await ask("double", message);
  equal(live, 0, "tensors left in the worker");
  ok(message.buffer.byteLength === 0, "its memory went along");
  const back = counted(context, () => Tensor.receive(result), {});
  equal([back.shape, back.dtype, [...back.data]], [[2, 3], "float32", [2, 4, 6, 8, 10, 12]]);
  const proxy = context.bridge.toPython(back);
  equal(context.pyodide.ffi && proxy.shape.length, 2);
  proxy.release();
  proxy.destroy();
  back.release();
}

export async function an_array_of_javascript_goes_without_a_copy(context) {
  const array = Float32Array.of(1, 2, 3);
  const x = Tensor.fromTypedArray(array);
  const message = counted(context, () => x.transfer(), {});
  ok(message.buffer === array.buffer, "the memory itself");
  const { result } = await ask("double", message);
  const back = Tensor.receive(result);
  equal(back.data, [4, 6, 8]);
  back.release();
}

export async function posting_a_gpu_tensor_says_what_to_do() {
  const { result, live } = await ask("post_gpu");
  equal([result.name, live], ["UnsupportedError", 0]);
  ok(/post the result of transfer\(\) or read\(\)/.test(result.message), result.message);
}

export async function a_released_tensor_is_not_sent(context) {
  const x = context.bridge.empty([1]);
  x.release();
  await throws(() => x.transfer(), "ReleasedError", /was released/);
}
