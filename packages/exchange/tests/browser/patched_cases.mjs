// More than 500 lines: one list of cases, each beside what it breaks.
// Libraries with our patches (../../patches), which speak the exchange protocol: no adapter is used here;
// each function is a test.
import { fit, take } from "/js/exchange/index.js";
import { conformance, consumerConformance } from "/packages-js/exchange/index.js";
import { counted, equal, ok, PATIENCE, throws } from "/tests/browser/cases/js/expect.mjs";
import { keep, upload } from "/tests/browser/cases/js/gpu.mjs";
import { session } from "/tests/browser/libraries/libraries.mjs";

const EXCHANGE = Symbol.for("dlpack.exchange");
const EXCHANGE_ASYNC = Symbol.for("dlpack.exchange.async");
const range = (n, from = 0) => Float32Array.from({ length: n }, (_, i) => i + from);

let promise;

/** `{device, jax, ort, zarr, foreign}`: jax-js makes the page's device, and ORT's sessions find it. */
function libraries() {
  promise ??= load();
  return promise;
}

async function load() {
  const [jax, ort, zarr] = await Promise.all(
    ["jax", "ort", "zarrita"].map((name) => import(`/patched/${name}.mjs`)),
  );
  Object.assign(ort.env.wasm, { numThreads: 1, wasmPaths: "/libraries/ort/" });
  ort.env.logLevel = "error";
  await jax.init("webgpu");
  jax.defaultDevice("webgpu");
  const device = jax.getWebGPUDevice();
  const adapter = await navigator.gpu.requestAdapter();
  const foreign = await adapter.requestDevice({ label: "foreign" });
  return { device, jax, ort, zarr, foreign };
}

/** A chunk of zarrita, which was written and read. */
async function chunkOf(zarr, data, shape, options = {}) {
  const array = await zarr.create(zarr.root(), {
    dtype: options.dtype ?? "float32",
    shape,
    chunkShape: shape,
    ...options,
  });
  await zarr.set(array, null, { data, shape, stride: strides(shape) });
  return { array, chunk: await zarr.get(array) };
}

const strides = (shape) => shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));

/** A producer that counts how often its exchanges are released. */
function watched(x) {
  const seen = { made: 0, released: 0, request: undefined };
  const wrap = (exchange) => {
    seen.made++;
    let held = true;
    const release = (wrote) => {
      if (held) seen.released++;
      held = false;
      exchange.release(wrote);
    };
    return { ...exchange, release };
  };
  seen[EXCHANGE] = (request) => {
    seen.request = request;
    return wrap(x[EXCHANGE](request));
  };
  if (x[EXCHANGE_ASYNC]) {
    seen[EXCHANGE_ASYNC] = async (request) => wrap(await x[EXCHANGE_ASYNC](request));
  }
  return seen;
}

export async function jax_makes_the_pages_device_and_ort_runs_on_it(context) {
  const { device, ort, jax } = await libraries();
  ok((await globalThis[Symbol.for("dlpack.device")]) === device, "the page's device");
  const double = await session(ort, "Add", "float32");
  const { y } = await double.run({ x: new ort.Tensor("float32", range(4), [4]) });
  const exchange = y[EXCHANGE]();
  ok(exchange.device.gpu === device, "ORT's result is on it");
  exchange.release();
  y.dispose();
  ok(jax.getWebGPUDevice() === device, "and jax-js");
  ok(context.library.liveTensors() === 0, "no tensor of dlpack-web");
}

