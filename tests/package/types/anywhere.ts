// What TypeScript has to know of tensors wherever it runs: with no lib but ES2022, too.
import {
  type AnyTypedArray,
  type Bridge,
  connect,
  type CopyOf,
  CopyError,
  type DataOf,
  DeviceLostError,
  type DTypeName,
  DLPackError,
  KernelError,
  liveTensors,
  type PyProxy,
  type Range,
  Tensor,
  type TensorMessage,
  UnsupportedError,
  webgpu,
} from "dlpack-web";
import { Tensor as CoreTensor } from "dlpack-web/core";
import {
  adopt,
  EXCHANGE,
  type Exchange,
  type Exchangeable,
  fit,
  EXCHANGE_ASYNC as protocol_async,
  isExchangeable,
  take,
  takeAsync,
} from "dlpack-web/exchange";
import { type Features, features } from "dlpack-web/features";
import {
  type LoadOptions,
  open,
  type OpenOptions,
  type OpenSource,
  save,
  TensorFile,
  type TensorInfo,
} from "dlpack-web/open";
import type * as protocol from "dlpack-web/types";
import { same } from "./same.js";

type Device = Awaited<ReturnType<typeof webgpu.requestDevice>>;

// --- the dtype says what `data` is ---------------------------------------------------------------

same<DataOf<"float32">, Float32Array>(true);
same<DataOf<"float32x4">, Float32Array>(true);
same<DataOf<"bfloat16" | "int64">, Uint8Array | BigInt64Array>(true);
same<CopyOf<"float32">, ReturnType<Float32Array["slice"]>>(true);

export function dtypes(some: Tensor, floats: Tensor<"float32">, device: Device): void {
  same<typeof floats.data, Float32Array>(true);
  same<typeof floats.dtype, "float32">(true);
  same<typeof some.dtype, DTypeName>(true);

  // A tensor of any dtype does what one of a certain dtype does.
  const any: Tensor = floats;
  const list: Tensor[] = [floats, some];
  const use = (tensor: Tensor<"float32" | "int32">) => tensor.data;
  const either: Float32Array | Int32Array = use(floats);
  // @ts-expect-error: not the other way round
  const certain: Tensor<"float32"> = some;
  // @ts-expect-error: nor another one
  const other: Tensor<"int32"> = floats;

  if (some.is("float32")) same<typeof some, Tensor<"float32">>(true);
  if (some.is("complex64")) same<typeof some.data, Float32Array>(true);
  if (some.is("uint8x3")) same<typeof some.data, Uint8Array>(true);
  // @ts-expect-error: no dtype
  some.is("float31");
  if (floats.is("int32")) same<typeof floats.dtype, never>(true);

  // Elements keep their dtype unless another one is asked for.
  same<ReturnType<typeof floats.contiguous>, Tensor<"float32">>(true);
  const views = [floats.reshape([-1]), floats.permute([1, 0]), floats.slice(0, [2, 5], null)];
  same<typeof views, Tensor<"float32">[]>(true);
  const ranges: Range[] = [0, [1], [null, null, -1], null];
  const sliced = some.slice(...ranges);
  same<typeof sliced, Tensor>(true);
  const there = floats.to(device);
  same<typeof there, Tensor<"float32">>(true);
  const halves = floats.to(device, { dtype: "float16" });
  same<typeof halves, Tensor<"float16">>(true);
  // @ts-expect-error: no dtype
  floats.to(device, { dtype: "half" });
  const json = floats.toJSON();
  same<typeof json.dtype, "float32">(true);
  const [element] = floats;
  same<typeof element, ReturnType<typeof floats.at>>(true);
  void [any, list, either, certain, other, there, halves];
}

// --- tensors of arrays ---------------------------------------------------------------------------

