// Lines that are right in a natural way: generic code, unions, what is known only when it runs.
import {
  type AnyTypedArray,
  type Bridge,
  type CopyOf,
  type DataOf,
  type DTypeName,
  Tensor,
  webgpu,
} from "dlpack-web";
import { same } from "./same.js";

type Device = Awaited<ReturnType<typeof webgpu.requestDevice>>;

/** A tensor of some dtype is one of any. */
export function sizes(tensors: readonly Tensor[], floats: Tensor<"float32">): number {
  const any: Tensor = floats;
  const wider: Tensor<"float32" | "int32"> = floats;
  const named: Record<string, Tensor> = { floats, any };
  const list: Tensor[] = [...tensors, floats, wider, any];
  const byName = new Map<string, Tensor>([["floats", floats]]);
  const made: Tensor = Tensor.fromTypedArray(new Int8Array(1));
  const maybe: Tensor | null = floats as Tensor<"float32"> | null;
  const taken = (x: Tensor | Float32Array) => (x instanceof Tensor ? x.copy() : x);
  const flat = (x: Tensor | number[]) => (Array.isArray(x) ? x.length : x.size);
  const iterated: number = [...list].reduce((sum, { size }) => sum + size, flat(any));
  void [named, byName, made, maybe, taken(floats)];
  return iterated;
}

export function generic<D extends DTypeName>(x: Tensor<D>, y: Tensor<D>, device: Device): Tensor<D> {
  const data: DataOf<D> = x.data;
  const copy: CopyOf<D> = x.copy();
  y.write(x);
  y.write(x, { convert: true });
  y.write(x.data);
  y.write(x.copy());
  const up: Tensor<D> = x.to(device);
  const again: Tensor<D> = Tensor.from(x);
  const views: Tensor<D>[] = [x.reshape([-1]), x.slice(0), x.permute([0]), x.contiguous()];
  const base: Tensor = x;
  void [data, copy, up, again, views, base];
  return x;
}

export function floating<D extends "float32" | "float64">(x: Tensor<D>): number {
  let sum = 0;
  for (const value of x.data) sum += value;
  return sum + x.copy().length;
}

/** What is known only when it runs. */
export function unknowns(
  some: Tensor,
  dtype: DTypeName,
  bytes: Uint8Array,
  typed: AnyTypedArray,
  either: Tensor<"float32"> | Tensor<"int32">,
  both: Tensor<"float32" | "int32">,
  device: Device,
  flag: boolean,
): void {
  some.write(some.data);
  some.write(some.copy());
  some.write(typed);
  some.write(new Float32Array(4));
  some.to(device, { dtype });
  some.to(device, { dtype: "float32" });
  some.to(device, { dtype: some.dtype });
  some.to(device, { usage: 128 });
  some.to(device, { dtype: undefined });
  some.to(device, flag ? { dtype: "float16" } : {});
  const like: Tensor = Tensor.fromTypedArray(some.data, { dtype: some.dtype, shape: some.shape });
  same<ReturnType<typeof some.to>, Tensor>(true);
  Tensor.fromTypedArray(bytes, { dtype });
  Tensor.fromTypedArray(typed, { dtype });
  Tensor.fromTypedArray(new Float32Array(4), { dtype });
  Tensor.fromTypedArray(both.data, { dtype: both.dtype });
  either.to(device);
  either.to(device).release();
  either.write(some);
  either.write(bytes);
  either.write(typed, { convert: true });
  either.read();
  either.release();
  const data: Float32Array | Int32Array = either.data;
  const copied: Float32Array | Int32Array = either.copy();
  both.write(data);
  both.to(device, { dtype: "float16" });
  if (some.is("float32")) some.write(new Float32Array(1));
  void [like, copied];
}

export function wrap<A extends AnyTypedArray>(array: A, shape: number[]) {
  return Tensor.fromTypedArray(array, { shape });
}

export function named<D extends DTypeName>(bytes: Uint8Array, dtype: D): Tensor<D> {
  return Tensor.fromTypedArray(bytes, { dtype });
}

export function raised<D extends "float32" | "float64">(x: Tensor<D>, device: Device) {
  return x.to(device, { dtype: "float32" });
}