export async function jax_to_ort_and_back_on_one_buffer(context) {
  const { jax, ort } = await libraries();
  const double = await session(ort, "Add", "float32");
  const a = jax.numpy.add(jax.numpy.array(range(8)), 1);
  const feed = counted(context, () => ort.Tensor.fromExchange(a, { copy: false }), {});
  equal([feed.type, feed.dims, feed.location], ["float32", [8], "gpu-buffer"]);
  ok(feed.gpuBuffer === (await a.ref.gpuBuffer()), "ORT has the buffer of jax-js");
  equal(a.refCount, 2, "one reference is ORT's");
  const { y } = await double.run({ x: feed });
  feed.dispose();
  equal(a.refCount, 1, "which it gave back");
  const b = counted(context, () => jax.numpy.fromExchange(y, { copy: false }), {});
  equal([b.shape, b.dtype, b.device], [[8], "float32", "webgpu"]);
  ok((await b.ref.gpuBuffer()) === y.gpuBuffer, "jax-js has ORT's buffer");
  const { gpuBuffer } = y;
  y.dispose();
  // ORT would use the buffer again for this result, had it got it back.
  const again = ort.Tensor.fromExchange(a);
  const { y: next } = await double.run({ x: again });
  ok(next.gpuBuffer !== gpuBuffer, "the buffer is still that of jax-js");
  equal(await jax.numpy.multiply(b, 10).data(), [20, 40, 60, 80, 100, 120, 140, 160]);
  const more = [next];
  for (let i = 0; i < 3; i++) more.push((await double.run({ x: again })).y);
  ok(
    more.some((value) => value.gpuBuffer === gpuBuffer),
    "and ORT's again afterwards",
  );
  for (const value of [...more, again]) value.dispose();
  equal(a.refCount, 1, "references");
  a.dispose();
}

export async function a_buffer_without_padding_is_copied_once_for_ort(context) {
  const { jax, ort } = await libraries();
  const double = await session(ort, "Add", "float32");
  const a = jax.numpy.add(jax.numpy.array(range(5)), 1);
  await throws(() => ort.Tensor.fromExchange(a, { copy: false }), "CopyError", /copied/);
  equal(a.refCount, 1, "references after the refusal");
  const feed = counted(context, () => ort.Tensor.fromExchange(a), { gpu_copies: 1 });
  equal(a.refCount, 1, "references after the copy");
  ok(feed.gpuBuffer.size === 32, "padded to 16 bytes");
  const { y } = await double.run({ x: feed });
  equal(await y.getData(true), [2, 4, 6, 8, 10]);
  equal(await feed.getData(), [1, 2, 3, 4, 5]);
  const { gpuBuffer } = feed;
  const destroy = gpuBuffer.destroy.bind(gpuBuffer);
  let destroyed = 0;
  gpuBuffer.destroy = () => {
    destroyed++;
    destroy();
  };
  const exchange = feed[EXCHANGE]();
  feed.dispose();
  exchange.release();
  exchange.release();
  equal(destroyed, 1, "copies destroyed");
  a.dispose();
}

export async function tensors_of_ours_go_in_and_out(context) {
  const { jax, ort, device } = await libraries();
  const x = upload(context, range(8), device, { shape: [2, 4] });
  const seen = watched(x);
  const a = counted(context, () => jax.numpy.fromExchange(seen, { copy: false }), {});
  ok((await a.ref.gpuBuffer()) === x.buffer, "jax-js has the tensor's buffer");
  const feed = counted(context, () => ort.Tensor.fromExchange(x, { copy: false }), {});
  ok(feed.gpuBuffer === x.buffer, "and ORT");
  feed.dispose();
  const b = jax.numpy.square(a);
  const out = counted(context, () => take(b), {});
  equal([out.shape, out.readOnly, seen.released], [[2, 4], true, 1]);
  b.dispose();
  equal(
    await out.read(),
    range(8).map((v) => v * v),
  );
  out.release();
  const fresh = jax.numpy.fromExchange(x, { copy: true });
  const back = keep(take(fresh, { writes: true }));
  ok(!back.readOnly, "a copy may be written to");
  equal([...(await back.read())], [...range(8)]);
  fresh.dispose();
}

