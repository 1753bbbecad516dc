// Rendered on the server, where tensors on the CPU work; the client part is, too, and then runs.
import { Tensor } from "dlpack-web";
import { features } from "dlpack-web/features";
import Client from "./client";

export default async function Page() {
  const tensor = Tensor.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  const { webgpu } = await features();
  const said = `${tensor.toString()} ${webgpu.available}`;
  tensor.release();
  return (
    <>
      <p id="server">{said}</p>
      <Client />
    </>
  );
}
