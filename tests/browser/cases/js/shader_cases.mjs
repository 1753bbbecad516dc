// What a kernel is given, against what its shader declares; and that no byte beside a tensor changes.
import { equal, ok, Skip, throws } from "./expect.mjs";

let devicePromise;
function deviceOf({ library }) {
  devicePromise ??= library.webgpu.requestDevice();
  return devicePromise;
}

const releaseAll = (...tensors) => {
  for (const tensor of tensors) tensor.release();
};

/** A tensor on the GPU with the elements of a typed array. */
function upload({ library }, device, array, options) {
  const host = library.Tensor.fromTypedArray(array, options);
  const gpu = host.to(device);
  host.release();
  return gpu;
}

/** A shader that adds `by` to each element of `array<type>`. */
const add = (type, by = "1", more = "") => `${more}
@group(0) @binding(0) var<storage, read_write> x: array<${type}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] += ${by}; }
}`;

export async function dtypes_are_compared_with_their_bindings(context) {
  const device = await deviceOf(context);
  const { Kernel } = context.library.webgpu;
  const kernels = { f32: "f32", i32: "i32", u32: "u32" };
  for (const type of Object.keys(kernels)) kernels[type] = new Kernel(device, add(type));
  const right = {
    f32: ["float32", "complex64", "float32x2"],
    i32: ["int32"],
    u32: ["uint32", "uint8", "int8", "uint16", "bool", "float16", "bfloat16"],
  };
  for (const dtype of [...new Set(Object.values(right).flat()), "float64", "int64", "uint64"]) {
    const tensor = context.bridge.empty([4], dtype, { device });
    for (const [type, kernel] of Object.entries(kernels)) {
      const run = () => kernel.run([tensor]);
      if (right[type].includes(dtype)) run();
      else await throws(run, "UnsupportedError", new RegExp(`is ${dtype}.*of ${type}`, "s"));
    }
    if (!(dtype in { float64: 1, int64: 1, uint64: 1 })) await tensor.read();
    tensor.release();
  }
  const wide = upload(context, device, new Float64Array([1]));
  const error = await throws(() => kernels.f32.run([wide]), "UnsupportedError", /dtype "float32"/);
  equal([error.given, error.needed], ["float64", "f32"]);
  equal([...(await wide.read())], [1], "nothing was done");
  // Who knows better says so.
  new Kernel(device, add("f32"), { check: false }).run([wide]);
  await wide.read();
  wide.release();
}

export async function halves_are_f16_where_the_device_has_them(context) {
  const device = await deviceOf(context);
  if (!device.features.has("shader-f16")) throw new Skip("this device has no shader-f16");
  const { Kernel } = context.library.webgpu;
  const kernel = new Kernel(device, add("f16", "1h", "enable f16;"));
  const tensor = upload(context, device, Uint16Array.of(0x3c00, 0x4000, 0x4200), {
    dtype: "float16",
  });
  kernel.run([tensor]);
  const bits = new Uint16Array((await tensor.read()).buffer);
  equal([...bits], [0x4000, 0x4200, 0x4400]);
  const single = upload(context, device, new Float32Array(2));
  await throws(() => kernel.run([single]), "UnsupportedError", /float32.*of f16/);
  releaseAll(tensor, single);
}

export async function workgroups_are_one_for_each_element(context) {
  const device = await deviceOf(context);
  const { Kernel } = context.library.webgpu;
  const kernel = new Kernel(device, add("f32"));
  for (const length of [1, 63, 64, 65, 1000]) {
    const tensor = context.bridge.empty([length], "float32", { device });
    kernel.run([tensor]);
    ok(
      (await tensor.read()).every((value) => value === 1),
      `all ${length} elements`,
    );
    tensor.release();
  }
  const none = context.bridge.empty([0], "float32", { device });
  kernel.run([none]);
  equal((await none.read()).length, 0);
  const vectors = new Kernel(device, add("vec4f"));
  const rows = context.bridge.empty([5, 4], "float32", { device });
  vectors.run([rows]);
  ok(
    (await rows.read()).every((value) => value === 1),
    "rows as vec4f",
  );
  releaseAll(none, rows);
}