export async function jax_takes_views_of_a_buffer_as_they_are(context) {
  const { jax, ort, device } = await libraries();
  const { Tensor } = context.library;
  const whole = upload(context, range(24), device, { shape: [4, 6] });
  const at = { device, dtype: "float32" };
  const cases = [
    [{ shape: [6], byteOffset: 24 }, range(6, 6)],
    [
      { shape: [6, 4], strides: [1, 6] },
      Float32Array.from(range(24), (_, i) => 6 * (i % 4) + ((i / 4) | 0)),
    ],
    [{ shape: [2, 3], strides: [12, 2], byteOffset: 4 }, Float32Array.of(1, 3, 5, 13, 15, 17)],
    [{ shape: [3], strides: [-1], byteOffset: 8 }, Float32Array.of(2, 1, 0)],
    [{ shape: [2, 2], strides: [0, 1] }, Float32Array.of(0, 1, 0, 1)],
  ];
  for (const [options, expected] of cases) {
    const view = Tensor.fromGPUBuffer(whole.buffer, { ...at, ...options });
    const a = counted(context, () => jax.numpy.fromExchange(view, { copy: false }), {});
    equal([a.shape, [...(await jax.numpy.add(a, 0).data())]], [options.shape, [...expected]]);
    const copy = jax.numpy.fromExchange(view, { copy: true });
    equal([...(await copy.data())], [...expected], "copied");
    view.release();
  }
  whole.release();
  const none = upload(context, new Float32Array(0), device, { shape: [0, 3] });
  const a = jax.numpy.fromExchange(none);
  equal([a.shape, [...(await a.data())]], [[0, 3], []], "no elements");
  const feed = ort.Tensor.fromExchange(none);
  equal([feed.dims, [...(await feed.getData())]], [[0, 3], []]);
  feed.dispose();
}

export async function chunks_go_to_all_and_results_come_back(context) {
  const { jax, ort, zarr } = await libraries();
  const double = await session(ort, "Add", "float32");
  const { array, chunk } = await chunkOf(zarr, range(6, 1), [6]);
  const mine = counted(context, () => take(chunk, { copy: false }), {});
  ok(mine.data.buffer === chunk.data.buffer, "the chunk's memory");
  mine.data[0] = 7;
  mine.release();
  const feed = ort.Tensor.fromExchange(chunk, { copy: false });
  ok(feed.data.buffer === chunk.data.buffer, "ORT has the chunk's memory");
  const { y } = await double.run({ x: feed });
  feed.dispose();
  const a = jax.numpy.fromExchange(chunk);
  await throws(() => jax.numpy.fromExchange(chunk, { copy: false }), "CopyError", /on the CPU/);
  equal([a.device, ...(await a.ref.data())], ["webgpu", 7, 2, 3, 4, 5, 6]);

  await zarr.set(array, null, y);
  equal((await zarr.get(array)).data, [14, 4, 6, 8, 10, 12], "read back from ORT");
  const negative = jax.numpy.negative(a.ref);
  await zarr.set(array, null, negative);
  equal((await zarr.get(array)).data, [-7, -2, -3, -4, -5, -6], "and from jax-js");
  const part = a.ref.slice([0, 2]);
  await zarr.set(array, [zarr.slice(2, 4)], part);
  equal((await zarr.get(array)).data, [-7, -2, 7, 2, -5, -6], "a part");
  equal([a.refCount, negative.refCount, part.refCount], [1, 1, 1], "references");
  for (const each of [a, negative, part, y]) each.dispose();

  const columns = await chunkOf(zarr, range(6), [2, 3], { codecs: [transposed] });
  const raw = await columns.array.getChunk([0, 0]);
  equal([raw.stride, take(raw).release()], [[1, 2], undefined], "strides of a transposed chunk");
  equal([...ort.Tensor.fromExchange(raw).data], [...range(6)], "packed for ORT");
  const strided = jax.numpy.fromExchange(raw);
  equal([strided.shape, [...(await strided.data())]], [[2, 3], [...range(6)]]);

  const host = keep(
    context.bridge?.empty([6]) ?? context.library.Tensor.fromTypedArray(range(6, 3)),
  );
  const view = keep(await zarr.fromExchange(host));
  equal([view.shape, view.stride, view.data], [[6], [1], [...host.data]]);
}

const transposed = { name: "transpose", configuration: { order: [1, 0] } };