export function arrays(typed: AnyTypedArray, memory: { readonly buffer: ArrayBuffer }): void {
  const floats = Tensor.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  same<typeof floats, Tensor<"float32">>(true);
  const longs = Tensor.fromTypedArray(new BigInt64Array(6));
  same<typeof longs, Tensor<"int64">>(true);
  const pixels = Tensor.fromTypedArray(new Uint8ClampedArray(4));
  same<typeof pixels, Tensor<"uint8">>(true);
  const flags = Tensor.fromTypedArray(new Uint8Array(6), { dtype: "bool" });
  same<typeof flags, Tensor<"bool">>(true);
  const dtype = "float8_e4m3fn" as DTypeName;
  const some = Tensor.fromTypedArray(typed, { dtype, shape: undefined, strides: undefined });
  same<typeof some, Tensor>(true);
  const from = [Tensor.from(new Float64Array(1)), Tensor.from(floats).to] as const;
  same<(typeof from)[0], Tensor<"float64">>(true);
  const foreign = Tensor.fromMemory(memory, 16, { shape: [2], dtype: "int16", release() {} });
  same<typeof foreign, Tensor<"int16">>(true);
  // @ts-expect-error: a DataView has no elements
  Tensor.fromTypedArray(new DataView(new ArrayBuffer(8)));
  // @ts-expect-error: memory does not say of what dtype it is
  Tensor.fromMemory(memory, 16, { shape: [2] });
  // @ts-expect-error: a shape has lengths of axes
  Tensor.fromTypedArray(new Float32Array(6), { shape: 6 });
  const core: Tensor<"float32"> = CoreTensor.fromTypedArray(new Float32Array(1));
  // @ts-expect-error: tensors are made by functions
  new Tensor(new Float32Array(1));
  const live: number = liveTensors();
  void [core, live];
}

export async function reading(floats: Tensor<"float32">, some: Tensor): Promise<void> {
  const fresh = await floats.read();
  same<typeof fresh, CopyOf<"float32">>(true);
  const out = new Float32Array(6);
  const same1: Float32Array = await floats.read(out);
  const same2: Tensor = await floats.read(some);
  floats.write(new Float32Array(6));
  floats.write(some, { convert: true });
  const message: TensorMessage = floats.transfer();
  const received: Tensor = Tensor.receive(message);
  // @ts-expect-error: what nobody can write to
  floats.read([1, 2]);
  // @ts-expect-error: tensors do not change
  floats.shape = [1];
  // @ts-expect-error: nor do their shapes
  floats.shape[0] = 1;
  void [same1, same2, received];
}

// --- the bridge to Python ------------------------------------------------------------------------

export async function python(pyodide: Parameters<typeof connect>[0], array: PyProxy): Promise<void> {
  const bridge: Bridge = await connect(pyodide);
  await connect(pyodide, { wheel: "/dlpack_web.whl", debug: undefined });
  const some = bridge.tensor(array, { copy: undefined, writable: true });
  same<typeof some, Tensor>(true);
  const again = bridge.tensor(bridge.tensor(new Int8Array(1)));
  same<typeof again, Tensor<"int8">>(true);
  const floats = bridge.empty([2, 3]);
  same<typeof floats, Tensor<"float32">>(true);
  const ints = bridge.empty([2, 3], "int32", { device: floats.device });
  same<typeof ints, Tensor<"int32">>(true);
  const read = await bridge.readAll([floats, floats]);
  same<typeof read, [CopyOf<"float32">, CopyOf<"float32">]>(true);
  const both = await webgpu.readAll([floats, ints]);
  same<typeof both, [CopyOf<"float32">, CopyOf<"int32">]>(true);
  const list: Tensor<"int32">[] = [ints];
  const many = await webgpu.readAll(list);
  same<typeof many, CopyOf<"int32">[]>(true);
  const proxy: PyProxy = bridge.toPython(some, { copy: false });
  proxy.destroy();
}

// --- exchange ------------------------------------------------------------------------------------

/** Somebody's own producer, which needs the types of the protocol and no code. */
class Constant implements protocol.Exchangeable {
  [EXCHANGE](request: protocol.ExchangeRequest = {}): protocol.Exchange {
    if (request.versions?.includes(1) === false) throw new Error("only version 1 is supported");
    const data = Float32Array.of(1);
    return {
      version: [1, 1],
      device: { type: 1, id: 0, gpu: null },
      dtype: { code: 2, bits: 32, lanes: 1 },
      shape: [],
      strides: null,
      byteOffset: 0,
      data,
      capacity: data.byteLength,
      flags: 0,
      flush() {},
      release() {},
    };
  }
}

export async function waiting(floats: Tensor): Promise<void> {
  const held: protocol.Exchange = await floats[protocol_async]({ device: null });
  held.release(true);
  const fault: Error | null = (await held.fault?.()) ?? null;
  if (fault !== null) throw fault;
  const watched: Pick<protocol.Exchange, "fault"> = { fault: async () => new Error("it failed") };
  const unwatched: Pick<protocol.Exchange, "fault">[] = [{}, { fault: null }, { fault: () => null }, watched];
  // @ts-expect-error it is a function
  unwatched.push({ fault: Promise.resolve(null) });
  const producer: protocol.AsyncExchangeable = floats;
  for (const made of [await takeAsync(producer), await takeAsync(new Constant())]) made.release();
}

