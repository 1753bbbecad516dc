// Lines that are wrong in a natural way, which TypeScript refuses.
import { type Bridge, Tensor, webgpu } from "dlpack-web";

type Device = Awaited<ReturnType<typeof webgpu.requestDevice>>;

export function arrays(floats: Tensor<"float32">, some: Tensor): void {
  // @ts-expect-error: tensors are made by functions
  new Tensor();
  // @ts-expect-error: of an array, too
  new Tensor([1, 2]);
  // @ts-expect-error: a Float32Array has no int64
  Tensor.fromTypedArray(new Float32Array(4), { dtype: "int64" });
  // @ts-expect-error: nor int32, which is as wide
  Tensor.fromTypedArray(new Float32Array(4), { dtype: "int32" });
  // @ts-expect-error: nor vectors of them
  Tensor.fromTypedArray(new Float32Array(4), { dtype: "int32x4", shape: [1] });
  // @ts-expect-error: elements of four bytes are not of two
  Tensor.fromTypedArray(new Uint32Array(4), { dtype: "bfloat16" });
  // @ts-expect-error: elements of two bytes are not of four
  Tensor.fromTypedArray(new Uint16Array(4), { dtype: "float32" });
  // @ts-expect-error: one of both is not, either
  Tensor.fromTypedArray(new Float32Array(4) as Float32Array | Float64Array, { dtype: "int64" });
  // @ts-expect-error: a Tensor is no array of numbers
  const list: ArrayLike<number> = floats;
  // @ts-expect-error: it has no length
  for (let i = 0; i < floats.length; i++);
  // @ts-expect-error: nor is that a number
  const length: number = some.length;
  // @ts-expect-error: nor elements
  floats[0];
  // @ts-expect-error: nor bytes
  floats.byteLength;
  // @ts-expect-error: nor names of other libraries
  floats.rank;
  // @ts-expect-error: nor their methods
  floats.dispose();
  // @ts-expect-error: it is no number
  floats + 1;
  // @ts-expect-error: nor what a typed array takes
  new Float32Array(4).set(floats);
  // @ts-expect-error: nor what Math.max.apply takes
  Math.max.apply(null, floats);
  // @ts-expect-error: nor a view
  const view: ArrayBufferView = some;
  void [list, length, view];
}

export function writing(floats: Tensor<"float32">, halves: Tensor<"float16">): void {
  // @ts-expect-error: of another class
  floats.write(new BigInt64Array(4));
  // @ts-expect-error: converted only where that is asked for
  floats.write(new Float64Array(4));
  // @ts-expect-error: as wide, and another class
  floats.write(new Int32Array(4));
  // @ts-expect-error: an Int16Array has no floats
  halves.write(new Int16Array(4));
  // @ts-expect-error: a list
  floats.write([1, 2, 3, 4]);
}

export function uploads(
  floats: Tensor<"float32">,
  doubles: Tensor<"float64">,
  vectors: Tensor<"float64x2">,
  device: Device,
): void {
  // @ts-expect-error: only what convert.ts lists
  floats.to(device, { dtype: "int32" });
  // @ts-expect-error: wider
  floats.to(device, { dtype: "float64" });
  // @ts-expect-error: one of both is not, either
  (floats as Tensor<"float32" | "bfloat16">).to(device, { dtype: "int32" });
  // @ts-expect-error: in one step
  doubles.to(device, { dtype: "float16" });
  // @ts-expect-error: nor a vector's
  vectors.to(device, { dtype: "int32x2" });
  // @ts-expect-error: the device is an object
  floats.to("webgpu");
  // @ts-expect-error: and the first argument
  floats.to({ device });
}

export async function gpu(floats: Tensor<"float32">, device: Device, { empty }: Bridge) {
  // @ts-expect-error: a list of names; a string is one of letters
  await webgpu.requestDevice({ features: "shader-f16" });
  const kernel = new webgpu.Kernel(device, "");
  // @ts-expect-error: there are three axes
  kernel.run([floats], { workgroups: [1, 2, 3, 4] });
  // @ts-expect-error: constant or not
  kernel.run([floats], { workgroups: [1, 2, 3, 4] as const });
  // @ts-expect-error: a list of arguments
  kernel.run(floats);
  // @ts-expect-error: timed() measures what is submitted before its function returns
  await webgpu.timed(device, async (timestampWrites) => {
    await kernel.ready;
    kernel.run([floats], { timestampWrites });
  });
  // @ts-expect-error: by whatever promise
  await webgpu.timed(device, () => kernel.ready);
  // @ts-expect-error: a dtype is not an option
  empty([2], { dtype: "float32" });
}