export async function every_dtype_arrives(context) {
  const { jax, ort, zarr, device } = await libraries();
  const { Tensor } = context.library;
  for (const [dtype, array] of [
    ["float32", range(5)],
    ["int32", Int32Array.of(1, -2, 3)],
    ["uint32", Uint32Array.of(1, 2, 4000000000)],
    ["bool", Uint8Array.of(1, 0, 1)],
  ]) {
    const x = Tensor.fromTypedArray(array, { dtype });
    const a = jax.numpy.fromExchange(x);
    equal([a.dtype, [...(await a.ref.data())]], [dtype, [...array]]);
    const back = take(a);
    equal([back.dtype, [...(await back.read())]], [dtype === "bool" ? "int32" : dtype, [...array]]);
    back.release();
    a.dispose();
    const feed = ort.Tensor.fromExchange(x);
    equal([feed.type, [...feed.data]], [dtype, [...array]]);
    feed.dispose();
    const chunk = await zarr.fromExchange(x);
    equal([...chunk.data].map(Number), [...array]);
    chunk.release();
    x.release();
  }
  const wide = upload(context, new BigInt64Array(2), device);
  await throws(() => jax.numpy.fromExchange(wide), "UnsupportedError", /dtype 0,64,1/);
  const feed = ort.Tensor.fromExchange(wide);
  equal([feed.type, [...(await feed.getData())]], ["int64", [0n, 0n]]);
  feed.dispose();
}

export async function what_cannot_be_is_refused_and_released(context) {
  const { jax, ort, zarr, device, foreign } = await libraries();
  const away = upload(context, range(4), foreign);
  const elsewhere = watched(away);
  await throws(() => jax.numpy.fromExchange(elsewhere), "DeviceError", /another device/);
  await throws(() => ort.Tensor.fromExchange(elsewhere, { device }), "DeviceError", /GPUDevice/);
  equal([elsewhere.made, elsewhere.released], [1, 1]);
  const strange = ort.Tensor.fromExchange(elsewhere);
  const double = await session(ort, "Add", "float32");
  await throws(() => double.run({ x: strange }), "DeviceError", /than the session/);
  strange.dispose();
  equal([elsewhere.made, elsewhere.released], [2, 2]);
  away.release();

  const a = jax.numpy.add(jax.numpy.array(range(4)), 1);
  const feed = ort.Tensor.fromExchange(a);
  const { chunk } = await chunkOf(zarr, range(4), [4]);
  for (const x of [a, feed]) {
    await throws(() => x[EXCHANGE]({ device: foreign }), "DeviceError", /device/);
    await throws(() => x[EXCHANGE]({ device: null }), "DeviceError", /device/);
    await throws(() => x[EXCHANGE_ASYNC]({ device: foreign }), "DeviceError", /device/);
    await throws(
      () => x[EXCHANGE]({ writes: true, copy: false }),
      "UnsupportedError",
      /change|only/,
    );
    const reason = new RangeError("enough");
    const signal = AbortSignal.abort(reason);
    await throws(() => x[EXCHANGE_ASYNC]({ device: null, signal }), "RangeError", /enough/);
    const read = await x[EXCHANGE_ASYNC]({ device: null });
    equal([read.flags, read.device.gpu, [...read.data]], [2, null, [1, 2, 3, 4]]);
    read.release();
  }
  equal(a.refCount, 2, "references");
  await throws(() => chunk[EXCHANGE]({ device }), "DeviceError", /CPU/);
  await throws(() => jax.numpy.fromExchange({}), "TypeError", /dlpack.exchange/);
  await throws(() => ort.Tensor.fromExchange(chunk.data), "TypeError", /dlpack.exchange/);
  await throws(() => zarr.fromExchange(null), "TypeError", /dlpack.exchange/);
  feed.dispose();
  await throws(() => feed[EXCHANGE](), "ReleasedError", /disposed/);
  a.dispose();
  await throws(() => a[EXCHANGE](), "ReleasedError", /freed/);
  chunk.data.buffer.transfer();
  await throws(() => chunk[EXCHANGE](), "ReleasedError", /transferred/);
  await throws(() => fit(new ort.Tensor("string", ["a"], [1])), "UnsupportedError", /string/);
}