export async function where_workgroups_cannot_be_known_they_must_be_given(context) {
  const device = await deviceOf(context);
  const { Kernel } = context.library.webgpu;
  const tensor = context.bridge.empty([4], "float32", { device });
  const x = "@group(0) @binding(0) var<storage, read_write> x";
  for (const [wgsl, why] of [
    [`${x}: array<f32>; @compute @workgroup_size(8, 8) fn main() { x[0] = 1; }`, /several axes/],
    [
      `override N: u32 = 4; ${x}: array<f32>; @compute @workgroup_size(N) fn main() { x[0] = 1; }`,
      /not of numbers/,
    ],
    [`${x}: vec4f; @compute @workgroup_size(1) fn main() { x.x = 1; }`, /0, vec4f, are unknown/],
    [
      `@group(0) @binding(0) var<storage> x: array<f32>;
       @compute @workgroup_size(1) fn main() { _ = x[0]; }`,
      /writes to no binding/,
    ],
  ]) {
    const kernel = new Kernel(device, wgsl);
    await throws(() => kernel.run([tensor]), "UnsupportedError", why);
    kernel.run([tensor], { workgroups: 1 });
  }
  const kernel = new Kernel(device, add("f32"));
  for (const workgroups of [0, -1, 0.5, [], [1, 1, 1, 1], [65536], "1", Number.NaN]) {
    await throws(() => kernel.run([tensor], { workgroups }), "RangeError", /workgroups/);
  }
  await tensor.read();
  tensor.release();
}

export async function bindings_that_overlap_are_refused_or_copied(context) {
  const device = await deviceOf(context);
  const { Kernel } = context.library.webgpu;
  const two = new Kernel(
    device,
    `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
     @compute @workgroup_size(1) fn main() { x[0] += 1; y[0] += 10; }`,
  );
  const shift = new Kernel(
    device,
    `@group(0) @binding(0) var<storage, read> x: array<f32>;
     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
       if (id.x < arrayLength(&y)) { y[id.x] = x[id.x]; }
     }`,
  );
  const whole = upload(
    context,
    device,
    Float32Array.from({ length: 256 }, (_, i) => i),
  );
  const [low, high] = [whole.slice([0, 64]), whole.slice([64, 128])];
  const buffer = whole.buffer;
  const at = (first) =>
    context.library.Tensor.fromGPUBuffer(buffer, {
      device,
      shape: [4],
      dtype: "float32",
      byteOffset: 4 * first,
    });
  // Also where one or both of them cannot be bound where they are.
  const [head, second, fourth] = [whole.slice([0, 4]), whole.slice([1, 5]), at(4)];
  const before = context.library.webgpu.stats().map(({ copies }) => copies);
  for (const [one, other] of [
    [low, whole],
    [low, low],
    [head, second],
    [second, head],
    [second, second],
    [second, fourth],
    [fourth, low],
  ]) {
    await throws(() => two.run([one, other], { workgroups: 1 }), "UnsupportedError", /overlap/);
  }
  const counted = context.library.webgpu.stats().map(({ copies }) => copies);
  equal(counted, before, "nothing was put aside");
  two.run([head, fourth], { workgroups: 1 });
  equal([...(await whole.read()).subarray(0, 5)], [1, 1, 2, 3, 14]);
  whole.write(Float32Array.from({ length: 256 }, (_, i) => i));
  two.run([low, high], { workgroups: 1 });
  equal([...(await whole.read()).subarray(0, 2)], [1, 1]);
  equal((await high.read())[0], 74);
  // What is read while its neighbour, or itself, is written comes from a copy of before.
  const odd = whole.slice([1, 65]);
  shift.run([odd, low]);
  const after = await whole.read();
  equal([...after.subarray(0, 3)], [1, 2, 3]);
  equal([...after.subarray(62, 66)], [63, 74, 74, 65]);
  releaseAll(odd, low, high, whole, head, second, fourth);
}

export async function neighbours_keep_their_bytes(context) {
  const device = await deviceOf(context);
  const { Kernel } = context.library.webgpu;
  const kernel = new Kernel(device, add("u32", "0x01010101u"));
  for (const [from, to, fits] of [
    [4, 8, true],
    [256, 260, true],
    [8, 11, false],
    [256, 259, false],
    [5, 9, false],
    [508, 512, true],
  ]) {
    const bytes = Uint8Array.from({ length: 512 }, (_, i) => i & 127);
    const whole = upload(context, device, bytes);
    const view = whole.slice([from, to]);
    const expected = bytes.slice();
    if (fits) {
      kernel.run([view]);
      for (let i = from; i < to; i++) expected[i]++;
    } else await throws(() => kernel.run([view]), "UnsupportedError", /word|multiple/);
    equal([...(await whole.read())], [...expected], `after bytes ${from} to ${to}`);
    if (fits) {
      view.write(new Uint8Array(to - from).fill(200));
      expected.fill(200, from, to);
    } else {
      const write = () => view.write(new Uint8Array(to - from).fill(200));
      await throws(write, "UnsupportedError", /whole words/);
    }
    equal([...(await whole.read())], [...expected], `after writing bytes ${from} to ${to}`);
    releaseAll(view, whole);
  }
}

