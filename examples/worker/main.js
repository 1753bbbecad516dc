import { Tensor } from "./node_modules/dlpack-web/js/dist/core/index.js";

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
worker.onmessage = ({ data }) => {
  const tensor = Tensor.receive(data);
  document.querySelector("#out").textContent = `[${tensor.shape}]: ${tensor.data}`;
  tensor.release();
};