export function exchange(x: unknown, floats: Tensor): void {
  if (isExchangeable(x)) take(x, { copy: true }).release();
  const producer: Exchangeable = { [EXCHANGE]: (request): Exchange => floats[EXCHANGE](request) };
  const taken: Tensor[] = [Tensor.from(producer), adopt(floats[EXCHANGE]()), fit(producer)];
  fit(producer, { device: null, copy: undefined, needs: { offset: 0, padTo: 16, usage: undefined } });
  for (const each of taken) each.release();
}

// --- kernels and devices -------------------------------------------------------------------------

export async function kernels(some: Tensor): Promise<void> {
  const device = await webgpu.requestDevice({
    maxBufferSize: Number.POSITIVE_INFINITY,
    maxComputeWorkgroupStorageSize: undefined,
    features: ["shader-f16"],
    powerPreference: "low-power",
    label: "mine",
  });
  const kernel = new webgpu.Kernel(device, "", { entry: "main", label: undefined, check: false });
  await kernel.ready;
  kernel.run([some, 2]);
  kernel.run([some], { workgroups: 3 });
  kernel.run([some], { workgroups: [1, 2, 3] as const });
  const ms: number = await webgpu.timed(device, (timestampWrites) => {
    kernel.run([some], { workgroups: undefined, timestampWrites });
  });
  const scale = new webgpu.ElementwiseKernel(device, {
    inputs: "f32 x, f32 k",
    outputs: "f32 y",
    operation: "y = k * x",
    name: undefined,
  });
  await scale.ready;
  const scaled = scale.run([some, 2]);
  same<typeof scaled, Tensor<"float32">>(true);
  const numbers: Float32Array = await scaled.read();
  scale.run([some, 2, some], { size: undefined });
  const range = new webgpu.ReductionKernel(device, {
    inputs: "f32 x",
    outputs: "f32 low, f32 high",
    map: "vec2f(x, -x)",
    reduce: "min(a, b)",
    postMap: "low = a.x; high = -a.y",
    identity: 0,
    reduceType: "vec2f",
  });
  const ends = range.run([some], { axis: -1, keepdims: true });
  same<typeof ends, [Tensor<"float32">, Tensor<"float32">]>(true);
  const [low, high] = ends.map((each) => each.shape);
  const mixed = new webgpu.ElementwiseKernel(device, {
    inputs: "u32 x", outputs: " raw i32 a,u32 b", operation: "a[i] = i32(x); b = x",
  }).run([some, numbers.length]);
  same<typeof mixed, [Tensor<"int32">, Tensor<"uint32">]>(true);
  const source: string = range.wgsl + low + high;
  const named: webgpu.ElementwiseKernel = scale;
  const either: Tensor | Tensor[] = named.run([some, source.length]);
  const batch: webgpu.Batch = webgpu.batch(device).record(() => kernel.run([some, 2]));
  batch.update(0, { args: { 0: some, 1: 3 }, workgroups: [2] });
  batch.run();
  const recorded: number = batch.length;
  batch.release();
  const made = Tensor.fromGPUBuffer(some.buffer, { device, shape: [2], dtype: "uint32" });
  same<typeof made, Tensor<"uint32">>(true);
  webgpu.listenForFaults(device, (error, site) => error.message === "" && site === undefined);
  const bytes: number = webgpu.stats().reduce((sum, { idleBytes }) => sum + idleBytes, 0);
  const can: Features = await features();
  // @ts-expect-error: neither a tensor nor a number
  kernel.run(["x"]);
  // @ts-expect-error: only tensors have what a kernel binds
  kernel.run([new Float32Array(1)]);
  // @ts-expect-error: the device is missing
  Tensor.fromGPUBuffer(some.buffer, { shape: [2], dtype: "uint32" });
  // @ts-expect-error: not a device
  some.to("cpu");
  // @ts-expect-error: not a device either
  some.to({});
  void [ms, bytes, can];
}

// --- files ---------------------------------------------------------------------------------------