export async function numbers_are_uniforms_of_their_type(context) {
  const device = await deviceOf(context);
  const { Kernel } = context.library.webgpu;
  const tensor = context.bridge.empty([1], "float32", { device });
  const kernelOf = (type) =>
    new Kernel(
      device,
      `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
       @group(0) @binding(1) var<uniform> value: ${type};
       @compute @workgroup_size(1) fn main() { x[0] = f32(value); }`,
    );
  for (const [type, right, wrong] of [
    ["f32", [0.5, -1, 2 ** 60], [1e300, -1e39]],
    ["i32", [-3, 2 ** 31 - 1], [0.5, 2 ** 31, Number.NaN, Number.POSITIVE_INFINITY]],
    ["u32", [3, 2 ** 32 - 1], [-1, 0.5, 2 ** 32]],
  ]) {
    const kernel = kernelOf(type);
    for (const value of right) {
      kernel.run([tensor, value]);
      equal((await tensor.read())[0], Math.fround(value), `${type} ${value}`);
    }
    for (const value of wrong) {
      const words = new RegExp(`not a valid ${type}`);
      await throws(() => kernel.run([tensor, value]), "RangeError", words);
    }
    for (const value of ["1", true, null, undefined, 1n, {}]) {
      await throws(() => kernel.run([tensor, value]), "TypeError", /tensor/);
    }
  }
  const vector = kernelOf("vec2f").run.bind(kernelOf("vec2f"));
  await throws(() => vector([tensor, 1]), "TypeError", /f32, i32 and u32/);
  tensor.release();
}

export async function structures_are_uniforms_by_their_size(context) {
  const device = await deviceOf(context);
  const kernel = new context.library.webgpu.Kernel(
    device,
    `struct Params { scale: f32, bias: vec2f, count: u32 }
     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
     @group(0) @binding(1) var<uniform> params: Params;
     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
       if (id.x < params.count) { x[id.x] = params.scale * x[id.x] + params.bias.y; }
     }`,
  );
  // WGSL's layout: scale at 0, bias at 8, count at 16; 24 bytes in all.
  const words = new ArrayBuffer(24);
  new Float32Array(words).set([2, 0, 0, 10]);
  new Uint32Array(words)[4] = 2;
  const params = upload(context, device, new Uint8Array(words));
  const x = upload(context, device, Float32Array.of(1, 2, 3));
  kernel.run([x, params]);
  equal([...(await x.read())], [12, 14, 3]);
  const short = upload(context, device, new Uint8Array(16));
  await throws(() => kernel.run([x, short]), "UnsupportedError", /16 bytes.*needs 24/);
  const host = context.library.Tensor.fromTypedArray(new Uint8Array(24));
  const plain = host.to(device, { usage: 0x80 | 0x08 });
  await throws(() => kernel.run([x, plain]), "UnsupportedError", /UNIFORM/);
  releaseAll(host, params, x, plain, short);
}

export async function atomics_and_several_outputs(context) {
  const device = await deviceOf(context);
  const kernel = new context.library.webgpu.Kernel(
    device,
    `@group(0) @binding(0) var<storage, read> x: array<u32>;
     @group(0) @binding(1) var<storage, read_write> histogram: array<atomic<u32>>;
     @group(0) @binding(2) var<storage, read_write> doubled: array<u32>;
     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
       if (id.x >= arrayLength(&x)) { return; }
       atomicAdd(&histogram[x[id.x]], 1u);
       doubled[id.x] = 2 * x[id.x];
     }`,
  );
  const x = upload(context, device, Uint32Array.of(0, 1, 1, 3, 3, 3));
  const histogram = context.bridge.empty([4], "uint32", { device });
  const doubled = context.bridge.empty([6], "uint32", { device });
  kernel.run([x, histogram, doubled], { workgroups: 1 });
  equal([...(await histogram.read())], [1, 2, 0, 3]);
  equal([...(await doubled.read())], [0, 2, 2, 6, 6, 6]);
  const floats = context.bridge.empty([4], "float32", { device });
  const run = () => kernel.run([x, floats, doubled], { workgroups: 1 });
  await throws(run, "UnsupportedError", /float32/);
  releaseAll(x, histogram, doubled, floats);
}

export async function padding_of_structures_in_arrays_is_named(context) {
  const device = await deviceOf(context);
  const kernel = new context.library.webgpu.Kernel(device, add("vec3f"));
  const triples = context.bridge.empty([5, 3], "float32", { device });
  await throws(
    () => kernel.run([triples]),
    "UnsupportedError",
    /16 bytes apart: pad that axis to 4/,
  );
  const fours = context.bridge.empty([5, 4], "float32", { device });
  kernel.run([fours]);
  equal([...(await fours.read()).subarray(0, 8)], [1, 1, 1, 0, 1, 1, 1, 0]);
  releaseAll(triples, fours);
}