export async function lies_are_found_out_and_released(context) {
  const { jax, ort, zarr, device } = await libraries();
  const x = upload(context, range(8), device);
  const host = keep(context.library.Tensor.fromTypedArray(range(8)));
  const consumers = [jax.numpy.fromExchange, ort.Tensor.fromExchange, zarr.fromExchange];
  // What the suite of the protocol (consumers_keep_every_rule) does not say.
  const lies = [
    { shape: [2 ** 40, 2 ** 40] },
    { dtype: { code: 2, bits: 32, lanes: 2 } },
    { flush: undefined },
  ];
  for (const producer of [x, host]) {
    for (const lie of lies) {
      for (const consume of consumers) {
        if (producer === x && consume === zarr.fromExchange) continue;
        let released = 0;
        const lying = {
          [EXCHANGE]: (request) => {
            const exchange = producer[EXCHANGE](request);
            const release = () => {
              released++;
              exchange.release();
              throw new Error("and so did the release");
            };
            return { ...exchange, ...lie, release };
          },
        };
        const message = `${JSON.stringify(lie)}`;
        await throws(() => consume(lying), "UnsupportedError", /./).catch((error) => {
          throw new Error(`${message}: ${error.message}`);
        });
        equal(released, 1, `releases for ${message}`);
      }
    }
  }
}

export async function memory_that_moves_is_copied() {
  const { jax, ort, zarr } = await libraries();
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Float32Array(memory.buffer, 16, 3).set([1, 2, 3]);
  const x = watched({
    [EXCHANGE]: () => ({
      version: [1, 0],
      device: { type: 1, id: 0, gpu: null },
      dtype: { code: 2, bits: 32, lanes: 1 },
      shape: [3],
      strides: null,
      data: { memory, ptr: 8 },
      byteOffset: 8,
      capacity: 12,
      flags: 0,
      flush: () => memory.grow(1),
      release() {},
    }),
  });
  equal(await jax.numpy.fromExchange(x).data(), [1, 2, 3]);
  equal(ort.Tensor.fromExchange(x).data, [1, 2, 3]);
  equal((await zarr.fromExchange(x)).data, [1, 2, 3]);
  equal([x.made, x.released], [3, 3]);
  for (const consume of [ort.Tensor.fromExchange, zarr.fromExchange]) {
    await throws(() => consume(x, { copy: false }), "CopyError", /copied|moves/);
  }
  equal([x.made, x.released], [5, 5]);
}

export async function faults_reach_who_reads_what_came_of_them(context) {
  const { jax, ort, device } = await libraries();
  const x = upload(context, range(8), device);
  const fault = Object.assign(new Error("the shader of somebody"), { name: "ShaderError" });
  const spoilt = (fields) => ({
    [EXCHANGE]: (request) => ({ ...x[EXCHANGE](request), fault: later, ...fields }),
  });
  const later = () => new Promise((resolve) => setTimeout(resolve, 5, fault));

  const a = jax.numpy.fromExchange(spoilt());
  const b = jax.numpy.add(a.ref, 1);
  const handed = b[EXCHANGE]();
  ok((await handed.fault()) === fault, "handed on while it is pending");
  handed.release();
  await throws(() => b.ref.data(), "ShaderError", /of somebody/);
  await throws(() => a.ref.data(), "ShaderError", /of somebody/);
  await throws(() => b[EXCHANGE](), "ShaderError", /of somebody/);
  for (const each of [a, b]) each.dispose();

  const double = await session(ort, "Add", "float32");
  const feed = ort.Tensor.fromExchange(spoilt());
  const again = feed[EXCHANGE]();
  ok((await again.fault()) === fault, "handed on by ORT");
  again.release();
  await throws(() => double.run({ x: feed }), "ShaderError", /of somebody/);
  await throws(() => feed[EXCHANGE](), "ShaderError", /of somebody/);
  await throws(() => feed.getData(), "ShaderError", /of somebody/);
  feed.dispose();

  // What version 1.0 said nothing of, and what is well.
  for (const fields of [{ version: [1, 0] }, { fault: () => null }, { fault: async () => null }]) {
    const c = jax.numpy.fromExchange(spoilt(fields));
    equal(await c.data(), range(8));
    const fine = ort.Tensor.fromExchange(spoilt(fields));
    const { y } = await double.run({ x: fine });
    equal(
      await y.getData(true),
      range(8).map((value) => 2 * value),
    );
    equal(await fine.getData(true), range(8));
  }
}