export function as<N extends DTypeName>(x: Tensor, dtype: N, device: Device): Tensor<N> {
  return x.to(device, { dtype });
}

/** What arrays hold beside their own dtype. */
export function held(): void {
  const complex = Tensor.fromTypedArray(new Float32Array(4), { dtype: "complex64" });
  same<typeof complex, Tensor<"complex64">>(true);
  const vectors = Tensor.fromTypedArray(new Float32Array(8), { dtype: "float32x4" });
  same<typeof vectors, Tensor<"float32x4">>(true);
  const halves = Tensor.fromTypedArray(new Uint16Array(4), { dtype: "float16" });
  same<typeof halves, Tensor<"float16">>(true);
  const brains = Tensor.fromTypedArray(new Uint16Array(4), { dtype: "bfloat16" });
  brains.write(new Uint16Array(4));
  brains.write(new Uint8Array(8));
  halves.write(new Uint16Array(4));
  const pairs = Tensor.fromTypedArray(new Uint16Array(4), { dtype: "uint8x2" });
  pairs.write(new Uint16Array(4));
  const bytes = Tensor.fromTypedArray(new Uint8ClampedArray(8), { dtype: "int64" });
  bytes.write(new BigInt64Array(1));
  bytes.write(new Uint8Array(8));
  complex.write(new Float32Array(4));
  complex.write(new Float64Array(4), { convert: true });
  vectors.write(vectors);
  vectors.write(new Float32Array(8), { convert: false });
}

export function converted(
  device: Device,
  x: {
    doubles: Tensor<"float64">;
    floats: Tensor<"float32">;
    halves: Tensor<"float16">;
    brains: Tensor<"bfloat16">;
    longs: Tensor<"int64">;
    unsigned: Tensor<"uint64">;
    complex: Tensor<"complex128">;
    vectors: Tensor<"float64x2">;
  },
): Tensor[] {
  const fewer = x.vectors.to(device, { dtype: "float32x2" });
  same<typeof fewer, Tensor<"float32x2">>(true);
  return [
    fewer,
    x.doubles.to(device, { dtype: "float32" }),
    x.doubles.to(device, { dtype: "float64" }),
    x.floats.to(device, { dtype: "float16" }),
    x.floats.to(device, { dtype: "bfloat16" }),
    x.halves.to(device, { dtype: "float32" }),
    x.brains.to(device, { dtype: "float32" }),
    x.longs.to(device, { dtype: "int32" }),
    x.unsigned.to(device, { dtype: "uint32" }),
    x.complex.to(device, { dtype: "complex64" }),
  ];
}

export async function gpu(floats: Tensor<"float32">, device: Device, bridge: Bridge) {
  const wanted = new Set(["shader-f16"]);
  await webgpu.requestDevice({ features: wanted });
  await webgpu.requestDevice({ features: ["shader-f16", "subgroups"] as const });
  await webgpu.requestDevice({ features: device.features as Iterable<string> & typeof device.features });
  const kernel = new webgpu.Kernel(device, "");
  const counts = [1, 2];
  const three: [number, number, number] = [1, 2, 3];
  kernel.run([floats], { workgroups: counts });
  kernel.run([floats], { workgroups: three });
  kernel.run([floats], { workgroups: [4] });
  kernel.run([floats], { workgroups: [4, 4] });
  kernel.run([floats], { workgroups: [4, 4, 4] });
  kernel.run([floats], { workgroups: [4, 4] as const });
  kernel.run([floats], { workgroups: floats.shape.map((n) => Math.ceil(n / 8)) });
  kernel.run([floats], { workgroups: counts as readonly number[] });
  const ran: webgpu.Argument[] = [];
  await webgpu.timed(device, (timestampWrites) => kernel.run([floats], { timestampWrites }));
  await webgpu.timed(device, () => ran.push(floats));
  await webgpu.timed(device, () => floats.slice(0));
  await webgpu.timed(device, () => null);
  await webgpu.timed(device, function run() {});
  const [read] = await bridge.readAll([floats]);
  const copy: Float32Array | undefined = read;
  void [copy, floats.copy().buffer];
}