export async function views_at_any_offset_are_bound(context) {
  const device = await deviceOf(context);
  const { webgpu } = context.library;
  const kernel = new webgpu.Kernel(device, add("f32"));
  const whole = context.bridge.empty([300], "float32", { device });
  const name = `${whole.device}`;
  const copies = () => webgpu.stats().find((row) => row.device === name).copies;
  for (const [from, aside] of [
    [64, 0],
    [1, 2],
  ]) {
    const view = whole.slice([from, from + 3]);
    const before = copies();
    kernel.run([view]);
    equal(copies() - before > 0, aside > 0, `copies at element ${from}`);
    view.release();
  }
  const found = await whole.read();
  equal(
    [...found].flatMap((value, i) => (value ? [i] : [])),
    [1, 2, 3, 64, 65, 66],
  );
  whole.release();
}

export async function tensors_of_the_gpu_are_written_over_each_other(context) {
  const device = await deviceOf(context);
  const array = Float32Array.from({ length: 12 }, (_, i) => i);
  const matrix = upload(context, device, array, { shape: [3, 4] });
  const turned = matrix.permute([1, 0]);
  // Strides cost a shader: that is the user's, who is told.
  const target = context.bridge.empty([4, 3], "float32", { device });
  await throws(() => target.write(turned), "UnsupportedError", /strides \[1,4\].*read\(\)/);
  target.write(await turned.read());
  equal([...(await target.read())], [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
  // Within one buffer, disjoint or not.
  const flat = matrix.reshape([12]);
  const parts = [
    [0, 6],
    [4, 0],
    [1, 2],
  ];
  for (const [from, to] of parts) {
    const [source, into] = [flat.slice([from, from + 4]), flat.slice([to, to + 4])];
    array.copyWithin(to, from, from + 4);
    into.write(source);
    equal([...(await flat.read())], [...array], `from ${from} to ${to}`);
    releaseAll(source, into);
  }
  // Bits are not taken for other numbers.
  for (const dtype of ["int32", "float16", "float64"]) {
    const other = context.bridge.empty([12], dtype, { device });
    for (const convert of [false, true]) {
      await throws(() => other.write(flat, { convert }), "UnsupportedError", /cannot/).catch(
        (error) => {
          if (!/only uploads convert/.test(error.message)) throw error;
        },
      );
    }
    equal([...(await other.read())].some(Boolean), false, "nothing was written");
    other.release();
  }
  releaseAll(matrix, turned, target, flat);
}

export async function padding_shows_nothing_of_released_tensors(context) {
  const device = await deviceOf(context);
  const { fit } = await import("/js/exchange/index.js");
  const poison = () => {
    const tensors = [16, 32, 48, 64, 256].map((bytes) =>
      upload(context, device, new Uint8Array(bytes).fill(0xee)),
    );
    releaseAll(...tensors);
  };
  /** All bytes of a tensor's buffer. */
  async function bytesOf(tensor) {
    const { buffer } = tensor;
    const whole = context.library.Tensor.fromGPUBuffer(buffer, {
      device,
      shape: [buffer.size],
      dtype: "uint8",
    });
    const bytes = [...(await whole.read())];
    whole.release();
    return bytes;
  }
  const source = upload(
    context,
    device,
    Uint8Array.from({ length: 64 }, () => 7),
  );
  const makers = {
    upload: () => upload(context, device, new Uint8Array(5).fill(7)),
    empty: () => context.bridge.empty([5], "uint8", { device }),
    contiguous: () => {
      const view = source.slice([4, 9]);
      const made = fit(view, { copy: true });
      view.release();
      return made;
    },
    fit: () => {
      const view = source.slice([8, 13]);
      const made = fit(view, { needs: { offset: 0, padTo: 64 } });
      view.release();
      return made;
    },
    "fit of a CPU tensor": () => {
      const host = context.library.Tensor.fromTypedArray(new Uint8Array(5).fill(7));
      const made = fit(host, { device, needs: { padTo: 64 } });
      host.release();
      return made;
    },
  };
  for (const [what, make] of Object.entries(makers)) {
    poison();
    const tensor = make();
    const bytes = await bytesOf(tensor);
    const value = what === "empty" ? 0 : 7;
    equal(bytes, [...Array(5).fill(value), ...Array(bytes.length - 5).fill(0)], what);
    if (what.startsWith("fit")) equal(bytes.length % 64, 0, `padTo of ${what}`);
    tensor.release();
  }
  const odd = source.slice([1, 6]);
  await throws(() => fit(odd, { copy: true }), "UnsupportedError", /multiple of 4/);
  releaseAll(odd, source);
}