export async function producers_keep_every_rule() {
  const { jax, ort, zarr, device } = await libraries();
  const makers = {
    async jax({ dtype, shape, bytes, device: gpu }) {
      if (dtype === "float64" && gpu) return undefined;
      const options = { shape, dtype, device: gpu ? "webgpu" : "cpu" };
      const array = bytes.length
        ? jax.numpy.array(arrayOf(dtype, bytes), options)
        : jax.numpy.zeros(shape, options);
      return Object.assign(array, { release: () => array.dispose() });
    },
    async ort({ dtype, shape, bytes, device: gpu }) {
      const host = new ort.Tensor(dtype, arrayOf(dtype, bytes), [...shape]);
      const made = gpu ? await computed(ort, host) : host;
      return made && Object.assign(made, { release: () => made.dispose() });
    },
    async zarrita({ dtype, shape, bytes, device: gpu }) {
      if (gpu || shape.length === 0 || bytes.length === 0) return undefined;
      return (await chunkOf(zarr, arrayOf(dtype, bytes), [...shape], { dtype })).chunk;
    },
  };
  const ours = "float32 int32 uint32 float16 float64".split(" ");
  const all = [...ours, ..."bool int8 int16 int64 uint8 uint16 uint64".split(" ")];
  const dtypes = { jax: ours, ort: [...all, "int4", "uint4"], zarrita: all };
  for (const [name, make] of Object.entries(makers)) {
    const { rules } = await conformance({ make, device, dtypes: dtypes[name], ...PATIENCE });
    const broken = rules.filter((rule) => !rule.ok);
    equal(broken, [], `broken rules of ${name}`);
    ok(rules.filter((rule) => !rule.skipped).length > 30, `rules of ${name} were tested`);
  }
}

export async function consumers_keep_every_rule() {
  const { jax, ort, zarr, device } = await libraries();
  const consumers = {
    async jax(x, { device: gpu, copy }) {
      return jax.numpy.fromExchange(x, { copy, device: gpu ? "webgpu" : "cpu" }).data();
    },
    async ort(x, { device: gpu, copy }) {
      const tensor = ort.Tensor.fromExchange(x, { copy, device: gpu });
      const data = (await tensor.getData(true)).slice();
      tensor.dispose();
      return data;
    },
    async zarrita(x, { copy }) {
      const { data, shape, stride, release } = await zarr.fromExchange(x, { copy });
      const array = [...data];
      release();
      const at = (index) => index.reduce((sum, i, d) => sum + i * stride[d], 0);
      return indices(shape).map((index) => Number(array[at(index)]));
    },
  };
  for (const [name, consume] of Object.entries(consumers)) {
    const { rules } = await consumerConformance({ consume, device });
    const broken = rules.filter((rule) => !rule.ok);
    equal(broken, [], `broken rules of ${name}`);
    ok(rules.filter((rule) => !rule.skipped).length > 20, `rules of ${name} were tested`);
  }
}

/** All indices of a shape, in row-major order. */
function indices([size, ...shape]) {
  if (size === undefined) return [[]];
  const inner = indices(shape);
  return Array.from({ length: size }, (_, i) => inner.map((rest) => [i, ...rest])).flat();
}

const CLASSES = {
  float16: globalThis.Float16Array,
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
};

function arrayOf(dtype, { buffer }) {
  return new (CLASSES[dtype] ?? Uint8Array)(buffer);
}

const identities = {};

/** A result of a session on the GPU; undefined where it gives none. */
async function computed(ort, { type, data, dims, size }) {
  if (size === 0 || !["float32", "int32", "int64"].includes(type)) return undefined;
  identities[type] ??= session(ort, "Identity", type);
  const { y } = await (await identities[type]).run({ x: new ort.Tensor(type, data, [size]) });
  y.dims = dims;
  return y;
}
