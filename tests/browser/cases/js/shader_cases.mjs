// What a kernel is given, against what its shader declares; and that no byte beside a tensor changes.
import { equal, Skip, throws } from "./expect.mjs";
import { gpu, keep } from "./gpu.mjs";

/** A shader that adds `by` to each element of `array<type>`. */
const add = (type, by = "1", more = "") => `${more}
@group(0) @binding(0) var<storage, read_write> x: array<${type}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] += ${by}; }
}`;

export async function dtypes_are_compared_with_their_bindings(context) {
  const { Kernel, device, empty, upload } = await gpu(context);
  const kernels = { f32: "f32", i32: "i32", u32: "u32" };
  for (const type of Object.keys(kernels)) kernels[type] = new Kernel(device, add(type));
  const right = {
    f32: ["float32", "complex64", "float32x2"],
    i32: ["int32"],
    u32: ["uint32", "uint8", "int8", "uint16", "bool", "float16", "bfloat16"],
  };
  for (const dtype of [...new Set(Object.values(right).flat()), "float64", "int64", "uint64"]) {
    const tensor = empty([4], dtype);
    for (const [type, kernel] of Object.entries(kernels)) {
      const run = () => kernel.run([tensor]);
      if (right[type].includes(dtype)) run();
      else await throws(run, "UnsupportedError", new RegExp(`is ${dtype}.*of ${type}`, "s"));
    }
    if (!(dtype in { float64: 1, int64: 1, uint64: 1 })) await tensor.read();
  }
  const wide = upload(new Float64Array([1]));
  const error = await throws(() => kernels.f32.run([wide]), "UnsupportedError", /dtype "float32"/);
  equal([error.given, error.needed], ["float64", "f32"]);
  equal([...(await wide.read())], [1], "nothing was done");
  // Who knows better says so.
  new Kernel(device, add("f32"), { check: false }).run([wide]);
  await wide.read();
}

export async function halves_are_f16_where_the_device_has_them(context) {
  const { Kernel, device, upload } = await gpu(context);
  if (!device.features.has("shader-f16")) throw new Skip("this device has no shader-f16");
  const kernel = new Kernel(device, add("f16", "1h", "enable f16;"));
  const tensor = upload(Uint16Array.of(0x3c00, 0x4000, 0x4200), {
    dtype: "float16",
  });
  kernel.run([tensor]);
  const bits = new Uint16Array((await tensor.read()).buffer);
  equal([...bits], [0x4000, 0x4200, 0x4400]);
  const single = upload(new Float32Array(2));
  await throws(() => kernel.run([single]), "UnsupportedError", /float32.*of f16/);
}

export async function where_workgroups_cannot_be_known_they_must_be_given(context) {
  const { Kernel, device, empty } = await gpu(context);
  const tensor = empty([4], "float32");
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
}

export async function numbers_are_uniforms_of_their_type(context) {
  const { Kernel, device, empty } = await gpu(context);
  const tensor = empty([1], "float32");
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
}

export async function immediates_are_refused_at_once(context) {
  const { Kernel, device } = await gpu(context);
  const make = () => new Kernel(device, add("f32", "by", "var<immediate> by: f32;"));
  await throws(make, "TypeError", /^by: numbers are for var<uniform> of f32, /);
}

export async function tensors_of_the_gpu_are_written_over_each_other(context) {
  const { empty, upload } = await gpu(context);
  const array = Float32Array.from({ length: 12 }, (_, i) => i);
  const matrix = upload(array, { shape: [3, 4] });
  const turned = keep(matrix.permute([1, 0]));
  // Strides cost a shader: that is the user's, who is told.
  const target = empty([4, 3], "float32");
  await throws(() => target.write(turned), "UnsupportedError", /strides \[1,4\].*read\(\)/);
  target.write(await turned.read());
  equal([...(await target.read())], [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
  // Within one buffer, disjoint or not.
  const flat = keep(matrix.reshape([12]));
  for (const [from, to] of [
    [0, 6],
    [4, 0],
    [1, 2],
  ]) {
    const [source, into] = [from, to].map((at) => keep(flat.slice([at, at + 4])));
    array.copyWithin(to, from, from + 4);
    into.write(source);
    equal([...(await flat.read())], [...array], `from ${from} to ${to}`);
  }
  // Bits are not taken for other numbers.
  for (const dtype of ["int32", "float16", "float64"]) {
    const other = empty([12], dtype);
    for (const convert of [false, true]) {
      await throws(() => other.write(flat, { convert }), "UnsupportedError", /cannot/).catch(
        (error) => {
          if (!/only uploads convert/.test(error.message)) throw error;
        },
      );
    }
    equal([...(await other.read())].some(Boolean), false, "nothing was written");
  }
}

export async function padding_shows_nothing_of_released_tensors(context) {
  const { Tensor, device, empty, upload } = await gpu(context);
  const { fit } = await import("/js/exchange/index.js");
  const poison = () => {
    const tensors = [16, 32, 48, 64, 256].map((bytes) => upload(new Uint8Array(bytes).fill(0xee)));
    for (const tensor of tensors) tensor.release();
  };
  /** All bytes of a tensor's buffer. */
  async function bytesOf(tensor) {
    const { buffer } = tensor;
    const options = { device, shape: [buffer.size], dtype: "uint8" };
    return [...(await keep(Tensor.fromGPUBuffer(buffer, options)).read())];
  }
  const source = upload(Uint8Array.from({ length: 64 }, () => 7));
  const makers = {
    upload: () => upload(new Uint8Array(5).fill(7)),
    empty: () => empty([5], "uint8"),
    contiguous: () => fit(keep(source.slice([4, 9])), { copy: true }),
    fit: () => fit(keep(source.slice([8, 13])), { needs: { offset: 0, padTo: 64 } }),
    "fit of a CPU tensor": () =>
      fit(keep(Tensor.fromTypedArray(new Uint8Array(5).fill(7))), { device, needs: { padTo: 64 } }),
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
  const odd = keep(source.slice([1, 6]));
  await throws(() => fit(odd, { copy: true }), "UnsupportedError", /multiple of 4/);
}
