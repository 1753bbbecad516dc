// Tensors without Python: a typed array on the GPU, and back.
import { Tensor, webgpu } from "dlpack-web";

const out = document.querySelector("#out") as HTMLOutputElement;
const device = await webgpu.requestDevice();
const double = new webgpu.Kernel(
  device,
  `
  @group(0) @binding(0) var<storage, read_write> x: array<f32>;

  @compute @workgroup_size(64)
  fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&x)) { x[id.x] = 2 * x[id.x]; }
  }
`,
);

const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2, 3));
const onGpu = tensor.to(device); // one copy
double.run([onGpu]);
out.textContent = [...(await onGpu.read())].join(" "); // and one back
for (const each of [tensor, onGpu]) each.release();