export async function files(source: OpenSource, device: Device, some: Tensor): Promise<void> {
  const opened = await open(source, { device, progress: (loaded, total) => [loaded + 1, total] });
  same<typeof opened, Tensor | TensorFile>(true);
  const array = await open("a.npy", { format: "npy", dtype: "float32" });
  same<typeof array, Tensor<"float32">>(true);
  const raw = await open(new Uint8Array(8), { format: "raw", dtype: "int32", shape: [2] });
  same<typeof raw, Tensor<"int32">>(true);
  const weights = await open("w.safetensors", { format: "safetensors", device: some.device });
  same<typeof weights, TensorFile>(true);
  const info: TensorInfo = weights.info(weights.names[0] ?? "");
  const tag: string = info.dtype; // of a dtype that is not supported what the file calls it
  same<typeof tag, string>(true);
  const options: LoadOptions = { dtype: array.dtype, device: undefined, signal: undefined };
  const others: OpenOptions = { ...options, headers: { Authorization: "" }, retries: 1 };
  const bias = await weights.get("bias", { dtype: "float16" });
  same<typeof bias, Tensor<"float16">>(true);
  for await (const [name, tensor] of weights) {
    same<typeof name, string>(true);
    tensor.release();
  }
  const by: string | undefined = weights.metadata["by"];
  weights.close();
  const nothing = await save({ some, bias }, { to: null as never, metadata: { by: "me" } });
  same<typeof nothing, undefined>(true);
  const blob = await save([["some", some]]);
  await open(blob, { format: "npz" });
  // @ts-expect-error: no format
  open(source, { format: "gguf" });
  // @ts-expect-error: progress
  open(source, { progres() {} });
  // @ts-expect-error: no source
  open(3);
  // @ts-expect-error: no tensors
  save({ a: 3 });
  // @ts-expect-error: metadata is of strings
  save({ some }, { metadata: { n: 1 } });
  void [others, by];
}

// --- errors --------------------------------------------------------------------------------------

export function errors(error: unknown): void {
  if (error instanceof KernelError) {
    same<typeof error.label, string>(true);
    const line: number | undefined = error.line;
    void line;
  }
  if (error instanceof DLPackError) {
    same<typeof error.given, unknown>(true);
    same<typeof error.needed, unknown>(true);
    const device: string | undefined = error.device;
    const cause: unknown = error.cause;
    void [device, cause];
  }
  const caught: readonly DLPackError[] = [new CopyError(""), new DeviceLostError("", { given: 1 })];
  const name: "UnsupportedError" = new UnsupportedError("", { cause: error }).name;
  void [caught, name];
}

// --- a typing error in any options is one ----------------------------------------------------------

export function typingErrors(
  { tensor, empty, toPython }: Bridge,
  some: Tensor,
  device: Device,
  pyodide: Parameters<typeof connect>[0],
): void {
  // @ts-expect-error: wheel
  connect(pyodide, { whell: "" });
  // @ts-expect-error: copy
  tensor(some, { cpoy: true });
  // @ts-expect-error: device
  empty([2], "float32", { devise: device });
  // @ts-expect-error: copy
  toPython(some, { cpoy: true });
  // @ts-expect-error: shape
  Tensor.fromTypedArray(new Float32Array(1), { shpae: [1] });
  // @ts-expect-error: release
  Tensor.fromMemory({ buffer: new ArrayBuffer(1) }, 0, { shape: [], dtype: "int8", relese() {} });
  // @ts-expect-error: byteOffset
  Tensor.fromGPUBuffer(some.buffer, { device, shape: [], dtype: "int8", byteOfset: 0 });
  // @ts-expect-error: dtype
  some.to(device, { dytpe: "float16" });
  // @ts-expect-error: convert
  some.write(some, { konvert: true });
  // @ts-expect-error: needs
  fit(some, { need: { offset: 0 } });
  // @ts-expect-error: padTo
  fit(some, { needs: { pad: 16 } });
  // @ts-expect-error: maxBufferSize
  webgpu.requestDevice({ maxBufersize: 1 });
  // @ts-expect-error: a limit is a number
  webgpu.requestDevice({ maxBufferSize: "1 GiB" });
  // @ts-expect-error: there are two
  webgpu.requestDevice({ powerPreference: "fast" });
  // @ts-expect-error: entry
  const kernel = new webgpu.Kernel(device, "", { entryPoint: "main" });
  // @ts-expect-error: workgroups
  kernel.run([some], { workgroup: 1 });
  // @ts-expect-error: operation
  new webgpu.ElementwiseKernel(device, { inputs: "f32 x", outputs: "f32 y", formula: "y = x" });
  // @ts-expect-error: channels
  webgpu.fromImage(device, null as never, { channel: 3 });
  // @ts-expect-error: 3 or 4
  webgpu.fromImage(device, null as never, { channels: 2 });
  // @ts-expect-error: cause
  new CopyError("", { caus: 1 });
}
