// The real libraries, on one device, for the cases; and ONNX models of one node.
import { shareDevice } from "/js/adapters/devices.js";

const ORT = "/libraries/ort/";

export async function loadOrt(build = "ort.webgpu.bundle.min.mjs") {
  const ort = await import(`${ORT}${build}`);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = ORT;
  ort.env.logLevel = "error";
  return ort;
}

const TRANSFORMERS = {
  3: {
    module: "/libraries/transformers-3/transformers.min.js",
    wasm: "/libraries/transformers-3/",
  },
  4: { module: "/libraries/transformers.mjs", wasm: "/libraries/transformers-4/" },
};

/** transformers.js, for models of {@link hub}. */
export async function loadTransformers(major) {
  const { module, wasm } = TRANSFORMERS[major];
  const transformers = await import(module);
  const { env } = transformers;
  const own = !(Symbol.for("onnxruntime") in globalThis);
  if (own) Object.assign(env.backends.onnx.wasm, { wasmPaths: wasm, numThreads: 1 });
  Object.assign(env, { useBrowserCache: false, useCustomCache: true, customCache: hub });
  Object.assign(env, { allowLocalModels: true, allowRemoteModels: false });
  return transformers;
}

/** In place of the model hub: BERT, as far as it doubles numbers. */
const hub = {
  async match(request) {
    const url = `${request.url ?? request}`;
    if (url.endsWith("config.json")) return Response.json({ model_type: "bert" });
    if (url.endsWith("model.onnx")) return new Response(model("Add", "float32", ["x"]));
    return undefined;
  },
  async put() {},
};

/** A model of transformers.js that computes `y = x + x` of float32. */
export function doubling({ AutoModel }, session_options, device = "webgpu") {
  const options = { device, dtype: "fp32", session_options };
  return AutoModel.from_pretrained("doubling", options);
}

/** LiteRT.js. It logs to console.error by default. */
export async function loadLiteRT() {
  globalThis.Module = { print() {}, printErr() {} };
  const litert = await import("/libraries/litert.mjs");
  if (!litert.getGlobalLiteRtPromise()) await litert.loadLiteRt("/libraries/litert/");
  await litert.getGlobalLiteRtPromise();
  return litert;
}

let promise;

/** `{device, ort, tf, jax, THREE, renderer, foreign}`; loaded once. */
export function libraries() {
  promise ??= load();
  return promise;
}

async function load() {
  const [ort, tf, jax, THREE] = await Promise.all([
    loadOrt(),
    import("/libraries/tfjs.mjs"),
    import("/libraries/jax.mjs"),
    import("/libraries/three.mjs"),
  ]);
  const renderer = rendererOf(THREE);
  const device = await shareDevice({ ort, tf, jax, ...(renderer && { three: renderer }) });
  const adapter = await navigator.gpu.requestAdapter();
  const foreign = await adapter.requestDevice({ label: "foreign" });
  return { device, ort, tf, jax, THREE, renderer, foreign };
}

/** null where no page is. */
function rendererOf(THREE) {
  if (!globalThis.OffscreenCanvas) return null;
  return new THREE.WebGPURenderer({ canvas: new OffscreenCanvas(8, 8) });
}

/** A session that computes `op` of its inputs, with results on the GPU. */
export async function session(ort, op, type, { inputs = ["x"], device = "webgpu" } = {}) {
  const options = { executionProviders: [device] };
  if (device === "webgpu") options.preferredOutputLocation = "gpu-buffer";
  return ort.InferenceSession.create(model(op, type, inputs), options);
}

// TensorProto.DataType of ONNX.
const TYPES = { float32: 1, uint8: 2, int32: 6, int64: 7, bool: 9, float16: 10, float64: 11 };

/** ModelProto, GraphProto, … of ONNX, with the field numbers of onnx.proto. */
export function model(op, type, inputs) {
  const shape = field(2, field(1, text(2, "N"))); // one axis of any length
  const value = (name) =>
    join(text(1, name), field(2, field(1, join(number(1, TYPES[type]), shape))));
  const nodeInputs = inputs.length === 1 && op === "Add" ? ["x", "x"] : inputs;
  const node = join(...nodeInputs.map((name) => text(1, name)), text(2, "y"), text(4, op));
  const graph = join(
    field(1, node),
    text(2, "graph"),
    ...inputs.map((name) => field(11, value(name))),
    field(12, value("y")),
  );
  return Uint8Array.from(join(number(1, 8), field(7, graph), field(8, number(2, 17))));
}

const join = (...parts) => parts.flat();
const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >> 7)]);
export const number = (id, n) => [...varint(id << 3), ...varint(n)];
export const field = (id, bytes) => [...varint((id << 3) | 2), ...varint(bytes.length), ...bytes];
export const text = (id, string) => field(id, [...new TextEncoder().encode(string)]);
